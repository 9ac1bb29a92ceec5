"""Entry points of decisions: repeated requests, and notifications of algorithms."""

import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.experiment_events.causes import ExperimentCause, ExperimentReason
from svc_manager.domain import events, inputs
from svc_manager.domain.decide import decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.trial import TrialState
from tests.unit.services.manager.building import Lab, encoded, generated, kinds


def record(lab: Lab, command: inputs.Command, request_id: str, method: str = "Test") -> Round:
    round_ = Round(lab.experiment, lab.now_ms, lab.ids)
    decide_recorded(round_, inputs.RecordedCommand(command, request_id, method))
    return round_


def test_a_repeated_request_emits_nothing() -> None:
    lab = Lab()
    first = record(lab, inputs.Update(trial_concurrency=5), "r1")

    second = record(lab, inputs.Update(trial_concurrency=5), "r1")

    assert kinds(first.events) == [events.BudgetChanged, events.RequestRecorded]
    assert second.events == []


def test_the_id_of_another_request_is_refused() -> None:
    lab = Lab()
    record(lab, inputs.Update(trial_concurrency=5), "r1")

    with pytest.raises(InvalidArgumentError, match="must name one request only"):
        record(lab, inputs.Update(trial_concurrency=6), "r1")


def test_a_request_without_an_id_is_not_recorded() -> None:
    lab = Lab()

    first = record(lab, inputs.Update(trial_concurrency=5), "")
    second = record(lab, inputs.Update(trial_concurrency=5), "")

    assert kinds(first.events) == kinds(second.events) == [events.BudgetChanged]


def test_a_refused_request_is_not_recorded() -> None:
    lab = Lab()

    with pytest.raises(FailedPreconditionError):
        record(lab, inputs.Resume(0, "", ""), "r1")

    assert "r1" not in lab.experiment.requests


def test_the_start_of_an_earlier_generation_is_ignored() -> None:
    lab = Lab(started=False)

    emitted = lab.notification(events.AlgorithmStarted(0, False, False, {}))

    assert emitted == []
    assert lab.experiment.state is ExperimentState.INITIALIZED


def test_an_answer_is_accepted_once() -> None:
    lab = Lab()
    (request_id,) = lab.experiment.algorithm.asked
    answer = generated(request_id, [0, 1])

    first = lab.notification(answer)
    second = lab.notification(answer)

    assert events.ParametersGenerated in kinds(first)
    assert events.ParametersGenerated not in kinds(second)


def test_late_parameters_that_were_not_requested_are_left_out() -> None:
    lab = Lab()
    (request_id,) = lab.experiment.algorithm.asked
    lab.notification(generated(request_id, [0], deferred=1))

    emitted = lab.notification(generated("", [1, 99]))

    late = next(event for event in emitted if isinstance(event, events.ParametersGenerated))
    assert [item.parameter_id for item in late.parameters] == [1]


def test_the_same_failure_is_recorded_once() -> None:
    lab = Lab()
    failed = events.AlgorithmFailed("assess_trial", "ValueError: x", (7, 0), True)

    assert kinds(lab.notification(failed)) == [events.AlgorithmFailed]
    assert lab.notification(failed) == []


def test_an_advice_stops_a_live_trial_only() -> None:
    lab = Lab()
    trial = lab.running()
    advice = inputs.StopAdvice(trial.id, "worse than the median")

    assert events.TrialStopRequested in kinds(lab.notification(advice))
    assert trial.asked_end is TrialState.EARLY_STOPPED
    assert lab.notification(inputs.StopAdvice("unknown", "")) == []


def test_an_algorithm_that_gave_up_ends_the_experiment_in_error() -> None:
    lab = Lab()

    emitted = lab.notification(inputs.AlgorithmGaveUp(1, "the host died 3 times"))

    assert kinds(emitted) == [events.ExperimentStateChanged, events.ExperimentEnded]
    assert lab.experiment.state is ExperimentState.ERROR
    assert lab.notification(inputs.AlgorithmGaveUp(1, "again")) == []


def test_an_earlier_generation_cannot_give_up() -> None:
    lab = Lab()

    assert lab.notification(inputs.AlgorithmGaveUp(7, "late")) == []


def test_a_report_without_a_generation_is_about_the_present_one() -> None:
    lab = Lab()

    lab.notification(inputs.AlgorithmGaveUp(0, "no host starts"))

    assert lab.experiment.state is ExperimentState.ERROR


def test_a_difference_in_a_replay_marks_the_experiment() -> None:
    lab = Lab()

    lab.notification(events.AlgorithmDiverged(0, encoded({"x": 0}), encoded({"x": 1})))

    assert not lab.experiment.repeatable


def test_a_delay_is_logged_once_and_only_of_the_present_generation() -> None:
    lab = Lab()
    waits = events.AlgorithmWaits(1, "no room")

    assert lab.notification(events.AlgorithmWaits(7, "no room")) == []
    assert kinds(lab.notification(waits)) == [events.AlgorithmWaits]
    assert lab.notification(waits) == []
    assert kinds(lab.notification(events.AlgorithmWaits(1, "other"))) == [events.AlgorithmWaits]


@pytest.mark.parametrize(
    "event",
    [
        generated("", [], exhausted=True),
        events.AlgorithmFailed("call", "Traceback", (1, 0), skipped=True),
        events.AlgorithmDiverged(0, b"", b""),
    ],
    ids=lambda event: type(event).__name__,
)
def test_the_next_event_of_the_algorithm_ends_its_delay(event: inputs.Notification) -> None:
    lab = Lab()
    lab.notification(events.AlgorithmWaits(1, "no room"))

    lab.notification(event)

    assert lab.experiment.algorithm.wait_reason == ""


def test_the_start_of_the_algorithm_ends_its_delay() -> None:
    lab = Lab(started=False)
    lab.notification(events.AlgorithmWaits(1, "no room"))

    lab.notification(events.AlgorithmStarted(1, lookahead=False, assesses=False, provenance={}))

    assert lab.experiment.algorithm.wait_reason == ""


def test_experiment_runs_because_its_algorithm_has_started() -> None:
    changes = [event for _, event in Lab().log if isinstance(event, events.ExperimentStateChanged)]

    assert changes[-1].new_state is ExperimentState.RUNNING
    assert changes[-1].cause == ExperimentReason(ExperimentCause.ALGORITHM_STARTED)


def test_end_in_error_has_the_message_of_the_algorithm() -> None:
    lab = Lab()

    emitted = lab.notification(inputs.AlgorithmGaveUp(1, "the host died 3 times"))

    reason = ExperimentReason(ExperimentCause.ALGORITHM_GAVE_UP, "the host died 3 times")
    assert events.ExperimentEnded(ExperimentState.ERROR, reason) in emitted


def test_exhausted_algorithm_may_take_its_last_promise_back() -> None:
    lab = Lab()
    lab.answer(exhausted=True, deferred=1)
    before = lab.experiment.algorithm.outstanding

    lab.notification(generated("", [], exhausted=True))

    assert (before, lab.experiment.algorithm.outstanding) == (1, 0)
