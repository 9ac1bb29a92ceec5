"""Tasks as received by the agent: one attempt of a trial, and its experiment's trial settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from svc_trial_runner.domain.claims import AttemptKey


@dataclass(frozen=True, slots=True)
class BlobKey:
    """SHA-256 and size of a blob in the blob store."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TrialCheckpoint:
    """Complete checkpoint of a trial, from which its next attempt continues."""

    step: int
    """As the trial named it; grows as the trial makes progress."""
    attempt: int
    """Attempt that saved it."""
    number: int
    """1-based, within the attempt."""
    archive: BlobKey | None = None
    """None: it lies in the trial's folder."""

    @property
    def order(self) -> tuple[int, int]:
        """Sort key among all checkpoints of the trial: attempt, then number."""
        return (self.attempt, self.number)


@dataclass(frozen=True, slots=True)
class GpuRules:
    """Rules which GPUs an experiment's trials get: number, indices, sharing."""

    count: int | None = None
    """None: no assignment; 0: hidden."""
    allowed_indices: tuple[int, ...] | None = None
    trials_per_gpu: int = 1
    use_active: bool = False


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """Settings shared by an experiment's trials: command, code, environment, GPUs, limits."""

    command: str
    code_directory: str = ""
    """Folder of this machine; empty if the code is an archive."""
    code_archive: BlobKey | None = None
    experiment_directory: str = ""
    """Empty: the agent chooses."""
    environment_file: str = ""
    """Empty: the agent's own environment."""
    gpus: GpuRules = GpuRules()
    time_limit_s: float | None = None
    grace_s: float = 5.0
    platform: str = "local"
    output_limit_bytes: int = 0
    """Per stream; 0: the agent's default."""
    environment: Mapping[str, str] = field(default_factory=dict)
    checkpoints_travel: bool = False
    """Checkpoint folders are transferred from and to the blob store."""
    outputs_travel: bool = False
    """Output is uploaded to the blob store, because this disk is private to the agent."""


@dataclass(frozen=True, slots=True)
class TrialWork:
    """Work of one attempt, decoded from its task: ids, parameters and shared settings."""

    key: AttemptKey
    sequence_id: int
    parameter_id: int
    parameters: Any
    """JSON value, or a `BlobKey` of one in the blob store."""
    parameter_source: str
    spec: TrialSpec
    spec_digest: bytes
    """Equal for equal specs: key of caches."""
    load_checkpoint: BlobKey | None = None
    """Checkpoint that the trial loads; None: none was saved."""
    resume_from: TrialCheckpoint | None = None
    """Last checkpoint of an earlier attempt that was stored; None: there is none."""
    log_sequence: int = 0
    """Log position of the manager that sent the task."""
    traceparent: str = ""
    """W3C trace context of the trial; empty: it is not traced."""


def parse_gpu_rules(count: int | None, options: object) -> GpuRules:
    """Parse number and options of GPUs to rules; raise ValueError if an option is no number.

    Args:
        count: `trialGpuNumber`.
        options: a map with `useActiveGpu`, `maxTrialNumberPerGpu`, `gpuIndices` (a number, a list,
                or text such as `0,2`); missing options have their default.

    Raises:
        ValueError: `gpuIndices` or `maxTrialNumberPerGpu` is no number.
    """
    known = options if isinstance(options, Mapping) else {}
    per_gpu = known.get("maxTrialNumberPerGpu")
    return GpuRules(
        count=count,
        allowed_indices=_indices(known.get("gpuIndices")),
        trials_per_gpu=1 if per_gpu is None else max(1, int(per_gpu)),
        use_active=bool(known.get("useActiveGpu", False)),
    )


def _indices(value: object) -> tuple[int, ...] | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return tuple(int(part) for part in value.split(","))
    if isinstance(value, int):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(int(item) for item in value)
    raise ValueError(f"gpuIndices must be numbers, got {value!r:.80}")
