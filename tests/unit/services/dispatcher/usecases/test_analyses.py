"""Analyses of spaces and results."""

from collections.abc import Sequence

import pytest

from nni.hpo.objectives import Objective, OutcomeLimit
from nni.hpo.space.feasibility import broken_constraints
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.ports import Importance, TrialOutcome
from svc_dispatcher.usecases.analyses import Analyses, find_front


class FixedMeter:
    """`ImportanceMeter` with a fixed answer."""

    async def measure(
        self,
        search_space: object,
        outcomes: Sequence[TrialOutcome],
        metric: str,
        optimize_mode: str,
    ) -> Importance:
        del search_space, metric, optimize_mode
        return Importance((("x", 1.0),), 0.0, len(outcomes))


OUTCOMES = [
    TrialOutcome("fast", None, {"accuracy": 0.7, "latency": 1.0}),
    TrialOutcome("good", None, {"accuracy": 0.9, "latency": 5.0}),
    TrialOutcome("worse", None, {"accuracy": 0.6, "latency": 2.0}),
    TrialOutcome("slow", None, {"accuracy": 0.99, "latency": 50.0}),
    TrialOutcome("partly", None, {"latency": 0.1}),
    TrialOutcome("plain", None, 0.5),
]
OBJECTIVES = [Objective("accuracy", "maximize"), Objective("latency", "minimize")]


def test_front_leaves_out_dominated_incomplete_and_infeasible_results() -> None:
    found = find_front(OUTCOMES, OBJECTIVES, [OutcomeLimit("latency", 10.0)])

    assert found.trial_ids == ("fast", "good")
    assert (found.infeasible, found.incomplete) == (2, 1)  # slow and plain; partly


def test_a_front_needs_an_objective() -> None:
    with pytest.raises(InvalidArgumentError, match="objectives must be 1 to 100"):
        find_front(OUTCOMES, [], [])


def test_broken_constraints_are_listed_per_configuration() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": ["x < 0.5"]}

    assert broken_constraints(space, [{"x": 0.1}, {"x": 0.7}]) == ["", "x < 0.5"]


async def test_importance_is_measured_elsewhere() -> None:
    found = await Analyses(FixedMeter()).importance({}, OUTCOMES, OBJECTIVES[0])

    assert found.outcomes == len(OUTCOMES)
