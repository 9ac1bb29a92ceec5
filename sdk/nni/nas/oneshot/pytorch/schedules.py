"""Optimizers and schedulers of a Lightning module, in one of the forms that it may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer


@dataclass(frozen=True, slots=True)
class Schedule:
    """Scheduler of torch with its interval (epoch or step), frequency and monitored metric."""

    scheduler: Any
    """Scheduler of torch."""
    interval: str = "epoch"
    """`epoch` or `step`."""
    frequency: int = 1
    """Number of intervals between two steps."""
    monitor: str = "val_loss"
    """Metric that `ReduceLROnPlateau` reads."""


def optimizers_and_schedules(configured: Any) -> tuple[list[Optimizer], list[Schedule]]:  # noqa: ANN401 - any form that Lightning takes
    """Return configured optimizers and schedulers as two lists; raise ValueError for others.

    Args:
        configured: what `configure_optimizers` returned.

    Returns:
        Optimizers; schedulers.

    Raises:
        ValueError: the form is unknown.
    """
    match configured:
        case None:
            return [], []
        case Optimizer():
            return [configured], []
        case Mapping():
            scheduler = configured.get("lr_scheduler")
            return [configured["optimizer"]], [] if scheduler is None else [_schedule(scheduler)]
        case (list() | tuple() as optimizers, list() | tuple() as schedulers):
            return list(optimizers), [_schedule(one) for one in schedulers]
        case list() | tuple():
            parts = [optimizers_and_schedules(one) for one in configured]
            return [one for found, _ in parts for one in found], [
                one for _, found in parts for one in found
            ]
    raise ValueError(f"configure_optimizers must return optimizers, got {configured!r}")


def _schedule(scheduler: Any) -> Schedule:  # noqa: ANN401 - scheduler, or a dict with it
    if not isinstance(scheduler, Mapping):
        return Schedule(scheduler)
    known = {
        name: scheduler[name] for name in ("interval", "frequency", "monitor") if name in scheduler
    }
    return Schedule(scheduler["scheduler"], **known)
