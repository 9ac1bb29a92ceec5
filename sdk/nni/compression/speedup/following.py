"""Runs of a model that follow its recorded graph, operation by operation.

A smaller model must repeat the recorded operations with the sizes that the removal leaves. The
first operation that has other sizes, or computes something else than the masked model, shows what
cannot be removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nni.compression.speedup.graph import Inputs, Node, OperationGraph
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.running import run_recorded
from nni.compression.speedup.slots import Flags

_OPTIONAL: Final = "aten.detach"
"""Operation that torch adds to new tensors in some contexts only."""
_SAME: Final = 1e-3
"""Largest relative difference of sums that rounding explains."""
Sums = dict[tuple[int, int], tuple[float, float]]
"""Sum, and sum of absolute values, by node of the graph and place among its outputs."""


class DivergedError(RuntimeError):
    """Error: a run performs other operations than the recorded one."""


class RecordedPosition:
    """Place of a run in its recorded graph, advanced by each operation."""

    def __init__(self, graph: OperationGraph) -> None:
        self._nodes = graph.nodes
        self.place = -1

    def advance(self, op: str) -> Node | None:
        """Return the node of the next operation; None for an unrecorded detach; raise for others.

        Args:
            op: Qualified name of the operation.

        Raises:
            DivergedError: the run differs from the recorded one.
        """
        place = self.place + 1
        while place < len(self._nodes) and self._nodes[place].op == _OPTIONAL != op:
            place += 1
        if place < len(self._nodes) and self._nodes[place].op == op:
            self.place = place
            return self._nodes[place]
        if op != _OPTIONAL:
            raise DivergedError("the model does not repeat its operations")
        return None


class DeviationError(Exception):
    """Error that an operation of a smaller model differs from the recorded one; has its node."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node = node


class _Following(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that passes each operation to a function; it stops where the run differs."""

    def __init__(self, graph: OperationGraph, visit: Callable[[Node, list[Any]], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._position = RecordedPosition(graph)
        self._visit = visit
        self._lost = False

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        output = func(*args, **(kwargs or {}))
        if self._lost:
            return output
        try:
            node = self._position.advance(str(func.overloadpacket))
        except DivergedError:
            self._lost = True
            return output
        if node is not None:
            outputs = output if isinstance(output, list | tuple) else [output]
            self._visit(node, [one for one in outputs if isinstance(one, Tensor)])
        return output


def follow(
    model: nn.Module,
    inputs: Inputs,
    graph: OperationGraph,
    visit: Callable[[Node, list[Any]], None],
) -> None:
    """Run a model and pass the outputs of each recorded operation to a function.

    Args:
        model: The model; it runs in eval mode without gradients.
        inputs: Its inputs.
        graph: The recorded run. After the first operation that is not the recorded one, `visit` is
            not called any more.
        visit: Function of a node and its tensors.
    """
    run_recorded(model, inputs, graph, _Following(graph, visit))


def changed_sizes(dependencies: Dependencies, removed: Flags, value: int) -> dict[int, int]:
    """Return the new size of each axis of a value that shrinks.

    Args:
        dependencies: Units of the model.
        removed: By representative: whether the unit goes.
        value: Index of a value of the graph.

    Returns:
        Size by axis.
    """
    found = {}
    for block in dependencies.value_blocks.get(value, []):
        dead = removed[dependencies.roots[block.ids]]
        if dead.any():
            kept = np.moveaxis(~dead, block.axis, -1).sum(axis=-1)
            found[block.axis] = int(kept.min())
    return found


def kept_flags(dependencies: Dependencies, removed: Flags, value: int) -> list[Flags]:
    """Return which indices of a value stay, for each of its axes that shrinks.

    Args:
        dependencies: Units of the model.
        removed: By representative: whether the unit goes.
        value: Index of a value of the graph.

    Returns:
        Arrays that broadcast to the shape of the value.
    """
    found = []
    for block in dependencies.value_blocks.get(value, []):
        dead = removed[dependencies.roots[block.ids]]
        if dead.any():
            found.append(~dead)
    return found


def check_sizes(
    model: nn.Module, inputs: Inputs, dependencies: Dependencies, removed: Flags
) -> None:
    """Run a smaller model, and raise at the first operation with unexpected sizes.

    Args:
        model: The smaller model.
        inputs: Its inputs.
        dependencies: Units of the model.
        removed: By representative: whether the unit was removed.

    Raises:
        DeviationError: an operation has other sizes than the removal leaves.
    """

    def visit(node: Node, outputs: Sequence[Tensor]) -> None:
        for value, tensor in zip(node.outputs, outputs, strict=False):
            if value not in dependencies.value_blocks:
                continue  # its rule knows nothing about it, as about statistics that are not read
            expected = list(dependencies.graph.values[value].shape)
            for axis, size in changed_sizes(dependencies, removed, value).items():
                expected[axis] = size
            if list(tensor.shape) != expected:
                shape = tuple(tensor.shape)
                raise DeviationError(node, f"{node.describe()}: {shape} is not {tuple(expected)}")

    follow(model, inputs, dependencies.graph, visit)


def kept_sums(
    model: nn.Module, inputs: Inputs, dependencies: Dependencies, removed: Flags | None = None
) -> Sums:
    """Run a model; return sum and absolute sum of the elements that stay, for each output.

    Args:
        model: The masked model with its original sizes, or the smaller one.
        inputs: Its inputs.
        dependencies: Units of the model.
        removed: By representative: whether the unit goes; None for the smaller model.

    Returns:
        Sums by node and place among its outputs.
    """
    sums: Sums = {}

    def visit(node: Node, outputs: Sequence[Tensor]) -> None:
        for place, tensor in enumerate(outputs):
            if tensor.is_floating_point():
                kept = tensor.double()
                if removed is not None and place < len(node.outputs):
                    for flags in kept_flags(dependencies, removed, node.outputs[place]):
                        kept = kept * torch.from_numpy(flags).to(tensor.device)
                sums[node.index, place] = (float(kept.sum()), float(kept.abs().sum()))

    follow(model, inputs, dependencies.graph, visit)
    return sums


def first_difference(expected: Sums, found: Sums) -> int | None:
    """Return the first operation whose sums differ; None if all are equal up to rounding.

    Args:
        expected: Sums of the masked model.
        found: Sums of the smaller one.

    Returns:
        Index of the node; None if there is none.

    Examples:
        >>> from nni.compression.speedup.following import first_difference
        >>> first_difference({(0, 0): (1.0, 2.0), (1, 0): (1.0, 1.0)}, {(1, 0): (0.9, 0.9)})
        1
    """
    common = sorted(expected.keys() & found.keys())
    return next((node for node, place in common
                 if not _close(found[node, place], expected[node, place])), None)  # fmt: skip


def _close(found: tuple[float, float], expected: tuple[float, float]) -> bool:
    """Return whether sums are equal up to rounding; sums that are not finite are not compared."""
    if not all(map(math.isfinite, (*found, *expected))):
        return True
    scale = max(expected[1], found[1])
    return all(abs(a - b) <= _SAME * scale for a, b in zip(found, expected, strict=True))
