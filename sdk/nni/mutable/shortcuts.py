"""Shortcuts of `nni` for mutables, with the label first: `nni.choice`, `nni.uniform` and others.

The annotations of NNI 2.x have calls of the same names, which are texts and are never executed.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from nni.mutable.categorical import Categorical
from nni.mutable.numerical import Numerical

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _label_first(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a shortcut to raise TypeError, with the remedy, if the first argument is no label."""

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        label = kwargs.get("label", args[0] if args else "")
        if not isinstance(label, str) or "name" in kwargs:
            name = function.__name__
            given = [repr(one) for one in args] + [f"{key}={kwargs[key]!r}" for key in kwargs]
            raise TypeError(
                f"nni.{name} takes a label first, such as nni.{name}('width', ...), got "
                f"nni.{name}({', '.join(given)}); in the annotations of NNI 2.x, which are texts, "
                f"it has another form: '''@nni.variable(nni.{name}(...), name=width)'''"
            )
        return function(*args, **kwargs)

    return called


@_label_first
def choice(label: str, choices: Iterable[Any]) -> Any:  # noqa: ANN401 - LayerChoice is of torch
    """Return a `Categorical` of values, or a `LayerChoice` if all choices are modules of torch.

    Args:
        label: name of the dimension.
        choices: values of any type; or modules of torch, as a list or by name.

    Returns:
        A `Categorical`; of modules a `LayerChoice`.

    Raises:
        TypeError: a choice is a tensor, or only some are modules.
        ValueError: the label or the choices break a rule of `Categorical`.

    Examples:
        >>> import nni
        >>> width = nni.choice("width", [16, 32, 64])
        >>> width, width.default()
        (Categorical([16, 32, 64], label='width'), 16)
    """
    named = choices if isinstance(choices, Mapping) else None
    options = list(choices if named is None else named.values())
    number = _number_of_modules(options)
    if number and number == len(options):
        layers = import_module("nni.nas.nn.pytorch")
        return layers.LayerChoice(dict(named) if named is not None else options, label=label)
    if number:
        raise TypeError(
            f"choices must be modules all or none, got {number} modules of {len(options)}; "
            "torch.nn.Identity is a module that does nothing"
        )
    if named is not None:
        raise TypeError(f"choices by name must be modules, got {named!r}")
    return Categorical(options, label=label)


@_label_first
def uniform(label: str, low: float, high: float) -> Numerical:
    """Return a `Numerical` that is uniform between two bounds.

    Args:
        label: name of the dimension.
        low: lower bound.
        high: upper bound.

    Returns:
        The mutable.

    Examples:
        >>> import nni
        >>> nni.uniform("dropout", 0, 1).default()
        0.5
    """
    return Numerical(low, high, label=label)


@_label_first
def quniform(label: str, low: float, high: float, q: float) -> Numerical:
    """Return a `Numerical` that is uniform, and rounded to a multiple of `q`.

    Its values are floating-point numbers; append `.int()` for integers.

    Args:
        label: name of the dimension.
        low: lower bound.
        high: upper bound.
        q: numbers are multiples of this, or bounds.

    Returns:
        The mutable.

    Examples:
        >>> import nni
        >>> list(nni.quniform("depth", 2, 4, 1).int().grid(granularity=3))
        [2, 3, 4]
    """
    return Numerical(low, high, quantize=q, label=label)


@_label_first
def loguniform(label: str, low: float, high: float) -> Numerical:
    """Return a `Numerical` whose logarithm is uniform.

    Args:
        label: name of the dimension.
        low: lower bound, > 0.
        high: upper bound.

    Returns:
        The mutable.

    Examples:
        >>> import nni
        >>> nni.loguniform("rate", 0.25, 4).default()
        1.0
    """
    return Numerical(low, high, log_distributed=True, label=label)


@_label_first
def qloguniform(label: str, low: float, high: float, q: float) -> Numerical:
    """Return a `Numerical` whose logarithm is uniform, rounded to a multiple of `q`.

    Args:
        label: name of the dimension.
        low: lower bound, > 0.
        high: upper bound.
        q: numbers are multiples of this, or bounds.

    Returns:
        The mutable.

    Examples:
        >>> import nni
        >>> list(nni.qloguniform("width", 1, 16, 1).grid(granularity=2))
        [2.0, 4.0, 8.0]
    """
    return Numerical(low, high, log_distributed=True, quantize=q, label=label)


@_label_first
def normal(label: str, mu: float, sigma: float) -> Numerical:
    """Return a `Numerical` that is normally distributed, without bounds.

    Args:
        label: name of the dimension.
        mu: mean.
        sigma: standard deviation, > 0.

    Returns:
        The mutable.

    Examples:
        >>> import nni
        >>> nni.normal("shift", 3, 1).default()
        3.0
    """
    return Numerical(mu=mu, sigma=sigma, label=label)


@_label_first
def qnormal(label: str, mu: float, sigma: float, q: float) -> Numerical:
    """Return a `Numerical` that is normally distributed, rounded to a multiple of `q`.

    Args:
        label: name of the dimension.
        mu: mean.
        sigma: standard deviation, > 0.
        q: numbers are multiples of this.

    Returns:
        The mutable.

    Examples:
        >>> import nni
        >>> list(nni.qnormal("shift", 0, 1, 0.5).grid(granularity=2))
        [-0.5, 0.0, 0.5]
    """
    return Numerical(mu=mu, sigma=sigma, quantize=q, label=label)


def _number_of_modules(options: list[Any]) -> int:
    """Return how many options are modules of torch; without torch there are none.

    Raises:
        TypeError: an option is a tensor.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    tensors = [at for at, option in enumerate(options) if isinstance(option, torch.Tensor)]
    if tensors:
        raise TypeError(
            f"choices must not be tensors, got one at position {tensors[0]}; use its number "
            "(tensor.item()) or list, or a module"
        )
    return sum(isinstance(option, torch.nn.Module) for option in options)
