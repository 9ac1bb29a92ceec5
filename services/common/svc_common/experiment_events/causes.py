"""Causes of ends, stops, losses and waits of trials, and of changes of an experiment's state.

Each class mirrors a message or enum of the contract (`trial/v1/cause.proto`,
`experiment/v1/experiment.proto`), which documents the fields. UNSPECIFIED is the cause of logs and
agents of older versions; its `detail` is their text.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class StopCause(IntEnum):
    """Origin of the request to stop a trial: user, assessor, experiment's stop or agent."""

    UNSPECIFIED = 0
    USER = 1
    ASSESSOR = 2
    EXPERIMENT_STOPPED = 3
    AGENT = 4


@dataclass(frozen=True, slots=True)
class StopReason:
    """Origin of a trial's stop, with the assessor's text."""

    cause: StopCause
    detail: str = ""
    """Words of the algorithm; empty: none."""


class EndCause(IntEnum):
    """Kind of a trial's end: success, exit code, signal, time limit, stop, loss, …."""

    UNSPECIFIED = 0
    SUCCEEDED = 1
    EXIT_CODE = 2
    SIGNAL = 3
    NOT_STARTED = 4
    TIME_LIMIT = 5
    STOPPED = 6
    LOST = 7
    NEVER_STARTED = 8
    CUT_OFF = 9


@dataclass(frozen=True, slots=True)
class EndReason:
    """Cause of a trial's end, with its facts: exit code or signal, stderr, stop or last loss."""

    cause: EndCause
    exit_code: int = 0
    """1-255, for EXIT_CODE."""
    signal: int = 0
    """Number of the signal, for SIGNAL."""
    stderr_tail: str = ""
    """Last lines of stderr; empty: none, or the command did not run."""
    detail: str = ""
    """Message of an error, for NOT_STARTED; words of a caller, for UNSPECIFIED."""
    stop: StopReason | None = None
    """For STOPPED."""
    lost_count: int = 0
    """Number of lost attempts, for LOST and NEVER_STARTED."""
    loss: "LossReason | None" = None
    """Last loss, for LOST and NEVER_STARTED."""


class LossCause(IntEnum):
    """Kind of the loss of a trial's attempt: agent restarted, silent, failed, …."""

    UNSPECIFIED = 0
    AGENT_RESTARTED = 1
    AGENT_STOPPED = 2
    AGENT_LEFT = 3
    AGENT_SILENT = 4
    CLAIM_EXPIRED = 5
    UNKNOWN_TO_AGENT = 6
    AGENT_UNRESPONSIVE = 7
    AGENT_FAILED = 8
    COMMAND_FAILED = 9
    STARTER_KILLED = 10
    NOT_STARTED = 11
    REPORTS_MISSING = 12
    LEASE_LAPSED = 13


_FAULTLESS: Final = frozenset(
    {
        LossCause.AGENT_STOPPED,
        LossCause.AGENT_LEFT,
        LossCause.STARTER_KILLED,
        LossCause.NOT_STARTED,
        LossCause.REPORTS_MISSING,
    }
)
"""Causes that say nothing about the trial: an orderly stop, the act of another trial, a failure of
the environment, or damage of the bus."""


@dataclass(frozen=True, slots=True)
class LossReason:
    """Cause of the loss of a trial's attempt, with its facts: silence, error, agent."""

    cause: LossCause
    silence_ms: int | None = None
    """For AGENT_SILENT, CLAIM_EXPIRED and LEASE_LAPSED."""
    detail: str = ""
    """Message of an error, for AGENT_FAILED, STARTER_KILLED and NOT_STARTED."""
    end: EndReason | None = None
    """End of the command, for COMMAND_FAILED."""
    runner_id: str = ""
    """The silent agent, for AGENT_SILENT; the caller, for LEASE_LAPSED."""

    @property
    def counts(self) -> bool:
        """True if the loss counts against `maxTrialRetries`."""
        return self.cause not in _FAULTLESS


class WaitCause(IntEnum):
    """Kind of a delay of a trial's start: GPUs in use or missing, blob, environment, platform."""

    UNSPECIFIED = 0
    GPU_IN_USE = 1
    GPU_MISSING = 2
    BLOB = 3
    ENVIRONMENT = 4
    PLATFORM = 5


@dataclass(frozen=True, slots=True)
class GpuUser:
    """User of a GPU for which a trial waits: trials, another experiment, or a process."""

    index: int
    trial_ids: tuple[str, ...] = ()
    experiment_id: str = ""
    process: str = ""


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Cause of the delay of a trial's start, with its facts: GPUs and their users, or a blob."""

    cause: WaitCause
    gpu_count: int = 0
    """Number of requested GPUs."""
    gpu_available: int = 0
    """Number of GPUs that the trial may use, for GPU_MISSING."""
    gpu_restricted: bool = False
    """True if `gpuIndices` restricts them, for GPU_MISSING."""
    users: tuple[GpuUser, ...] = ()
    """For GPU_IN_USE."""
    object: str = ""
    """The awaited object, for BLOB."""
    detail: str = ""
    """Last error: of the store for BLOB, of the last start for ENVIRONMENT, in the platform's words
    for PLATFORM; empty: none."""
    failure_count: int = 0
    """Number of failed starts of the trial, for ENVIRONMENT."""
    remedy: str = ""
    """What a person can do, for PLATFORM; empty: nothing is known."""


class IgnoreCause(IntEnum):
    """Cause for which a trial's report has no effect, e.g. a final metric was counted before."""

    UNSPECIFIED = 0
    FINAL_COUNTED = 1


class ExperimentCause(IntEnum):
    """Kind of cause of an experiment's change of state: created, limits, user, algorithm, …."""

    UNSPECIFIED = 0
    CREATED = 1
    ALGORITHM_STARTED = 2
    TRIAL_NUMBER = 3
    DURATION = 4
    NO_MORE_PARAMETERS = 5
    ALGORITHM_GAVE_UP = 6
    STOPPED_BY_USER = 7
    MANAGER_TERMINATED = 8
    RESUMED = 9
    OPENED_FOR_READING = 10
    LOG_COPIED = 11


@dataclass(frozen=True, slots=True)
class ExperimentReason:
    """Cause of an experiment's change of state, with the algorithm's message."""

    cause: ExperimentCause
    detail: str = ""
    """Message of the algorithm, for ALGORITHM_GAVE_UP."""
