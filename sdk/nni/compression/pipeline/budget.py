"""Budget of a compressed model, and the rule by which a step breaks it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Final, Literal

Quantity = Literal["metric", "parameters", "size_bytes", "flops", "latency_ms"]
"""What is measured of a model."""

SIZES: Final[frozenset[Quantity]] = frozenset({"parameters", "size_bytes", "flops", "latency_ms"})
"""Quantities that smaller models improve."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measured metric, parameters, bytes, operations and latency of a model.

    Args:
        metric: result of the user's evaluation; larger is better.
        parameters: number of elements of all parameters.
        size_bytes: size of parameters and buffers.
        flops: floating-point operations for the example inputs, by `count_flops_params`.
        latency_ms: median latency for the example inputs.
    """

    metric: float
    parameters: int
    size_bytes: int
    flops: int
    latency_ms: float


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for the final model: least metric, greatest sizes and latency; None for no limit.

    Args:
        metric: least metric.
        parameters: most parameters, > 0.
        size_bytes: most bytes of parameters and buffers, > 0.
        flops: most floating-point operations for the example inputs, > 0.
        latency_ms: most milliseconds for the example inputs on this machine, > 0.

    Raises:
        TypeError: a limit is no number.
        ValueError: a limit is not finite, or not above 0 where it must be.

    Examples:
        >>> from nni.compression.pipeline import Budget, Measurement
        >>> found = Measurement(metric=0.9, parameters=70, size_bytes=280, flops=60, latency_ms=8)
        >>> list(Budget(metric=0.95, parameters=100).broken(found))
        ['metric']
    """

    metric: float | None = None
    parameters: int | None = None
    size_bytes: int | None = None
    flops: int | None = None
    latency_ms: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                raise TypeError(f"budget.{field.name} must be a number, got {limit!r}")
            if not math.isfinite(limit):
                raise ValueError(f"budget.{field.name} must be finite, got {limit!r}")
            if field.name in SIZES and limit <= 0:
                raise ValueError(f"budget.{field.name} must be above 0, got {limit!r}")

    def broken(self, found: Measurement) -> Iterator[Quantity]:
        """Yield the quantities whose limit a model breaks.

        Args:
            found: what was measured.
        """
        if self.metric is not None and not found.metric >= self.metric:
            yield "metric"
        for name in sorted(SIZES):
            limit = getattr(self, name)
            if limit is not None and not getattr(found, name) <= limit:
                yield name


class BudgetError(Exception):
    """Error that a limit is broken after a step, and that no later step can mend it.

    Args:
        step: name of the step.
        quantity: what is over or below its limit.
        found: measured value.
        limit: limit of the budget.

    Attributes:
        step: see above.
        quantity: see above.
        found: see above.
        limit: see above.

    Examples:
        >>> raise BudgetError("prune", "latency_ms", 9.5, 8)
        Traceback (most recent call last):
        nni.compression.pipeline.budget.BudgetError: after the step 'prune' latency_ms is 9.5, ...
    """

    def __init__(self, step: str, quantity: Quantity, found: float, limit: float) -> None:
        rule = "at least" if quantity == "metric" else "at most"
        remedy = "train longer or remove less" if quantity == "metric" else "remove more"
        super().__init__(
            f"after the step {step!r} {quantity} is {found:.6g}, but the budget wants {rule} "
            f"{limit:.6g}, and no later step can mend it; {remedy}, or change the budget"
        )
        self.step = step
        self.quantity = quantity
        self.found = found
        self.limit = limit


def check_budget(
    budget: Budget, step: str, found: Measurement, later: Iterable[frozenset[Quantity]]
) -> None:
    """Raise BudgetError if a limit is broken that no later step can mend.

    Args:
        budget: the limits.
        step: name of the step that was measured.
        found: what was measured after it.
        later: what each later step may improve.

    Raises:
        BudgetError: see above.

    Examples:
        >>> found = Measurement(metric=0.5, parameters=9, size_bytes=36, flops=9, latency_ms=1)
        >>> check_budget(Budget(metric=0.9), "prune", found, [frozenset({"metric"})])
    """
    mendable = frozenset[Quantity]().union(*later)
    for quantity in budget.broken(found):
        if quantity not in mendable:
            raise BudgetError(step, quantity, getattr(found, quantity), getattr(budget, quantity))
