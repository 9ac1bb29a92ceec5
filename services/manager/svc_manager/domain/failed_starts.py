"""Back-off after failed starts: when a trial is started again, and when the experiment holds.

A start fails if the environment of the trial fails before its command runs: a full disk, a missing
folder. It says nothing about the parameters, so it costs no budget: the trial is started again
after a back-off. After `HOLD_AFTER` failed starts in a row the experiment holds: one trial at a
time is started, as a probe, at growing intervals, until a start succeeds.
"""

from dataclasses import replace
from typing import Final

from svc_manager.domain.state import Experiment, FailedStarts
from svc_manager.domain.trial import TrialState

HOLD_AFTER: Final = 5
"""Failed starts in a row, of any trials, after which the experiment holds."""
FIRST_DELAY_MS: Final = 1000
"""Back-off after the first failed start."""
LONGEST_DELAY_MS: Final = 60_000
"""Longest back-off: an environment that was mended is noticed after this time at the latest."""


def delay_ms(failures: int) -> int:
    """Return the back-off after this many failures (>= 1): 1 s, doubled by each, at most 60 s."""
    doublings = min(failures - 1, LONGEST_DELAY_MS.bit_length())
    return min(FIRST_DELAY_MS << doublings, LONGEST_DELAY_MS)


def holds(experiment: Experiment) -> bool:
    """Return whether `HOLD_AFTER` starts in a row have failed, so that only one probe may start."""
    return experiment.failed_starts.count >= HOLD_AFTER


def next_start_ms(experiment: Experiment) -> int | None:
    """Return the time of the next start after a failed one, or of the probe; None: no back-off.

    While the experiment holds and another trial is about to start, that trial is the probe: None.
    """
    if holds(experiment):
        probes = experiment.counts[TrialState.WAITING] > len(experiment.backing_off)
        return None if probes else experiment.failed_starts.probe_at_ms
    return min(experiment.backing_off.values(), default=None)


def may_start(experiment: Experiment, now_ms: int) -> int | None:
    """Return how many new trials may start; None: any; while it holds 1 if a probe is due, or 0."""
    if not holds(experiment):
        return None
    next_ms = next_start_ms(experiment)
    due = next_ms is not None and now_ms >= next_ms and not experiment.backing_off
    return 1 if due else 0


def due_trials(experiment: Experiment, now_ms: int) -> list[str]:
    """Return the ids of trials whose back-off is over; only one if the experiment holds."""
    next_ms = next_start_ms(experiment)
    if next_ms is None or now_ms < next_ms:
        return []
    if holds(experiment):
        return list(experiment.backing_off)[:1]
    return [trial_id for trial_id, at_ms in experiment.backing_off.items() if now_ms >= at_ms]


def start_failed(experiment: Experiment, trial_id: str, detail: str, time_ms: int) -> None:
    """Count a failed start; set the next start of its trial and of the experiment's probe."""
    trial = experiment.trials[trial_id]
    starts = experiment.failed_starts
    earlier = trial.interruptions
    trial.rare = replace(
        earlier,
        failed_starts=earlier.failed_starts + 1,
        own_failed_starts=earlier.own_failed_starts + (not holds(experiment)),
    )
    starts.count += 1
    starts.detail = detail
    if time_ms >= starts.probe_at_ms:
        # Trials that were started together fail together: they are one step.
        starts.steps += 1
        starts.probe_at_ms = time_ms + delay_ms(starts.steps)
    experiment.backing_off[trial_id] = time_ms + delay_ms(earlier.failed_starts + 1)


def start_succeeded(experiment: Experiment) -> None:
    """Reset the count of failed starts; if the experiment held, end its trials' back-off."""
    if not experiment.failed_starts.count:
        return
    if holds(experiment):
        # Its trials have waited long enough. Otherwise they keep their back-off: another agent may
        # be the one that works.
        experiment.backing_off = dict.fromkeys(experiment.backing_off, 0)
    experiment.failed_starts = FailedStarts()
