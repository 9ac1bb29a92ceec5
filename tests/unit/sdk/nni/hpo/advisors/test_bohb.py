"""BOHB."""

import inspect
import math
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from nni.algorithms.hpo.bohb_advisor import BOHB
from nni.hpo.advisors.bohb import bohb_rounds
from nni.hpo.json_value import JsonValue
from nni.testing import AdvisorDriver

PLANE = {
    "x": {"_type": "uniform", "_value": [-1, 1]},
    "y": {"_type": "uniform", "_value": [-1, 1]},
}


def distance(parameters: dict[str, Any]) -> float:
    """From the optimum of the test problem."""
    return math.hypot(parameters["x"] - 0.5, parameters["y"] + 0.25)


def finish(host: AdvisorDriver, job: dict[str, Any], sign: float = 1.0) -> None:
    host.report(job, sign * distance(job["parameters"]) ** 2)
    host.end(job)


@pytest.mark.claim("hpo", 25)
def test_brackets_of_one_to_nine() -> None:
    rounds = [[(r.size, r.budget) for r in bohb_rounds(1, 9, 3, number)] for number in range(4)]

    assert rounds == [[(9, 1), (3, 3), (1, 9)], [(5, 3), (1, 9)], [(3, 9)], rounds[0]]


@pytest.mark.claim("hpo", 25)
def test_trials_follow_the_brackets_in_order() -> None:
    host = AdvisorDriver(BOHB("minimize", 1, 9, 3, seed=0), PLANE)
    budgets: list[int] = []
    for _ in range(13 + 6 + 3 + 1):
        (job,) = host.request()
        budgets.append(job["parameters"]["TRIAL_BUDGET"])
        finish(host, job)

    assert budgets == [1] * 9 + [3] * 3 + [9] + [3] * 5 + [9] + [9] * 3 + [1]


@pytest.mark.claim("hpo", 25)
def test_sample_without_a_budget_counts_for_the_largest() -> None:
    """With results enough on budget 9 alone, proposals follow them; with a budget beside, not."""
    near = [{"x": 0.5 + 0.01 * i, "y": -0.25 - 0.01 * i} for i in range(-2, 3)]
    far = [{"x": -0.8 + 0.05 * i, "y": 0.8 - 0.05 * i} for i in range(-2, 3)]
    samples = [{"parameter": p, "value": distance(p)} for p in near + far]
    misleading = [
        {"parameter": {**p, "TRIAL_BUDGET": 3}, "value": -distance(p)} for p in near + far
    ]
    host = AdvisorDriver(BOHB("minimize", 1, 9, 3, random_fraction=0.0, seed=0), PLANE)

    host.import_data(misleading + samples)

    proposed = [job["parameters"] for job in host.request(9)]
    assert median(map(distance, proposed)) < 0.3


@pytest.mark.claim("hpo", 26)
def test_too_few_results_mean_draws_of_the_prior() -> None:
    few = [{"parameter": {"x": 0.5, "y": -0.25}, "value": 0.0}] * 2

    def proposed(data: JsonValue) -> list[JsonValue]:
        host = AdvisorDriver(BOHB("minimize", 1, 9, 3, random_fraction=0.0, seed=3), PLANE)
        host.import_data(data)
        return [job["parameters"] for job in host.request(9)]

    assert proposed(few) == proposed([])
    assert proposed(few + few) != proposed([])


@pytest.mark.claim("hpo", 26)
@pytest.mark.parametrize(("mode", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_proposals_concentrate_near_the_optimum(mode: str, sign: float) -> None:
    distances: list[float] = []
    for seed in range(20):
        advisor = BOHB(mode, 1, 9, 3, random_fraction=0.0, seed=seed)
        host = AdvisorDriver(advisor, PLANE)
        for _ in range(80):
            (job,) = host.request()
            finish(host, job, sign)
        distances += [distance(advisor.get_config()) for _ in range(10)]

    # The mean distance of a draw of the prior from the optimum is 0.97.
    assert fmean(distances) < 0.25


@pytest.mark.claim("hpo", 27)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"min_budget": 0}, "min_budget must be an int in"),
        ({"min_budget": 3, "max_budget": 3}, "max_budget must be an int > min_budget = 3, got 3"),
        ({"eta": 1}, "eta must be an int in"),
        ({"top_n_percent": 0}, "top_n_percent must be an int in"),
        ({"top_n_percent": 100}, "top_n_percent must be an int in"),
        ({"config_space": "space.pcs"}, "config_space must be an absolute path"),
        (
            {"config_space": "/no/such/file.pcs"},
            "config_space must be .* file that exists",
        ),
        ({"random_fraction": "1/3"}, "random_fraction must be a number"),
        ({"min_points_in_model": 0}, "min_points_in_model must be an int in"),
        ({"optimize_mode": "max"}, "optimize_mode must be"),
        ({"exec_mode": "parallelism"}, "exec_mode must be"),
        ({"checkpoints": "yes"}, "checkpoints must be"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        BOHB(**arguments)


def test_only_one_bracket_is_open() -> None:
    host = AdvisorDriver(BOHB("minimize", 1, 9, 3, seed=0), PLANE)

    first = host.request(20)
    assert len(first) == 9
    for job in first:
        finish(host, job)

    assert [job["parameters"]["TRIAL_BUDGET"] for job in host.sent] == [3] * 3


def test_asynchronous_mode_serves_every_request_at_once() -> None:
    host = AdvisorDriver(BOHB("minimize", 1, 9, 3, exec_mode="asynchronous", seed=0), PLANE)

    first = host.request(9 + 5 + 3 + 2)
    budgets = [job["parameters"]["TRIAL_BUDGET"] for job in first]
    for job in first[:3]:
        finish(host, job)
    (next_one,) = host.request()

    assert budgets == [1] * 9 + [3] * 5 + [9] * 3 + [1] * 2
    assert next_one["parameters"]["TRIAL_BUDGET"] == 3
    best = min(first[:3], key=lambda job: distance(job["parameters"]))
    assert next_one["parameters"] == {**best["parameters"], "TRIAL_BUDGET": 3}


def test_checkpoints_lead_from_one_budget_to_the_next_and_are_given_back() -> None:
    advisor = BOHB("minimize", 1, 3, 3, checkpoints=True, seed=0)
    host = AdvisorDriver(advisor, PLANE)
    first = host.request(3)
    for job in first:
        finish(host, job)
    while_needed = advisor.released_checkpoints()

    (last,) = host.request()
    finish(host, last)

    best = min(first, key=lambda job: distance(job["parameters"]))
    assert while_needed == []
    assert last["parameters"]["load_checkpoint_dir"] == best["parameters"]["save_checkpoint_dir"]
    assert sorted(advisor.released_checkpoints()) == sorted(
        job["parameters"]["save_checkpoint_dir"] for job in [*first, last]
    )
    assert advisor.released_checkpoints() == []


def test_results_with_checkpoints_are_modelled() -> None:
    advisor = BOHB("minimize", 1, 9, 3, random_fraction=0.0, checkpoints=True, seed=0)
    host = AdvisorDriver(advisor, PLANE)
    for _ in range(60):
        (job,) = host.request()
        finish(host, job)

    assert fmean(distance(advisor.get_config()) for _ in range(10)) < 0.25


def test_places_of_failed_trials_are_avoided() -> None:
    """Where trials crash there is no number; the model must still learn to stay away."""
    crashes = 0
    for seed in range(10):
        advisor = BOHB("minimize", 1, 9, 3, random_fraction=0.0, seed=seed)
        host = AdvisorDriver(advisor, PLANE)
        for _ in range(80):
            (job,) = host.request()
            if job["parameters"]["x"] < 0:
                host.end(job, "FAILED")
            else:
                finish(host, job)
        crashes += sum(advisor.get_config()["x"] < 0 for _ in range(10))

    assert crashes < 15  # of 100; half of the prior crashes


def after(event: str) -> tuple[AdvisorDriver, BOHB]:
    """Return an advisor after trials of which those with a negative x ended so."""
    advisor = BOHB("minimize", 1, 9, 3, random_fraction=1.0, seed=0)
    host = AdvisorDriver(advisor, PLANE)
    for _ in range(60):
        (job,) = host.request()
        if job["parameters"]["x"] >= 0:
            host.report(job, distance(job["parameters"]))
        host.end(job, "SUCCEEDED" if job["parameters"]["x"] >= 0 else event)
    return host, advisor


def draws_after(event: str) -> list[Any]:
    """Return draws of the prior after trials of which those with a negative x ended so."""
    _, advisor = after(event)
    return [advisor.get_config()["x"] for _ in range(40)]


@pytest.mark.parametrize("event", ["USER_CANCELED", "SYS_CANCELED", "EARLY_STOPPED"])
def test_trial_that_was_ended_is_no_failed_one(event: str) -> None:
    # 10 of 40 draws or fewer are negative with a probability of 1e-3, and the seed is fixed.
    assert sum(x < 0 for x in draws_after(event)) > 10


def test_draws_are_thinned_where_trials_fail() -> None:
    assert sum(x < 0 for x in draws_after("FAILED")) <= 10


def test_where_all_trials_fail_draws_are_of_the_prior() -> None:
    host = AdvisorDriver(BOHB("minimize", 1, 9, 3, random_fraction=0.0, seed=0), PLANE)
    for _ in range(40):
        (job,) = host.request()
        host.end(job, "FAILED")

    assert host.request()


def test_new_space_drops_results_that_do_not_fit() -> None:
    advisor = BOHB("minimize", 1, 9, 3, random_fraction=0.0, seed=0)
    host = AdvisorDriver(advisor, PLANE)
    for _ in range(30):
        (job,) = host.request()
        finish(host, job)

    host.update_search_space({"x": {"_type": "uniform", "_value": [10, 20]}})

    assert all(10 <= advisor.get_config()["x"] <= 20 for _ in range(20))


def test_file_replaces_the_search_space(tmp_path: Path) -> None:
    path = tmp_path / "space.pcs"
    path.write_text("rate real [0.001, 1] [0.1] log\n")
    host = AdvisorDriver(BOHB(config_space=str(path), seed=0), PLANE)

    (job,) = host.request()

    assert job["parameters"].keys() == {"rate", "TRIAL_BUDGET"}


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "space.pcs"
    path.write_text("rate real [1, 0.001] [0.1]\n")

    with pytest.raises(ValueError, match=r"space\.pcs:1: 'rate' needs low <= default <= high"):
        BOHB(config_space=str(path))


@pytest.mark.parametrize(
    ("space", "text"),
    [
        ({"TRIAL_BUDGET": PLANE["x"]}, "reserved in BOHB"),
        ({"m": {"_type": "choice", "_value": [{"_name": "a"}]}}, "nested choice is not supported"),
    ],
)
def test_spaces_that_it_does_not_support_are_refused(space: JsonValue, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        AdvisorDriver(BOHB(), space)


def test_new_space_keeps_failures_that_fit() -> None:
    host, advisor = after("FAILED")

    for high in (2, 3):
        host.update_search_space({**PLANE, "y": {"_type": "uniform", "_value": [-1, high]}})

    # Half of 200 draws of the prior, less four standard deviations of 7.
    assert sum(advisor.get_config()["x"] < 0 for _ in range(200)) < 72


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"TRIAL_BUDGET": 0}, 0.0),
        ({"TRIAL_BUDGET": -3}, 0.0),
        ({"TRIAL_BUDGET": True}, 0.0),
        ({"TRIAL_BUDGET": "9"}, 0.0),
        ({}, "text"),
        ({}, math.nan),
        (None, 0.0),
    ],
)
def test_malformed_samples_are_skipped(changes: dict[str, Any] | None, value: JsonValue) -> None:
    def proposed(data: JsonValue) -> list[JsonValue]:
        host = AdvisorDriver(BOHB("minimize", 1, 9, 3, random_fraction=0.0, seed=3), PLANE)
        host.import_data(data)
        return [job["parameters"] for job in host.request(4)]

    parameter = None if changes is None else {"x": 0.5, "y": -0.25, **changes}

    assert proposed([{"parameter": parameter, "value": value}] * 6) == proposed([])


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("optimize_mode", "maximize"),
        ("min_budget", 1),
        ("max_budget", 3),
        ("eta", 3),
        ("min_points_in_model", None),
        ("top_n_percent", 15),
        ("num_samples", 64),
        ("random_fraction", 0.33),
        ("bandwidth_factor", 3.0),
        ("min_bandwidth", 0.001),
        ("config_space", None),
        ("exec_mode", "serial"),
        ("checkpoints", False),
        ("seed", None),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(BOHB).parameters[argument].default == default


@pytest.mark.parametrize(
    "arguments",
    [
        {"min_budget": 1, "max_budget": 2},
        {"eta": 2},
        {"min_points_in_model": 1},
        {"top_n_percent": 1},
        {"top_n_percent": 99},
        {"num_samples": 1},
        {"random_fraction": 0},
        {"random_fraction": 1},
        {"bandwidth_factor": 1e-9},
        {"min_bandwidth": 1e-9},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, Any]) -> None:
    host = AdvisorDriver(BOHB(**arguments, seed=0), PLANE)

    assert len(host.request()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_samples": 0},
        {"random_fraction": -0.01},
        {"random_fraction": 1.01},
        {"bandwidth_factor": 0},
        {"min_bandwidth": 0},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        BOHB(**arguments)
