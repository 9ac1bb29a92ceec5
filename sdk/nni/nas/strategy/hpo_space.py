"""Search spaces of hyperparameter tuners for the leaves of a model space, and the way back.

Each leaf becomes one or several parameters of the tuner, so that every configuration of the tuner
is a value of the leaf.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    LabeledMutable,
    MutableAnnotation,
    Numerical,
    Sample,
)
from nni.nas.strategy.sample_codec import position

_ORDERED: Final = (int, float, str)
"""Types of choices that a tuner gets as they are; others are represented by their positions."""


class HpoSpace:
    """Space for a tuner, made of a model space's leaves; turns configurations into samples.

    Args:
        leaves: the model space, as `simplify` returns it.

    Raises:
        TypeError: a leaf is of a kind that no type of the tuners' spaces represents.

    Examples:
        >>> from nni.mutable import Categorical, CategoricalMultiple
        >>> from nni.nas.strategy.hpo_space import HpoSpace
        >>> space = HpoSpace({
        ...     "width": Categorical([16, 32], label="width"),
        ...     "inputs": CategoricalMultiple(["a", "b", "c"], n_chosen=2, label="inputs"),
        ... })
        >>> sorted(space.search_space)
        ['inputs/0', 'inputs/1', 'width']
        >>> space.sample({"width": 32, "inputs/0": 2, "inputs/1": 0})
        {'width': 32, 'inputs': ['a', 'c']}
    """

    def __init__(self, leaves: Mapping[str, LabeledMutable]) -> None:
        self._dimensions = {
            label: _dimension_of(leaf)
            for label, leaf in leaves.items()
            if not isinstance(leaf, MutableAnnotation)  # it has no value
        }
        self.search_space: dict[str, Any] = {}
        """Space in the language of the tuners: `_type` and `_value` by name."""
        for label, dimension in self._dimensions.items():
            self.search_space.update(dimension.entries(str(label)))

    def sample(self, configuration: Mapping[str, Any]) -> Sample:
        """Return the sample that a configuration of the tuner represents."""
        return {
            label: dimension.value(str(label), configuration)
            for label, dimension in self._dimensions.items()
        }


class _Dimension(ABC):
    """Base of dimensions: entries of one leaf in a tuner's space, and its value from them."""

    @abstractmethod
    def entries(self, label: str) -> dict[str, Any]:
        """Return the entries of the tuner's space."""

    @abstractmethod
    def value(self, label: str, configuration: Mapping[str, Any]) -> object:
        """Return the leaf's value that a tuner's configuration stands for."""


class _Choice(_Dimension):
    """Dimension that is one of several values: one choice of the tuner."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = list(values)
        kinds = {type(value) for value in values}
        plain = len(kinds) == 1 and kinds <= set(_ORDERED)
        self._keys = self._values if plain else list(range(len(self._values)))

    def entries(self, label: str) -> dict[str, Any]:
        return {label: {"_type": "choice", "_value": list(self._keys)}}

    def value(self, label: str, configuration: Mapping[str, Any]) -> object:
        return self._values[position(self._keys, configuration[label])]


class _Subset(_Dimension):
    """Dimension that is any subset: one choice of yes or no for each value."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = list(values)

    def entries(self, label: str) -> dict[str, Any]:
        return {
            f"{label}/{index}": {"_type": "choice", "_value": [0, 1]}
            for index in range(len(self._values))
        }

    def value(self, label: str, configuration: Mapping[str, Any]) -> object:
        return [one for i, one in enumerate(self._values) if configuration[f"{label}/{i}"]]


class _Combination(_Dimension):
    """Dimension of a fixed number of values: one choice after another among those left.

    Every configuration is valid, without a constraint that a tuner would have to keep.
    """

    def __init__(self, values: Sequence[Any], n_chosen: int) -> None:
        self._values = list(values)
        self._n_chosen = n_chosen

    def entries(self, label: str) -> dict[str, Any]:
        return {
            f"{label}/{turn}": {"_type": "choice", "_value": list(range(len(self._values) - turn))}
            for turn in range(self._n_chosen)
        }

    def value(self, label: str, configuration: Mapping[str, Any]) -> object:
        left = list(range(len(self._values)))
        chosen = [left.pop(int(configuration[f"{label}/{i}"])) for i in range(self._n_chosen)]
        return [self._values[index] for index in sorted(chosen)]


class _Number(_Dimension):
    """Dimension that is a number of a distribution that tuners know."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self._entry = entry

    def entries(self, label: str) -> dict[str, Any]:
        return {label: self._entry}

    def value(self, label: str, configuration: Mapping[str, Any]) -> object:
        return float(configuration[label])


class _Quantile(_Dimension):
    """Dimension that is a number of any other distribution, by its quantile."""

    def __init__(self, leaf: Numerical) -> None:
        self._leaf = leaf

    def entries(self, label: str) -> dict[str, Any]:
        return {label: {"_type": "uniform", "_value": [0, 1]}}

    def value(self, label: str, configuration: Mapping[str, Any]) -> object:
        return self._leaf.quantile(float(configuration[label]))


def _dimension_of(leaf: LabeledMutable) -> _Dimension:
    match leaf:
        case Categorical():
            return _Choice(leaf.values)
        case CategoricalMultiple():
            if leaf.n_chosen is None:
                return _Subset(leaf.values)
            return _Combination(leaf.values, leaf.n_chosen)
        case Numerical():
            return _numerical(leaf)
    raise TypeError(
        f"{leaf.label!r} is a {type(leaf).__name__}, which tuners of hyperparameters cannot "
        "search; use Random or RegularizedEvolution"
    )


def _numerical(leaf: Numerical) -> _Dimension:
    """Return the dimension of a number: a distribution that tuners know, else a quantile."""
    step = [] if leaf.quantize is None else [leaf.quantize]
    log = "log" if leaf.log_distributed else ""
    prefix = f"q{log}" if step else log
    bounds = [leaf.low, leaf.high]
    if leaf.distribution is None and leaf.mu is None:
        return _Number({"_type": f"{prefix}uniform", "_value": [*bounds, *step]})
    if leaf.distribution is None and not any(math.isfinite(bound) for bound in bounds):
        return _Number({"_type": f"{prefix}normal", "_value": [leaf.mu, leaf.sigma, *step]})
    return _Quantile(leaf)
