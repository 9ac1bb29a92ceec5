"""Samples of the CPU, memory and GPU use of a running trial: when they are taken, how written."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

RESOURCES: Final = ".nni/resources.jsonl"
"""File of the samples in the folder of a trial: a JSON object per line."""
FIRST_SAMPLE_S: Final = 1.0
"""Age of a trial at its first sample; shorter trials have none, and cost nothing."""
SHORTEST_INTERVAL_S: Final = 1.0
SAMPLES_PER_AGE: Final = 60
"""The interval is the trial's age divided by this: 60 samples in the first minute, then 42 each
time that the age doubles, 500 in a day."""
READING_SHARE: Final = 0.01
"""Largest share of a core that reading one trial may take; some have thousands of processes."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """CPU time, memory and number of the processes of a trial at one moment."""

    cpu_s: float
    """CPU time of the living processes and of those that they have waited for, in seconds."""
    memory_bytes: int
    """Resident memory; memory that several of the processes share is counted once, if allowed."""
    processes: int


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Utilization and used memory of one GPU, by all processes on it."""

    index: int
    utilization: float
    """Share of the last moments in which the GPU computed, from 0 to 1."""
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ResourceSample:
    """Sample of a trial's use: time, processes, and the GPUs that it has."""

    at: datetime
    use: ProcessUse
    gpus: tuple[GpuUse, ...] = ()


def next_interval_s(age_s: float, reading_s: float) -> float:
    """Return the seconds from a sample to the next one: a 60th of the trial's age, at least 1.

    Args:
        age_s: age of the trial, in seconds.
        reading_s: CPU time that reading the sample took, in seconds; the interval is at least a
            hundred times as long.
    """
    return max(SHORTEST_INTERVAL_S, age_s / SAMPLES_PER_AGE, reading_s / READING_SHARE)


def cores_used(before: ResourceSample, now: ResourceSample) -> float:
    """Return the average number of busy cores between two samples, 0 if time stood still.

    CPU time decreases where a child has ended that no process has waited for: that counts as 0.
    """
    elapsed_s = (now.at - before.at).total_seconds()
    if elapsed_s <= 0:
        return 0.0
    return max(0.0, now.use.cpu_s - before.use.cpu_s) / elapsed_s


def sample_line(before: ResourceSample | None, now: ResourceSample) -> bytes:
    """Return a sample as a JSON line: time, memory, processes; cores and GPUs where known.

    Args:
        before: the previous sample; None: this is the first one, which has no `cores`.
        now: the sample.
    """
    fields: dict[str, Any] = {
        "time": int(now.at.timestamp() * 1000),
        "memory": now.use.memory_bytes,
        "processes": now.use.processes,
    }
    if before is not None:
        fields["cores"] = round(cores_used(before, now), 3)
    if now.gpus:
        fields["gpus"] = _gpu_fields(now.gpus)
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _gpu_fields(gpus: Sequence[GpuUse]) -> list[dict[str, Any]]:
    return [
        {"index": gpu.index, "utilization": round(gpu.utilization, 3), "memory": gpu.memory_bytes}
        for gpu in gpus
    ]
