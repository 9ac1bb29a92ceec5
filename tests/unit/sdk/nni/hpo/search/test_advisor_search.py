"""Advisors in one process: budgets, checkpoints and early stopping of `optimize`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nni.hpo import NoImprovement, NoMoreTrialError, TrialPruned, commands, optimize
from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.advisors.asha import ASHA
from nni.hpo.commands import CommandType
from nni.hpo.objectives import MINIMIZED, Objectives, objectives_of
from nni.hpo.search.advisor_search import AdvisorSearch
from nni.hpo.search.optimization import OptimizeResult

SPACE = {"x": {"_type": "uniform", "_value": [-5, 5]}}
NAMED = [
    ("ASHA", {"max_budget": 9}),
    ("ASHA", {"max_budget": 9, "mode": "stopping"}),
    ("Hyperband", {"R": 9}),
    ("BOHB", {"min_budget": 1, "max_budget": 9}),
]


def training(parameters: dict[str, Any]) -> Iterator[float]:
    """Yield a loss per step, from the checkpoint on if there is one."""
    step = 0
    if "load_checkpoint_dir" in parameters:
        step = int((Path(parameters["load_checkpoint_dir"]) / "step").read_text())
    while step < parameters["TRIAL_BUDGET"]:
        step += 1
        yield (parameters["x"] - 1) ** 2 + 1 / step
    if "save_checkpoint_dir" in parameters:
        (Path(parameters["save_checkpoint_dir"]) / "step").write_text(str(step))


def run(name: str, arguments: dict[str, Any], **more: Any) -> OptimizeResult:
    return optimize(
        training, SPACE, advisor=name, advisor_args=arguments, trials=40, seed=1, **more
    )


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(("name", "arguments"), NAMED)
def test_named_advisor_spends_little_on_bad_configurations(
    name: str, arguments: dict[str, Any], concurrency: int
) -> None:
    result = run(name, arguments, concurrency=concurrency)

    budgets = [len(record.intermediate) for record in result.trials]
    assert len(result.trials) == 40
    assert len(set(budgets)) > 1
    assert sum(budgets) < 40 * 9 / 2
    assert result.best_parameters["TRIAL_BUDGET"] == 9
    assert result.best_value == min(r.value for r in result.trials if r.value is not None)


@pytest.mark.parametrize(("name", "arguments"), NAMED)
def test_seed_makes_it_repeatable(name: str, arguments: dict[str, Any]) -> None:
    first, second = run(name, arguments), run(name, arguments)

    assert [r.value for r in first.trials] == [r.value for r in second.trials]


def test_promoted_trial_goes_on_from_the_checkpoint_of_its_own_search() -> None:
    result = run("ASHA", {"max_budget": 9})

    promoted = [r for r in result.trials if "load_checkpoint_dir" in r.parameters]
    assert promoted
    for record in promoted:
        budget = record.parameters["TRIAL_BUDGET"]
        assert len(record.intermediate) == budget - budget // 3
        assert not Path(record.parameters["load_checkpoint_dir"]).exists()  # gone with the search
    assert "load_checkpoint_dir" not in result.best_parameters


def test_trial_that_is_given_up_is_closed() -> None:
    closed = []

    def objective(parameters: dict[str, Any]) -> Iterator[float]:
        try:
            yield from training(parameters)
        except GeneratorExit:
            closed.append(parameters["x"])
            raise

    result = optimize(
        objective, SPACE, advisor=ASHA("minimize", max_budget=9, mode="stopping", seed=0), trials=20
    )

    stopped = [r.parameters["x"] for r in result.trials if r.status == "EARLY_STOPPED"]
    assert stopped
    assert closed == stopped


def test_several_objectives_give_a_front() -> None:
    def objective(parameters: dict[str, Any]) -> dict[str, float]:
        return {"loss": parameters["x"] ** 2, "size": (parameters["x"] - 2) ** 2}

    result = optimize(
        objective, SPACE, advisor="MOASHA", trials=30, seed=0,
        optimize_mode={"loss": "minimize", "size": "minimize"},
    )  # fmt: skip

    assert len(result.pareto_front) > 1


def test_one_named_metric_is_what_the_advisor_sees() -> None:
    def objective(parameters: dict[str, Any]) -> dict[str, float]:
        return {"accuracy": -((parameters["x"] - 1) ** 2), "seconds": 1.0}

    result = optimize(
        objective, SPACE, advisor="BOHB", advisor_args={"min_budget": 1, "max_budget": 3},
        trials=60, seed=0, optimize_mode={"accuracy": "maximize"},
    )  # fmt: skip

    assert result.best_value > -0.05


def test_failed_trial_does_not_end_the_search() -> None:
    def objective(parameters: dict[str, Any]) -> float:
        if parameters["x"] < 0:
            raise OSError("no room")
        return float(parameters["x"])

    result = optimize(
        objective, SPACE, advisor="Hyperband", advisor_args={"R": 9}, trials=30, seed=0
    )

    assert {r.status for r in result.trials} == {"SUCCEEDED", "FAILED"}
    assert len(result.trials) == 30


def test_first_configurations_earlier_results_and_rules_count() -> None:
    result = optimize(
        lambda parameters: (parameters["x"] - 1) ** 2, SPACE, advisor="ASHA", trials=200, seed=0,
        enqueue=[{"x": 1.0}], warm_start_from=[{"parameter": {"x": 2.0}, "value": 1.0}],
        stop=NoImprovement(10),
    )  # fmt: skip

    assert result.trials[0].parameters == {"x": 1.0}
    assert result.best_value == 0
    assert len(result.trials) < 50
    assert "10" in result.stopped_because


class Raising(MsgDispatcherBase):
    """Raises at the first result."""

    def load_checkpoint(self) -> None:
        """Keep nothing."""

    save_checkpoint = load_checkpoint

    def handle_initialize(self, data: object) -> None:
        self.send(CommandType.Initialized, "")

    def handle_request_trial_jobs(self, data: int) -> None:
        for number in range(data):
            self.send(CommandType.NewTrialJob, {"parameter_id": number, "parameters": {"x": 1}})

    def handle_report_metric_data(self, data: object) -> None:
        raise ArithmeticError("cannot learn")

    def handle_update_search_space(self, data: object) -> None: ...

    def handle_import_data(self, data: object) -> None: ...

    def handle_add_customized_trial(self, data: object) -> None: ...

    def handle_trial_end(self, data: object) -> None: ...


class Listening(Raising):
    """Advisor that records how trials have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    def handle_trial_end(self, data: Any) -> None:
        self.ended.append(data["event"])


def test_trial_that_ends_itself_early_has_not_failed() -> None:
    advisor = Listening()

    def objective(_: object) -> float:
        raise TrialPruned

    with pytest.raises(ValueError, match="none of 1 trials gave a finite number"):
        optimize(objective, SPACE, advisor=advisor, trials=1)

    assert advisor.ended == ["EARLY_STOPPED"]


def test_advisor_that_raises_ends_the_search_with_its_words() -> None:
    with pytest.raises(RuntimeError, match="cannot learn"):
        optimize(lambda _: 1.0, SPACE, advisor=Raising(), trials=5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"advisor": "ASHA", "tuner": "TPE"}, "left out with an advisor"),
        ({"advisor": "ASHA", "assessor": "Medianstop"}, "left out with an advisor"),
        ({"advisor": "ASHA", "constraints": [{"metric": "a", "max": 1}]}, "constraints must"),
        ({"advisor": "ASHA", "duplicates": "reuse"}, "duplicates must be 'replicate'"),
        ({"advisor": "ASHAA"}, "did you mean 'ASHA'"),
        ({"advisor": "ASHA", "advisor_args": {"eta": 1}}, "eta"),
        ({"advisor": ASHA(), "advisor_args": {"eta": 3}}, "advisor is an object"),
        ({"advisor_args": {"eta": 3}}, "without an advisor"),
        ({"tuner": "ASHA"}, "ASHA is a name for advisor"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_first_trial(
    arguments: dict[str, Any], words: str
) -> None:
    def objective(_: object) -> float:
        pytest.fail("called")

    with pytest.raises(ValueError, match=words):
        optimize(objective, SPACE, **arguments)


def test_typed_space_is_refused_with_the_remedy() -> None:
    def objective(x: int) -> float:
        return x

    with pytest.raises(ValueError, match=r"nni.hpo.search_space"):
        optimize(objective, objective, advisor="ASHA")


def test_first_configuration_must_keep_the_constraints() -> None:
    space = SPACE | {"_constraints": ["x > 0"]}

    with pytest.raises(ValueError, match="must keep the constraint x > 0"):
        AdvisorSearch(ASHA(), space, MINIMIZED, first=[{"x": -1}])


class Recording(Listening):
    """Advisor that records imported samples and reported results."""

    def __init__(self) -> None:
        super().__init__()
        self.imported: list[Any] = []
        self.reported: list[tuple[str, int, Any]] = []

    def handle_import_data(self, data: Any) -> None:
        self.imported += data

    def handle_report_metric_data(self, data: Any) -> None:
        self.reported.append((data["type"], data["sequence"], data["value"]))


def test_earlier_results_and_those_of_first_configurations_are_imported() -> None:
    advisor = Recording()
    known = [{"parameter": {"x": 2.0}, "value": 1.0}]
    search = AdvisorSearch(advisor, SPACE, MINIMIZED, first=[{"x": 3.0}, {"x": 4.0}], known=known)
    first, second = search.ask(), search.ask()

    search.tell(first.id, 9.0)
    search.tell(second.id, None)

    assert advisor.imported == [*known, {"parameter": {"x": 3.0}, "value": 9.0}]
    assert advisor.reported == []
    assert advisor.ended == []


def test_each_intermediate_result_is_reported_with_its_sequence() -> None:
    advisor = Recording()
    search = AdvisorSearch(advisor, SPACE, MINIMIZED)
    trial = search.ask()

    assert not search.should_stop(trial.id, [3.0])
    assert not search.should_stop(trial.id, [3.0, 2.0])
    search.tell(trial.id, 2.0)

    assert [report for report in advisor.reported if report[0] == "PERIODICAL"] == [
        ("PERIODICAL", 0, 3.0),
        ("PERIODICAL", 1, 2.0),
    ]
    assert [value for kind, _, value in advisor.reported if kind == "FINAL"] == [2.0]
    assert advisor.ended == ["SUCCEEDED"]


class Lasting(Listening):
    """Advisor whose first request gives its only trial and ends the search."""

    asked = 0

    def handle_request_trial_jobs(self, data: int) -> None:
        self.asked += 1
        self.send(CommandType.NewTrialJob, {"parameter_id": 0, "parameters": {"x": 1}})
        self.send(CommandType.NoMoreTrialJobs, "")


class Waiting(Listening):
    """Advisor that promises a trial for later."""

    def handle_request_trial_jobs(self, data: int) -> None:
        """Send nothing."""


def test_advisor_without_more_trials_is_asked_no_more() -> None:
    advisor = Lasting()
    search = AdvisorSearch(advisor, SPACE, MINIMIZED)
    search.ask()

    for _ in range(2):
        with pytest.raises(NoMoreTrialError, match="the advisor has no more trials"):
            search.ask()

    assert advisor.asked == 1


def test_advisor_that_waits_for_results_says_so() -> None:
    search = AdvisorSearch(Waiting(), SPACE, MINIMIZED)

    with pytest.raises(NoMoreTrialError, match="waits for results of open trials"):
        search.ask()


def test_trials_are_numbered_from_0() -> None:
    search = AdvisorSearch(Recording(), SPACE, MINIMIZED, first=[{"x": 3.0}])

    assert [search.ask().id for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(("stopped", "event"), [(True, "EARLY_STOPPED"), (False, "FAILED")])
def test_trial_without_a_result_was_stopped_or_has_failed(stopped: bool, event: str) -> None:
    advisor = Recording()
    search = AdvisorSearch(advisor, SPACE, MINIMIZED)

    search.tell(search.ask().id, None, stopped=stopped)

    assert advisor.ended == [event]


@pytest.mark.parametrize(
    ("objectives", "value", "reported"),
    [
        (MINIMIZED, {"default": 2.0, "cost": 1.0}, {"default": 2.0, "cost": 1.0}),
        (objectives_of({"cost": "minimize"}), {"default": 2.0, "cost": 1.0}, 1.0),
    ],
)
def test_advisor_gets_whole_reports_or_the_only_named_metric(
    objectives: Objectives, value: dict[str, float], reported: object
) -> None:
    advisor = Recording()
    search = AdvisorSearch(advisor, SPACE, objectives)

    search.tell(search.ask().id, value)

    assert [found for _, _, found in advisor.reported] == [reported]


def test_trial_without_a_result_has_failed_unless_it_was_stopped() -> None:
    advisor = Recording()
    search = AdvisorSearch(advisor, SPACE, MINIMIZED)

    search.tell(search.ask().id, None)

    assert advisor.ended == ["FAILED"]


def test_advisor_is_connected_during_its_calls_only() -> None:
    AdvisorSearch(Recording(), SPACE, MINIMIZED).ask()

    with pytest.raises(RuntimeError, match="host"):
        commands.send(CommandType.KillTrialJob, "0")
