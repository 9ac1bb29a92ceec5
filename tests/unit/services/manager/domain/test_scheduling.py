import pytest

from svc_common.experiment_events.causes import ExperimentCause, LossCause, LossReason
from svc_manager.domain import events, inputs
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import Budget, ExperimentState
from svc_manager.domain.scheduling import (
    count_after_restart,
    count_after_step,
    free_slots,
    next_moment_ms,
)
from svc_manager.domain.values import ParameterSource
from tests.unit.services.manager.building import Lab, encoded, generated


def requested(lab: Lab) -> list[int]:
    return [
        n
        for _, event in lab.log
        if isinstance(event, events.TrialsRequested)
        for n in event.parameter_ids
    ]


def test_nothing_is_asked_before_the_algorithm_has_started() -> None:
    lab = Lab(started=False)

    assert lab.experiment.state.name == "INITIALIZED"
    assert requested(lab) == []


def test_a_learner_is_asked_for_as_many_as_there_are_free_slots() -> None:
    lab = Lab(Budget(trial_concurrency=3))

    assert requested(lab) == [0, 1, 2]
    lab.answer()
    assert len(lab.experiment.live) == 3
    assert requested(lab) == [0, 1, 2]


def test_a_learner_is_asked_again_only_when_a_slot_is_free() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer()
    trial = lab.running()

    lab.finish(trial)

    assert requested(lab) == [0, 1, 2]


def test_what_never_learns_is_asked_one_concurrency_ahead() -> None:
    lab = Lab(Budget(trial_concurrency=2), lookahead=True)

    assert requested(lab) == [0, 1, 2, 3]
    lab.answer()
    assert len(lab.experiment.live) == 2
    assert len(lab.experiment.algorithm.queue) == 2


def test_looking_ahead_never_asks_beyond_the_trial_number() -> None:
    lab = Lab(Budget(trial_concurrency=2, max_trial_number=3), lookahead=True)

    assert requested(lab) == [0, 1, 2]
    lab.answer()
    assert requested(lab) == [0, 1, 2]


@pytest.mark.claim("platform", 17)
@pytest.mark.claim("platform", 27)
def test_exactly_the_trial_number_is_made_and_never_more_than_the_concurrency_live() -> None:
    lab = Lab(Budget(trial_concurrency=2, max_trial_number=10))
    most = 0

    while lab.experiment.state is not ExperimentState.DONE:
        lab.answer()
        most = max(most, len(lab.experiment.live))
        lab.finish(lab.running())

    trials = list(lab.experiment.trials.values())
    assert len(trials) == 10
    assert most == 2
    assert [trial.sequence_id for trial in trials] == list(range(10))
    assert len({trial.id for trial in trials}) == 10


@pytest.mark.claim("platform", 6)
def test_without_a_trial_number_the_experiment_goes_on() -> None:
    lab = Lab(Budget(trial_concurrency=1))

    for _ in range(20):
        lab.finish(lab.running())

    assert lab.experiment.state.name == "RUNNING"


def test_failed_trials_count_against_the_trial_number() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=2))

    for _ in range(2):
        trial = lab.running()
        lab.command(inputs.KillTrial(trial.id))
        lab.notification(
            inputs.AgentSilent("r1"), inputs.AgentGone("r1", LossReason(LossCause.AGENT_LEFT))
        )

    assert lab.experiment.state.name == "DONE"
    assert len(lab.experiment.trials) == 2


def test_with_live_trials_a_used_up_budget_is_no_more_trial() -> None:
    lab = Lab(Budget(trial_concurrency=2, max_trial_number=2))
    lab.answer()

    assert lab.experiment.state.name == "NO_MORE_TRIAL"


@pytest.mark.claim("platform", 24)
def test_a_finite_algorithm_ends_the_experiment_without_any_limit() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer()
    lab.finish(lab.running())
    lab.answer(exhausted=True, count=0)
    assert lab.experiment.state.name == "TUNER_NO_MORE_TRIAL"

    lab.finish(lab.running())

    assert lab.experiment.state.name == "DONE"
    assert len(lab.experiment.trials) == 2


def test_a_shorter_answer_without_a_promise_means_that_there_are_no_more() -> None:
    lab = Lab(Budget(trial_concurrency=3))

    lab.answer(count=1)

    assert lab.experiment.algorithm.exhausted
    assert lab.experiment.algorithm.outstanding == 0
    assert lab.experiment.state.name == "TUNER_NO_MORE_TRIAL"


def test_promised_parameters_come_later_and_are_not_asked_for_twice() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer(deferred=1)
    assert requested(lab) == [0, 1]
    assert not lab.experiment.algorithm.exhausted

    lab.notification(generated("", [1]))

    assert [trial.parameter_id for trial in lab.experiment.trials.values()] == [0, 1]


def test_an_answer_may_keep_the_promise_of_an_earlier_one() -> None:
    # Advisors give what they have to the oldest id: here request 1 brings id 1 of request 0.
    lab = Lab(Budget(trial_concurrency=2, max_trial_number=3))
    lab.answer(deferred=1)
    lab.finish(lab.running())
    (request_id,) = lab.experiment.algorithm.asked

    lab.notification(generated(request_id, [1], deferred=1))

    assert lab.experiment.algorithm.late_ids == {2}
    assert lab.experiment.algorithm.outstanding == 1
    lab.notification(generated("", [2]))
    lab.finish(lab.running())
    lab.finish(lab.running())
    assert lab.experiment.state.name == "DONE"


def test_an_algorithm_that_takes_its_promise_back_is_exhausted() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer(deferred=1)
    end = generated("", [], exhausted=True)

    lab.notification(end)
    assert lab.experiment.algorithm.outstanding == 0
    assert lab.notification(end) == []
    lab.finish(lab.running())

    assert lab.experiment.state.name == "DONE"


def test_an_answer_that_comes_twice_counts_once() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    request_id = next(iter(lab.experiment.algorithm.asked))
    lab.notification(generated(request_id, [0, 1]))

    assert lab.notification(generated(request_id, [0, 1])) == []
    assert lab.notification(generated("", [0, 1])) == []
    assert len(lab.experiment.trials) == 2


@pytest.mark.claim("platform", 18)
def test_after_the_longest_duration_live_trials_finish_and_the_experiment_is_done() -> None:
    lab = Lab(Budget(trial_concurrency=2, max_duration_ms=60_000))
    lab.answer()
    first, second = lab.running(), lab.running(claim="c2")
    assert next_moment_ms(lab.experiment, lab.now_ms) == lab.now_ms + 60_000

    lab.now_ms += 60_000
    lab.notification(inputs.Tick())
    assert lab.experiment.state.name == "NO_MORE_TRIAL"
    lab.finish(first)
    lab.finish(second)

    assert lab.experiment.state.name == "DONE"
    assert len(lab.experiment.trials) == 2


def test_the_clock_stands_still_when_done_and_goes_on_when_revived() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=1))
    trial = lab.running()
    lab.now_ms += 5_000
    lab.finish(trial)
    assert lab.experiment.state.name == "DONE"

    lab.now_ms += 100_000
    assert lab.experiment.execution_time_ms(lab.now_ms) == 5_000
    lab.command(inputs.Update(max_trial_number=2))
    lab.now_ms += 1_000

    assert lab.experiment.execution_time_ms(lab.now_ms) == 6_000


@pytest.mark.claim("platform", 19)
def test_raising_the_trial_number_after_done_makes_new_trials() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=1))
    lab.finish(lab.running())
    assert lab.experiment.state.name == "DONE"

    lab.command(inputs.Update(max_trial_number=2))
    lab.answer()

    assert lab.experiment.state.name == "NO_MORE_TRIAL"
    assert len(lab.experiment.trials) == 2


def test_raising_the_trial_number_does_not_revive_an_exhausted_algorithm() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=5))
    lab.answer()
    lab.finish(lab.running())
    lab.answer(exhausted=True, count=0)

    lab.command(inputs.Update(max_trial_number=9))

    assert lab.experiment.state.name == "DONE"


def test_a_new_search_space_revives_an_exhausted_algorithm() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.finish(lab.running())
    lab.answer(exhausted=True, count=0)
    assert lab.experiment.state.name == "DONE"

    lab.command(inputs.Update(search_space=encoded({"x": 2})))

    assert lab.experiment.state.name == "RUNNING"
    assert lab.experiment.algorithm.outstanding == 1


def test_lowering_the_concurrency_ends_nothing_and_pauses_new_trials() -> None:
    lab = Lab(Budget(trial_concurrency=3))
    lab.answer()

    lab.command(inputs.Update(trial_concurrency=1))
    assert len(lab.experiment.live) == 3
    assert free_slots(lab.experiment) == 0
    lab.finish(lab.running())
    lab.finish(lab.running(claim="c2"))

    assert requested(lab) == [0, 1, 2]


def test_customised_trials_come_first_and_count_against_the_trial_number() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=2))
    trial = lab.running()
    lab.command(inputs.AddTrial("q", encoded({"x": 9})))

    lab.finish(trial)

    newest = list(lab.experiment.trials.values())[-1]
    assert newest.source is ParameterSource.CUSTOMIZED
    assert newest.parameters == encoded({"x": 9})
    assert lab.experiment.state.name == "NO_MORE_TRIAL"
    assert newest.state.name == "WAITING"


def test_requests_for_many_slots_are_of_a_size_whose_answer_fits_a_message() -> None:
    lab = Lab(Budget(trial_concurrency=2_001))

    sizes = [
        len(event.parameter_ids)
        for _, event in lab.log
        if isinstance(event, events.TrialsRequested)
    ]

    assert sizes == [1_000, 1_000, 1]
    assert requested(lab) == list(range(2_001))
    lab.answer()
    assert len(lab.experiment.live) == 2_001


HOUR_MS = 3_600_000
TWO_HOURS_MS = 2 * HOUR_MS
MINUTE_MS = 60_000


def limited() -> Lab:
    """Return an experiment with a limit of one hour, of which 14 s have passed."""
    lab = Lab(Budget(trial_concurrency=1, max_duration_ms=HOUR_MS))
    lab.running()
    lab.now_ms += 14_000
    lab.command(inputs.Update(max_trial_number=7))
    return lab


def test_step_of_the_clock_does_not_count() -> None:
    lab = limited()
    lab.now_ms += TWO_HOURS_MS + 1_000

    round_ = Round(lab.experiment, lab.now_ms, lab.ids)
    count_after_step(round_, TWO_HOURS_MS)
    lab._end(round_)

    assert lab.experiment.state.name == "RUNNING"
    assert lab.experiment.execution_time_ms(lab.now_ms) == 15_000
    assert lab.refolded() == lab.experiment


def test_manager_that_is_restarted_hours_ahead_counts_a_minute() -> None:
    lab = limited()
    lab.now_ms += TWO_HOURS_MS

    round_ = Round(lab.experiment, lab.now_ms, lab.ids)
    count_after_restart(round_)
    lab._end(round_)

    assert lab.experiment.state.name == "RUNNING"
    assert lab.experiment.execution_time_ms(lab.now_ms) == 14_000 + MINUTE_MS
    lab.now_ms += HOUR_MS
    lab.notification(inputs.Tick())
    assert lab.experiment.state.name == "NO_MORE_TRIAL"


@pytest.mark.parametrize("silence_ms", [MINUTE_MS - 1, MINUTE_MS])
def test_short_time_between_two_managers_counts_in_full(silence_ms: int) -> None:
    lab = limited()
    lab.now_ms += silence_ms

    round_ = Round(lab.experiment, lab.now_ms, lab.ids)
    count_after_restart(round_)

    assert round_.events == []
    assert lab.experiment.execution_time_ms(lab.now_ms) == 14_000 + silence_ms


def test_experiment_whose_time_does_not_count_is_left_alone() -> None:
    lab = limited()
    lab.command(inputs.Stop())
    lab.now_ms += TWO_HOURS_MS

    round_ = Round(lab.experiment, lab.now_ms, lab.ids)
    count_after_restart(round_)
    count_after_step(round_, TWO_HOURS_MS)

    assert round_.events == []


def test_silent_log_of_a_limited_experiment_counts_the_time_every_minute() -> None:
    lab = limited()
    assert next_moment_ms(lab.experiment, lab.now_ms) == lab.now_ms + MINUTE_MS

    lab.now_ms += MINUTE_MS
    (counted,) = lab.notification(inputs.Tick())

    assert counted == events.ExperimentTimeCounted(14_000 + MINUTE_MS)
    assert next_moment_ms(lab.experiment, lab.now_ms) == lab.now_ms + MINUTE_MS
    assert lab.notification(inputs.Tick()) == []


def test_silent_log_without_a_limit_stays_silent() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    lab.running()
    lab.now_ms += TWO_HOURS_MS

    assert lab.notification(inputs.Tick()) == []
    assert next_moment_ms(lab.experiment, lab.now_ms) is None


def causes(lab: Lab) -> list[tuple[str, ExperimentCause]]:
    return [
        (event.new_state.name, event.cause.cause)
        for _, event in lab.log
        if isinstance(event, events.ExperimentStateChanged) and event.old_state is not None
    ][1:]


def test_end_by_the_trial_number_names_it() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_trial_number=1))
    lab.finish(lab.running())

    assert causes(lab) == [
        ("NO_MORE_TRIAL", ExperimentCause.TRIAL_NUMBER),
        ("DONE", ExperimentCause.TRIAL_NUMBER),
    ]


def test_end_by_the_duration_names_it() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_duration_ms=100))
    trial = lab.running()
    lab.now_ms += 100
    lab.notification(inputs.Tick())
    lab.finish(trial)

    assert causes(lab) == [
        ("NO_MORE_TRIAL", ExperimentCause.DURATION),
        ("DONE", ExperimentCause.DURATION),
    ]


def test_end_by_the_algorithm_names_it_and_a_return_to_work_names_no_cause() -> None:
    lab = Lab(Budget(trial_concurrency=2))
    lab.answer(count=1)
    lab.command(inputs.ImportData("import", encoded([])))
    lab.answer(exhausted=True, count=0)
    lab.finish(lab.running())

    assert causes(lab) == [
        ("TUNER_NO_MORE_TRIAL", ExperimentCause.NO_MORE_PARAMETERS),
        ("RUNNING", ExperimentCause.UNSPECIFIED),
        ("TUNER_NO_MORE_TRIAL", ExperimentCause.NO_MORE_PARAMETERS),
        ("DONE", ExperimentCause.NO_MORE_PARAMETERS),
    ]


def test_parameters_of_a_user_count_as_ahead() -> None:
    lab = Lab(Budget(trial_concurrency=1), lookahead=True)
    lab.running()

    lab.command(inputs.AddTrial("q", encoded({"x": 9})))

    assert len(lab.experiment.custom_queue) == 1
    assert requested(lab) == [0, 1]


def test_slot_that_is_free_when_the_time_is_over_stays_free() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_duration_ms=100))
    trial = lab.running()
    lab.command(inputs.AddTrial("q", encoded({"x": 9})))
    lab.now_ms += 100

    lab.finish(trial)

    assert len(lab.experiment.trials) == 1
    assert requested(lab) == [0]


def test_no_parameters_are_requested_when_the_time_is_over() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_duration_ms=100))
    trial = lab.running()
    lab.now_ms += 100

    lab.finish(trial)

    assert requested(lab) == [0]
