"""Arguments of layers, mutable or not: what formulas read in place of attributes."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from nni.mutable import Mutable
from nni.mutable.expression import apply
from nni.nas.nn.pytorch import ParametrizedModule
from nni.nas.profiler.pytorch.cases import Number

_RECURRENT: Final = ("input_size", "hidden_size", "num_layers")
_OPTIONS: Final = ("bias", "batch_first", "dropout", "bidirectional", "proj_size")
"""Names of recurrent layers' arguments by position, which their signature does not tell."""


def mutable_arguments(module: nn.Module) -> dict[str, Mutable]:
    """Return a module's mutable constructor arguments by name; empty for modules without any.

    Args:
        module: any module; one without mutable arguments has none.

    Examples:
        >>> import nni
        >>> from nni.nas.nn.pytorch import MutableLinear
        >>> list(mutable_arguments(MutableLinear(3, nni.choice("width", [4, 8]))))
        ['out_features']
    """
    if not isinstance(module, ParametrizedModule):
        return {}
    return {
        name: value
        for name, value in {**_by_position(module), **module.args}.items()
        if isinstance(value, Mutable) and not isinstance(value, nn.Module)
    }


def _by_position(module: nn.Module) -> dict[str, Any]:
    """Return the arguments of a recurrent layer that were given by position, by name."""
    if not isinstance(module, nn.RNNBase):
        return {}
    activation = ("nonlinearity",) if isinstance(module, nn.RNN) else ()
    names = (*_RECURRENT, *activation, *_OPTIONS)
    return dict(zip(names, getattr(module, "trace_args", ()), strict=False))


def argument(module: nn.Module, name: str) -> Any:  # noqa: ANN401 - number, tuple or expression
    """Return an argument of a layer: the mutable that it was given, or its attribute.

    Args:
        module: layer of torch, with mutable arguments or without.
        name: name of the argument and of the attribute.

    Examples:
        >>> import nni
        >>> from nni.nas.nn.pytorch import MutableLinear
        >>> layer = MutableLinear(3, nni.choice("width", [4, 8]))
        >>> argument(layer, "out_features").label, argument(layer, "in_features")
        ('width', 3)
    """
    given = mutable_arguments(module).get(name)
    return getattr(module, name) if given is None else given


def component(value: Any, position: int) -> Number:  # noqa: ANN401 - number, tuple or expression
    """Return the number of one dimension of an argument such as a kernel size.

    Args:
        value: a number for all dimensions, a tuple of one for each, or an expression of either.
        position: the dimension.

    Examples:
        >>> import nni
        >>> component((3, 5), 1), component(3, 1)
        (5, 3)
        >>> component(nni.choice("kernel", [3, (5, 7)]), 1).freeze({"kernel": (5, 7)})
        7
    """
    return apply(_component, [value, position], "{}[{}]")


def _component(value: Any, position: int) -> Any:  # noqa: ANN401 - number or tuple
    return value[position] if isinstance(value, tuple | list) else value


def has_bias(module: nn.Module) -> Number:
    """Return 1 if a layer has a bias, 0 if not, or an expression of these.

    Args:
        module: layer of torch.

    Examples:
        >>> has_bias(nn.Linear(3, 2)), has_bias(nn.Linear(3, 2, bias=False))
        (1, 0)
    """
    given = mutable_arguments(module).get("bias")
    if given is not None:
        return apply(int, [given], "int({})")
    return int(getattr(module, "bias", None) is not None)
