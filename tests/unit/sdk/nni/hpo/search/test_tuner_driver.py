"""Driver of tuners and assessors."""

import json
from typing import Any, ClassVar

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo.base import DEFERRED, Assessor, AssessResult, Tuner
from nni.hpo.search.driver import MetricCommand, TrialEndCommand
from nni.hpo.search.tuner_driver import TunerDriver

ORIGIN = {"algorithm": "R", "results": 0}


class Recorder(Tuner):
    """Notes its calls; `plan` says what it answers."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.plan: Any = lambda parameter_id: {"n": parameter_id}
        self.start_later: Any = None

    def update_search_space(self, search_space: Any) -> None:
        self.calls.append(("space", search_space))

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        self.start_later = kwargs["st_callback"]
        return self.plan(parameter_id)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        self.calls.append(("result", parameter_id, parameters, value, kwargs))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.calls.append(("end", parameter_id, success, kwargs))


class Preparing(Recorder):
    """Notes also that it was let prepare."""

    def prepare_parameters(self) -> None:
        self.calls.append(("prepare",))


class RecordingAssessor(Assessor):
    """Finds every history that ends with a negative number bad; raises at zero."""

    def __init__(self) -> None:
        self.seen: list[list[Any]] = []
        self.ended: list[tuple[str, bool]] = []

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        self.seen.append(list(trial_history))
        if trial_history[-1] == 0:
            raise ZeroDivisionError
        return AssessResult(trial_history[-1] > 0)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        self.ended.append((trial_job_id, success))


class Bench:
    def __init__(self) -> None:
        self.tuner, self.assessor = Recorder(), RecordingAssessor()
        self.said: list[dict[str, Any]] = []
        self.hosting = TunerDriver(self.tuner, self.assessor, {"algorithm": "R"}, self.said.append)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def report(value: Any, *, attempt: int = 1, final: bool = False, customized: bool = False) -> Any:
    return MetricCommand("t", attempt, 0, final, 0, value, customized)


def test_answer_carries_parameters_and_where_they_come_from(bench: Bench) -> None:
    answer = bench.hosting.generate([0, 1])

    assert answer.parameters == (
        (0, {"n": 0}, ORIGIN),
        (1, {"n": 1}, ORIGIN),
    )
    assert (answer.exhausted, answer.deferred) == (False, 0)


def test_exhausted_tuner_gives_what_it_has(bench: Bench) -> None:
    def plan(parameter_id: int) -> Any:
        if parameter_id:
            raise NoMoreTrialError
        return {}

    bench.tuner.plan = plan

    answer = bench.hosting.generate([0, 1, 2])

    assert (len(answer.parameters), answer.exhausted, answer.deferred) == (1, True, 0)


def test_deferred_parameters_are_said_when_they_come(bench: Bench) -> None:
    bench.tuner.plan = lambda _: DEFERRED

    answer = bench.hosting.generate([0])
    bench.tuner.start_later(0, {"late": True})
    bench.hosting.metric(report(1.0, final=True))

    assert (answer.parameters, answer.deferred, answer.exhausted) == ((), 1, False)
    assert bench.said == [{"late": [(0, {"late": True}, ORIGIN)]}]
    assert bench.tuner.calls[-1][2] == {"late": True}


def test_deferred_and_started_at_once_is_part_of_the_answer(bench: Bench) -> None:
    def plan(parameter_id: int) -> Any:
        bench.tuner.start_later(parameter_id, {"now": True})
        return DEFERRED

    bench.tuner.plan = plan

    answer = bench.hosting.generate([4])

    assert answer.parameters == ((4, {"now": True}, ORIGIN),)
    assert (answer.deferred, bench.said) == (0, [])


def test_result_comes_with_the_object_that_was_made(bench: Bench) -> None:
    made = bench.hosting.generate([0]).parameters[0][1]

    bench.hosting.metric(report({"default": 2}, final=True))

    (call,) = bench.tuner.calls
    assert call[:2] == ("result", 0)
    assert call[2] is made
    assert call[3:] == ({"default": 2}, {"trial_job_id": "t", "customized": False})


def test_recorded_parameters_replace_what_was_made(bench: Bench) -> None:
    bench.hosting.generate([0, 1])

    bench.hosting.record(0, {"n": 0})
    bench.hosting.record(1, {"n": "log"})
    bench.hosting.metric(MetricCommand("t", 1, 1, True, 0, 1.0, False))

    assert bench.said == [{"diverged": [1, {"n": "log"}, {"n": 1}]}]
    assert bench.tuner.calls[-1][2] == {"n": "log"}


def test_trials_are_known_until_they_end(bench: Bench) -> None:
    bench.hosting.generate([0, 1])
    bench.hosting.trial_end(TrialEndCommand("t", 1, "SUCCEEDED", False))

    assert [bench.hosting.knows(parameter_id) for parameter_id in (0, 1, 2)] == [True, False, False]


def test_equal_parameters_are_equal_in_any_order_and_with_nan(bench: Bench) -> None:
    bench.tuner.plan = lambda _: {"a": float("nan"), "b": (1, 2)}
    bench.hosting.generate([0])

    bench.hosting.record(0, {"b": [1, 2], "a": float("nan")})

    assert bench.said == []


def test_histories_only_grow_over_attempts(bench: Bench) -> None:
    for value in (5, 6):
        bench.hosting.metric(report(value))
    for value in (5, 7, 8):
        bench.hosting.metric(report(value, attempt=2))

    assert bench.assessor.seen == [[5], [5, 6], [5, 7, 8]]


def test_bad_trial_is_advised_to_stop(bench: Bench) -> None:
    bench.hosting.metric(report(-1))

    assert bench.said == [{"stop": "t"}]


def test_exception_of_the_assessor_counts_as_good(bench: Bench) -> None:
    bench.hosting.metric(report(0))

    ((failure_report,),) = (list(message.values()) for message in bench.said)
    assert failure_report["call"] == "assess_trial"
    assert failure_report["skipped"]
    assert "ZeroDivisionError" in failure_report["traceback"]


@pytest.mark.parametrize("event", ["SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED"])
def test_only_a_completed_trial_is_a_success(bench: Bench, event: str) -> None:
    bench.hosting.trial_end(TrialEndCommand("t", 0, event, customized=False))

    success = event == "SUCCEEDED"
    details = {"trial_job_id": "t"} | ({} if success else {"event": event})
    assert bench.tuner.calls == [("end", 0, success, details)]
    assert bench.assessor.ended == [("t", success)]


def test_trials_that_the_user_added_are_hidden_from_the_tuner(bench: Bench) -> None:
    bench.hosting.add_customized(0, {"n": 9})
    bench.hosting.metric(report(1.0, customized=True))
    bench.hosting.metric(report(1.0, final=True, customized=True))
    bench.hosting.trial_end(TrialEndCommand("t", 0, "SUCCEEDED", customized=True))

    assert bench.tuner.calls == []
    assert bench.assessor.seen == [[1.0]]
    assert bench.assessor.ended == [("t", True)]


def test_only_a_tuner_with_resume_search_gets_own_results_separately() -> None:
    class Plain(Recorder):
        def import_data(self, data: Any) -> None:
            self.calls.append(("imported", data))

    class Resuming(Plain):
        def resume_search(self, data: Any) -> None:
            self.calls.append(("resumed", data))

    plain, resuming = Plain(), Resuming()
    for tuner in (plain, resuming):
        hosting = TunerDriver(tuner, None, {"algorithm": "R"}, list[dict[str, Any]]().append)
        hosting.import_data([1], own=True)
        hosting.import_data([2])

    assert plain.calls == [("imported", [1]), ("imported", [2])]
    assert resuming.calls == [("resumed", [1]), ("imported", [2])]


def test_suggestions_tell_how_many_results_were_known(bench: Bench) -> None:
    bench.hosting.import_data([{"parameter": {}, "value": 1}, {"parameter": {}, "value": 2}])
    bench.hosting.metric(report(1.0, final=True))
    bench.hosting.metric(report(1.0, final=True, customized=True))

    ((_, _, provenance),) = bench.hosting.generate([1]).parameters

    assert provenance == {"algorithm": "R", "results": 3}


def preparations(*steps: str) -> list[int]:
    """Give how often a tuner was let prepare, after each step."""
    tuner = Preparing()
    hosting = TunerDriver(tuner, None, {"algorithm": "R"}, lambda _: None)
    hosting.initialize({})
    counts = []
    for number, step in enumerate(steps):
        if step == "ask":
            hosting.generate([number])
        elif step == "result":
            hosting.metric(MetricCommand(f"t{number}", 0, number, True, 0, 1.0, False))
        else:
            hosting.metric(MetricCommand(f"t{number}", 0, number, False, 0, 1.0, False))
        hosting.prepare()
        counts.append(tuner.calls.count(("prepare",)))
    return counts


def test_the_next_point_is_prepared_once_after_a_result() -> None:
    assert preparations("ask", "result", "intermediate", "intermediate") == [0, 1, 1, 1]


def test_preparing_goes_on_while_requests_follow_results() -> None:
    assert preparations("ask", "result", "ask", "result", "ask", "result") == [0, 1, 1, 2, 2, 3]


def test_preparing_pauses_when_it_was_in_vain() -> None:
    counts = preparations("result", *(["result"] * 8), "result", "ask")

    assert counts == [1] * 9 + [2, 2]


class Learning(Recorder):
    """Learns from stopped trials, too."""

    learns_stopped: ClassVar[bool] = True

    def import_curves(self, curves: list[dict[str, Any]]) -> None:
        self.calls.append(("curves", curves))


@pytest.mark.parametrize(
    ("tuner", "shown"), [(Recorder(), {}), (Learning(), {"intermediate": [3]})]
)
def test_end_carries_intermediate_results_for_a_tuner_that_learns_them(
    tuner: Recorder, shown: dict[str, Any]
) -> None:
    driver = TunerDriver(tuner, RecordingAssessor(), {}, list[Any]().append)
    driver.metric(report(2))
    driver.metric(report(3, attempt=2))

    driver.trial_end(TrialEndCommand("t", 0, "EARLY_STOPPED", customized=False))

    ending = {"trial_job_id": "t", "event": "EARLY_STOPPED", **shown}
    assert tuner.calls == [("end", 0, False, ending)]


def test_trial_without_intermediate_results_ends_without_them() -> None:
    tuner = Learning()
    driver = TunerDriver(tuner, RecordingAssessor(), {}, list[Any]().append)

    driver.trial_end(TrialEndCommand("t", 0, "SUCCEEDED", customized=False))

    assert tuner.calls == [("end", 0, True, {"trial_job_id": "t"})]


@pytest.mark.parametrize(("tuner", "calls"), [(Recorder(), []), (Learning(), [("curves", [1])])])
def test_curves_are_for_tuners_that_learn_from_stops(tuner: Recorder, calls: list[Any]) -> None:
    driver = TunerDriver(tuner, None, {}, list[Any]().append)
    curves: Any = [1]

    driver.import_curves(curves)

    assert tuner.calls == calls


def test_earlier_reports_reach_the_assessor_alone(bench: Bench) -> None:
    bench.hosting.import_reports(
        [["a", 1, 0, 3], ["a", 1, 1, 4], ["a", "SUCCEEDED"], ["b", 1, 0, 5], ["c", 1, 0, -1]]
    )
    bench.hosting.metric(MetricCommand("b", 1, 0, False, 1, 6, customized=True))

    assert bench.assessor.seen == [[3], [3, 4], [5], [-1], [5, 6]]
    assert bench.assessor.ended == [("a", True)]
    assert bench.said == [{"stop": "c"}]
    assert bench.tuner.calls == []


class Timed(Recorder):
    """Learns run times, too."""

    @property
    def learns_durations(self) -> bool:
        return True


@pytest.mark.parametrize(("tuner", "known"), [(Recorder(), {}), (Timed(), {"duration_s": 3.5})])
def test_end_carries_the_run_time_for_a_tuner_that_learns_it(
    tuner: Recorder, known: dict[str, Any]
) -> None:
    driver = TunerDriver(tuner, None, {}, list[Any]().append)

    driver.trial_end(TrialEndCommand("t", 0, "SUCCEEDED", customized=False, duration_s=3.5))
    driver.trial_end(TrialEndCommand("u", 1, "SUCCEEDED", customized=False))

    assert tuner.calls == [
        ("end", 0, True, {"trial_job_id": "t", **known}),
        ("end", 1, True, {"trial_job_id": "u"}),
    ]


class StatefulTuner(Recorder):
    def state(self) -> dict[str, Any]:
        return {"tuner": 1}

    def load_state(self, state: dict[str, Any]) -> None:
        self.calls.append(("loaded", state))


class StatefulAssessor(RecordingAssessor):
    def state(self) -> dict[str, Any]:
        return {"assessor": 2}

    def load_state(self, state: dict[str, Any]) -> None:
        self.loaded = state


class StatefulBench:
    """Driver of a tuner and an assessor that can be saved."""

    def __init__(self, space: Any) -> None:
        self.tuner, self.assessor = StatefulTuner(), StatefulAssessor()
        self.said: list[dict[str, Any]] = []
        self.hosting = TunerDriver(self.tuner, self.assessor, {"algorithm": "R"}, self.said.append)
        self.hosting.initialize(space)


def saved(bench: StatefulBench) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(json.dumps(bench.hosting.snapshot()))
    return state


def test_first_space_and_later_ones_reach_the_tuner() -> None:
    bench = StatefulBench({"x": 1})

    bench.hosting.update_search_space({"y": 2})

    assert bench.tuner.calls == [("space", {"x": 1}), ("space", {"y": 2})]
    assert saved(bench)["search_space"] == {"y": 2}


def test_restored_driver_is_equal_and_repeats_stops_and_requests() -> None:
    bench, restored = StatefulBench({"x": 1}), StatefulBench({"old": 0})
    bench.hosting.generate([0, 1])
    bench.hosting.metric(report(1.0, final=True))
    for value in (5, 6, -1):
        bench.hosting.metric(report(value))
    state = saved(bench)

    restored.hosting.restore(state)

    assert restored.tuner.calls[1:] == [("space", {"x": 1}), ("loaded", {"tuner": 1})]
    assert restored.assessor.loaded == {"assessor": 2}
    assert restored.said == [{"stop": "t"}]
    assert saved(restored) == state
    repeated = restored.hosting.repeat([0, 7])
    assert repeated.parameters == ((0, {"n": 0}, {"algorithm": "R", "results": 1}),)
    assert repeated.exhausted
    assert not restored.hosting.repeat([0, 1]).exhausted


def test_restored_driver_assesses_only_histories_that_have_grown() -> None:
    bench, restored = StatefulBench({}), StatefulBench({})
    for value in (5, 6):
        bench.hosting.metric(report(value))

    restored.hosting.restore(saved(bench))
    for value in (7, 8, 9):
        restored.hosting.metric(report(value, attempt=2))

    assert restored.tuner.calls == [("space", {}), ("loaded", {"tuner": 1})]
    assert restored.assessor.seen == [[7, 8, 9]]


def test_stop_of_a_trial_that_has_ended_is_not_sent_again() -> None:
    bench, restored = StatefulBench({}), StatefulBench({})
    bench.hosting.generate([0])
    bench.hosting.metric(report(-1))
    bench.hosting.trial_end(TrialEndCommand("t", 0, "EARLY_STOPPED", customized=False))

    restored.hosting.restore(saved(bench))

    assert restored.said == []
    assert not restored.hosting.knows(0)


@pytest.mark.parametrize(
    ("tuner", "assessor", "resumable"),
    [
        (StatefulTuner(), None, True),
        (StatefulTuner(), StatefulAssessor(), True),
        (Recorder(), None, False),
        (Recorder(), StatefulAssessor(), False),
        (StatefulTuner(), RecordingAssessor(), False),
    ],
)
def test_state_is_known_if_that_of_all_parts_is(
    tuner: Tuner, assessor: Assessor | None, resumable: bool
) -> None:
    driver = TunerDriver(tuner, assessor, {"algorithm": "R"}, list[Any]().append)

    assert (driver.snapshot() is not None) is resumable


def test_driver_of_a_deferred_trial_has_no_state() -> None:
    bench = StatefulBench({})
    bench.tuner.plan = lambda _: DEFERRED
    bench.hosting.generate([0])
    bench.tuner.plan = lambda _: {}
    bench.hosting.generate([1])

    assert bench.hosting.snapshot() is None
