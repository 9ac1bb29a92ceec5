"""Penalties that make a search prefer cheap architectures, and filters that admit only those."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import torch
from torch import Tensor

from nni.mutable import Sample
from nni.nas.oneshot.pytorch.expectation import Expectation, Weights

Nonlinear = Literal["linear", "positive", "negative", "absolute"]
Aggregate = Literal["add", "mul"]


class SampleProfiler(Protocol):
    """Interface: `profile` returns the cost of a sample, as profilers of `nni.nas.profiler` do."""

    def profile(self, sample: Sample) -> float:
        """Return the cost of a sample."""
        ...


@runtime_checkable
class SymbolicProfiler(Protocol):
    """Profiler whose cost is an expression of the labels."""

    expression: Any
    """Cost as a function of the labels."""


class ProfilerPenalty:
    """Penalty for a cost above a baseline, added to a loss or multiplied with it.

    With `n = f(cost / baseline - 1)` the result is `loss + scale * n` for `aggregate="add"`, and
    `loss * (1 + n) ** scale` for `aggregate="mul"`.

    Args:
        profiler: profiler of the model space.
        baseline: cost without penalty, above 0, in the unit of the profiler.
        scale: weight of the penalty. Positive for a loss, negative for a reward.
        nonlinear: `f`: `linear` keeps the value, `positive` raises negative values to 0, `negative`
            lowers positive values to 0, `absolute` takes the absolute value.
        aggregate: `add` or `mul`.

    Raises:
        ValueError: an argument is none of its allowed values.

    Examples:
        See `docs/nas-oneshot.md`.

        >>> ProfilerPenalty(None, baseline=0)
        Traceback (most recent call last):
        ValueError: baseline must be above 0, got 0
    """

    def __init__(
        self,
        profiler: SampleProfiler,
        baseline: float,
        scale: float = 1.0,
        *,
        nonlinear: Nonlinear = "linear",
        aggregate: Aggregate = "add",
    ) -> None:
        if not baseline > 0:
            raise ValueError(f"baseline must be above 0, got {baseline}")
        for name, value, allowed in (
            ("nonlinear", nonlinear, get_args(Nonlinear)),
            ("aggregate", aggregate, get_args(Aggregate)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {value!r}")
        self.profiler = profiler
        self.baseline = baseline
        self.scale = scale
        self.nonlinear: Nonlinear = nonlinear
        self.aggregate: Aggregate = aggregate

    @abstractmethod
    def cost(self, architecture: Any) -> Tensor:  # noqa: ANN401 - sample or probabilities, by subclass
        """Return the cost of an architecture or of a distribution of architectures.

        Args:
            architecture: what the subclass says.

        Returns:
            0-dimensional tensor.
        """

    def __call__(
        self,
        loss: Tensor,
        architecture: Any,  # noqa: ANN401 - sample or probabilities, by subclass
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the penalized loss, and a dict of its parts without gradients.

        Args:
            loss: 0-dimensional tensor.
            architecture: what the subclass says.

        Returns:
            Loss with the penalty; `loss_original`, `penalty` (cost in the unit of the profiler),
            `normalized_penalty` and `loss_final`, without gradients.
        """
        cost = self.cost(architecture).to(loss.device)
        normalized = bent(cost / self.baseline - 1, self.nonlinear)
        total = combined(loss, normalized, self.scale, self.aggregate)
        details = {
            "loss_original": loss.detach(),
            "penalty": cost.detach(),
            "normalized_penalty": normalized.detach(),
            "loss_final": total.detach(),
        }
        return total, details


class ExpectationProfilerPenalty(ProfilerPenalty):
    """Penalty for the expected cost under the probabilities of a differentiable search.

    The gradient reaches the probabilities.

    Raises:
        TypeError: the profiler has no `expression`.
    """

    def __init__(
        self,
        profiler: SampleProfiler,
        baseline: float,
        scale: float = 1.0,
        *,
        nonlinear: Nonlinear = "linear",
        aggregate: Aggregate = "add",
    ) -> None:
        super().__init__(profiler, baseline, scale, nonlinear=nonlinear, aggregate=aggregate)
        if not isinstance(profiler, SymbolicProfiler):
            raise TypeError(
                "profiler of a differentiable search must have an expression, as an "
                f"ExpressionProfiler has, got {profiler!r}"
            )
        self._expectation = Expectation(profiler.expression)

    @property
    def labels(self) -> list[str]:
        """Labels that the cost depends on."""
        return self._expectation.labels

    def cost(self, architecture: Weights) -> Tensor:
        """Return the expected cost.

        Args:
            architecture: probability of each value by label, in the order of `alternatives`.

        Returns:
            0-dimensional tensor.
        """
        return self._expectation.under(architecture)


class SampleProfilerPenalty(ProfilerPenalty):
    """Penalty for the cost of one sampled architecture."""

    def cost(self, architecture: Sample) -> Tensor:
        """Return the cost of a sample.

        Args:
            architecture: the sample.

        Returns:
            0-dimensional tensor.
        """
        return torch.tensor(float(self.profiler.profile(architecture)))


Penalty = TypeVar("Penalty", bound=ProfilerPenalty)


class ProfilerFilter:
    """Base of conditions on the cost of an architecture, called with a sample.

    Args:
        profiler: profiler of the model space.
    """

    def __init__(self, profiler: SampleProfiler) -> None:
        self.profiler = profiler

    @abstractmethod
    def admits(self, cost: float) -> bool:
        """Return whether architectures of this cost take part in the search.

        Args:
            cost: in the unit of the profiler.

        Returns:
            True if they do.
        """

    def __call__(self, sample: Sample) -> bool:
        """Return whether a sample takes part in the search."""
        return self.admits(float(self.profiler.profile(sample)))


class RangeProfilerFilter(ProfilerFilter):
    """Condition that the cost lies in a range, bounds included.

    Args:
        profiler: profiler of the model space.
        min: lowest admitted cost; None: no lower bound.
        max: highest admitted cost; None: no upper bound.

    Raises:
        ValueError: neither bound is given.

    Examples:
        >>> RangeProfilerFilter(None, max=3).admits(3)
        True
        >>> RangeProfilerFilter(None)
        Traceback (most recent call last):
        ValueError: min or max must be given
    """

    def __init__(
        self,
        profiler: SampleProfiler,
        min: float | None = None,  # noqa: A002 - the documented name
        max: float | None = None,  # noqa: A002 - the documented name
    ) -> None:
        if min is None and max is None:
            raise ValueError("min or max must be given")
        super().__init__(profiler)
        self.min = min
        self.max = max

    def admits(self, cost: float) -> bool:
        """Return whether the cost lies in the range."""
        return (self.min is None or cost >= self.min) and (self.max is None or cost <= self.max)


def bent(value: Tensor, nonlinear: Nonlinear) -> Tensor:
    """Return a value, its positive or negative part, or its absolute value, by `nonlinear`."""
    match nonlinear:
        case "linear":
            return value
        case "positive":
            return value.clamp(min=0)
        case "negative":
            return value.clamp(max=0)
        case "absolute":
            return value.abs()


def combined(loss: Tensor, normalized: Tensor, scale: float, aggregate: Aggregate) -> Tensor:
    """Return loss + scale * penalty for `add`, loss * (1 + penalty) ** scale for `mul`.

    Examples:
        >>> combined(torch.tensor(42.0), torch.tensor(0.69), 2, "add")
        tensor(43.3800)
    """
    if aggregate == "add":
        return loss + scale * normalized
    return loss * (1 + normalized) ** scale


def expectation_penalty(penalty: object) -> ExpectationProfilerPenalty | None:
    """Return a penalty for differentiable search, built if a mapping; None for None; else raise.

    Args:
        penalty: penalty, its arguments as a mapping, or None.

    Returns:
        The penalty; None for None.

    Raises:
        TypeError: it is something else.
    """
    return _built(ExpectationProfilerPenalty, penalty)


def sample_penalty(penalty: object) -> SampleProfilerPenalty | None:
    """Return a penalty for sampling search, built if a mapping; None for None; else raise.

    Args:
        penalty: penalty, its arguments as a mapping, or None.

    Returns:
        The penalty; None for None.

    Raises:
        TypeError: it is something else.
    """
    return _built(SampleProfilerPenalty, penalty)


def _built(kind: type[Penalty], penalty: object) -> Penalty | None:
    """Return a penalty, or build it of a dict of arguments; None stays None; raise for others."""
    if isinstance(penalty, Mapping):
        return kind(**penalty)
    if penalty is None or isinstance(penalty, kind):
        return penalty
    raise TypeError(
        f"penalty must be of class {kind.__name__}, a dict of its arguments or None, got "
        f"{penalty!r}"
    )


def sample_filter(condition: object) -> Callable[[Sample], bool] | None:
    """Return a function or None as it is, a range of costs for a dict; raise for others.

    Args:
        condition: function of a sample, `ProfilerFilter`, mapping with `profiler` and `min` or
            `max`, or None.

    Returns:
        Function of a sample; None for None.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(condition, Mapping):
        return RangeProfilerFilter(**condition)
    if condition is None or callable(condition):
        return condition
    raise TypeError(
        "filter must be a function of a sample, a ProfilerFilter, a dict with 'profiler' and "
        f"'min' or 'max', or None, got {condition!r}"
    )
