"""Asynchronous successive halving."""

import inspect
import math

import pytest

from nni.hpo import ASHA, MOASHA, commands
from nni.hpo.commands import CommandType
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.factory import validate
from nni.testing import AdvisorDriver

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
Job = dict[str, JsonValue]


class StopCounter(AdvisorDriver):
    """Remembers whom the advisor stopped."""

    def __init__(self, advisor: ASHA) -> None:
        self.stopped: list[str] = []
        super().__init__(advisor, SPACE)

    def deliver(self, command: CommandType, data: JsonValue) -> None:
        if command is CommandType.KillTrialJob:
            self.stopped.append(data)
        else:
            super().deliver(command, data)

    def reported(self, job: Job, sequence: int, value: float) -> None:
        commands.connect(self)
        data = {
            "parameter_id": job["parameter_id"],
            "value": value,
            "trial_job_id": f"trial-{job['parameter_id']}",
            "type": "PERIODICAL",
            "sequence": sequence,
        }
        self.advisor.process_command(CommandType.ReportMetricData, data)
        commands.connect(None)


def finished(driver: AdvisorDriver, value: JsonValue) -> Job:
    (job,) = driver.request()
    driver.report(job, value)
    driver.end(job)
    return job


def test_the_best_of_three_goes_on_with_its_checkpoint() -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=9, seed=0), SPACE)
    jobs = [finished(driver, value) for value in (3.0, 1.0, 2.0)]

    (promoted,) = driver.request()

    best = jobs[1]["parameters"]
    parameters = promoted["parameters"]
    assert parameters["x"] == best["x"]
    assert (best["TRIAL_BUDGET"], parameters["TRIAL_BUDGET"]) == (1, 3)
    assert parameters["load_checkpoint_dir"] == best["save_checkpoint_dir"]
    assert parameters["save_checkpoint_dir"] != best["save_checkpoint_dir"]
    assert all("load_checkpoint_dir" not in job["parameters"] for job in jobs)


def test_a_request_never_waits() -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=9, seed=0), SPACE)

    assert len(driver.request(50)) == 50


def test_folders_that_no_trial_will_load_are_released() -> None:
    advisor = ASHA("minimize", max_budget=3, seed=0)
    driver = AdvisorDriver(advisor, SPACE)
    jobs = [finished(driver, value) for value in (3.0, 1.0, 2.0)]
    assert advisor.released_checkpoints() == []

    last = finished(driver, 0.5)

    assert advisor.released_checkpoints() == [
        jobs[1]["parameters"]["save_checkpoint_dir"],
        last["parameters"]["save_checkpoint_dir"],
    ]
    assert advisor.released_checkpoints() == []


def test_failed_and_repeated_ends_do_no_harm() -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=9, seed=0), SPACE)
    (job,) = driver.request()
    driver.end(job, "FAILED")
    driver.end(job, "FAILED")
    for value in (3.0, 1.0):
        finished(driver, value)

    (promoted,) = driver.request()

    assert promoted["parameters"]["TRIAL_BUDGET"] == 3


def test_stopping_ends_trials_that_are_not_among_the_best() -> None:
    driver = StopCounter(ASHA("minimize", max_budget=9, mode="stopping", seed=0))
    jobs = driver.request(6)
    for number, job in enumerate(jobs):
        driver.reported(job, 0, float(number))
    for job in jobs[:2]:
        driver.reported(job, 1, 0.0)
        driver.reported(job, 2, 0.0)

    assert all(job["parameters"]["TRIAL_BUDGET"] == 9 for job in jobs)
    assert driver.stopped == [f"trial-{job['parameter_id']}" for job in jobs[2:]]


def test_results_between_two_rungs_are_not_ranked() -> None:
    driver = StopCounter(ASHA("minimize", max_budget=9, mode="stopping", seed=0))
    jobs = driver.request(3)
    for job, better_and_better in zip(jobs, (3.0, 2.0, 1.0), strict=True):
        driver.reported(job, 0, better_and_better)

    stopped = []
    for sequence in (1, 2):  # budgets of 2, which is no rung, and 3
        for job, worse_and_worse in zip(jobs, (5.0, 6.0, 7.0), strict=True):
            driver.reported(job, sequence, worse_and_worse)
        stopped.append(list(driver.stopped))

    assert stopped[0] == []
    assert f"trial-{jobs[2]['parameter_id']}" in stopped[1]


def test_results_after_the_last_rung_are_ignored() -> None:
    driver = StopCounter(ASHA("minimize", max_budget=9, mode="stopping", seed=0))
    (job,) = driver.request()

    for sequence in range(12):
        driver.reported(job, sequence, 1.0)

    assert driver.stopped == []


@pytest.mark.parametrize(
    ("brackets", "budgets"), [(1, {1}), (2, {1, 3}), (3, {1, 3, 9}), (4, {1, 3, 9})]
)
def test_brackets_begin_at_different_budgets(brackets: int, budgets: set[int]) -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=9, brackets=brackets, seed=0), SPACE)

    assert {job["parameters"]["TRIAL_BUDGET"] for job in driver.request(60)} == budgets


def test_several_objectives_promote_what_is_not_beaten() -> None:
    modes = {"accuracy": "maximize", "latency": "minimize"}
    driver = AdvisorDriver(MOASHA(modes, max_budget=9, seed=0), SPACE)
    values = [(0.9, 9.0), (0.5, 1.0), (0.4, 9.0), (0.3, 9.0), (0.2, 9.0), (0.1, 9.0)]
    jobs = [finished(driver, {"accuracy": value[0], "latency": value[1]}) for value in values[:2]]
    jobs += driver.request(4)
    for job, (accuracy, latency) in zip(jobs[2:], values[2:], strict=True):
        driver.report(job, {"accuracy": accuracy, "latency": latency})
        driver.end(job)

    promoted = [job["parameters"]["x"] for job in driver.request(2)]

    assert sorted(promoted) == sorted(job["parameters"]["x"] for job in jobs[:2])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ASHA", {"eta": 1}, r"eta must be an int in \[2, 2147483647\], got 1"),
        (
            "ASHA",
            {"min_budget": 9, "max_budget": 3},
            "max_budget must be an int >= min_budget = 9",
        ),
        ("ASHA", {"mode": "stop"}, "mode must be one of 'promotion', 'stopping', got 'stop'"),
        ("ASHA", {"searcher": "TPEE"}, "did you mean 'TPE'"),
        ("ASHA", {"budget": 3}, "unknown argument 'budget'; known: optimize_mode, min_budget"),
        ("ASHA", {"optimize_mode": {"a": "maximize", "b": "minimize"}}, "use MOASHA"),
        ("MOASHA", {"optimize_mode": {}}, "optimize_mode must be"),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    name: str, arguments: dict[str, JsonValue], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        validate("advisor", name, arguments)


def test_names_of_its_own_keys_are_reserved() -> None:
    space = {"TRIAL_BUDGET": SPACE["x"]}

    with pytest.raises(ValueError, match="reserved in ASHA"):
        validate("advisor", "ASHA", {}, space)


class Recorder:
    """Searcher that draws 0.5 and records what it learns."""

    def __init__(self) -> None:
        self.learnt: list[tuple[int, float]] = []

    def draw(self) -> JsonValue:
        return {"x": 0.5}

    def learn(self, budget: int, configuration: JsonValue, loss: float) -> None:
        assert configuration == {"x": 0.5}
        self.learnt.append((budget, loss))


@pytest.mark.parametrize(
    ("mode", "intermediate", "final", "learnt"),
    [
        ("stopping", [], 0.25, [(9, 0.25)]),
        ("stopping", [3.0], 0.25, [(1, 3.0), (9, 0.25)]),
        ("stopping", [3.0], None, [(1, 3.0)]),
        ("stopping", [3.0, 2.0, 1.0], 0.25, [(1, 3.0), (3, 1.0), (9, 0.25)]),
        (
            "stopping",
            [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
            0.25,
            [(1, 9.0), (3, 7.0), (9, 1.0)],
        ),
        ("promotion", [3.0], 0.25, [(1, 0.25)]),
        ("promotion", [3.0], None, [(1, math.inf)]),
    ],
)
def test_result_of_a_trial_that_ends_counts_at_its_budget(
    mode: str, intermediate: list[float], final: float | None, learnt: list[tuple[int, float]]
) -> None:
    advisor = ASHA("minimize", max_budget=9, mode=mode, seed=0)
    driver = StopCounter(advisor)
    advisor._searcher = recorder = Recorder()
    (job,) = driver.request()
    for sequence, value in enumerate(intermediate):
        driver.reported(job, sequence, value)
    if final is not None:
        driver.report(job, final)
        driver.report(job, final - 1)
    driver.end(job)

    assert recorder.learnt == learnt
    assert driver.stopped == []


def test_stopped_trial_is_not_recorded_again_when_it_ends() -> None:
    advisor = ASHA("minimize", max_budget=9, mode="stopping", seed=0)
    driver = StopCounter(advisor)
    advisor._searcher = recorder = Recorder()
    for job, value in zip(driver.request(3), (1.0, 2.0, 3.0), strict=True):
        driver.reported(job, 0, value)
    driver.report(job, 3.0)
    driver.end(job)

    assert driver.stopped == [f"trial-{job['parameter_id']}"]
    assert recorder.learnt == [(1, 1.0), (1, 2.0), (1, 3.0)]


def test_priors_of_the_user_are_refused() -> None:
    space = {"x": {**SPACE["x"], "_prior": 0.5}}

    with pytest.raises(ValueError, match="ASHA"):
        validate("advisor", "ASHA", {}, space)
    with pytest.raises(ValueError, match="ASHA"):
        AdvisorDriver(ASHA(), space)


def test_lower_brackets_get_as_many_configurations_as_in_hyperband() -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=9, brackets=3, seed=0), SPACE)

    budgets = [job["parameters"]["TRIAL_BUDGET"] for job in driver.request(800)]

    # Shares of eta ** n / n for n rungs; the standard deviation at 800 draws is 0.018 at most.
    weights = {1: 27 / 3, 3: 9 / 2, 9: 3 / 1}
    for budget, weight in weights.items():
        assert abs(budgets.count(budget) / 800 - weight / sum(weights.values())) < 0.08


def test_there_is_one_bracket_unless_more_are_wanted() -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=9, seed=0), SPACE)

    assert {job["parameters"]["TRIAL_BUDGET"] for job in driver.request(40)} == {1}


class CommandCounter(AdvisorDriver):
    """Records the kinds of the commands that the advisor sends."""

    def __init__(self, advisor: ASHA, space: JsonValue) -> None:
        self.commands: list[CommandType] = []
        super().__init__(advisor, space)

    def deliver(self, command: CommandType, data: JsonValue) -> None:
        self.commands.append(command)
        super().deliver(command, data)


def test_end_of_the_configurations_is_sent() -> None:
    space = {"x": {"_type": "choice", "_value": [1, 2]}}
    driver = CommandCounter(ASHA("minimize", searcher="GridSearch", seed=0), space)
    driver.commands.clear()

    driver.request(3)

    started, ended = CommandType.NewTrialJob, CommandType.NoMoreTrialJobs
    assert driver.commands == [started, started, ended]


def test_last_rung_promotes_none() -> None:
    driver = AdvisorDriver(ASHA("minimize", max_budget=1, seed=0), SPACE)
    jobs = [finished(driver, value) for value in (1.0, 2.0, 3.0)]

    (job,) = driver.request()

    assert job["parameters"]["TRIAL_BUDGET"] == 1
    assert job["parameters"]["x"] not in [one["parameters"]["x"] for one in jobs]


def test_last_rung_stops_none() -> None:
    driver = StopCounter(ASHA("minimize", max_budget=1, mode="stopping", seed=0))

    for value, job in enumerate(driver.request(6)):
        driver.reported(job, 0, float(value))

    assert driver.stopped == []


def test_results_without_a_number_or_a_running_trial_are_ignored() -> None:
    advisor = ASHA("minimize", max_budget=9, mode="stopping", seed=0)
    driver = StopCounter(advisor)
    advisor._searcher = recorder = Recorder()
    (job,) = driver.request()

    driver.reported(job, 0, math.nan)
    driver.report(job, math.nan)
    driver.end(job)
    driver.reported(job, 0, 1.0)
    driver.report(job, 1.0)

    assert recorder.learnt == []
    assert driver.stopped == []


@pytest.mark.parametrize(
    ("arguments", "budgets"), [({"brackets": 5}, {1, 3, 9, 27, 81}), ({}, {1})]
)
def test_budgets_are_from_1_to_81_by_3_in_one_bracket_unless_given(
    arguments: dict[str, JsonValue], budgets: set[int]
) -> None:
    jobs = AdvisorDriver(ASHA(seed=0, **arguments), SPACE).request(90)

    assert {job["parameters"]["TRIAL_BUDGET"] for job in jobs} == budgets


@pytest.mark.parametrize("advisor", [ASHA, MOASHA])
@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("optimize_mode", "maximize"),
        ("min_budget", 1),
        ("max_budget", 81),
        ("eta", 3),
        ("brackets", 1),
        ("mode", "promotion"),
        ("seed", None),
    ],
)
def test_default_arguments_are_the_documented_ones(
    advisor: type[ASHA | MOASHA], argument: str, default: object
) -> None:
    assert inspect.signature(advisor).parameters[argument].default == default


def test_searcher_draws_from_the_prior_unless_another_is_given() -> None:
    assert inspect.signature(ASHA).parameters["searcher"].default == "Random"


@pytest.mark.parametrize("advisor", [ASHA, MOASHA])
def test_least_arguments_are_accepted(advisor: type[ASHA | MOASHA]) -> None:
    least = advisor(min_budget=1, max_budget=1, eta=2, brackets=1, seed=0)

    (job,) = AdvisorDriver(least, SPACE).request()

    assert job["parameters"]["TRIAL_BUDGET"] == 1


@pytest.mark.parametrize("advisor", ["ASHA", "MOASHA"])
@pytest.mark.parametrize(
    ("argument", "value"), [("min_budget", 0), ("max_budget", 0), ("eta", 1), ("brackets", 0)]
)
def test_arguments_below_the_least_are_refused(advisor: str, argument: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{argument} must be"):
        validate("advisor", advisor, {argument: value})
