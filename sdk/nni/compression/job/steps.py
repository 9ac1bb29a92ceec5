"""Steps of a compression job: pure functions of its description and of the steps done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nni.compression.job.description import JobDescription, ScheduleName
from nni.compression.pipeline.budget import SIZES, Quantity
from nni.compression.scheduling.growth import agp_part, linear_part

StepKind = Literal["prune", "speedup", "fine_tune", "quantize", "export"]


@dataclass(frozen=True, slots=True)
class Step:
    """Number, from 1, and kind of a job's step, which starts from the files of the step before."""

    number: int
    """From 1."""
    kind: StepKind


def step_of(job: JobDescription, done: int) -> Step | None:
    """Return the step that follows `done` complete ones; None if the job is complete.

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
    later = _later_kinds(job)
    place = done - job.iterations
    return Step(done + 1, later[place]) if place < len(later) else None


def _later_kinds(job: JobDescription) -> list[StepKind]:
    """Return the kinds of the steps after the pruning, in order."""
    wanted: dict[StepKind, bool] = {
        "speedup": job.speedup is not None,
        "fine_tune": job.speedup is not None and job.speedup.fine_tuning is not None,
        "quantize": job.quantization is not None,
        "export": job.export is not None,
    }
    return [kind for kind, has in wanted.items() if has]


def improvements_after(job: JobDescription, step: Step) -> list[frozenset[Quantity]]:
    """Return which quantities of the budget each later step may improve.

    Args:
        job: the description.
        step: a step of the job.

    Examples:
        >>> job = JobDescription.of({
        ...     "model": {"factory": "net:make"}, "evaluator": {"factory": "net:evaluator"},
        ...     "config_list": [{"sparse_ratio": 0.5}], "algorithm": {"name": "L1NormPruner"},
        ...     "speedup": {"fine_tuning": {"max_steps": 9}},
        ... })
        >>> [sorted(one) for one in improvements_after(job, Step(2, "speedup"))]
        [['metric']]
    """
    trained = job.quantization is not None and job.quantization.fine_tuning is not None
    metric = frozenset[Quantity]({"metric"})
    by_kind: dict[StepKind, frozenset[Quantity]] = {
        "prune": metric,  # each iteration trains; some pruners do without fine-tuning
        "speedup": SIZES,
        "fine_tune": metric,
        "quantize": metric if trained else frozenset(),
        "export": frozenset({"size_bytes", "latency_ms"}),
    }
    return [by_kind[one.kind] for one in all_steps(job)[step.number :]]


def all_steps(job: JobDescription) -> list[Step]:
    """Return the steps of a job in the order in which they run.

    Args:
        job: the description.
    """
    found: list[Step] = []
    while (step := step_of(job, len(found))) is not None:
        found.append(step)
    return found


def ratio_factor(schedule: ScheduleName, number: int, iterations: int) -> float:
    """Return the part of the final ratios that an iteration reaches.

    Args:
        schedule: see `JobDescription.schedule`.
        number: iteration, from 1.
        iterations: number of iterations.

    Returns:
        In (0, 1]; 1 for the last iteration.

    Examples:
        >>> [ratio_factor("linear", number, 4) for number in range(1, 5)]
        [0.25, 0.5, 0.75, 1.0]
    """
    part = linear_part if schedule == "linear" else agp_part
    return part(number, iterations)
