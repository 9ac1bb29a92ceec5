"""Work as it reaches the agent: one attempt of one trial, and what an experiment's trials share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from svc_trial_runner.domain.claims import AttemptKey


@dataclass(frozen=True, slots=True)
class BlobKey:
    """Bytes in the byte store."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class GpuRules:
    """How an experiment's trials may use GPUs."""

    count: int | None = None
    """None: no assignment; 0: hidden."""
    allowed_indices: tuple[int, ...] | None = None
    trials_per_gpu: int = 1
    use_active: bool = False


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """What all trials of an experiment have in common."""

    command: str
    code_directory: str = ""
    """A folder of this machine; empty if the code is an archive."""
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
    """Checkpoint folders are filled from the byte store and kept there."""
    outputs_travel: bool = False
    """What a trial has written goes to the byte store: nobody else can read its folder."""


@dataclass(frozen=True, slots=True)
class TrialWork:
    """One attempt of one trial."""

    key: AttemptKey
    sequence_id: int
    parameter_id: int
    parameters: Any
    """A JSON value; a `BlobKey` if it lies in the byte store."""
    parameter_source: str
    spec: TrialSpec
    spec_digest: bytes
    """Equal for equal specs: what caches go by."""
    load_checkpoint: BlobKey | None = None
    """What the trial loads; None: nothing was saved there."""
    log_sequence: int = 0
    """How far the manager that sent it had read the experiment's log."""
    traceparent: str = ""
    """W3C trace context of the trial; empty: it is not traced."""


def parse_gpu_rules(count: int | None, options: object) -> GpuRules:
    """Read the rules for GPUs from a platform's options.

    Args:
        count: `trialGpuNumber`.
        options: a map with `useActiveGpu`, `maxTrialNumberPerGpu`, `gpuIndices` (a number, a list,
            or text such as `0,2`); anything missing has its default.

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
