"""Failed starts: back-off, hold, probes, and what they cost."""

import pytest

from svc_common.experiment_events.causes import EndCause, LossCause, LossReason, WaitCause
from svc_manager.domain import events, inputs
from svc_manager.domain.decide_reports import FALSE_START_LIMIT
from svc_manager.domain.effects import PublishTask, WithdrawTask, outstanding_effects
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.failed_starts import (
    FIRST_DELAY_MS,
    HOLD_AFTER,
    LONGEST_DELAY_MS,
    delay_ms,
    due_trials,
    holds,
    may_start,
    start_succeeded,
)
from svc_manager.domain.reports import Lost, Started
from svc_manager.domain.scheduling import next_moment_ms
from svc_manager.domain.trial import Trial, TrialState
from tests.unit.services.manager.building import Lab, exited

FULL = "the trial's folder cannot be written: No space left on device"
FAILED = Lost(LossReason(LossCause.NOT_STARTED, detail=FULL))


def lab_of(concurrency: int = 1, max_trial_number: int | None = None) -> Lab:
    lab = Lab(Budget(trial_concurrency=concurrency, max_trial_number=max_trial_number))
    lab.answer()
    return lab


def fail(lab: Lab, trial: Trial) -> list[events.Event]:
    return lab.report(trial, 0, FAILED)


def pass_time(lab: Lab) -> list[events.Event]:
    """Let the time come at which something happens by itself."""
    moment_ms = next_moment_ms(lab.experiment, lab.now_ms)
    assert moment_ms is not None
    lab.now_ms = moment_ms
    return lab.notification(inputs.Tick())


def queued(lab: Lab) -> list[Trial]:
    """Return the waiting trials whose task is published."""
    waiting = (t for t in lab.experiment.live.values() if t.state is TrialState.WAITING)
    return [trial for trial in waiting if trial.id not in lab.experiment.backing_off]


def held(lab: Lab) -> Lab:
    """Let starts fail until the experiment holds."""
    while not holds(lab.experiment):
        if not queued(lab):
            pass_time(lab)
        fail(lab, queued(lab)[0])
    return lab


def test_back_off_doubles_up_to_its_limit() -> None:
    assert [delay_ms(count) for count in (1, 2, 3)] == [1000, 2000, 4000]
    assert delay_ms(7) == delay_ms(1_000_000) == LONGEST_DELAY_MS == 60_000


def test_a_failed_start_is_lost_and_published_again_after_a_back_off() -> None:
    lab = lab_of()
    trial = lab.waiting()

    (event,) = fail(lab, trial)

    assert isinstance(event, events.TrialLost)
    assert lab.effects == []
    assert (trial.state, trial.attempt) == (TrialState.WAITING, 2)
    assert trial.wait is not None
    assert (trial.wait.cause, trial.wait.detail) == (WaitCause.ENVIRONMENT, FULL)
    assert next_moment_ms(lab.experiment, lab.now_ms) == lab.now_ms + FIRST_DELAY_MS
    assert pass_time(lab) == [events.TrialRequeued(trial.id, 2)]
    assert lab.effects == [PublishTask(trial.id, 2)]


def test_time_alone_publishes_nothing_before_the_back_off_is_over() -> None:
    lab = lab_of()
    fail(lab, lab.waiting())
    lab.now_ms += FIRST_DELAY_MS - 1

    assert lab.notification(inputs.Tick()) == []


def test_failed_starts_cost_no_budget_and_no_retries() -> None:
    lab = Lab(
        Budget(trial_concurrency=1, max_trial_number=1),
        ExperimentSettings(max_trial_retries=0, retry_failed_trials=0),
    )
    lab.answer()
    trial = lab.waiting()
    for _ in range(5 * FALSE_START_LIMIT):
        fail(lab, trial)
        pass_time(lab)

    lab.report(trial, 0, Started(lab.now_ms))
    lab.finish(trial)

    assert trial.state is TrialState.SUCCEEDED
    assert lab.experiment.state.name == "DONE"
    assert (trial.losses, trial.failures, trial.never_started) == (0, 0, 0)
    assert len(trial.lost_attempts) == 1


def test_the_fifth_failed_start_in_a_row_holds_the_experiment() -> None:
    lab = lab_of(8)
    trials = list(lab.experiment.live.values())

    held_after = []
    for trial in trials[:5]:
        fail(lab, trial)
        held_after.append(holds(lab.experiment))

    assert held_after == [False, False, False, False, True]


def test_after_several_failed_starts_in_a_row_the_experiment_holds() -> None:
    lab = lab_of(HOLD_AFTER + 3)
    trials = list(lab.experiment.live.values())

    for trial in trials[:-1]:
        fail(lab, trial)

    assert holds(lab.experiment)
    assert lab.experiment.failed_starts.detail == FULL
    # The last published trial is the probe.
    assert next_moment_ms(lab.experiment, lab.now_ms) is None
    fail(lab, trials[-1])
    assert len(pass_time(lab)) == 1
    assert len(queued(lab)) == 1


def test_probes_come_at_growing_intervals() -> None:
    lab = held(lab_of(HOLD_AFTER))
    intervals = []

    for _ in range(8):
        before_ms = lab.now_ms
        (requeued,) = pass_time(lab)
        assert isinstance(requeued, events.TrialRequeued)
        intervals.append(lab.now_ms - before_ms)
        fail(lab, lab.experiment.trials[requeued.trial_id])

    assert intervals == [min(FIRST_DELAY_MS << step, LONGEST_DELAY_MS) for step in range(8)]


def test_probes_take_turns() -> None:
    lab = held(lab_of(HOLD_AFTER))
    probes = []
    for _ in range(HOLD_AFTER):
        (requeued,) = pass_time(lab)
        assert isinstance(requeued, events.TrialRequeued)
        probes.append(requeued.trial_id)
        fail(lab, lab.experiment.trials[requeued.trial_id])

    assert sorted(probes) == sorted(lab.experiment.live)


def test_a_probe_that_starts_releases_all_trials() -> None:
    lab = held(lab_of(HOLD_AFTER))
    pass_time(lab)
    (probe,) = queued(lab)

    released = lab.report(probe, 0, Started(lab.now_ms))

    assert not holds(lab.experiment)
    assert len(released) == HOLD_AFTER  # the start, and the other trials
    assert lab.experiment.backing_off == {}


def test_a_start_elsewhere_does_not_shorten_the_back_off_of_a_trial() -> None:
    lab = lab_of(2)
    first, second = lab.experiment.live.values()
    fail(lab, first)

    lab.report(second, 0, Started(lab.now_ms), claim="c2")

    assert list(lab.experiment.backing_off) == [first.id]
    assert lab.experiment.failed_starts.count == 0


def test_while_it_holds_no_trial_is_created() -> None:
    lab = held(lab_of(1))
    lab.command(inputs.Update(trial_concurrency=10))
    lab.answer()

    assert len(lab.experiment.trials) == 1


def test_a_new_trial_is_the_probe_if_the_others_were_killed() -> None:
    lab = held(lab_of(2))
    for trial_id in list(lab.experiment.live):
        lab.command(inputs.KillTrial(trial_id))
    lab.answer()
    assert lab.experiment.live == {}

    pass_time(lab)

    assert len(lab.experiment.live) == 1
    assert next_moment_ms(lab.experiment, lab.now_ms) is None


def test_time_does_not_spin_while_a_probe_has_no_parameters() -> None:
    lab = held(lab_of(1))
    lab.command(inputs.KillTrial(lab.waiting().id))

    pass_time(lab)

    assert lab.experiment.live == {}
    assert next_moment_ms(lab.experiment, lab.now_ms) is None


def test_a_trial_that_backs_off_has_no_task_to_withdraw() -> None:
    lab = lab_of()
    trial = lab.waiting()
    fail(lab, trial)

    lab.command(inputs.KillTrial(trial.id))

    assert trial.state is TrialState.USER_CANCELED
    assert not [effect for effect in lab.effects if isinstance(effect, WithdrawTask)]
    assert lab.experiment.backing_off == {}


def test_another_manager_publishes_no_trial_that_backs_off() -> None:
    lab = lab_of(2)
    first, second = lab.experiment.live.values()
    fail(lab, first)

    assert list(outstanding_effects(lab.refolded())) == [PublishTask(second.id, 1)]
    assert lab.refolded() == lab.experiment


def test_a_restarted_agent_gets_no_trial_that_backs_off() -> None:
    lab = lab_of()
    fail(lab, lab.waiting())

    lab.notification(inputs.AgentRestarted("local", "boot2"))

    assert lab.effects == []


def test_a_trial_that_never_starts_while_others_do_fails() -> None:
    lab = lab_of(2)
    bad, good = lab.experiment.live.values()
    lab.report(good, 0, Started(lab.now_ms), claim="c2")
    while bad.live:
        assert bad.interruptions.failed_starts <= FALSE_START_LIMIT
        while bad.id in lab.experiment.backing_off:
            pass_time(lab)
        lab.finish(good)
        lab.answer()
        good = next(trial for trial in queued(lab) if trial is not bad)
        lab.report(good, 0, Started(lab.now_ms), claim=good.id)
        fail(lab, bad)

    assert bad.state is TrialState.FAILED
    assert bad.end is not None
    assert (bad.end.cause, bad.end.lost_count) == (EndCause.NEVER_STARTED, FALSE_START_LIMIT + 1)
    assert bad.end.loss is not None
    assert bad.end.loss.cause is LossCause.NOT_STARTED


def test_a_stop_ends_trials_that_back_off() -> None:
    lab = held(lab_of(HOLD_AFTER))

    lab.command(inputs.Stop())

    assert lab.experiment.state.name == "STOPPED"


def test_a_stop_that_meets_a_failed_start_cancels_the_trial() -> None:
    lab = lab_of()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))

    fail(lab, trial)

    assert trial.state is TrialState.USER_CANCELED


def test_a_long_experiment_ends_by_its_duration_while_it_holds() -> None:
    lab = Lab(Budget(trial_concurrency=1, max_duration_ms=600_000))
    lab.answer()
    held(lab)

    lab.now_ms += 600_000
    lab.notification(inputs.Tick())

    assert lab.experiment.state.name == "NO_MORE_TRIAL"


@pytest.mark.parametrize("code", [1, 127])
def test_a_command_that_fails_is_no_failed_start(code: int) -> None:
    lab = lab_of()
    trial = lab.running()

    lab.report(trial, 1, exited(code))

    assert trial.state is TrialState.FAILED
    assert lab.experiment.failed_starts.count == 0


def test_success_ends_the_back_off_of_all_trials_only_if_the_experiment_held() -> None:
    holding, early = held(lab_of(HOLD_AFTER)).experiment, lab_of()
    fail(early, early.waiting())
    waiting = list(holding.backing_off)

    for experiment in (holding, early.experiment):
        start_succeeded(experiment)

    assert len(waiting) == HOLD_AFTER
    assert due_trials(holding, 0) == waiting
    assert due_trials(early.experiment, early.now_ms) == []
    assert holding.failed_starts.count == 0


def test_new_trial_starts_while_the_experiment_holds_only_as_a_due_probe() -> None:
    experiment = Lab(Budget(trial_concurrency=1)).experiment
    experiment.failed_starts.count = HOLD_AFTER
    experiment.failed_starts.probe_at_ms = 9_000

    assert [may_start(experiment, now_ms) for now_ms in (8_999, 9_000)] == [0, 1]
