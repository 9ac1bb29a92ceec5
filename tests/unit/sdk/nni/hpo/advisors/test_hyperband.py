"""Hyperband."""

import inspect
from collections import Counter
from typing import Any

import pytest

from nni.algorithms.hpo.hyperband_advisor import Hyperband
from nni.hpo.advisors.hyperband import hyperband_rounds
from nni.testing import AdvisorDriver

SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "options": {"_type": "choice", "_value": [[1, 2], [3]]},
}
Pairs = list[tuple[int, int]]


def driver(**arguments: Any) -> AdvisorDriver:
    return AdvisorDriver(Hyperband(seed=0, **arguments), SPACE)


def finish(host: AdvisorDriver, job: dict[str, Any], value: float | None = None) -> None:
    host.report(job, job["parameters"]["x"] if value is None else value)
    host.end(job)


def pairs(largest: int, eta: int) -> list[Pairs]:
    """Rounds as (number, budget) of one pass."""
    found: list[Pairs] = []
    while True:
        rounds = hyperband_rounds(largest, eta, len(found))
        found.append([(entry.size, entry.budget) for entry in rounds])
        if len(rounds) == 1:
            return found


@pytest.mark.claim("hpo", 22)
def test_schedule_for_81_is_the_documented_table() -> None:
    assert pairs(81, 3) == [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        [(27, 3), (9, 9), (3, 27), (1, 81)],
        [(9, 9), (3, 27), (1, 81)],
        [(6, 27), (2, 81)],
        [(5, 81)],
    ]


@pytest.mark.claim("hpo", 22)
def test_number_of_brackets_does_not_suffer_from_rounding() -> None:
    assert len(pairs(243, 3)) == 6
    assert pairs(243, 3)[0][0] == (243, 1)
    assert len(pairs(1000, 10)) == 4


def test_after_the_last_bracket_comes_the_first() -> None:
    assert hyperband_rounds(81, 3, 5) == hyperband_rounds(81, 3, 0)


@pytest.mark.claim("hpo", 22)
def test_trials_follow_the_schedule() -> None:
    host = driver(R=9, exec_mode="serial")
    budgets = [job["parameters"]["TRIAL_BUDGET"] for job in host.play(13 + 4 + 3)]

    assert budgets == [1] * 9 + [3] * 3 + [9] + [3] * 3 + [9] + [9] * 3


@pytest.mark.claim("hpo", 23)
@pytest.mark.parametrize("mode", ["maximize", "minimize"])
def test_best_go_on_unchanged_but_for_the_budget(mode: str) -> None:
    host = driver(R=9, optimize_mode=mode)
    first = host.request(9)
    for job in first:
        finish(host, job)

    promoted = host.request(3)

    ranked = sorted(first, key=lambda job: job["parameters"]["x"], reverse=mode == "maximize")
    assert [job["parameters"] for job in promoted] == [
        {**job["parameters"], "TRIAL_BUDGET": 3} for job in ranked[:3]
    ]
    assert {job["parameter_id"] for job in promoted}.isdisjoint(j["parameter_id"] for j in first)


@pytest.mark.claim("hpo", 24)
def test_serial_waits_for_its_only_bracket() -> None:
    host = driver(R=9, exec_mode="serial")
    first = host.request(12)
    assert len(first) == 9

    for job in first[:8]:
        finish(host, job)
    assert not host.sent
    finish(host, first[8])

    waited = list(host.sent)
    assert [job["parameters"]["TRIAL_BUDGET"] for job in waited] == [3, 3, 3]
    assert {job["parameter_id"][0] for job in waited} == {"0"}


@pytest.mark.claim("hpo", 24)
def test_parallelism_opens_the_next_bracket() -> None:
    host = driver(R=9)

    jobs = host.request(9 + 3 + 3 + 1)

    budgets = [job["parameters"]["TRIAL_BUDGET"] for job in jobs]
    assert budgets == [1] * 9 + [3] * 3 + [9] * 3 + [1]


@pytest.mark.claim("hpo", 24)
def test_serial_never_has_two_open_brackets() -> None:
    host = driver(R=9, exec_mode="serial")
    running = host.request(4)
    for _ in range(60):
        assert len({job["parameter_id"].split("_")[0] for job in running}) <= 1
        finish(host, running.pop())
        running += host.request(1)


def test_failed_trials_rank_last_and_hold_nothing_up() -> None:
    host = driver(R=9, optimize_mode="minimize")
    first = host.request(9)
    for job in first[:7]:
        host.end(job, "FAILED")
    for job in first[7:]:
        finish(host, job, value=1e9)

    promoted = host.request(3)

    xs = [job["parameters"]["x"] for job in promoted]
    assert xs == [first[index]["parameters"]["x"] for index in (7, 8, 0)]


def test_intermediate_results_and_second_finals_do_not_rank() -> None:
    host = driver(R=3, optimize_mode="maximize")
    first = host.request(3)
    for value, job in enumerate(first):
        host.report(job, 100 - value, "PERIODICAL")
        host.report(job, value)
        host.report(job, 100 - value)
        host.end(job)

    (best,) = host.request(1)

    assert best["parameters"]["x"] == first[2]["parameters"]["x"]


def test_parameters_that_the_log_recorded_win() -> None:
    host = driver(R=3, optimize_mode="minimize")
    first = host.request(3)
    first[1]["parameters"]["x"] = 0.125
    for job in first:
        finish(host, job, value=0.0 if job is first[1] else 1.0)

    (best,) = host.request(1)

    assert best["parameters"] == {**first[1]["parameters"], "TRIAL_BUDGET": 3}


def test_configurations_of_a_first_round_are_of_the_prior() -> None:
    jobs = driver(R=81).request(81)

    counts = Counter(job["parameters"]["x"] < 0.5 for job in jobs)
    assert min(counts.values()) > 20  # four standard deviations of 81 coins below one half


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"R": 0}, r"R must be an int in \[1, 2147483647\]"),
        ({"eta": 1}, r"eta must be an int in \[2, 2147483647\]"),
        ({"exec_mode": "parallel"}, "exec_mode must be one of 'serial', 'parallelism'"),
        ({"optimize_mode": "max"}, "optimize_mode must be"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Hyperband(**arguments)


def test_name_of_the_budget_is_reserved() -> None:
    with pytest.raises(ValueError, match=r"TRIAL_BUDGET.*reserved in Hyperband"):
        AdvisorDriver(Hyperband(), {"TRIAL_BUDGET": SPACE["x"]})


def test_defaults_are_the_documented_ones() -> None:
    defaults, given = driver(), driver(R=60, eta=3)

    jobs = [[job["parameters"] for job in host.request(60)] for host in (defaults, given)]

    assert jobs[0] == jobs[1]
    assert max(job["TRIAL_BUDGET"] for job in jobs[0]) == 60


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("R", 60),
        ("eta", 3),
        ("optimize_mode", "maximize"),
        ("exec_mode", "parallelism"),
        ("seed", None),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(Hyperband).parameters[argument].default == default


def test_least_arguments_are_accepted() -> None:
    (job,) = driver(R=1, eta=2).request()

    assert job["parameters"]["TRIAL_BUDGET"] == 1
