"""The gRPC service of analyses, called without a server."""

from collections.abc import Sequence
from typing import Any

import pytest

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.ports import Importance, TrialOutcome
from svc_dispatcher.servicers.analysis_servicer import AnalysisServicer
from svc_dispatcher.usecases.analyses import Analyses
from tests.support.inline_checks import InlineChecks

CONTEXT: Any = None
"""Unused by all methods."""


class Meter:
    """`ImportanceMeter` that records its call."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, list[TrialOutcome], str, str]] = []

    async def measure(
        self,
        search_space: object,
        outcomes: Sequence[TrialOutcome],
        metric: str,
        optimize_mode: str,
    ) -> Importance:
        self.calls.append((search_space, list(outcomes), metric, optimize_mode))
        return Importance((("x", 0.75), ("y", 0.25)), 0.0, len(outcomes))


def outcome(trial_id: str, metric: Any, parameters: Any = None) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "metric": to_value(metric),
        "parameters": to_value(parameters),
    }


async def test_importance_is_measured_for_the_objective() -> None:
    meter = Meter()
    request = pb.MeasureImportanceRequest(search_space=to_value({"x": 1}))
    request.outcomes.add(**outcome("t", 0.5, {"x": 3}))
    request.objective.mode = metric_pb2.OPTIMIZE_MODE_MAXIMIZE

    answer = await AnalysisServicer(Analyses(meter), InlineChecks()).MeasureImportance(
        request, CONTEXT
    )

    assert [(item.name, item.share) for item in answer.parameters] == [("x", 0.75), ("y", 0.25)]
    assert answer.outcomes == 1
    assert meter.calls == [({"x": 1}, [TrialOutcome("t", {"x": 3}, 0.5)], "default", "maximize")]


async def test_front_counts_the_results_that_it_leaves_out() -> None:
    request = pb.FindParetoFrontRequest(
        objectives=[metric_pb2.Objective(metric="a"), metric_pb2.Objective(metric="b")]
    )
    for trial_id, metric in {
        "good": {"a": 1, "b": 2},
        "worse": {"a": 2, "b": 3},
        "slow": {"a": 1, "b": 9},
        "part": {"b": 1},
    }.items():
        request.outcomes.add(**outcome(trial_id, metric))
    request.constraints.add(metric="b", max=5)

    answer = await AnalysisServicer(Analyses(Meter()), InlineChecks()).FindParetoFront(
        request, CONTEXT
    )

    assert list(answer.trial_ids) == ["good"]
    assert (answer.infeasible, answer.incomplete) == (1, 1)


async def test_configurations_are_checked_one_by_one() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": ["x < 0.5"]}
    request = pb.CheckConfigurationsRequest(
        search_space=to_value(space), configurations=[to_value({"x": 0.1}), to_value({"x": 0.9})]
    )

    answer = await AnalysisServicer(Analyses(Meter()), InlineChecks()).CheckConfigurations(
        request, CONTEXT
    )

    assert list(answer.broken) == ["", "x < 0.5"]


async def test_unreadable_value_is_refused_by_its_field() -> None:
    request = pb.CheckConfigurationsRequest(search_space=value_pb2.Value(big_int_value="many"))

    with pytest.raises(InvalidArgumentError, match="search_space must be a readable value"):
        await AnalysisServicer(Analyses(Meter()), InlineChecks()).CheckConfigurations(
            request, CONTEXT
        )
