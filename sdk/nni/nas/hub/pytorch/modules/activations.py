"""Functions that an activation is searched from: of one tensor, and of two that are stacked."""

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON: Final = 1e-7
"""Keeps denominators and arguments of logarithms away from zero."""

UnaryFormula = Callable[[Tensor, Tensor], Tensor]
"""Function of `x` and the scalar parameter beta, both tensors."""
BinaryFormula = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Function of `x1`, `x2` and beta."""


def _sinc(x: Tensor, _: Tensor) -> Tensor:
    return torch.sinc(x)


UNARY: Final[dict[str, UnaryFormula]] = {
    "Identity": lambda x, _: x,
    "Negative": lambda x, _: -x,
    "Abs": lambda x, _: x.abs(),
    "Square": lambda x, _: x.square(),
    "Pow": lambda x, _: x**3,
    "Sqrt": lambda x, _: x.sqrt(),
    "Mul": lambda x, beta: beta * x,
    "Add": lambda x, beta: x + beta,
    "LogAbs": lambda x, _: (x.abs() + EPSILON).log(),
    "Exp": lambda x, _: x.exp(),
    "Sin": lambda x, _: x.sin(),
    "Cos": lambda x, _: x.cos(),
    "Sinh": lambda x, _: x.sinh(),
    "Cosh": lambda x, _: x.cosh(),
    "Tanh": lambda x, _: x.tanh(),
    "Atan": lambda x, _: x.atan(),
    "Max": lambda x, _: x.clamp(min=0),
    "Min": lambda x, _: x.clamp(max=0),
    "Sigmoid": lambda x, _: x.sigmoid(),
    "LogExp": lambda x, _: functional.softplus(x),
    "ExpSquare": lambda x, _: (-x.square()).exp(),
    "Erf": lambda x, _: x.erf(),
    "Sinc": _sinc,
    "Asinh": lambda x, _: x.asinh(),
}
"""Functions of one tensor. `LogExp` is `log(1 + exp(x))` in the form that does not overflow."""

BINARY: Final[dict[str, BinaryFormula]] = {
    "Add": lambda x1, x2, _: x1 + x2,
    "Mul": lambda x1, x2, _: x1 * x2,
    "Minus": lambda x1, x2, _: x1 - x2,
    "Divide": lambda x1, x2, _: x1 / (x2 + EPSILON),
    "Max": lambda x1, x2, _: torch.maximum(x1, x2),
    "Min": lambda x1, x2, _: torch.minimum(x1, x2),
    "Sigmoid": lambda x1, x2, _: x1.sigmoid() * x2,
    "ExpSquare": lambda x1, x2, beta: (-beta * (x1 - x2).square()).exp(),
    "ExpAbs": lambda x1, x2, beta: (-beta * (x1 - x2).abs()).exp(),
    "ParamAdd": lambda x1, x2, beta: beta * x1 + (1 - beta) * x2,
}
"""Functions of two tensors of the same shape."""

_WITH_PARAMETER: Final = {
    "unary": {"Mul", "Add"},
    "binary": {"ExpSquare", "ExpAbs", "ParamAdd"},
}


class UnaryFunction(nn.Module):
    """Elementwise function of one tensor, chosen by name; some have a trained parameter.

    Args:
        name: key of `UNARY`. `Mul` and `Add` have the scalar parameter beta, initially 1.

    Raises:
        ValueError: `name` is unknown.

    Examples:
        >>> UnaryFunction("Max")(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = _checked(name, UNARY)
        self.beta = _parameter(name, "unary")

    def forward(self, x: Tensor) -> Tensor:
        """Return the function of each element, in the input's shape.

        Args:
            x: of any shape.

        Returns:
            Of the same shape.
        """
        return UNARY[self.name](x, self.beta)

    def extra_repr(self) -> str:
        """Return the name, for the text of the module."""
        return self.name


class BinaryFunction(nn.Module):
    """Elementwise function of two stacked tensors, by name; some have a trained parameter.

    Args:
        name: key of `BINARY`. `ExpSquare`, `ExpAbs` and `ParamAdd` have the scalar parameter beta,
            initially 1.

    Raises:
        ValueError: `name` is unknown.

    Examples:
        >>> BinaryFunction("Minus")(torch.tensor([[3.0], [1.0]]))
        tensor([2.])
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = _checked(name, BINARY)
        self.beta = _parameter(name, "binary")

    def forward(self, x: Tensor) -> Tensor:
        """Return the function of `x[0]` and `x[1]`, elementwise, without the first dimension.

        Args:
            x: `(2, *)`: the two tensors, stacked, so that a choice of functions has one input.

        Returns:
            `(*)`.
        """
        return BINARY[self.name](x[0], x[1], self.beta)

    def extra_repr(self) -> str:
        """Return the name, for the text of the module."""
        return self.name


def _checked(name: str, known: dict[str, UnaryFormula] | dict[str, BinaryFormula]) -> str:
    if name not in known:
        raise ValueError(f"name must be one of {', '.join(known)}, got {name!r}")
    return name


def _parameter(name: str, kind: str) -> Tensor:
    """Return a function's trained parameter, at first 1; a constant 1 where it has none."""
    if name in _WITH_PARAMETER[kind]:
        return nn.Parameter(torch.tensor(1.0))
    return torch.tensor(1.0)
