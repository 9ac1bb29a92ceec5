"""Constant activations of a masked model, found by one run with NaN as the varying input.

NaN spreads to every element that depends on the input. What stays a number is constant. Products
with weights, where a zero annuls a NaN, are computed apart. Comparisons lose NaN, so whatever is
computed from a comparison of varying elements counts as varying.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from nni.compression.speedup.following import RecordedPosition
from nni.compression.speedup.graph import Inputs, OperationGraph
from nni.compression.speedup.running import run_recorded
from nni.compression.speedup.slots import Flags

Floats = npt.NDArray[np.float64]
NAN: Final = float("nan")
_BATCH_NORMS: Final = {
    "aten.native_batch_norm", "aten._native_batch_norm_legit_no_training",
    "aten.cudnn_batch_norm", "aten._batch_norm_no_update",
}  # fmt: skip
_PRODUCTS: Final = {"aten.mm", "aten.addmm"}


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Constants that arrive at a contraction, NaN for others, and where weights are not zero."""

    constants: Floats
    """Value of each contracted index if it is the same everywhere, else NaN; shape (K,)."""
    weights: Flags
    """Whether the weight between an index and an output is not zero; shape (K, M)."""
    padded: bool
    """Whether zeros are padded, so that a constant is not the same at the borders."""


@dataclass
class Probe:
    """Result of a run with NaN as input: constants by contraction, and norms that were silenced."""

    arrivals: dict[int, Arrivals] = field(default_factory=dict)
    """By node of the graph."""
    silenced: list[tuple[Tensor, list[int]]] = field(default_factory=list)
    """Affine parameters of batch norms, and the channels that were zeroed."""


class _ProbeMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that keeps NaN exact through products and batch norms."""

    def __init__(self, graph: OperationGraph, wanted: set[int], probe: Probe) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._position = RecordedPosition(graph)
        self._wanted = wanted
        self._probe = probe
        self._tainted: set[int] = set()
        self._alive: list[Tensor] = []

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        op = str(func.overloadpacket)
        if self._position.advance(op) is None:
            return func(*args, **(kwargs or {}))
        inputs = [one for one in pytree.tree_leaves([args, kwargs]) if isinstance(one, Tensor)]
        tainted = any(id(one) in self._tainted for one in inputs)
        varying = tainted or any(one.is_floating_point() and _has_nan(one) for one in inputs)
        output = self._computed(op, func, args, kwargs or {})
        for one in output if isinstance(output, list | tuple) else [output]:
            if isinstance(one, Tensor) and varying:
                if not one.is_floating_point():
                    self._tainted.add(id(one))
                    self._alive.append(one)
                elif tainted:
                    one.fill_(NAN)
        return output

    def _computed(
        self, op: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        if op == "aten.convolution":
            return self._convolution(func, args)
        if op in _PRODUCTS:
            return self._product(func, args, kwargs)
        if op in _BATCH_NORMS:
            return self._batch_norm(func, args, kwargs)
        if op in {"aten.mul", "aten.mul_"} and isinstance(args[1], Tensor):
            return _multiplied(func, args)
        if op == "aten.embedding":
            rows = args[0]
            same = (rows == rows[:1]).all(dim=0)
            output = func(*args, **kwargs)
            output[..., ~same] = NAN
            return output
        return func(*args, **kwargs)

    def _convolution(self, func: Callable[..., Any], args: tuple[Any, ...]) -> Tensor:
        image, weight, bias, *rest = args
        transposed, groups, padding = rest[3], rest[5], rest[1]
        live = weight != 0
        flags = live.reshape(*live.shape[:2], -1).any(dim=2)
        if self._position.place in self._wanted:
            matrix = _by_input(flags, groups, transposed=transposed)
            self._arrive(image.transpose(0, 1).flatten(1), matrix, padded=any(padding))
        unknown = image.isnan()
        output: Tensor = func(image.nan_to_num(nan=0.0), weight, bias, *rest)
        if unknown.any():
            reached = func(unknown.to(image.dtype), live.to(weight.dtype), None, *rest)
            output[reached > 0.5] = NAN  # noqa: PLR2004 - counts, up to rounding
        return output

    def _product(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        left, right = args[-2:]
        if _has_nan(right):
            left, right = right.t(), left.t()
            if _has_nan(right):
                return func(*args, **kwargs)  # type: ignore[no-any-return]
            swapped = True
        else:
            swapped = False
        if self._position.place in self._wanted:
            self._arrive(left.t(), (right != 0).numpy(force=True), padded=False)
        unknown = left.isnan()
        clean, weight = left.nan_to_num(nan=0.0), right
        operands = (weight.t(), clean.t()) if swapped else (clean, weight)
        output: Tensor = func(*args[:-2], *operands, **kwargs)
        if unknown.any():
            reached = unknown.to(left.dtype) @ (right != 0).to(left.dtype) > 0.5  # noqa: PLR2004
            output[reached.t() if swapped else reached] = NAN
        return output

    def _arrive(self, rows: Tensor, weights: Flags, *, padded: bool) -> None:
        """Store the constants of a contraction; `rows` has one row per contracted index."""
        same = (rows == rows[:, :1]).all(dim=1)
        values = torch.where(same, rows[:, 0], NAN).double().numpy(force=True)
        self._probe.arrivals[self._position.place] = Arrivals(values, weights, padded)

    def _batch_norm(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        source, weight, bias = args[:3]
        dead = (source == 0).transpose(0, 1).flatten(1).all(dim=1)
        for vector in (weight, bias):
            if vector is not None and dead.any():
                vector[dead] = 0
                self._probe.silenced.append((vector, dead.nonzero().ravel().tolist()))
        output = func(*args, **kwargs)
        if weight is not None:
            still = weight == 0
            first = output[0] if isinstance(output, list | tuple) else output
            value = torch.zeros_like(weight) if bias is None else bias
            shape = [1, -1, *[1] * (first.ndim - 2)]
            first.copy_(torch.where(still.view(shape), value.view(shape), first))
        return output


def _has_nan(tensor: Tensor) -> bool:
    return bool(tensor.isnan().any())


def _multiplied(func: Callable[..., Any], args: tuple[Any, ...]) -> Tensor:
    """Return a product in which an exact zero annuls NaN."""
    zero = (args[0] == 0) | (args[1] == 0)
    output: Tensor = func(*args)
    output[zero.expand_as(output)] = 0
    return output


def _by_input(flags: Tensor, groups: int, *, transposed: bool) -> Flags:
    """Return which weights are not zero by input channel and output of its group."""
    if transposed:
        return flags.numpy(force=True)
    outputs, width = flags.shape
    table = flags.reshape(groups, outputs // groups, width).transpose(1, 2)
    return table.reshape(groups * width, -1).numpy(force=True)


def probe_constants(
    model: nn.Module, inputs: Inputs, graph: OperationGraph, wanted: set[int]
) -> Probe:
    """Run with NaN as input; return constants at contractions; zero batch norms that get zeros.

    The affine parameters of each batch norm are set to zero on the channels that are zero when
    they arrive: this is part of the definition of the masked model.

    Args:
        model: The model with its masks applied.
        inputs: Example inputs, as in the recorded run.
        graph: The recorded run.
        wanted: Nodes whose arrivals are stored.

    Returns:
        The constants by node.

    Raises:
        DivergedError: the run differs from the recorded one.

    Examples:
        >>> import torch
        >>> from nni.compression.speedup.constants import probe_constants
        >>> from nni.compression.speedup.recording import capture
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 1))
        >>> _ = model[0].weight.data[1].zero_()
        >>> graph = capture(model, torch.zeros(1, 2))
        >>> probe_constants(model, torch.zeros(1, 2), graph, {3}).arrivals[3].constants
        array([nan,  0.])
    """
    probe = Probe()

    def unknown(value: object) -> object:
        if isinstance(value, Tensor) and value.is_floating_point():
            return torch.full_like(value, NAN)
        return value

    replaced: Inputs = pytree.tree_map(unknown, inputs)
    run_recorded(model, replaced, graph, _ProbeMode(graph, wanted, probe))
    return probe
