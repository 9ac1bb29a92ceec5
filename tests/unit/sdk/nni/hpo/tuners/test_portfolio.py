"""Several tuners in one search."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from functools import partial
from typing import Any

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo import Study, Tuner
from nni.hpo.base import DEFERRED, Resumable
from nni.hpo.registry import factory
from nni.hpo.search.driver import MetricCommand
from nni.hpo.search.managed_tuner import SearchPlan, managed
from nni.hpo.search.tuner_driver import TunerDriver
from nni.hpo.tuners import portfolio
from nni.hpo.tuners.portfolio import PortfolioTuner

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class Notes(Tuner):
    """Tuner that proposes its own number, and notes what it learns."""

    def __init__(self, name: str, limit: int = 1000) -> None:
        self.name, self.left = name, limit
        self.told: list[Any] = []
        self.imported: list[Any] = []
        self.ended: list[tuple[int, bool]] = []

    def update_search_space(self, search_space: Any) -> None:
        pass

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> Any:
        if not self.left:
            raise NoMoreTrialError
        self.left -= 1
        return {"by": self.name, "id": parameter_id}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: object
    ) -> None:
        self.told.append((parameter_id, value))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:
        self.ended.append((parameter_id, success))

    def import_data(self, data: list[Any]) -> None:
        self.imported += data


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Notes]:
    made = {"TPE": Notes("TPE"), "Random": Notes("Random")}
    monkeypatch.setattr(portfolio, "create", lambda _kind, name, *_rest: made[name])
    return made


def run(tuner: Tuner, number: int, value: Any) -> Any:
    (configuration,) = tuner.generate_multiple_parameters([number])
    tuner.receive_trial_result(number, configuration, value)
    tuner.trial_end(number, success=True)
    return configuration


def test_each_learns_its_own_results_only(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"])

    proposed = [run(tuner, number, float(number))["by"] for number in range(4)]

    assert proposed == ["TPE", "Random", "TPE", "Random"]
    assert notes["TPE"].told == [(0, 0.0), (2, 2.0)]
    assert notes["Random"].told == [(1, 1.0), (3, 3.0)]
    assert notes["Random"].ended == [(1, True), (3, True)]
    assert notes["TPE"].imported == notes["Random"].imported == []


def test_shared_results_are_imported_by_the_others(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"], share_results=True)

    first = run(tuner, 0, 0.5)

    assert notes["TPE"].told == [(0, 0.5)]
    assert notes["TPE"].imported == []
    assert notes["Random"].imported == [{"parameter": first, "value": 0.5}]


def test_tuner_without_more_trials_leaves_them_to_the_others(notes: dict[str, Notes]) -> None:
    notes["TPE"].left, notes["Random"].left = 1, 3
    tuner = PortfolioTuner(["TPE", "Random"])

    proposed = [run(tuner, number, 1.0)["by"] for number in range(4)]

    assert proposed == ["TPE", "Random", "Random", "Random"]
    with pytest.raises(NoMoreTrialError, match="none of TPE, Random has more trials"):
        tuner.generate_parameters(9)
    assert tuner.proposer_of(9) == ""


def test_imported_results_go_to_all_and_those_of_a_proposer_to_it(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"])
    foreign = {"parameter": {"x": 0.1}, "value": 1.0}
    own = {"parameter": {"x": 0.2}, "value": 2.0}

    tuner.resume_search([foreign, {**own, "tuner": "Random"}, {**own, "tuner": "unknown"}])

    assert notes["TPE"].imported == [foreign, own]
    assert notes["Random"].imported == [foreign, own, own]
    assert tuner.trials == {"TPE": 0, "Random": 1}
    assert run(tuner, 0, 1.0)["by"] == "TPE"


def test_failed_trials_are_imported_only_by_tuners_that_learn_them(notes: dict[str, Notes]) -> None:
    notes["TPE"].imports_failures = True  # type: ignore[misc] # of this object alone
    tuner = PortfolioTuner(["TPE", "Random"])

    tuner.import_data([{"parameter": {"x": 0.1}, "value": math.nan}])

    assert len(notes["TPE"].imported) == 1
    assert notes["Random"].imported == []


def test_bandit_favours_the_tuner_with_the_better_results(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"], "bandit", optimize_mode="minimize")

    for number in range(40):
        configuration = tuner.generate_parameters(number)
        value = -float(number) if configuration["by"] == "Random" else 1.0
        tuner.receive_trial_result(number, configuration, value)
        tuner.trial_end(number, success=True)

    assert tuner.trials["Random"] > 2 * tuner.trials["TPE"] > 0


def test_it_is_resumable_if_all_its_tuners_are(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"])

    assert not tuner.resumable
    assert TunerDriver(tuner, None, {}, print).snapshot() is None
    assert not isinstance(managed(tuner, SearchPlan()), Resumable)


def test_equal_tuners_have_seeds_of_their_own() -> None:
    study = Study(SPACE, tuner="Portfolio", tuner_args={"tuners": ["Random", "Random"]}, seed=3)

    assert study.ask().parameters != study.ask().parameters


@pytest.mark.parametrize("plan", [None, SearchPlan(first=({"x": 0.25},))])
def test_provenance_names_the_tuner_that_proposed(plan: SearchPlan | None) -> None:
    tuner: Tuner = PortfolioTuner(["TPE", "Random"], seed=1)
    driver = TunerDriver(
        tuner if plan is None else managed(tuner, plan), None, {"algorithm": "Portfolio"}, print
    )
    driver.initialize(SPACE)

    found = [origin.get("tuner") for _, _, origin in driver.generate([0, 1, 2]).parameters]

    queued = [] if plan is None else [None]
    assert found == [*queued, "TPE", "Random", "TPE"][:3]


def test_resumed_search_counts_the_trials_of_each_through_a_plan() -> None:
    tuner = PortfolioTuner(["TPE", "Random"], seed=1)
    driver = TunerDriver(managed(tuner, SearchPlan()), None, {}, print)
    driver.initialize(SPACE)
    samples = [{"parameter": {"x": 0.1 * n}, "value": n, "tuner": "TPE"} for n in range(3)]

    driver.import_data(samples, own=True)

    assert tuner.trials == {"TPE": 3, "Random": 0}
    assert [driver.generate([n]).parameters[0][2]["tuner"] for n in range(4)] == [
        *["Random"] * 3,
        "TPE",
    ]


def test_restored_snapshot_knows_who_proposed() -> None:
    def made() -> TunerDriver:
        driver = TunerDriver(PortfolioTuner(["TPE", "Random"], seed=1), None, {}, print)
        driver.initialize(SPACE)
        return driver

    first, second = made(), made()
    first.generate([0, 1, 2])
    first.metric(MetricCommand("t0", 1, 0, True, 0, 1.0, False))
    snapshot = first.snapshot()
    assert snapshot is not None

    second.restore(snapshot)

    assert [item[2]["tuner"] for item in second.repeat([1, 2]).parameters] == ["Random", "TPE"]
    assert second.generate([3]).parameters == first.generate([3]).parameters


@pytest.mark.parametrize(
    ("tuners", "message"),
    [
        (["TPE", "TPX"], r"tuners\[1\]: tuner name must be one of .*did you mean 'TPE'"),
        (["TPE", "PBTTuner"], r"tuners\[1\]: PBTTuner must not be one of several .*it adds load"),
        (["TPE", "Portfolio"], r"tuners\[1\]: Portfolio must not be one of several tuners; list"),
        (
            ["TPE", {"name": "Random", "classArgs": {"seed": -1}}],
            r"tuners\[1\]: classArgs of Random: seed must be",
        ),
    ],
)
def test_wrong_tuners_are_refused_by_constructor_and_configuration(
    tuners: list[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PortfolioTuner(tuners)
    with pytest.raises(ValueError, match=message):
        factory.validate("tuner", "Portfolio", {"tuners": tuners}, SPACE)


def test_space_must_suit_every_tuner() -> None:
    with pytest.raises(ValueError, match=r"tuners\[1\]: search space of BatchTuner"):
        factory.validate("tuner", "Portfolio", {"tuners": ["TPE", "BatchTuner"]}, SPACE)


def test_space_can_be_replaced_if_every_tuner_allows_it() -> None:
    factory.check_replaceable("tuner", "Portfolio", {"tuners": ["TPE", "Random"]})
    with pytest.raises(ValueError, match=r"tuners\[0\]: SMAC keeps the search space"):
        factory.check_replaceable("tuner", "Portfolio", {"tuners": ["SMAC", "Random"]})


def test_several_objectives_are_one_number_for_all_of_them() -> None:
    study = Study(
        SPACE,
        tuner="Portfolio",
        tuner_args={"tuners": ["auto", "NSGA2"]},
        optimize_mode={"a": "minimize", "b": "maximize"},
        seed=1,
    )
    for _ in range(24):
        trial = study.ask()
        study.tell(trial, {"a": trial.parameters["x"], "b": trial.parameters["x"]})

    assert Counter(type(value) for _, value in study.results) == {dict: 24}


def test_run_times_reach_the_cost_aware_tuners() -> None:
    listed = [{"name": "auto", "classArgs": {"cost_aware": True}}, {"name": "Random"}]
    shared = PortfolioTuner(listed, optimize_mode="minimize", seed=0)
    shared.update_search_space(SPACE)
    for number in range(4):
        point = shared.generate_parameters(number)
        shared.receive_trial_result(number, point, 1.0)
        shared.trial_end(number, True, duration_s=2.0)
    shared.import_durations([{"parameter": {"x": 0.5}, "duration_s": 3.0}])

    costs = shared.state()["tuners"][0]["costs"]

    assert shared.learns_durations
    assert [seconds for _, seconds in costs["measured"]] == [2.0, 2.0, 3.0]
    assert not PortfolioTuner(seed=0).learns_durations


@pytest.mark.parametrize("event", ["USER_CANCELED", "SYS_CANCELED"])
def test_canceled_trials_are_no_failures_of_their_tuner(event: str) -> None:
    tuner = PortfolioTuner(["Random", "Anneal"], seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    for number in range(2):
        tuner.generate_parameters(number)

    tuner.trial_end(0, False, event=event)
    tuner.trial_end(1, False, event="FAILED")

    assert tuner.state()["shares"]["rewards"] == [[], [0]]


def test_hosts_know_what_it_learns_from() -> None:
    assert PortfolioTuner.imports_failures
    assert PortfolioTuner.learns_stopped
    assert not PortfolioTuner.multi_objective


class Deferring(Notes):
    """Tuner that proposes nothing at first, and notes how it can do so later."""

    later: Any = None

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> Any:
        self.later = kwargs.get("st_callback")
        return DEFERRED


@pytest.mark.parametrize("callback", [print, None])
def test_a_deferred_proposal_comes_from_its_tuner_later(
    notes: dict[str, Notes], callback: Any
) -> None:
    notes["TPE"] = deferring = Deferring("TPE")
    tuner = PortfolioTuner(["TPE", "Random"])

    answer = tuner.generate_parameters(0, st_callback=callback)

    assert answer is DEFERRED
    assert deferring.later is callback
    assert tuner.proposer_of(0) == "TPE"
    assert tuner.trials == {"TPE": 1, "Random": 0}


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("policy", "equal"),
        ("share_results", False),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(PortfolioTuner).parameters[argument].default == default


def test_result_is_counted_once(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"], share_results=True, policy="bandit")
    point = tuner.generate_parameters(0)

    for value in (0.5, 0.7):
        tuner.receive_trial_result(0, point, value)

    assert notes["TPE"].told == [(0, 0.5), (0, 0.7)]
    assert notes["Random"].imported == [{"parameter": point, "value": 0.5}]
    assert tuner._shares.state()["rewards"] == [[1], []]


def test_results_and_ends_of_unknown_trials_are_ignored(notes: dict[str, Notes]) -> None:
    tuner = PortfolioTuner(["TPE", "Random"])

    tuner.receive_trial_result(7, {}, 1.0)
    tuner.trial_end(7, success=False)

    assert notes["TPE"].told == notes["Random"].told == []
    assert notes["TPE"].ended == notes["Random"].ended == []
    assert tuner.trials == {"TPE": 0, "Random": 0}


def test_tuner_that_is_next_prepares_its_proposal(
    notes: dict[str, Notes], monkeypatch: pytest.MonkeyPatch
) -> None:
    tuner = PortfolioTuner(["TPE", "Random"])
    prepared: list[str] = []
    for name, note in notes.items():
        monkeypatch.setattr(note, "prepare_parameters", partial(prepared.append, name))

    tuner.prepare_parameters()
    run(tuner, 0, 1.0)
    tuner.prepare_parameters()

    assert prepared == ["TPE", "Random"]


def test_spaces_reach_every_tuner(notes: dict[str, Notes], monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = PortfolioTuner(["TPE", "Random"])
    spaces: list[Any] = []
    for note in notes.values():
        monkeypatch.setattr(note, "update_search_space", spaces.append)

    tuner.update_search_space(SPACE)

    assert spaces == [SPACE, SPACE]
