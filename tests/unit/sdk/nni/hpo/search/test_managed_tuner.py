"""Initial configurations, duplicates, earlier results and objectives of a wrapped tuner."""

import json
import math
from typing import Any, ClassVar

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo.base import DEFERRED, Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.search.managed_tuner import (
    DuplicatePolicy,
    ManagedTuner,
    ResumableManagedTuner,
    SearchPlan,
    managed,
)
from nni.hpo.search.stopping_rules import NoImprovement, TargetReached
from nni.hpo.search.tuner_driver import TunerDriver
from nni.hpo.tuners.batch import BatchTuner

SPACE: dict[str, Any] = {"x": {"_type": "randint", "_value": [0, 4]}}


class RecordingTuner(Tuner):
    """Tuner that proposes given values in order and records its results."""

    def __init__(self, *proposals: int) -> None:
        self.proposals = list(proposals)
        self.results: list[tuple[JsonValue, JsonValue]] = []
        self.ended: list[tuple[int, bool]] = []
        self.imported: list[JsonValue] = []

    def update_search_space(self, search_space: JsonValue) -> None:
        del search_space

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        del parameter_id, kwargs
        if not self.proposals:
            raise NoMoreTrialError
        return {"x": self.proposals.pop(0)}

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        self.results.append((parameters["x"], value))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:
        self.ended.append((parameter_id, success))

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        self.imported += [(item["parameter"]["x"], item["value"]) for item in data]


class VectorTuner(RecordingTuner):
    multi_objective: ClassVar[bool] = True

    def set_objectives(self, objectives: Objectives) -> None:
        self.objectives = objectives


class FailureTuner(RecordingTuner):
    imports_failures: ClassVar[bool] = True


class LateTuner(RecordingTuner):
    """Tuner that defers every configuration until a result arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[int, Any]] = []

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        self.waiting.append((parameter_id, kwargs["st_callback"]))
        return DEFERRED

    def serve(self) -> None:
        parameter_id, start = self.waiting.pop(0)
        start(parameter_id, {"x": parameter_id})


def ready(tuner: Tuner, space: JsonValue = None, **plan: Any) -> ManagedTuner:
    made = managed(tuner, SearchPlan(**plan), seed=0)
    made.update_search_space(SPACE if space is None else space)
    return made


def run(tuner: ManagedTuner, count: int, first: int = 0, value: Any = None) -> list[int]:
    """Run trials one after the other; the result is x, or `value`."""
    seen = []
    for parameter_id in range(first, first + count):
        for _, parameters in generate(tuner, [parameter_id]).parameters:
            seen.append(parameters["x"])
            result = parameters["x"] if value is None else value(parameters["x"])
            tuner.receive_trial_result(parameter_id, parameters, result)
            tuner.trial_end(parameter_id, True)
    return seen


def test_enqueued_configurations_come_first_and_are_imported() -> None:
    inner = RecordingTuner(1)
    tuner = ready(inner, first=({"x": 3},))
    tuner.enqueue({"x": 2})

    assert run(tuner, 3) == [3, 2, 1]
    assert inner.imported == [(3, 3), (2, 2)]
    assert inner.results == [(1, 1)]
    assert inner.ended == [(0, True)]


@pytest.mark.parametrize("key", ["layer", "combine_params"])
def test_choice_of_dicts_is_a_list_of_configurations_for_a_batch_only(key: str) -> None:
    space: Any = {key: {"_type": "choice", "_value": [{"size": 1}, {"size": 2}]}}
    batch = ManagedTuner(BatchTuner(), SearchPlan(), seed=0)
    batch.update_search_space(space)

    batch.enqueue({"size": 7})

    if key == "layer":
        other = ManagedTuner(RecordingTuner(1), SearchPlan(), seed=0)
        other.update_search_space(space)
        other.enqueue({"layer": {"size": 2}})
        with pytest.raises(ValueError, match="must lie in the search space: parameter 'layer'"):
            other.enqueue({"layer": {"size": 3}})


def test_points_that_were_measured_are_not_tried_first_again() -> None:
    tuner = ready(RecordingTuner(1), first=({"x": 3}, {"x": 2}))

    tuner.import_data([{"parameter": {"x": 3}, "value": 1.0}])

    assert run(tuner, 2) == [2, 1]


def test_points_of_the_user_keep_the_constraints() -> None:
    space = {**SPACE, "_constraints": ["x < 2"]}

    with pytest.raises(ValueError, match="must keep the constraint x < 2"):
        ready(RecordingTuner(), space, first=({"x": 3},))
    with pytest.raises(ValueError, match="must keep the constraint x < 2"):
        ready(RecordingTuner(), space).enqueue({"x": 2})


def test_points_that_break_the_constraints_of_a_later_space_are_not_tried() -> None:
    tuner = ready(RecordingTuner(1), first=({"x": 3}, {"x": 0}))

    tuner.update_search_space({**SPACE, "_constraints": ["x < 3"]})

    assert dict(generate(tuner, [0, 1]).parameters) == {0: {"x": 0}, 1: {"x": 1}}


def fail_first(tuner: ManagedTuner, event: str) -> None:
    generate(tuner, [0])
    tuner.trial_end(0, False, event=event)


@pytest.mark.parametrize(("event", "learned"), [("FAILED", [2]), ("EARLY_STOPPED", [])])
def test_failure_of_an_enqueued_configuration_is_imported_as_nan(
    event: str, learned: list[int]
) -> None:
    inner = FailureTuner()
    fail_first(ready(inner, first=({"x": 2},)), event)

    assert [x for x, _ in inner.imported] == learned
    assert all(math.isnan(value) for _, value in inner.imported)


def test_failure_of_an_enqueued_configuration_is_kept_from_a_tuner_that_learns_none() -> None:
    inner = RecordingTuner()
    fail_first(ready(inner, first=({"x": 2},)), "FAILED")

    assert inner.imported == []


def test_enqueued_configuration_that_fails_after_its_result_has_not_failed() -> None:
    inner = FailureTuner()
    tuner = ready(inner, first=({"x": 2},))
    generate(tuner, [0])
    tuner.receive_trial_result(0, {"x": 2}, 5)
    tuner.trial_end(0, False, event="FAILED")

    assert inner.imported == [(2, 5)]


def test_replicated_duplicates_run_again() -> None:
    assert run(ready(RecordingTuner(1, 1, 1)), 3) == [1, 1, 1]


def test_reused_duplicates_tell_the_known_result() -> None:
    inner = RecordingTuner(1, 1, 1, 2)
    tuner = ready(inner, duplicates="reuse")

    assert run(tuner, 2) == [1, 2]
    assert inner.results == [(1, 1), (1, 1), (1, 1), (2, 2)]
    assert [success for _, success in inner.ended] == [True] * 4
    assert len({inner_id for inner_id, _ in inner.ended}) == 4


def test_resampled_duplicates_are_turned_down() -> None:
    inner = RecordingTuner(1, 1, 2)
    tuner = ready(inner, duplicates="resample")

    assert run(tuner, 2) == [1, 2]
    assert inner.results == [(1, 1), (2, 2)]
    assert inner.ended == [(0, True), (1, False), (2, True)]


@pytest.mark.parametrize("policy", ["resample", "reuse"])
def test_running_configurations_are_duplicates_too(policy: DuplicatePolicy) -> None:
    tuner = ready(RecordingTuner(1, 1, 2), duplicates=policy)

    answer = generate(tuner, [0, 1])

    assert [parameters["x"] for _, parameters in answer.parameters] == [1, 2]


@pytest.mark.parametrize("policy", ["resample", "reuse"])
def test_a_stubborn_tuner_is_helped_until_all_is_tried(policy: DuplicatePolicy) -> None:
    tuner = ready(RecordingTuner(*[1] * 1000), duplicates=policy)

    assert sorted(run(tuner, 9)) == [0, 1, 2, 3]
    assert generate(tuner, [99]).exhausted


@pytest.mark.parametrize(("policy", "duplicates"), [("resample", 20), ("reuse", 100)])
def test_tuner_gets_so_many_duplicates_back_before_another_configuration_is_drawn(
    policy: DuplicatePolicy, duplicates: int
) -> None:
    inner = RecordingTuner(*[1] * 1000)
    tuner = ready(inner, duplicates=policy)

    run(tuner, 2)

    assert len(inner.ended) == 1 + duplicates


@pytest.mark.parametrize("policy", ["resample", "reuse"])
def test_configuration_that_has_failed_may_be_tried_again(policy: DuplicatePolicy) -> None:
    tuner = ready(RecordingTuner(1, 1, 2), duplicates=policy)
    generate(tuner, [0])

    tuner.trial_end(0, False)

    assert dict(generate(tuner, [1]).parameters) == {1: {"x": 1}}


def test_configuration_is_running_until_all_its_trials_have_ended() -> None:
    tuner = ready(RecordingTuner(1, 2, 1), duplicates="resample", first=({"x": 1}, {"x": 1}))
    generate(tuner, [0, 1])

    tuner.trial_end(0, False)
    while_one_runs = generate(tuner, [2]).parameters
    tuner.trial_end(1, False)

    assert [parameters for _, parameters in while_one_runs] == [{"x": 2}]
    assert dict(generate(tuner, [3]).parameters) == {3: {"x": 1}}


def test_result_of_a_trial_that_is_not_open_is_imported_and_known() -> None:
    inner = RecordingTuner(2, 3)
    tuner = ready(inner, duplicates="resample")

    tuner.receive_trial_result(9, {"x": 2}, 7)

    assert inner.imported == [(2, 7)]
    assert run(tuner, 1) == [3]
    assert inner.results == [(3, 3)]


def test_end_that_is_reported_again_does_not_reach_the_tuner() -> None:
    inner = RecordingTuner(1)
    tuner = ready(inner)
    run(tuner, 1)

    tuner.trial_end(0, True)

    assert inner.ended == [(0, True)]


def test_first_result_of_a_configuration_is_the_one_that_is_reused() -> None:
    inner = RecordingTuner(1, 2)
    known = tuple({"parameter": {"x": 1}, "value": value} for value in (7, 8))
    tuner = ready(inner, duplicates="reuse", known=known)
    tuner.receive_trial_result(9, {"x": 1}, 9)

    run(tuner, 1)

    assert inner.results == [(1, 7), (2, 2)]


def test_equal_numbers_of_different_types_are_the_same_configuration() -> None:
    tuner = ready(
        RecordingTuner(2, 3), duplicates="resample", known=({"parameter": {"x": 2.0}, "value": 1},)
    )

    assert run(tuner, 1) == [3]


def test_earlier_results_reach_the_tuner_once() -> None:
    inner = RecordingTuner(1)
    tuner = ready(inner, known=({"parameter": {"x": 3}, "value": 7},))

    tuner.update_search_space(SPACE)

    assert inner.imported == [(3, 7)]


def test_a_rule_ends_the_search() -> None:
    tuner = ready(RecordingTuner(3, 1, 2), rules=(TargetReached(1.0),))

    assert run(tuner, 3) == [3, 1]
    assert tuner.ended_because == "the target 1 is reached"


def test_rules_count_what_this_search_gave_before_it_was_resumed() -> None:
    own = [{"parameter": {"x": n}, "value": 1.0} for n in range(3)]
    rules = (NoImprovement(4),)
    resumed, warm = (ready(RecordingTuner(7, 8, 9), rules=rules) for _ in range(2))

    resumed.resume_search(own)
    warm.import_data(own)
    for tuner in (resumed, warm):
        run(tuner, 2, value=lambda _: 2.0)

    assert resumed.ended_because == "no improvement over 4 trials"
    assert warm.ended_because == ""
    assert run(resumed, 1, first=2) == []


def test_a_search_that_a_rule_has_ended_is_over_when_it_is_resumed() -> None:
    tuner = ready(RecordingTuner(7), rules=(TargetReached(0.5),))

    tuner.resume_search([{"parameter": {"x": 1}, "value": 0.25}])

    assert run(tuner, 1) == []
    assert tuner.ended_because == "the target 0.5 is reached"


def test_deferred_trials_start_under_the_ids_that_wait() -> None:
    inner = LateTuner()
    tuner = ready(inner, first=({"x": 9},))
    started: list[tuple[int, JsonValue]] = []

    answer = generate(tuner, [7, 8], lambda key, parameters: started.append((key, parameters)))
    inner.serve()

    assert [key for key, _ in answer.parameters] == [7]
    assert answer.deferred == (8,)
    assert started == [(8, {"x": 0})]  # the tuner's own id was 0


def test_one_number_is_taken_out_of_reports() -> None:
    inner = RecordingTuner(1, 2)
    tuner = ready(inner, objectives=objectives_of({"cost": "minimize"}))

    run(tuner, 2, value=lambda x: {"cost": 10 * x, "default": 0})

    assert inner.results == [(1, 10), (2, 20)]


def test_tuners_for_several_objectives_get_whole_reports() -> None:
    inner = VectorTuner(1)
    objectives = objectives_of({"a": "minimize", "b": "maximize"})
    tuner = ready(inner, objectives=objectives)

    run(tuner, 1, value=lambda x: {"a": x, "b": x})

    assert inner.objectives is objectives
    assert inner.results == [(1, {"a": 1, "b": 1})]


def test_the_tuner_prepares_unless_points_of_the_user_come_first() -> None:
    class PreparingTuner(RecordingTuner):
        prepared = 0

        def prepare_parameters(self) -> None:
            self.prepared += 1

    inner = PreparingTuner(1, 2)
    tuner = ready(inner, first=({"x": 7},))

    tuner.prepare_parameters()
    assert inner.prepared == 0
    run(tuner, 1)
    tuner.prepare_parameters()

    assert inner.prepared == 1


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="duplicates must be one of replicate, resample, reuse"):
        SearchPlan(duplicates="again")  # type: ignore[arg-type] # what a user may write


class CurveTuner(RecordingTuner):
    """Records the intermediate results that it gets."""

    learns_stopped: ClassVar[bool] = True

    def __init__(self, *proposals: int) -> None:
        super().__init__(*proposals)
        self.curves: list[dict[str, JsonValue]] = []
        self.shown: list[tuple[int, JsonValue]] = []

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        self.curves = curves

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:
        self.shown.append((parameter_id, kwargs.get("intermediate")))


def test_tuner_gets_the_intermediate_results_of_its_objective() -> None:
    inner = CurveTuner(1, 2)
    tuner = ready(inner, objectives=objectives_of({"a": "minimize"}))
    generate(tuner, [0, 1])

    tuner.trial_end(0, False, event="EARLY_STOPPED", intermediate=[{"a": 3, "b": 4}])
    tuner.trial_end(1, False, event="EARLY_STOPPED")

    assert inner.shown == [(0, [3]), (1, None)]


def test_curves_of_earlier_trials_are_those_of_the_objective() -> None:
    inner = CurveTuner()
    tuner = ready(inner, objectives=objectives_of({"a": "minimize"}))

    tuner.import_curves(
        [
            {"parameter": {"x": 1}, "value": {"a": 1, "b": 0}, "intermediate": [{"a": 3, "b": 0}]},
            {"parameter": {"x": 2}, "value": None, "intermediate": [{"a": 4}]},
        ]
    )

    assert inner.curves == [
        {"parameter": {"x": 1}, "value": 1, "intermediate": [3]},
        {"parameter": {"x": 2}, "value": None, "intermediate": [4]},
    ]


def test_driver_passes_curves_on_through_the_wrapper() -> None:
    inner = CurveTuner(1)
    driver = TunerDriver(ready(inner), None, {}, list[dict[str, Any]]().append)

    driver.import_curves([{"parameter": {"x": 1}, "value": None, "intermediate": [4]}])

    assert inner.curves == [{"parameter": {"x": 1}, "value": None, "intermediate": [4]}]


def test_tuner_that_learns_nothing_from_stops_gets_no_curves() -> None:
    class Other(CurveTuner):
        learns_stopped: ClassVar[bool] = False

    inner = Other()

    ready(inner).import_curves([{"parameter": {"x": 1}, "value": None, "intermediate": [4]}])

    assert inner.curves == []


class CostTuner(RecordingTuner):
    """Tuner that also records run times."""

    def __init__(self, *proposals: int) -> None:
        super().__init__(*proposals)
        self.endings: list[dict[str, object]] = []
        self.durations: list[JsonValue] = []

    @property
    def learns_durations(self) -> bool:
        return True

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:
        self.endings.append(kwargs)

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:
        self.durations += durations


def test_run_times_reach_a_tuner_that_learns_them() -> None:
    inner = CostTuner(1)
    tuner = ready(inner, first=({"x": 3},))
    for parameter_id in range(2):
        ((_, parameters),) = generate(tuner, [parameter_id]).parameters
        tuner.receive_trial_result(parameter_id, parameters, 1.0)
        tuner.trial_end(parameter_id, True, duration_s=2.5)

    assert tuner.learns_durations
    assert inner.durations == [{"parameter": {"x": 3}, "duration_s": 2.5}]  # it did not propose it
    assert inner.endings == [{"duration_s": 2.5}]


def test_run_times_of_samples_are_imported_where_they_are_known() -> None:
    inner = CostTuner()
    tuner = ready(inner)

    tuner.import_data(
        [
            {"parameter": {"x": 1}, "value": 1, "duration_s": 2.5},
            {"parameter": {"x": 2}, "value": 2},
        ]
    )

    assert inner.imported == [(1, 1), (2, 2)]
    assert inner.durations == [{"parameter": {"x": 1}, "duration_s": 2.5}]


def test_run_times_do_not_reach_other_tuners() -> None:
    class Strict(RecordingTuner):
        def trial_end(self, parameter_id: int, success: bool) -> None:  # type: ignore[override] # no keywords
            self.ended.append((parameter_id, success))

    inner = Strict(1)
    tuner = ready(inner)
    generate(tuner, [0])

    tuner.trial_end(0, True, duration_s=2.5)

    assert not tuner.learns_durations
    assert inner.ended == [(0, True)]


class CountedConfiguration(dict[str, Any]):
    """Configuration that counts how often one of its kind is read as a whole."""

    reads: ClassVar[int] = 0

    def items(self) -> Any:
        CountedConfiguration.reads += 1
        return super().items()


def test_an_import_reads_each_enqueued_configuration_once() -> None:
    space = {"x": {"_type": "randint", "_value": [0, 100]}}
    tuner = ready(RecordingTuner(), space)
    for value in range(20):
        tuner.enqueue(CountedConfiguration(x=value))
    CountedConfiguration.reads = 0

    tuner.import_data([{"parameter": {"x": value}, "value": 1.0} for value in range(10, 60)])

    assert 0 < CountedConfiguration.reads <= 20
    assert run(tuner, 20) == list(range(10))


class ResumableTuner(RecordingTuner):
    def state(self) -> dict[str, JsonValue]:
        return {"proposals": self.proposals}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        self.proposals = state["proposals"]


def resumable(*proposals: int) -> ResumableManagedTuner:
    made = ready(ResumableTuner(*proposals), duplicates="resample", first=({"x": 0}, {"x": 3}))
    assert isinstance(made, ResumableManagedTuner)
    return made


def test_restored_tuner_knows_results_and_open_trials_in_place_of_its_own() -> None:
    tuner, restored = resumable(1, 1, 2), resumable(3)
    run(tuner, 3)  # the user's two, and 1
    generate(restored, [8, 9])
    state = json.loads(json.dumps(tuner.state()))

    restored.load_state(state)

    assert json.loads(json.dumps(restored.state())) == state
    assert run(restored, 1, first=3) == run(tuner, 1, first=3) == [2]


def test_restored_tuner_goes_on_with_an_open_trial() -> None:
    tuner, restored = resumable(1), resumable()
    run(tuner, 2)
    generate(tuner, [2])

    restored.load_state(json.loads(json.dumps(tuner.state())))
    restored.receive_trial_result(2, {"x": 1}, 5.0)
    restored.trial_end(2, True)

    inner = restored._tuner
    assert isinstance(inner, ResumableTuner)
    assert inner.results == [(1, 5.0)]
    assert inner.ended == [(0, True)]


def test_restored_tuner_learns_results_that_waited_for_one_within_the_limits() -> None:
    objectives = objectives_of("minimize", [{"metric": "cost", "max": 5}])
    tuner, restored = (
        ready(ResumableTuner(*proposals), objectives=objectives) for proposals in ((1, 2), ())
    )
    assert isinstance(tuner, ResumableManagedTuner)
    assert isinstance(restored, ResumableManagedTuner)
    run(tuner, 1, value=lambda x: {"default": x, "cost": 9})

    restored.load_state(json.loads(json.dumps(tuner.state())))
    run(restored, 1, first=1, value=lambda x: {"default": x, "cost": 1})

    inner = restored._tuner
    assert isinstance(inner, ResumableTuner)
    assert inner.results[0] == (2, {"default": 2, "cost": 1})
    assert [x for x, _ in inner.imported] == [1]
