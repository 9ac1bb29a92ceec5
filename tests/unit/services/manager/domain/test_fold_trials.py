"""Fold of trial events: counts, attempts, reports and the best trial."""

import math
from dataclasses import replace

import pytest

from svc_common.experiment_events.causes import (
    EndCause,
    EndReason,
    IgnoreCause,
    LossCause,
    LossReason,
    WaitCause,
    WaitReason,
)
from svc_manager.domain import events
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.experiment import Budget, ExperimentSettings
from svc_manager.domain.fold import fold
from svc_manager.domain.reports import Report
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState
from svc_manager.domain.values import Metric, OptimizeMode, ParameterSource
from tests.unit.services.manager.building import created, encoded, exited, final, intermediate

END = EndReason(EndCause.SUCCEEDED)
LOSS = LossReason(LossCause.AGENT_RESTARTED)


def experiment_with_trial(
    mode: OptimizeMode = OptimizeMode.MINIMIZE,
) -> tuple[Experiment, Trial]:
    experiment = Experiment()
    fold(experiment, created(Budget(), ExperimentSettings(optimize_mode=mode)), 0)
    schedule(experiment, "t0")
    return experiment, experiment.trials["t0"]


def schedule(experiment: Experiment, trial_id: str) -> None:
    number = len(experiment.trials)
    event = events.TrialScheduled(
        trial_id, number, number, encoded({"x": number}), ParameterSource.ALGORITHM, "local"
    )
    fold(experiment, event, 5)


def start(experiment: Experiment, trial_id: str = "t0", claim: str = "c1") -> None:
    attempt = experiment.trials[trial_id].attempt
    fold(experiment, events.TrialStarted(trial_id, attempt, claim, "r1", 9, (0, 1), 0), 9)


def report_final(experiment: Experiment, trial_id: str, value: float) -> None:
    trial = experiment.trials[trial_id]
    event = events.MetricReported(trial_id, trial.attempt, trial.parameter_id, final(value), 1)
    fold(experiment, event, 10)


def end(experiment: Experiment, state: TrialState, trial_id: str = "t0") -> None:
    trial = experiment.trials[trial_id]
    event = events.TrialEnded(trial_id, trial.attempt, state, 0, 20, END, 2)
    fold(experiment, event, 20)


def test_a_scheduled_trial_is_live_and_waits() -> None:
    experiment, trial = experiment_with_trial()

    assert experiment.live == {"t0": trial}
    assert experiment.counts[TrialState.WAITING] == 1
    assert trial.created_at_ms == 5


def test_trials_of_an_agent_share_its_text_and_have_no_object_for_interruptions() -> None:
    experiment, first = experiment_with_trial()
    schedule(experiment, "t1")
    names = ["-".join(("agent", "7")) for _ in range(2)]  # as decoded from two messages

    for trial, name in zip(experiment.trials.values(), names, strict=True):
        fold(experiment, events.TrialStarted(trial.id, 1, "c1", name, 9, (), 0), 9)

    assert names[0] is not names[1]
    assert first.runner_id is experiment.trials["t1"].runner_id
    assert first.rare is None


def test_a_started_trial_belongs_to_its_claim() -> None:
    experiment, trial = experiment_with_trial()

    start(experiment)

    assert trial.is_claimed_by(1, "c1")
    assert not trial.is_claimed_by(1, "c2")
    assert (trial.runner_id, trial.gpu_indices) == ("r1", (0, 1))
    assert experiment.counts == {TrialState.WAITING: 0, TrialState.RUNNING: 1}


def test_an_ended_trial_is_no_longer_live() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)

    end(experiment, TrialState.SUCCEEDED)

    assert not experiment.live
    assert experiment.trials == {"t0": trial}
    assert experiment.counts[TrialState.SUCCEEDED] == 1


def test_a_lost_attempt_starts_anew_without_its_results() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)
    metric = events.MetricReported("t0", 1, 0, intermediate(0.5), 1)
    fold(experiment, metric, 10)

    fold(experiment, events.TrialLost("t0", 1, LOSS, False), 11)

    assert (trial.state, trial.attempt, trial.claim_id) == (TrialState.WAITING, 2, "")
    assert (trial.intermediate_count, trial.last_intermediate) == (0, None)
    assert trial.report_sequence == -1
    assert trial.losses == 1
    assert [lost.loss for lost in trial.lost_attempts] == [LOSS]


@pytest.mark.parametrize(
    "cause", [LossCause.AGENT_STOPPED, LossCause.AGENT_LEFT, LossCause.STARTER_KILLED]
)
def test_a_loss_without_the_fault_of_the_trial_is_counted_apart(cause: LossCause) -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)

    fold(experiment, events.TrialLost("t0", 1, LossReason(cause), False), 11)

    assert (trial.losses, trial.never_started, trial.attempt) == (0, 1, 2)


def test_losses_of_attempts_that_progressed_are_counted_apart() -> None:
    experiment, trial = experiment_with_trial()

    for attempt in (1, 2):
        start(experiment, claim=f"c{attempt}")
        saved = events.TrialCheckpointed(
            "t0", attempt, TrialCheckpoint(10 * attempt, attempt, 1), 1
        )
        fold(experiment, saved, 10)
        fold(experiment, events.TrialLost("t0", attempt, LOSS, False), 11)

    assert trial.interruptions.resumed_losses == 2
    assert (trial.losses, trial.never_started, trial.attempt) == (0, 0, 3)


def test_a_loss_before_the_start_is_counted_apart() -> None:
    experiment, trial = experiment_with_trial()

    fold(experiment, events.TrialLost("t0", 1, LOSS, False), 11)

    assert (trial.losses, trial.never_started) == (0, 1)
    assert experiment.counts[TrialState.WAITING] == 1


def test_a_retried_failure_is_no_loss() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)

    fold(experiment, events.TrialLost("t0", 1, LossReason(LossCause.COMMAND_FAILED), True), 11)

    assert (trial.failures, trial.losses) == (1, 0)


@pytest.mark.parametrize(
    ("mode", "best"), [(OptimizeMode.MINIMIZE, "t1"), (OptimizeMode.MAXIMIZE, "t0")]
)
def test_the_best_trial_follows_the_mode(mode: OptimizeMode, best: str) -> None:
    experiment, _ = experiment_with_trial(mode)
    schedule(experiment, "t1")
    for trial_id, value in (("t0", 2.0), ("t1", 1.0)):
        start(experiment, trial_id)
        report_final(experiment, trial_id, value)

    assert experiment.best_trial_id == best


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_result_that_is_no_finite_number_is_never_best(value: float) -> None:
    experiment, _ = experiment_with_trial()
    start(experiment)

    report_final(experiment, "t0", value)

    assert (experiment.best_trial_id, experiment.best_value) == ("", None)


@pytest.mark.parametrize(
    ("latency", "best"), [(10.0, "t0"), (10.5, ""), (math.nan, ""), (-math.inf, ""), (None, "")]
)
def test_a_result_beyond_a_limit_is_never_best(latency: float | None, best: str) -> None:
    experiment, _ = experiment_with_trial()
    experiment.settings = replace(experiment.settings, limits=(("latency", 10.0),))
    start(experiment)
    numbers = {"default": 1.0} | ({} if latency is None else {"latency": latency})
    metric = replace(final(1.0), numbers=numbers)

    fold(experiment, events.MetricReported("t0", 1, 0, metric, 2), 12)

    assert experiment.best_trial_id == best


def test_a_report_ends_the_unknown_state() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)
    fold(experiment, events.TrialUnknown("t0", 1), 10)
    assert experiment.counts[TrialState.UNKNOWN] == 1

    fold(experiment, events.MetricReported("t0", 1, 0, intermediate(1.0), 1), 11)

    assert trial.state is TrialState.RUNNING


def test_a_deferred_report_is_kept_until_it_is_applied() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)
    report = Report("r1", "t0", 1, 2, "c1", exited())

    fold(experiment, events.ReportDeferred(report), 10)
    assert experiment.deferred == {("t0", 1, "c1"): {2: report}}
    end(experiment, TrialState.SUCCEEDED)

    assert not experiment.deferred
    assert trial.report_sequence == 2


def test_deferred_reports_of_a_lost_attempt_are_dropped() -> None:
    experiment, _ = experiment_with_trial()
    start(experiment)
    fold(experiment, events.ReportDeferred(Report("r1", "t0", 1, 5, "c1", exited())), 10)

    fold(experiment, events.TrialLost("t0", 1, LOSS, False), 11)

    assert not experiment.deferred


def test_an_ignored_report_uses_its_sequence() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)

    fold(experiment, events.ReportIgnored("t0", 1, 1, IgnoreCause.FINAL_COUNTED), 10)

    assert trial.report_sequence == 1
    assert trial.final is None


def test_a_waiting_report_claims_the_attempt_and_gives_its_reason() -> None:
    experiment, trial = experiment_with_trial()
    wait = WaitReason(WaitCause.GPU_IN_USE, gpu_count=1)

    fold(experiment, events.TrialWaits("t0", 1, "c1", "r1", wait, 0), 10)

    assert (trial.state, trial.claim_id) == (TrialState.WAITING, "c1")
    assert trial.wait == wait


@pytest.mark.parametrize(
    ("metric", "count"),
    [
        (final(0.5), 0),
        (final("0.5"), 1),
        (final(math.nan), 1),
        (final(math.inf), 0),
        (replace(final("0.5"), large=True), 0),
    ],
)
def test_final_results_that_the_algorithm_cannot_learn_from_are_counted(
    metric: Metric, count: int
) -> None:
    experiment, _ = experiment_with_trial()
    experiment.algorithm.learned_metrics = ("default",)
    start(experiment)

    fold(experiment, events.MetricReported("t0", 1, 0, metric, 1), 10)

    assert experiment.unlearned_count == count
    assert experiment.unlearned_trial_id == ("t0" if count else "")


def checkpointed(experiment: Experiment, step: int, sha256: str, sequence: int) -> None:
    checkpoint = TrialCheckpoint(step, 1, step, sha256)
    fold(experiment, events.TrialCheckpointed("t0", 1, checkpoint, sequence), 5)


def test_a_later_checkpoint_supersedes_the_earlier_one_unless_it_is_the_same_content() -> None:
    experiment, _ = experiment_with_trial()
    start(experiment)

    checkpointed(experiment, 1, "a" * 64, 1)
    first = set(experiment.superseded_checkpoints)
    checkpointed(experiment, 2, "b" * 64, 2)
    second = set(experiment.superseded_checkpoints)
    checkpointed(experiment, 3, "a" * 64, 3)

    assert (first, second) == (set(), {"a" * 64})
    assert experiment.superseded_checkpoints == {"b" * 64}


@pytest.mark.parametrize("sha256", ["a" * 64, ""], ids=["stored", "in the shared folder"])
def test_the_end_of_a_trial_supersedes_its_stored_checkpoint(sha256: str) -> None:
    experiment, _ = experiment_with_trial()
    start(experiment)
    checkpointed(experiment, 1, sha256, 1)

    end(experiment, TrialState.SUCCEEDED)

    assert experiment.superseded_checkpoints == ({sha256} if sha256 else set())


def test_a_saved_checkpoint_of_an_ended_trial_is_found_by_its_folder() -> None:
    experiment, _ = experiment_with_trial()
    start(experiment)
    saved = SavedCheckpoint("/folder", "c" * 64, 5)
    ended = events.TrialEnded("t0", 1, TrialState.SUCCEEDED, 0, 9, END, 1, saved)

    fold(experiment, ended, 9)

    assert experiment.checkpoints == {"/folder": saved}


def test_a_lost_attempt_leaves_its_agent_and_its_gpus() -> None:
    experiment, _ = experiment_with_trial()
    fold(experiment, events.TrialStarted("t0", 1, "c1", "r1", 3, (0, 2), 0), 3)
    before = experiment.trials["t0"].gpu_indices

    fold(experiment, events.TrialLost("t0", 1, LOSS, command_failed=False), 5)

    trial = experiment.trials["t0"]
    assert before == (0, 2)
    assert (trial.runner_id, trial.claim_id, trial.gpu_indices) == ("", "", ())


@pytest.mark.parametrize("mode", list(OptimizeMode))
def test_first_of_equal_results_stays_the_best(mode: OptimizeMode) -> None:
    experiment, _ = experiment_with_trial(mode)
    schedule(experiment, "t1")
    for trial_id in ("t0", "t1"):
        start(experiment, trial_id)
        report_final(experiment, trial_id, 0.5)

    assert (experiment.best_trial_id, experiment.best_value) == ("t0", 0.5)


def test_applied_report_is_no_longer_deferred_and_the_others_are() -> None:
    experiment, _ = experiment_with_trial()
    start(experiment)
    late = [Report("r1", "t0", 1, number, "c1", exited()) for number in (1, 5)]
    for report in late:
        fold(experiment, events.ReportDeferred(report), 10)

    report_final(experiment, "t0", 0.5)

    assert experiment.deferred == {("t0", 1, "c1"): {5: late[1]}}
    assert experiment.deferred_since_ms == {("t0", 1, "c1"): 10}


def test_end_and_loss_of_an_attempt_drop_its_deferred_reports_and_their_time() -> None:
    for over in (
        events.TrialEnded("t0", 1, TrialState.FAILED, 1, 20, END, 0),
        events.TrialLost("t0", 1, LOSS, False),
    ):
        experiment, _ = experiment_with_trial()
        start(experiment)
        fold(experiment, events.ReportDeferred(Report("r1", "t0", 1, 5, "c1", exited())), 10)

        fold(experiment, over, 20)

        assert (experiment.deferred, experiment.deferred_since_ms) == ({}, {})


def test_trial_without_a_back_off_may_be_queued_again() -> None:
    experiment, trial = experiment_with_trial()

    fold(experiment, events.TrialRequeued("t0", 1), 10)

    assert (experiment.backing_off, trial.state) == ({}, TrialState.WAITING)


def test_last_of_several_failed_starts_in_a_row_is_kept_with_the_losses_before() -> None:
    experiment, trial = experiment_with_trial()
    start(experiment)
    losses = [LOSS, *(LossReason(LossCause.NOT_STARTED, detail=text) for text in ("one", "two"))]

    for attempt, loss in enumerate(losses, 1):
        fold(experiment, events.TrialLost("t0", attempt, loss, False), 10)

    assert [(one.attempt, one.loss) for one in trial.lost_attempts] == [
        (1, losses[0]),
        (3, losses[2]),
    ]
