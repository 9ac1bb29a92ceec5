"""Contract of profilers: the cost of a network of a model space, by its sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from nni.mutable import Mutable, MutableExpression, Sample


class Profiler(ABC):
    """Base of profilers, which return the cost of a sample's network, such as FLOPs.

    A subclass computes it from a sample; it need not build the network.

    Args:
        model_space: the space whose samples are profiled.

    Examples:
        >>> import nni
        >>> class Width(Profiler):
        ...     def profile(self, sample):
        ...         return float(sample["width"])
        >>> Width(nni.choice("width", [4, 8])).profile({"width": 8})
        8.0
    """

    def __init__(self, model_space: Mutable) -> None:
        self.model_space = model_space

    @abstractmethod
    def profile(self, sample: Sample) -> float:
        """Return the cost of a sample.

        Args:
            sample: value of every label of the space; `space.default(sample)` fills gaps.

        Returns:
            The cost, in the unit of the profiler.
        """


class ExpressionProfiler(Profiler):
    """Profiler whose cost is an expression of the labels: one symbolic pass serves every sample.

    Branches that a sample does not choose are computed too, so a sample needs their labels.

    Args:
        model_space: the space whose samples are profiled.
        expression: cost as a function of the labels; a number if it is the same for all samples.

    Examples:
        >>> import nni
        >>> width = nni.choice("width", [4, 8])
        >>> profiler = ExpressionProfiler(width, width * 10)
        >>> profiler.expression, profiler.profile({"width": 8})
        ((width * 10), 80)
    """

    def __init__(self, model_space: Mutable, expression: MutableExpression | float) -> None:
        super().__init__(model_space)
        self.expression = expression

    def profile(self, sample: Sample) -> float:
        """Return the value of the expression for a sample.

        Args:
            sample: value of every label of the space.

        Returns:
            The cost.

        Raises:
            nni.mutable.SampleMissingError: a label of the expression is missing.
        """
        cost: Any = self.expression
        value: float = cost.freeze(sample) if isinstance(cost, Mutable) else cost
        return value
