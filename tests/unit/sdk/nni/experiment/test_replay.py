from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.errors import ServiceFailedError
from nni.experiment.replay import ReplayDifference, replay
from nni_proto.experiment.v1 import history_service_pb2 as pb
from nni_proto.experiment.v1 import replay_pb2
from nni_wire.values import to_value


class Teller:
    """The one call of a manager that is used here."""

    def __init__(self, *messages: pb.ReplayExperimentResponse) -> None:
        self.messages = messages

    @property
    def client(self) -> ManagerClient:
        return cast("ManagerClient", self)

    def replay(self, experiment_id: str) -> Iterator[pb.ReplayExperimentResponse]:
        assert experiment_id == "exp"
        yield from self.messages


def test_messages_become_a_result() -> None:
    verdict = replay_pb2.ReplayVerdict(
        repeatable=False,
        suggestions=3,
        equal=2,
        generations=1,
        stops=2,
        equal_stops=1,
        missing_stops=["t9"],
        reason="because",
        changed_versions=[replay_pb2.ReplayVersion(name="numpy", recorded="1", present="2")],
    )
    difference = replay_pb2.ReplayDifference(
        generation=1, parameter_id=7, trial_id="t7", recorded=to_value({"x": 1}), parameter="x"
    )
    teller = Teller(
        pb.ReplayExperimentResponse(progress=replay_pb2.ReplayProgress(handled=1, total=9)),
        pb.ReplayExperimentResponse(difference=difference),
        pb.ReplayExperimentResponse(verdict=verdict),
    )
    steps: list[tuple[int, int]] = []

    result = replay(teller.client, "exp", lambda *step: steps.append(step))

    assert steps == [(1, 9)]
    assert (result.repeatable, result.suggestions, result.equal) == (False, 3, 2)
    assert (result.stops, result.equal_stops, result.missing_stops) == (2, 1, ("t9",))
    assert result.changed_versions == (("numpy", "1", "2"),)
    assert result.differences == (ReplayDifference(1, 7, "t7", {"x": 1}, None, "x"),)


def test_a_replay_without_a_verdict_broke_off() -> None:
    with pytest.raises(ServiceFailedError, match="broke off"):
        replay(Teller().client, "exp", lambda *_: None)
