from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    LossCause,
    LossReason,
    StopCause,
    StopReason,
)
from svc_manager.domain import events, inputs
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.decide_reports import FALSE_START_LIMIT, GAP_LIMIT_MS, is_affected
from svc_manager.domain.effects import PublishAgain, PublishTask, SendDrop, SendStop
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.explanation import trial_text
from svc_manager.domain.reports import CheckpointSaved, ExitCause, Lost, Report, Started
from svc_manager.domain.scheduling import next_moment_ms
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import OptimizeMode
from tests.unit.services.manager.building import (
    Lab,
    exited,
    final,
    intermediate,
    kinds,
    lost,
    waits_for_gpus,
)


def test_an_end_that_overtakes_its_result_waits_for_it() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 2, exited())
    assert trial.state.name == "RUNNING"
    assert kinds(lab.last) == [events.ReportDeferred]

    lab.report(trial, 1, final(0.5))

    assert kinds(lab.last)[:2] == [events.MetricReported, events.TrialEnded]
    assert trial.state.name == "SUCCEEDED"
    assert trial.final is not None
    assert trial.final.numbers == 0.5
    assert not lab.experiment.deferred


def test_a_deferred_report_survives_a_restart() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 2, exited())

    lab.experiment = lab.refolded()
    lab.report(trial, 1, final(0.5))

    assert lab.experiment.trials[trial.id].state.name == "SUCCEEDED"


def test_an_attempt_of_which_reports_stay_missing_is_lost_without_blame() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 2, exited())
    assert next_moment_ms(lab.experiment, lab.now_ms) == lab.now_ms + 30_000

    lab.now_ms += 29_999
    assert lab.notification(inputs.Tick()) == []
    lab.now_ms += 1
    lab.notification(inputs.Tick())

    assert [event for event in lab.last if isinstance(event, events.TrialLost)] == [
        events.TrialLost(trial.id, 1, LossReason(LossCause.REPORTS_MISSING), command_failed=False)
    ]
    assert SendDrop("r1", trial.id, 1, "claim") in lab.effects
    assert trial.losses == 0
    assert next_moment_ms(lab.experiment, lab.now_ms) is None


def test_missing_reports_end_a_trial_that_is_being_stopped() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.Stop())
    lab.report(trial, 2, exited())

    lab.now_ms += GAP_LIMIT_MS
    lab.notification(inputs.Tick())

    assert lab.experiment.state.name == "STOPPED"


def test_a_gap_of_a_losing_claim_changes_nothing() -> None:
    lab = Lab()
    lab.answer()
    trial = next(iter(lab.experiment.live.values()))
    lab.report(trial, 1, exited(), claim="second", runner="r2")
    lab.report(trial, 0, Started(5), claim="first", runner="r1")

    lab.now_ms += GAP_LIMIT_MS
    lab.notification(inputs.Tick())

    assert lab.last == []
    assert next_moment_ms(lab.experiment, lab.now_ms) is None


def test_two_trials_that_start_at_once_keep_their_own_parameters() -> None:
    lab = Lab()
    lab.answer()
    first, second = list(lab.experiment.live.values())

    lab.notification(
        Report("r1", second.id, 1, 0, "c2", Started(1)),
        Report("r1", first.id, 1, 0, "c1", Started(1)),
        Report("r1", second.id, 1, 1, "c2", final(2.0)),
        Report("r1", first.id, 1, 1, "c1", final(1.0)),
    )

    reported = [event for event in lab.last if isinstance(event, events.MetricReported)]
    assert [(x.trial_id, x.parameter_id) for x in reported] == [
        (second.id, second.parameter_id),
        (first.id, first.parameter_id),
    ]


def test_a_report_that_comes_twice_counts_once() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.1))

    assert lab.report(trial, 1, intermediate(0.1)) == []
    assert trial.intermediate_count == 1


def test_a_deferred_report_that_comes_twice_is_kept_once() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 2, exited())

    assert lab.report(trial, 2, exited()) == []


def test_the_first_claim_in_the_log_wins_and_others_get_drop_orders() -> None:
    lab = Lab()
    trial = lab.running(claim="first", runner="r1")

    lab.report(trial, 0, Started(5), claim="second", runner="r2")

    assert lab.last == []
    assert lab.effects == [SendDrop("r2", trial.id, 1, "second")]
    assert trial.claim_id == "first"


def test_the_end_of_a_losing_claim_changes_nothing_and_needs_no_answer() -> None:
    lab = Lab()
    trial = lab.running(claim="first")

    lab.report(trial, 1, exited(), claim="second", runner="r2")

    assert lab.last == []
    assert lab.effects == []


def test_a_late_word_of_an_earlier_attempt_is_dropped() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 9, lost("gone"))

    lab.report(trial, 1, final(1.0), attempt=1)

    assert trial.state.name == "WAITING"
    assert trial.final is None
    assert lab.effects == [SendDrop("r1", trial.id, 1, "claim")]


def test_a_report_of_an_unknown_trial_is_dropped() -> None:
    lab = Lab()

    lab.notification(Report("r1", "zzzzz", 1, 0, "c", Started(1)))

    assert lab.last == []
    assert lab.effects == [SendDrop("r1", "zzzzz", 1, "c")]


def test_only_the_first_final_result_counts() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, final(1.0))

    lab.report(trial, 2, final(2.0, sequence=1))
    lab.report(trial, 3, exited())

    assert trial.final is not None
    assert trial.final.numbers == 1.0
    assert trial.state.name == "SUCCEEDED"


def test_a_trial_without_a_result_still_succeeds() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited())

    assert trial.state.name == "SUCCEEDED"
    assert trial.final is None


@pytest.mark.claim("platform", 21)
def test_a_failing_command_is_failed_and_not_run_again() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited(3, detail="boom"))

    assert trial.state.name == "FAILED"
    assert trial.exit_code == 3
    assert trial_text(trial) == "exit code 3: boom"


def test_a_signal_is_named_when_a_trial_dies_of_it() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited(None))

    assert trial_text(trial) == "signal 9"


def test_a_failing_command_is_run_again_as_often_as_asked() -> None:
    lab = Lab(settings=ExperimentSettings(retry_failed_trials=1))
    trial = lab.running()

    lab.report(trial, 1, exited(3))
    assert (trial.state, trial.attempt) == (TrialState.WAITING, 2)
    assert PublishTask(trial.id, 2) in lab.effects
    lab.report(trial, 0, Started(1), claim="c2")
    lab.report(trial, 1, exited(3), claim="c2")

    assert trial.state.name == "FAILED"


def test_a_command_that_cannot_be_started_is_failed_with_the_reason() -> None:
    lab = Lab()
    trial = lab.waiting()

    lab.report(trial, 0, exited(None, ExitCause.NOT_STARTED, "no such file"))

    assert trial.state.name == "FAILED"
    assert trial_text(trial) == "no such file"


@pytest.mark.claim("platform", 20)
def test_a_trial_over_its_time_limit_is_early_stopped() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited(None, ExitCause.TIME_LIMIT))

    assert trial.state.name == "EARLY_STOPPED"
    assert trial.end == EndReason(EndCause.TIME_LIMIT)


@pytest.mark.claim("platform", 20)
def test_a_time_limit_is_the_reason_whatever_stderr_says() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited(None, ExitCause.TIME_LIMIT, "UserWarning: slow disk"))

    assert trial_text(trial) == "it ran longer than maxTrialDuration"
    assert trial.end == EndReason(EndCause.TIME_LIMIT, stderr_tail="UserWarning: slow disk")


@pytest.mark.claim("platform", 22)
def test_stop_advice_ends_a_trial_as_early_stopped() -> None:
    lab = Lab()
    trial = lab.running()

    lab.notification(inputs.StopAdvice(trial.id, "worse than the median"))
    assert (
        SendStop("r1", trial.id, 1, StopReason(StopCause.ASSESSOR, "worse than the median"))
        in lab.effects
    )
    lab.report(trial, 1, exited(None, ExitCause.STOPPED))

    assert trial.state.name == "EARLY_STOPPED"
    assert trial.final is None


@pytest.mark.claim("platform", 22)
def test_the_last_intermediate_of_an_early_stopped_trial_counts_if_asked() -> None:
    lab = Lab(settings=ExperimentSettings(include_intermediate_results=True))
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.1))
    lab.report(trial, 2, intermediate(0.2, sequence=1))
    lab.notification(inputs.StopAdvice(trial.id, ""))

    lab.report(trial, 3, exited(None, ExitCause.STOPPED))

    assert kinds(lab.last)[:2] == [events.MetricReported, events.TrialEnded]
    assert trial.final is not None
    assert trial.final.numbers == 0.2


@pytest.mark.parametrize(
    ("included", "advised", "reported", "result"),
    [
        (True, True, None, 0.1),
        (True, True, 0.9, 0.9),
        (True, False, None, None),
        (False, True, None, None),
    ],
    ids=["promoted", "has a result", "not stopped", "not asked for"],
)
def test_an_intermediate_counts_only_for_a_stopped_trial_without_a_result(
    included: bool, advised: bool, reported: float | None, result: float | None
) -> None:
    lab = Lab(settings=ExperimentSettings(include_intermediate_results=included))
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.1, sequence=4))
    if reported is not None:
        lab.report(trial, 2, final(reported))
    if advised:
        lab.notification(inputs.StopAdvice(trial.id, ""))

    end = exited(None, ExitCause.STOPPED) if advised else exited()
    lab.report(trial, trial.report_sequence + 1, end)

    assert trial.state.name == ("EARLY_STOPPED" if advised else "SUCCEEDED")
    assert (None if trial.final is None else trial.final.numbers) == result
    assert trial.final is None or trial.final.sequence == 0


@pytest.mark.parametrize(("code", "kept"), [(0, True), (1, False)])
def test_only_a_successful_trial_leaves_its_checkpoint(code: int, *, kept: bool) -> None:
    lab = Lab()
    trial = lab.running()
    checkpoint = SavedCheckpoint("/folder", "c" * 64, 5)

    lab.report(trial, 1, replace(exited(code), checkpoint=checkpoint))

    assert lab.experiment.checkpoints == ({"/folder": checkpoint} if kept else {})


def test_the_end_of_a_lost_trial_follows_its_last_report() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.1))

    lab.notification(inputs.AgentGone("r1", LossReason(LossCause.AGENT_SILENT)))

    assert [end.report_sequence for end in ends(lab)] == [2]


def test_stop_advice_for_a_trial_that_is_over_changes_nothing() -> None:
    lab = Lab()
    trial = lab.running()
    lab.finish(trial)

    assert lab.notification(inputs.StopAdvice(trial.id, "")) == []


def test_a_natural_end_that_races_a_stop_gives_one_final_state() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))

    lab.report(trial, 1, exited(0, ExitCause.ENDED))
    lab.report(trial, 2, exited(None, ExitCause.STOPPED))

    assert trial.state.name == "SUCCEEDED"
    assert len([x for _, x in lab.log if isinstance(x, events.TrialEnded)]) == 1


def test_a_stop_without_a_request_cancels_by_the_system() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 1, exited(None, ExitCause.STOPPED, "last words"))

    assert trial.state.name == "SYS_CANCELED"
    assert trial.end == EndReason(
        EndCause.STOPPED, stderr_tail="last words", stop=StopReason(StopCause.AGENT)
    )


@pytest.mark.claim("platform", 78)
def test_a_lost_attempt_waits_for_another_agent_until_retries_are_used_up() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=1))
    trial = lab.running()

    lab.report(trial, 1, lost("the machine died"))
    assert (trial.state, trial.attempt) == (TrialState.WAITING, 2)
    assert lab.effects == [PublishTask(trial.id, 2)]
    lab.report(trial, 0, Started(1), claim="c2")
    lab.report(trial, 1, lost("the machine died"), claim="c2")

    assert trial.state.name == "FAILED"
    assert "lost 2 times" in trial_text(trial)


def test_an_attempt_lost_before_its_start_does_not_use_up_a_retry() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))
    trial = lab.waiting()

    lab.report(trial, 0, lost("the agent was killed"))

    assert (trial.state, trial.attempt) == (TrialState.WAITING, 2)


def test_a_trial_that_no_agent_can_start_fails_in_the_end() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))
    trial = lab.waiting()

    for _ in range(FALSE_START_LIMIT):
        lab.report(trial, 0, lost("the agent was killed"), claim=f"c{trial.attempt}")
        assert trial.state is TrialState.WAITING
    lab.report(trial, 0, lost("the agent was killed"), claim="last")

    assert trial.state is TrialState.FAILED
    assert trial_text(trial) == "could not be started 21 times, last: the agent was killed"


def ends(lab: Lab) -> list[events.TrialEnded]:
    return [event for _, event in lab.log if isinstance(event, events.TrialEnded)]


def test_an_end_by_lost_attempts_is_one_of_the_infrastructure() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))

    lab.report(lab.running(), 1, lost("the machine died"))

    assert [(end.state, end.infrastructure) for end in ends(lab)] == [(TrialState.FAILED, True)]


def test_an_end_by_attempts_that_never_start_is_one_of_the_infrastructure() -> None:
    lab = Lab()
    trial = lab.waiting()

    while trial.live:
        lab.report(trial, 0, lost("the agent was killed"), claim=f"c{trial.attempt}")

    assert [end.infrastructure for end in ends(lab)] == [True]


def test_the_end_of_a_command_is_one_of_the_trial() -> None:
    lab = Lab()

    lab.report(lab.running(), 1, exited(1))

    assert [(end.state, end.infrastructure) for end in ends(lab)] == [(TrialState.FAILED, False)]


def test_a_trial_lost_while_it_is_being_stopped_ends_as_asked() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))

    lab.report(trial, 1, lost("the machine died"))

    assert trial.state.name == "USER_CANCELED"


def test_intermediates_of_a_lost_attempt_are_forgotten_but_its_final_result_stays() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.1))
    lab.report(trial, 2, final(0.5))
    lab.report(trial, 3, lost("the machine died"))

    lab.report(trial, 0, Started(1), claim="c2")
    lab.report(trial, 1, final(0.7), claim="c2")
    lab.report(trial, 2, exited(), claim="c2")

    assert trial.intermediate_count == 0
    assert trial.final is not None
    assert trial.final.numbers == 0.5
    assert len([x for _, x in lab.log if isinstance(x, events.MetricReported)]) == 2


def test_a_waiting_trial_tells_why_and_belongs_to_the_claim() -> None:
    lab = Lab()
    trial = lab.waiting()

    lab.report(trial, 0, waits_for_gpus())
    lab.report(trial, 0, Started(1), claim="other", runner="r2")
    assert trial_text(trial) == "waiting for 1 GPU"
    assert lab.effects == [SendDrop("r2", trial.id, 1, "other")]
    lab.report(trial, 1, Started(1))

    assert trial.state.name == "RUNNING"
    assert trial_text(trial) == ""


def test_the_trials_of_a_silent_agent_are_unknown_until_it_speaks() -> None:
    lab = Lab()
    trial = lab.running()

    lab.notification(inputs.AgentSilent("r1"))
    assert trial.state.name == "UNKNOWN"
    lab.notification(inputs.AgentSeen("r1", (inputs.HeldAttempt(trial.id, 1, "claim"),)))

    assert trial.state.name == "RUNNING"


def test_a_metric_of_an_unknown_trial_proves_that_it_runs() -> None:
    lab = Lab()
    trial = lab.running()
    lab.notification(inputs.AgentSilent("r1"))

    lab.report(trial, 1, intermediate(0.1))

    assert trial.state.name == "RUNNING"


def test_the_trials_of_an_agent_that_is_gone_are_delivered_elsewhere() -> None:
    lab = Lab()
    trial = lab.running(runner="r1")
    other = lab.running(claim="c2", runner="r2")
    lab.notification(inputs.AgentSilent("r1"))

    lab.notification(inputs.AgentGone("r1", LossReason(LossCause.AGENT_SILENT, silence_ms=45_000)))

    assert (trial.state, trial.attempt) == (TrialState.WAITING, 2)
    assert other.state.name == "RUNNING"
    assert lab.effects == [PublishTask(trial.id, 2)]


@pytest.mark.claim("platform", 78)
def test_an_unknown_trial_can_be_cancelled() -> None:
    lab = Lab()
    trial = lab.running()
    lab.notification(inputs.AgentSilent("r1"))

    lab.command(inputs.KillTrial(trial.id))

    assert trial.state.name == "USER_CANCELED"
    assert SendDrop("r1", trial.id, 1, "claim") in lab.effects


def test_a_missed_order_is_sent_again() -> None:
    lab = Lab()
    stopped = lab.running()
    lab.command(inputs.KillTrial(stopped.id))
    seen = inputs.AgentSeen(
        "r1", (inputs.HeldAttempt(stopped.id, 1, "claim"), inputs.HeldAttempt("zzzzz", 1, "x"))
    )

    assert is_affected(lab.experiment, seen)
    lab.notification(seen)

    assert lab.effects == [
        SendStop("r1", stopped.id, 1, StopReason(StopCause.USER)),
        SendDrop("r1", "zzzzz", 1, "x"),
    ]


def test_an_agent_that_holds_what_it_should_is_left_alone() -> None:
    lab = Lab()
    trial = lab.running()
    seen = inputs.AgentSeen("r1", (inputs.HeldAttempt(trial.id, 1, "claim"),))

    assert is_affected(lab.experiment, seen) is False


@pytest.mark.parametrize(
    ("trial_id", "attempt", "claim_id"),
    [("zzzzz", 1, "claim"), ("", 2, "claim"), ("", 1, "other")],
    ids=["unknown trial", "another attempt", "another claim"],
)
def test_an_agent_that_holds_a_foreign_attempt_is_affected(
    trial_id: str, attempt: int, claim_id: str
) -> None:
    lab = Lab()
    trial = lab.running()
    held = inputs.HeldAttempt(trial_id or trial.id, attempt, claim_id)

    assert is_affected(lab.experiment, inputs.AgentSeen("r1", (held,))) is True


@pytest.mark.parametrize("is_silent", [True, False], ids=["unknown", "to be stopped"])
def test_an_agent_whose_attempt_is_to_change_is_affected(*, is_silent: bool) -> None:
    lab = Lab()
    trial = lab.running()
    seen = inputs.AgentSeen("r1", (inputs.HeldAttempt(trial.id, 1, "claim"),))
    if is_silent:
        lab.notification(inputs.AgentSilent("r1"))
    else:
        lab.command(inputs.KillTrial(trial.id))

    assert is_affected(lab.experiment, seen) is True


GONE = LossReason(LossCause.AGENT_RESTARTED)


def test_an_attempt_that_a_restarted_agent_does_not_hold_is_lost() -> None:
    lab = Lab()
    trial = lab.running()

    lab.notification(inputs.AttemptGone(inputs.HeldAttempt(trial.id, 1, "claim"), GONE))

    assert (trial.state, trial.attempt) == (TrialState.WAITING, 2)
    assert events.TrialLost(trial.id, 1, GONE, command_failed=False) in lab.last


@pytest.mark.parametrize(
    ("attempt", "claim_id", "is_over"),
    [(2, "claim", False), (1, "other", False), (1, "claim", True)],
    ids=["another attempt", "another claim", "ended trial"],
)
def test_only_the_current_attempt_is_lost_by_a_restart(
    attempt: int, claim_id: str, *, is_over: bool
) -> None:
    lab = Lab()
    trial = lab.running()
    if is_over:
        lab.finish(trial)

    held = inputs.HeldAttempt(trial.id, attempt, claim_id)
    unknown = inputs.HeldAttempt("zzzzz", 1, "claim")

    assert lab.notification(inputs.AttemptGone(held, GONE)) == []
    assert lab.notification(inputs.AttemptGone(unknown, GONE)) == []
    assert trial.attempt == 1


def test_the_best_value_follows_the_mode_and_ignores_what_is_no_number() -> None:
    lab = Lab(
        budget=Budget(trial_concurrency=1),
        settings=ExperimentSettings(optimize_mode=OptimizeMode.MAXIMIZE),
    )
    for value in (float("nan"), 1.0, 3.0, 2.0):
        lab.finish(lab.running(), value)
    trial = lab.running()
    lab.report(trial, 1, final("a text"))

    assert lab.experiment.best_value == 3.0


def test_tasks_that_a_restarted_agent_may_have_been_given_are_published_again() -> None:
    lab = Lab(Budget(trial_concurrency=3))
    lab.answer()
    lab.running()
    waiting = [trial for trial in lab.experiment.live.values() if trial.state.name == "WAITING"]

    lab.notification(inputs.AgentRestarted("local", "boot2"))

    assert lab.effects == [PublishAgain(trial.id, 1, "boot2") for trial in waiting]
    assert len(waiting) == 2
    lab.notification(inputs.AgentRestarted("other pool", "boot2"))
    assert lab.effects == []


def test_trial_does_not_end_before_it_started() -> None:
    lab = Lab()
    trial = lab.running()
    trial.started_at_ms = 7_200_000  # by a clock that was set back since

    lab.report(trial, 1, exited(0, ExitCause.ENDED))

    assert trial.ended_at_ms == 7_200_000


def saved(trial: Trial, step: int, number: int = 1) -> CheckpointSaved:
    return CheckpointSaved(TrialCheckpoint(step, trial.attempt, number))


def test_an_attempt_lost_after_a_later_step_costs_no_retry() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))
    trial = lab.running()

    for step in range(1, 2 * FALSE_START_LIMIT):
        claim = trial.claim_id
        lab.report(trial, 1, saved(trial, step), claim=claim)
        lab.report(trial, 2, lost("the machine died"), claim=claim)
        lab.report(trial, 0, Started(1), claim=f"c{step}")

    assert (trial.state, trial.losses, trial.never_started) == (TrialState.RUNNING, 0, 0)
    assert trial.interruptions.resumed_losses == trial.attempt - 1
    assert lab.refolded().trials[trial.id] == trial


def test_an_attempt_lost_without_a_later_step_uses_up_a_retry() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))
    trial = lab.running()
    lab.report(trial, 1, saved(trial, 7))
    lab.report(trial, 2, lost("the machine died"))
    lab.report(trial, 0, Started(1), claim="c2")

    lab.report(trial, 1, saved(trial, 7), claim="c2")
    lab.report(trial, 2, lost("the machine died"), claim="c2")

    assert trial.state is TrialState.FAILED


def test_an_announced_loss_without_progress_ends_a_trial_after_many_times_only() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=0))
    trial = lab.running()
    stopped = Lost(LossReason(LossCause.AGENT_STOPPED))

    for number in range(FALSE_START_LIMIT):
        lab.report(trial, 1, stopped, claim=trial.claim_id)
        assert trial.state is TrialState.WAITING
        lab.report(trial, 0, Started(1), claim=f"c{number}")
    lab.report(trial, 1, stopped, claim=trial.claim_id)

    assert trial.state is TrialState.FAILED


def test_a_checkpoint_beyond_a_gap_waits_for_the_reports_before_it() -> None:
    lab = Lab()
    trial = lab.running()

    lab.report(trial, 2, saved(trial, 5))
    before = trial.checkpoint
    lab.report(trial, 1, intermediate(0.1))

    assert before is None
    assert trial.checkpoint == TrialCheckpoint(5, 1, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 6)),
            st.sampled_from([LossCause.AGENT_FAILED, LossCause.AGENT_STOPPED]),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_a_trial_ends_by_the_losses_without_progress_alone(
    attempts: list[tuple[int | None, LossCause]],
) -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=2))
    trial = lab.running(claim="c0")
    best, counted, announced = None, 0, 0

    for number, (step, cause) in enumerate(attempts, 1):
        if step is not None:
            lab.report(trial, 1, saved(trial, step), claim=trial.claim_id)
        if step is not None and (best is None or step > best):
            best = step
        else:
            counted += cause is LossCause.AGENT_FAILED
            announced += cause is LossCause.AGENT_STOPPED
        lab.report(trial, 2, Lost(LossReason(cause)), claim=trial.claim_id)
        if counted > 2 or announced > FALSE_START_LIMIT:
            assert trial.state is TrialState.FAILED
            break
        assert trial.state is TrialState.WAITING
        lab.report(trial, 0, Started(1), claim=f"c{number}")
    assert lab.refolded().trials[trial.id] == trial


def test_a_stopped_trial_whose_agent_is_lost_keeps_the_cause_of_its_stop() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))

    emitted = lab.report(trial, 1, lost("power cut"))

    [ended] = [event for event in emitted if isinstance(event, events.TrialEnded)]
    assert ended.end == EndReason(EndCause.STOPPED, stop=StopReason(StopCause.USER))
    assert (ended.state, ended.infrastructure) == (TrialState.USER_CANCELED, False)


def test_at_most_a_thousand_tasks_are_published_again_for_a_restarted_agent() -> None:
    lab = Lab(Budget(trial_concurrency=1_001))
    lab.answer()

    lab.notification(inputs.AgentRestarted("local", "boot2"))

    assert len(lab.experiment.live) == 1_001
    assert len(lab.effects) == 1_000
