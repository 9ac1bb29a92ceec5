"""Base of Hyperband and BOHB, with one bracket of two rounds."""

from typing import Any

import pytest

from nni.hpo.advisors._halving import Job, Round
from nni.hpo.advisors._halving_advisor import (
    CheckpointFolders,
    HalvingAdvisor,
    flat_space,
    without_budget,
)
from nni.hpo.json_value import JsonValue
from nni.testing import AdvisorDriver

SPACE = {"x": {"_type": "randint", "_value": [0, 100]}}
ROUNDS = (Round(2, 1), Round(1, 4))


class Counting(HalvingAdvisor):
    """Proposes 0, 1, 2, ...; records the results."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("minimize", **arguments)
        self.results: list[tuple[int, JsonValue, float]] = []
        self.failures: list[JsonValue] = []
        self._next = 0

    def handle_update_search_space(self, data: JsonValue) -> None:
        pass

    def rounds(self, number: int) -> tuple[Round, ...]:
        return ROUNDS

    def new_configuration(self) -> JsonValue:
        self._next += 1
        return {"x": self._next - 1}

    def new_result(self, budget: int, configuration: JsonValue, loss: float) -> None:
        self.results.append((budget, configuration, loss))

    def new_failure(self, configuration: JsonValue) -> None:
        self.failures.append(configuration)


def driven(**arguments: Any) -> tuple[AdvisorDriver, Counting]:
    advisor = Counting(**{"parallel": False, **arguments})
    return AdvisorDriver(advisor, SPACE), advisor


def finish(host: AdvisorDriver, job: dict[str, Any], value: float) -> None:
    host.report(job, value)
    host.end(job)


def test_promoted_configuration_gets_the_larger_budget() -> None:
    host, advisor = driven()
    first, second = host.request(2)
    finish(host, first, 0.9)
    finish(host, second, 0.1)

    (promoted,) = host.request(1)

    assert promoted["parameters"] == {"x": 1, "TRIAL_BUDGET": 4}
    assert advisor.results == [(1, {"x": 0}, 0.9), (1, {"x": 1}, 0.1)]


def test_request_waits_for_results_unless_brackets_are_parallel() -> None:
    serial, _ = driven()
    parallel, _ = driven(parallel=True)

    assert len(serial.request(3)) == 2
    assert [job["parameter_id"] for job in parallel.request(3)] == ["0_0_0", "0_0_1", "1_0_0"]


def test_metric_of_an_unknown_type_is_refused() -> None:
    _, advisor = driven()

    with pytest.raises(ValueError, match="type of a metric must be"):
        advisor.handle_report_metric_data({"type": "FINISHED"})


def test_duplicate_end_has_no_effect() -> None:
    host, advisor = driven()
    first, _ = host.request(2)
    finish(host, first, 0.9)
    host.end(first)

    assert len(advisor.results) == 1


@pytest.mark.parametrize("event", ["FAILED", "SUCCEEDED"])
def test_trial_that_ends_by_itself_without_a_result_has_failed(event: str) -> None:
    host, advisor = driven()
    first, second = host.request(2)

    host.end(first, event)
    finish(host, second, 0.1)

    assert advisor.failures == [{"x": 0}]


@pytest.mark.parametrize("event", ["EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED"])
def test_trial_that_was_ended_has_not_failed(event: str) -> None:
    host, advisor = driven()
    (job, _) = host.request(2)

    host.end(job, event)

    assert advisor.failures == []


def test_first_final_result_of_a_trial_counts() -> None:
    host, advisor = driven()
    (job, _) = host.request(2)

    host.report(job, 9.0, kind="PERIODICAL")
    host.report(job, "text")
    host.report(job, 0.5)
    finish(host, job, 0.1)

    assert advisor.results == [(1, {"x": 0}, 0.5)]


def test_folder_of_a_loser_is_released_with_its_bracket() -> None:
    folders = CheckpointFolders()
    start, promoted = Job(0, 0, 0, 1, None), Job(0, 1, 0, 4, {}, "0_0_0")
    folders.of(start)
    loads = folders.of(promoted)

    folders.end(promoted, bracket_finished=True)

    assert len(loads) == 2
    assert [path.rpartition("/")[2] for path in folders.released()] == [
        "0_0_0",
        "0_1_0",
    ]
    assert folders.released() == []


def test_keys_of_the_advisor_are_taken_away() -> None:
    assert without_budget({"x": 1, "TRIAL_BUDGET": 9}) == {"x": 1}


@pytest.mark.parametrize(
    "space",
    [
        {"TRIAL_BUDGET": {"_type": "randint", "_value": [0, 2]}},
        {"x": {"_type": "choice", "_value": [{"_name": "a"}]}},
    ],
)
def test_reserved_names_and_branches_are_refused(space: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Hyperband"):
        flat_space(space, "Hyperband")


class Wide(Counting):
    """Has a first round of four."""

    def rounds(self, number: int) -> tuple[Round, ...]:
        return (Round(4, 1), Round(2, 4))


@pytest.mark.parametrize(("arguments", "budget"), [({}, 1), ({"asynchronous": True}, 4)])
def test_asynchronous_advisor_promotes_before_a_round_is_complete(
    arguments: dict[str, bool], budget: int
) -> None:
    host = AdvisorDriver(Wide(parallel=True, **arguments), SPACE)
    for job in host.request(4)[:2]:
        finish(host, job, 0.5)

    (following,) = host.request()

    assert following["parameters"]["TRIAL_BUDGET"] == budget


def test_folders_are_released_once_their_bracket_is_finished() -> None:
    host, advisor = driven(checkpoints=True)
    first, second = host.request(2)
    finish(host, first, 0.9)
    finish(host, second, 0.1)
    while_open = advisor.released_checkpoints()
    (last,) = host.request(1)
    finish(host, last, 0.1)

    folders = [job["parameters"]["save_checkpoint_dir"] for job in (first, second, last)]
    assert while_open == []
    assert sorted(advisor.released_checkpoints()) == sorted(folders)
    assert advisor.released_checkpoints() == []


def test_advisor_without_checkpoints_releases_none_and_passes_none_on() -> None:
    host, advisor = driven()
    (job, _) = host.request(2)
    finish(host, job, 0.9)

    assert job["parameters"].keys() == {"x", "TRIAL_BUDGET"}
    assert advisor.released_checkpoints() == []
