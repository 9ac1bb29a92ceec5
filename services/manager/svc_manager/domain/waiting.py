"""Text about an experiment that makes no progress: the condition that it waits for."""

from collections.abc import Iterable

from svc_common.experiment_events.causes import WaitReason
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.explanation import trial_text
from svc_manager.domain.failed_starts import holds
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial, TrialState


def waiting_for(
    experiment: Experiment, agent_count: int, platform: WaitReason | None = None
) -> str:
    """Return what the experiment waits for: algorithm, trials' ends or agents; empty: nothing.

    Args:
        experiment: its state.
        agent_count: live agents of its pool.
        platform: why the platforms of its pool start no agent; None: no reason is known.
    """
    if experiment.state is ExperimentState.INITIALIZED:
        return "waiting for the algorithm to start" + _reason(experiment)
    if experiment.state is ExperimentState.STOPPING:
        return f"waiting for {_trials(len(experiment.live))} to end"
    if experiment.state is not ExperimentState.RUNNING and not experiment.live:
        return ""
    return _trials_wait(experiment, agent_count, platform)


def _trials_wait(experiment: Experiment, agent_count: int, platform: WaitReason | None) -> str:
    if experiment.settings.has_callers:
        return _callers_wait(experiment)
    waiting = [t for t in experiment.live.values() if t.state is TrialState.WAITING]
    unknown = experiment.counts[TrialState.UNKNOWN]
    if holds(experiment) and agent_count:
        return f"waiting for {hold_text(experiment)}"
    if waiting and agent_count == 0:
        verb = "waits" if len(waiting) == 1 else "wait"
        reason = "none is connected" if platform is None else _platform_text(platform)
        return f"{_trials(len(waiting))} {verb} for an agent: {reason}"
    if len(waiting) == len(experiment.live) and waiting:
        return _joined(waiting)
    # A running trial waits, too, when its checkpoint cannot be stored; trials that load it wait
    # with it.
    running = [t for t in experiment.live.values() if t.state is TrialState.RUNNING]
    if running and all(trial.wait for trial in running):
        return _joined(running)
    if unknown and unknown == len(experiment.live):
        return f"waiting for the agent of {_trials(unknown)}: it is silent"
    algorithm = experiment.algorithm
    if not experiment.live and (algorithm.outstanding or not algorithm.started):
        return "waiting for the algorithm" + _reason(experiment)
    return ""


def _callers_wait(experiment: Experiment) -> str:
    if experiment.counts[TrialState.RUNNING]:
        return ""
    if experiment.algorithm.outstanding:
        return "waiting for the algorithm" + _reason(experiment)
    return "waiting for a caller to ask for a trial"


def _reason(experiment: Experiment) -> str:
    reason = experiment.algorithm.wait_reason
    return f": {reason}" if reason else ""


def _platform_text(platform: WaitReason) -> str:
    return "; ".join(filter(None, (platform.detail, platform.remedy)))


def hold_text(experiment: Experiment) -> str:
    """Return a text on the environment that trials wait for: count and detail of failed starts."""
    starts = experiment.failed_starts
    return (
        f"the environment to work again: {starts.count} starts of trials in a row have failed, "
        f"last: {starts.detail}"
    )


def _joined(trials: Iterable[Trial]) -> str:
    texts = {trial_text(trial) for trial in trials} - {""}
    return "; ".join(sorted(texts)[:3])


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
