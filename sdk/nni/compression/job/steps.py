"""Steps of a compression job: pure functions of its description and of the steps done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nni.compression.job.description import JobDescription, ScheduleName

StepKind = Literal["prune", "speedup"]

_RATIOS: Final = ("sparse_ratio", "sparsity", "total_sparsity", "sparsity_per_layer")
"""Keys of `config_list` that a schedule scales: those of NNI 3.0 and 2.x."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a job, which starts from the files of the step before."""

    number: int
    """From 1."""
    kind: StepKind


def step_of(job: JobDescription, done: int) -> Step | None:
    """Return the step that follows; None if the job is complete.

    Args:
        job: the description.
        done: number of steps that are complete.

    Examples:
        >>> job = JobDescription.of({
        ...     "model": {"factory": "net:make"}, "evaluator": {"factory": "net:evaluator"},
        ...     "config_list": [{"sparse_ratio": 0.5}], "algorithm": {"name": "L1NormPruner"},
        ...     "schedule": {"iterations": 2}, "speedup": True,
        ... })
        >>> [step_of(job, done).kind for done in range(3)], step_of(job, 3)
        (['prune', 'prune', 'speedup'], None)
    """
    if done < job.iterations:
        return Step(done + 1, "prune")
    if job.speedup is not None and done == job.iterations:
        return Step(done + 1, "speedup")
    return None


def progress(schedule: ScheduleName, number: int, iterations: int) -> float:
    """Return the part of the final ratios that an iteration reaches.

    Args:
        schedule: `linear`: equal increments; `agp`: 1 - (1 - t)^3, large ones first.
        number: iteration, from 1.
        iterations: number of iterations.

    Returns:
        In (0, 1]; 1 for the last iteration.

    Source: Zhu and Gupta, To prune, or not to prune, 2017, equation 1 (agp).

    Examples:
        >>> [progress("linear", number, 4) for number in range(1, 5)]
        [0.25, 0.5, 0.75, 1.0]
        >>> [progress("agp", number, 2) for number in range(1, 3)]
        [0.875, 1.0]
    """
    part = number / iterations
    return part if schedule == "linear" else 1 - (1 - part) ** 3


def scaled(config_list: tuple[Mapping[str, object], ...], factor: float) -> list[dict[str, object]]:
    """Return the entries of a configuration with all ratios multiplied.

    Args:
        config_list: entries of NNI 3.0 or 2.x; not changed.
        factor: in (0, 1].

    Examples:
        >>> scaled(({"op_types": ["Linear"], "sparse_ratio": 0.5},), 0.5)
        [{'op_types': ['Linear'], 'sparse_ratio': 0.25}]
    """
    return [_scaled_entry(entry, factor) for entry in config_list]


def _scaled_entry(entry: Mapping[str, object], factor: float) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in entry.items():
        if key in _RATIOS and isinstance(value, int | float) and not isinstance(value, bool):
            found[key] = value * factor
        elif key == "target_settings" and isinstance(value, Mapping):
            found[key] = {
                name: _scaled_entry(settings, factor) if isinstance(settings, Mapping) else settings
                for name, settings in value.items()
            }
        else:
            found[key] = value
    return found
