"""The suite for advisors finds what it is there to find; its driver speaks as the host does."""

import json

import pytest

from nni.hpo import CommandType, Hyperband
from nni.hpo.json_value import JsonValue
from nni.testing import AdvisorConformance, AdvisorDriver

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class LeavesTheSpace(Hyperband):
    def send(self, command: CommandType, data: JsonValue) -> None:
        if command is CommandType.NewTrialJob:
            data["parameters"]["x"] += 1
        super().send(command, data)


class ForgetsARequest(Hyperband):
    def handle_request_trial_jobs(self, data: int) -> None:
        super().handle_request_trial_jobs(data - 1)


class TakesAnyType(Hyperband):
    def handle_report_metric_data(self, data: dict[str, JsonValue]) -> None:
        if data["type"] in {"PERIODICAL", "FINAL"}:
            super().handle_report_metric_data(data)


FAULTS = {
    LeavesTheSpace: "test_configurations_lie_in_the_space",
    ForgetsARequest: "test_no_request_is_forgotten",
    TakesAnyType: "test_unknown_metric_types_are_refused",
}


@pytest.mark.parametrize(("advisor", "test"), FAULTS.items())
def test_faulty_advisor_fails_the_test_for_its_fault(advisor: type[Hyperband], test: str) -> None:
    class Suite(AdvisorConformance):
        __test__ = False
        search_space = SPACE

        def make(self, seed: int) -> Hyperband:
            return advisor(seed=seed)

    with pytest.raises((AssertionError, pytest.fail.Exception, IndexError, ValueError)):
        getattr(Suite(), test)()


def test_driver_delivers_results_and_ends_as_the_host_does() -> None:
    host = AdvisorDriver(Hyperband(R=3, seed=0), SPACE)

    (job,) = host.request()
    host.report(job, 0.5)
    host.end(job)

    assert job["parameters"]["TRIAL_BUDGET"] == 1
    assert json.loads(json.dumps(job)) == job


def test_driver_plays_a_search() -> None:
    host = AdvisorDriver(Hyperband(R=3, seed=0), SPACE)

    assert len(list(host.play(7))) == 7
