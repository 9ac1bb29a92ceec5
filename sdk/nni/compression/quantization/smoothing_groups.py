"""Search for norms whose channels can be scaled: every reader is a matrix product with a weight.

The search follows one recorded run of the model, operation by operation. It asks for no class: a
norm is what multiplies, and maybe shifts, each channel of a tensor by a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from torch import nn

from nni.compression.speedup.graph import Inputs, Node, OperationGraph, Ref
from nni.compression.speedup.recording import capture

_SAME_CHANNELS: Final = frozenset(
    f"aten.{name}"
    for name in (
        "view", "_unsafe_view", "reshape", "_reshape_alias", "alias", "detach", "clone",
        "contiguous", "_to_copy",
    )
)  # fmt: skip
"""Operations that leave the last dimension as it is, if its size stays."""
_FACTORS: Final[Mapping[str, tuple[str, str]]] = {
    "aten.mm": ("self", "mat2"),
    "aten.addmm": ("mat1", "mat2"),
}
"""Arguments of matrix products: activation and weight."""
_NORMS: Final = frozenset({"aten.native_layer_norm", "aten._fused_rms_norm"})


@dataclass(frozen=True, slots=True)
class WeightAxis:
    """Weight of a matrix product, and its axis of input channels."""

    name: str
    """Name of the parameter."""
    axis: int
    """0 or 1."""


@dataclass(frozen=True, slots=True)
class SmoothingGroup:
    """Norm, and the weights that alone read its output."""

    norm: tuple[str, ...]
    """Names of the parameters, `(channels,)`, that scale and shift the output of the norm."""
    weights: tuple[WeightAxis, ...]
    """Weights whose input channels are those of the norm."""


@dataclass(slots=True)
class SmoothingGroups:
    """Result of `smoothing_groups`: norms with their weights, and why others were skipped."""

    found: list[SmoothingGroup] = field(default_factory=list)
    """Groups in the order of the run."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Reason by name of the parameter, for norms whose output is read by something else."""


def smoothing_groups(model: nn.Module, inputs: Inputs) -> SmoothingGroups:
    """Return norms that can be scaled together with their readers' weights, and why others cannot.

    Args:
        model: The model; it runs once in eval mode and is the same afterwards.
        inputs: Example inputs.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2))
        >>> smoothing_groups(model, torch.zeros(3, 4)).found[0].norm
        ('0.weight', '0.bias')
    """
    search = _Search(capture(model, inputs))
    trained = {name for name, _ in model.named_parameters()}
    groups = SmoothingGroups()
    for node in search.graph.nodes:
        names = search.norm_of(node)
        if not names or not trained.issuperset(names):
            continue
        try:
            group = search.group(node, names)
        except _OtherReaderError as error:
            groups.skipped[names[0]] = str(error)
        else:
            if group.weights:
                groups.found.append(group)
    return groups


class _OtherReaderError(Exception):
    """Error that a norm cannot be scaled: more than weights read it, or one is used twice."""


class _Search:
    """Index of the readers of a graph's values, to find norms whose output only weights read."""

    def __init__(self, graph: OperationGraph) -> None:
        self.graph = graph
        self._makers = {value: node for node in graph.nodes for value in node.outputs}
        self._readers: dict[int, list[Node]] = {}
        for node in graph.nodes:
            for value in dict.fromkeys(node.inputs()):
                self._readers.setdefault(value, []).append(node)

    def norm_of(self, node: Node) -> tuple[str, ...]:
        """Return the parameters by which an operation scales each channel; empty without one."""
        if node.op in _NORMS:
            scale = self._vector(node.args["weight"], node)
            shift = self._vector(node.args.get("bias"), node)
            return () if scale is None else (scale, *([] if shift is None else [shift]))
        if node.op == "aten.mul":
            names = [self._vector(node.args[key], node) for key in ("self", "other")]
            return tuple(name for name in names if name is not None)[:1]
        return ()

    def group(self, node: Node, names: tuple[str, ...]) -> SmoothingGroup:
        """Return a norm and the weights that read it; raise if anything else reads it.

        Raises:
            _OtherReaderError: its output is read by something else than a weight, or one of the
                parameters is used more than once.
        """
        norm, weights = list(names), []
        waiting = node.outputs[:1]
        channels = self.graph.values[waiting[0]].shape[-1]
        while waiting:
            value = waiting.pop(0)
            if value in self.graph.outputs:
                raise _OtherReaderError("it is an output of the model")
            for reader in self._readers.get(value, []):
                weight = self._weight(reader, value)
                shift = self._shift(reader, value)
                if weight is not None:
                    weights.append(weight)
                elif shift is not None:
                    norm.append(shift)
                    waiting += reader.outputs
                elif self._keeps(reader, channels):
                    waiting += reader.outputs
                else:
                    raise _OtherReaderError(f"it is read by {reader.describe()}")
        for name in (*norm, *(one.name for one in weights)):
            self._check_read_once(name)
        return SmoothingGroup(tuple(norm), tuple(weights))

    def _check_read_once(self, name: str) -> None:
        if len(self._readers[self.graph.sources[name]]) > 1:
            raise _OtherReaderError(f"{name} is used more than once")

    def _keeps(self, node: Node, channels: int) -> bool:
        """Return whether an operation only changes dimensions before the channels."""
        shapes = [self.graph.values[one].shape for one in node.outputs]
        return node.op in _SAME_CHANNELS and all(one[-1:] == (channels,) for one in shapes)

    def _shift(self, node: Node, value: int) -> str | None:
        """Return the parameter that an operation adds to each channel of a value; else None."""
        if node.op != "aten.add" or node.args["alpha"] != 1:
            return None
        sides = [node.args["self"], node.args["other"]]
        others = [one for one in sides if not (isinstance(one, Ref) and one.index == value)]
        return self._vector(others[0], node) if len(others) == 1 else None

    def _weight(self, node: Node, value: int) -> WeightAxis | None:
        """Return name and input axis of the weight that multiplies a value; None if none does."""
        if node.op not in _FACTORS:
            return None
        left, right = (node.args[key] for key in _FACTORS[node.op])
        if left != Ref(value) or not isinstance(right, Ref):
            return None
        name = self.graph.values[right.index].source
        if name is not None:
            return WeightAxis(name, 0)
        maker = self._makers.get(right.index)
        if maker is None or maker.op not in {"aten.t", "aten.transpose"}:
            return None
        name = self.graph.values[maker.inputs()[0]].source
        alone = len(self._readers[right.index]) == 1
        return WeightAxis(name, 1) if name is not None and alone else None

    def _vector(self, argument: Any, node: Node) -> str | None:  # noqa: ANN401 - of any type
        """Return the name of a parameter with a number per channel of a node's output; or None."""
        if not isinstance(argument, Ref):
            return None
        value = self.graph.values[argument.index]
        channels = self.graph.values[node.outputs[0]].shape[-1:]
        return value.source if value.shape == channels else None
