"""Explanations of trials that run, were stopped or failed: one test per reason."""

import pytest

from svc_common.experiment_events.causes import EndCause, EndReason, LossCause, LossReason
from svc_manager.domain import inputs
from svc_manager.domain.checkpoints import TrialCheckpoint
from svc_manager.domain.decide_commands import cut_off
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.explain import explain_trial
from svc_manager.domain.explanation import (
    AgentFacts,
    Explanation,
    ExplanationContext,
    ReasonKind,
    TrialOutcome,
)
from svc_manager.domain.reports import CheckpointSaved, ExitCause, Exited, Lost, Started
from svc_manager.domain.trial import Trial
from svc_manager.domain.values import OptimizeMode
from tests.unit.services.manager.building import Lab, exited, intermediate, lost

WITH_A_REMEDY = {
    ReasonKind.TIME_LIMIT,
    ReasonKind.USER,
    ReasonKind.EXPERIMENT,
    ReasonKind.NOT_STARTED,
    ReasonKind.EXIT_CODE,
}
"""Kinds of reasons of agents' trials that a person can always do something about."""
SILENT = AgentFacts("r1", "local", 1000.0, silent=True, draining=False, held_count=1)


def why(lab: Lab, trial: Trial) -> Explanation:
    context = ExplanationContext(lab.now_ms + 65_000, [SILENT])
    explanation = explain_trial(lab.experiment, trial, context)
    assert explanation.lost_attempts == trial.lost_attempts
    assert (explanation.exit_code, explanation.end) == (trial.exit_code, trial.end)
    assert all(one.remedy for one in explanation.reasons if one.kind in WITH_A_REMEDY)
    return explanation


def failed(end: Exited) -> Explanation:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, end)
    explanation = why(lab, trial)
    assert explanation.outcome is TrialOutcome.FAILED
    assert explanation.reasons[0].text in explanation.summary
    return explanation


def test_a_running_trial_is_explained_with_its_last_checkpoint() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, CheckpointSaved(TrialCheckpoint(40, 1, 1)))

    assert why(lab, trial).summary.endswith("; its last checkpoint is of step 40")


def test_a_running_trial_is_explained_with_its_agent_and_age() -> None:
    lab = Lab()

    explanation = why(lab, lab.running())

    assert explanation.outcome is TrialOutcome.RUNS
    assert explanation.summary == "trial 00000 has been running for 1 min 5 s on agent r1"
    assert explanation.reasons == ()


def test_a_trial_of_a_silent_agent_is_unknown() -> None:
    lab = Lab()
    trial = lab.running()
    lab.notification(inputs.AgentSilent("r1"))

    explanation = why(lab, trial)

    assert explanation.outcome is TrialOutcome.RUNS
    assert explanation.reasons[0].kind is ReasonKind.AGENT
    assert "for 16 min 40 s" in explanation.reasons[0].text
    assert "look at that machine" in explanation.reasons[0].remedy


def test_a_success_is_explained_with_its_duration() -> None:
    lab = Lab()
    trial = lab.running()
    lab.finish(trial)

    explanation = why(lab, trial)

    assert (explanation.outcome, explanation.exit_code) == (TrialOutcome.SUCCEEDED, 0)
    assert explanation.summary == "trial 00000 succeeded after 8 s"


def test_a_success_without_a_result_says_so() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, exited())

    assert why(lab, trial).summary.endswith("but reported no final result")


def test_an_exit_code_is_explained_with_the_tail_of_stderr() -> None:
    explanation = failed(exited(1, detail="Traceback\nValueError: no"))

    assert explanation.reasons[0].kind is ReasonKind.EXIT_CODE
    assert explanation.reasons[0].text == "its command ended with exit code 1"
    assert (explanation.exit_code, explanation.signal) == (1, 0)
    assert explanation.stderr_tail == "Traceback\nValueError: no"
    assert "--trial_id 00000" in explanation.reasons[0].remedy


@pytest.mark.parametrize(
    ("code", "notification"), [(127, "did not find a program"), (126, "may not run the program")]
)
def test_exit_codes_of_a_shell_have_their_own_remedy(code: int, notification: str) -> None:
    assert notification in failed(exited(code)).reasons[0].remedy


def test_a_shell_that_passes_a_signal_on_is_seen_through() -> None:
    explanation = failed(exited(137))

    assert explanation.reasons[0].kind is ReasonKind.SIGNAL
    assert "killed by SIGKILL" in explanation.reasons[0].text
    assert "memory" in explanation.reasons[0].remedy


def test_a_signal_is_explained_by_its_name() -> None:
    explanation = failed(exited(None, detail="last words"))

    assert explanation.reasons[0].text == "its command was killed by SIGKILL (signal 9)"
    assert (explanation.exit_code, explanation.signal) == (None, 9)
    assert explanation.stderr_tail == "last words"


def test_a_signal_without_a_name_is_explained_by_its_number() -> None:
    explanation = failed(Exited(9_000, ExitCause.ENDED, None, 77))

    assert explanation.reasons[0].text == "its command was killed by a signal (signal 77)"
    assert explanation.reasons[0].remedy == ""


def test_a_command_that_could_not_be_started_says_why() -> None:
    lab = Lab()
    trial = lab.waiting()
    end = Exited(9_000, ExitCause.NOT_STARTED, None, 0, "the code directory /x does not exist")
    lab.report(trial, 0, end)

    explanation = why(lab, trial)

    assert explanation.reasons[0].kind is ReasonKind.NOT_STARTED
    assert "the code directory /x does not exist" in explanation.summary


def test_a_trial_that_lost_its_agents_names_each_loss() -> None:
    settings = ExperimentSettings(optimize_mode=OptimizeMode.MINIMIZE, max_trial_retries=1)
    lab = Lab(settings=settings)
    trial = lab.running()
    lab.report(trial, 1, Lost(LossReason(LossCause.AGENT_RESTARTED)))
    lab.running(claim="second", runner="r2")
    lab.report(trial, 1, lost("power cut"), claim="second", runner="r2")

    explanation = why(lab, trial)

    assert explanation.outcome is TrialOutcome.FAILED
    assert [reason.kind for reason in explanation.reasons] == [ReasonKind.LOST, ReasonKind.LOST]
    assert "maxTrialRetries is 1" in explanation.reasons[0].text
    assert "larger maxTrialRetries" in explanation.reasons[0].remedy
    assert "attempt 1: its agent was restarted" in explanation.reasons[1].text
    assert len(explanation.lost_attempts) == 1


def test_of_many_lost_attempts_the_last_three_are_named() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=4))
    for number in range(1, 6):
        trial = lab.running(claim=f"claim {number}")
        lab.report(trial, 1, lost("power cut"), claim=f"claim {number}")

    text = why(lab, trial).reasons[1].text

    assert text.startswith("4 earlier attempts did not come through: attempt 2: ")
    assert "attempt 3: " in text
    assert "attempt 4: " in text


def test_a_trial_that_was_live_when_its_log_was_cut_off_says_so() -> None:
    lab = Lab()
    trial = lab.running()
    cut_off(Round(lab.experiment, lab.now_ms, lab.ids))

    explanation = why(lab, trial)

    assert explanation.outcome is TrialOutcome.FAILED
    assert explanation.reasons[0].kind is ReasonKind.EXPERIMENT
    assert "it was live when the experiment was cut off" in explanation.summary


def stopped(lab: Lab, trial: Trial, end: Exited) -> Explanation:
    being = why(lab, trial)
    assert being.summary.startswith("trial 00000 is being stopped") or trial.asked_end is None
    lab.report(trial, trial.report_sequence + 1, end)
    explanation = why(lab, trial)
    assert explanation.outcome is TrialOutcome.STOPPED
    return explanation


def test_a_killed_trial_was_killed_by_a_user() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.KillTrial(trial.id))

    explanation = stopped(lab, trial, exited(None, ExitCause.STOPPED))

    assert explanation.reasons[0].kind is ReasonKind.USER
    assert "a user asked for it" in explanation.summary


def test_an_early_stop_was_the_assessors_advice() -> None:
    lab = Lab()
    trial = lab.running()
    lab.report(trial, 1, intermediate(0.5))
    lab.notification(inputs.StopAdvice(trial.id, "worse than the median"))

    explanation = stopped(lab, trial, exited(None, ExitCause.STOPPED))

    assert explanation.reasons[0].kind is ReasonKind.ASSESSOR
    assert (
        explanation.reasons[0].text
        == "the assessor advised it after 1 result (worse than the median)"
    )


def test_a_time_limit_is_no_advice_of_an_assessor() -> None:
    lab = Lab()
    trial = lab.running()

    explanation = stopped(lab, trial, exited(None, ExitCause.TIME_LIMIT, "epoch 3: loss 0.1"))

    assert explanation.reasons[0].kind is ReasonKind.TIME_LIMIT
    assert explanation.reasons[0].text == "it ran longer than maxTrialDuration"
    assert explanation.stderr_tail == "epoch 3: loss 0.1"


def test_a_trial_of_a_stopped_experiment_was_stopped_with_it() -> None:
    lab = Lab()
    trial = lab.running()
    lab.command(inputs.Stop())

    explanation = stopped(lab, trial, exited(None, ExitCause.STOPPED))

    assert explanation.reasons[0].kind is ReasonKind.EXPERIMENT


def test_a_trial_that_its_agent_stopped_unasked_says_so() -> None:
    lab = Lab(Budget(trial_concurrency=1))
    trial = lab.running()

    explanation = stopped(lab, trial, exited(None, ExitCause.STOPPED))

    assert explanation.reasons[0].kind is ReasonKind.AGENT
    assert explanation.reasons[0].text == "its agent stopped it"


def test_a_running_trial_that_is_to_stop_says_so_and_names_its_losses() -> None:
    lab = Lab(settings=ExperimentSettings(max_trial_retries=1))
    trial = lab.running()
    lab.report(trial, 1, lost("the machine died"))
    lab.report(trial, 0, Started(1), claim="c2", runner="r2")
    before = why(lab, trial)

    lab.command(inputs.KillTrial(trial.id))

    assert [reason.kind for reason in before.reasons] == [ReasonKind.LOST]
    explanation = why(lab, trial)
    assert [reason.kind for reason in explanation.reasons] == [ReasonKind.USER, ReasonKind.LOST]
    assert "is being stopped" in explanation.summary


@pytest.mark.parametrize(
    ("cause", "is_killed", "kind"),
    [
        (EndCause.UNSPECIFIED, True, ReasonKind.USER),
        (EndCause.UNSPECIFIED, False, ReasonKind.TIME_LIMIT),
        (EndCause.EXIT_CODE, False, ReasonKind.AGENT),
    ],
    ids=["killed", "not killed", "another cause"],
)
def test_a_stop_whose_cause_is_not_in_the_log_is_explained_by_what_is(
    cause: EndCause, is_killed: bool, kind: ReasonKind
) -> None:
    lab = Lab()
    trial = lab.running()
    if is_killed:
        lab.command(inputs.KillTrial(trial.id))
    lab.report(trial, 1, exited(None, ExitCause.STOPPED))
    trial.end = EndReason(cause)

    (reason,) = why(lab, trial).reasons

    assert reason.kind is kind


def test_an_exit_code_beyond_all_signals_is_an_exit_code() -> None:
    reason = failed(exited(255)).reasons[0]

    assert reason.kind is ReasonKind.EXIT_CODE
    assert reason.text == "its command ended with exit code 255"


@pytest.mark.parametrize("code", [128, 129])
def test_exit_code_of_a_signal_is_larger_than_that_of_a_shell(code: int) -> None:
    reason = failed(exited(code)).reasons[0]

    assert reason.kind is (ReasonKind.SIGNAL if code > 128 else ReasonKind.EXIT_CODE)
    assert "--trial_id 00000" in reason.remedy


def test_killed_command_has_the_remedy_of_its_signal() -> None:
    reason = failed(Exited(9_000, ExitCause.ENDED, None, 9)).reasons[0]

    assert "out-of-memory" in reason.remedy


def test_trial_of_an_agent_that_is_not_known_is_unknown_for_no_time() -> None:
    lab = Lab()
    trial = lab.running()
    lab.notification(inputs.AgentSilent("r1"))

    explanation = explain_trial(lab.experiment, trial, ExplanationContext(lab.now_ms, []))

    assert explanation.reasons[0].text == "its agent r1 has been silent"
