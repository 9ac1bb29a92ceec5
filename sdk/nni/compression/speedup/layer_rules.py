"""Rules of operations that compute across elements: norms, pools, reductions, look-ups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from nni.compression.speedup.contraction_rules import RULES as CONTRACTION_RULES
from nni.compression.speedup.graph import Node, Ref
from nni.compression.speedup.movement_rules import RULES as MOVEMENT_RULES
from nni.compression.speedup.propagation import (
    Propagation,
    Rule,
    Shape,
    elementwise,
    freeze_inputs,
)
from nni.compression.speedup.slots import Block

_PERMIT: Final = "allow_norm_change=True permits that"
_STATISTICS: Final = f"its mean and variance would change; {_PERMIT}"
_MEANS: Final = {"aten.mean", "aten.var", "aten.std", "aten.var_mean", "aten.std_mean"}
"""Statistics that norms without an operation of their own divide by or subtract."""


def batch_norm(state: Propagation, node: Node) -> None:
    """Propagate channels through a batch norm: tie them with its parameters and statistics."""
    source = node.args["input"]
    shape = state.shape(source)
    rank = len(shape)
    state.freeze_axes(
        node, source, [axis for axis in range(rank) if axis != 1], "it is normalised over"
    )
    blocks = [block for block in state.of(source) if block.axis == 1]
    flat = (1, shape[1], *[1] * (rank - 2)) if rank > 1 else shape
    operands: list[tuple[Sequence[Block], Shape]] = [(blocks, shape)]
    for name in ("weight", "bias", "running_mean", "running_var"):
        vector = node.args.get(name)
        if vector is not None:
            own = [Block(1, block.ids.reshape(flat)) for block in state.of(vector)]
            operands.append((own, flat))
    state.put(node.outputs[0], state.tie(node, operands, shape))


def layer_norm(state: Propagation, node: Node) -> None:
    """Propagate channels through a layer norm: freeze normalised axes, unless they may change."""
    source = node.args["input"]
    shape = state.shape(source)
    axes = range(len(shape) - len(node.args["normalized_shape"]), len(shape))
    vectors = [node.args.get(one) for one in ("weight", "bias")]
    operands = [(state.of(source), shape)]
    operands += [(state.of(one), state.shape(one)) for one in vectors if one is not None]
    found = state.tie(node, operands, shape)
    for block in found:
        if block.axis in axes:
            _normalised(state, node, block)
        elif any(block.ids.shape[axis] > 1 for axis in axes):
            state.freeze(node, block.ids, _STATISTICS)
    state.put(node.outputs[0], found)


def _normalised(state: Propagation, node: Node, block: Block) -> None:
    if state.allow_norm_change and not block.rows():
        state.changed_norms.append(node.module)
    else:
        state.freeze(node, block.ids, _STATISTICS)


def group_norm(state: Propagation, node: Node) -> None:
    """Propagate channels through a group norm: freeze them, or on request keep groups equal."""
    source = node.args["input"]
    shape = state.shape(source)
    rank, groups = len(shape), node.args["group"]
    state.freeze_axes(node, source, range(2, rank), "it is normalised over")
    flat = (1, shape[1], *[1] * (rank - 2))
    operands = [([block for block in state.of(source) if block.axis == 1], shape)]
    for one in (node.args.get("weight"), node.args.get("bias")):
        if one is not None:
            own = [Block(1, block.ids.reshape(flat)) for block in state.of(one)]
            operands.append((own, flat))
    found = state.tie(node, operands, shape)
    for block in found:
        if groups != shape[1]:
            _normalised(state, node, block)
            if state.allow_norm_change and not block.rows():
                state.balance(block.flat().reshape(groups, -1))
        else:
            state.freeze(node, block.ids, "its groups are counted by a constant")
    state.put(node.outputs[0], found)


def along_axis(state: Propagation, node: Node) -> None:
    """Propagate channels through softmax, sorting or sums: freeze their axis, pass the others."""
    source = node.args["self"]
    rank = len(state.shape(source))
    axes = [_axis(node, rank)]
    state.freeze_axes(node, source, axes, "it is normalised or ordered along")
    _pass_without(state, node, source, axes)


def _axis(node: Node, rank: int) -> int:
    axis: int = node.args.get("dim", -1)
    return axis % rank if rank else 0


def _pass_without(state: Propagation, node: Node, source: Ref, axes: Sequence[int]) -> None:
    blocks = state.of(source)
    for block in blocks:
        if any(block.ids.shape[axis] > 1 for axis in axes if axis != block.axis):
            state.freeze(node, block.ids, "its rows are mixed")
    kept = [
        block
        for block in blocks
        if not any(block.ids.shape[axis] > 1 for axis in axes if axis != block.axis)
    ]
    for output in node.outputs:
        shape = state.shape(output)
        state.put(
            output,
            [one for one in kept if len(shape) == one.ids.ndim
             and shape[one.axis] == one.ids.shape[one.axis]],
        )  # fmt: skip


def pool(state: Propagation, node: Node) -> None:
    """Propagate channels through pooling or resampling: freeze spatial axes, pass channels."""
    source = next(one for one in node.args.values() if isinstance(one, Ref))
    rank = len(state.shape(source))
    digits = [int(one) for one in node.op if one.isdigit()]
    spatial = digits[-1] if digits else rank - 2
    axes = range(rank - spatial, rank)
    state.freeze_axes(node, source, axes, "it is pooled or resampled")
    _pass_without(state, node, source, axes)


def reduction(state: Propagation, node: Node) -> None:
    """Propagate channels through a reduction: freeze reduced axes, tie rows that are summed."""
    source = node.args["self"]
    shape = state.shape(source)
    rank = len(shape)
    named = node.args.get("dim")
    listed = [named] if isinstance(named, int) else list(named or [])
    axes = sorted(axis % rank for axis in listed) if listed else list(range(rank))
    blocks = []
    for block in state.of(source):
        ids = block.ids
        if block.axis in axes:
            _reduced(state, node, block)
            continue
        for axis in axes:
            if ids.shape[axis] > 1:
                first = ids.take([0], axis=axis)
                state.slots.unite(ids, first)
                ids = first
        blocks.append(Block(block.axis, ids))
    keep = bool(node.args.get("keepdim"))
    for output in node.outputs:
        found = []
        for block in blocks:
            if keep:
                found.append(block)
            else:
                place = block.axis - sum(axis < block.axis for axis in axes)
                found.append(Block(place, np.squeeze(block.ids, axis=tuple(axes))))
        state.put(output, found)


def _reduced(state: Propagation, node: Node, block: Block) -> None:
    """Freeze a reduced axis, unless the statistics of norms may change and this is one."""
    statistic = node.op in _MEANS and bool(node.args.get("keepdim")) and not block.rows()
    if statistic and state.allow_norm_change:
        state.changed_norms.append(node.module)
    else:
        reason = "it is summed or averaged over"
        state.freeze(node, block.ids, f"{reason}; {_PERMIT}" if statistic else reason)


def embedding(state: Propagation, node: Node) -> None:
    """Propagate channels through an embedding: rows of the weight are fixed, columns pass."""
    weight = node.args["weight"]
    state.freeze_axes(node, weight, [0], "its rows are looked up")
    shape = state.shape(node.outputs[0])
    ids = state.line(node, weight, 1)
    found = [] if ids is None else [Block(len(shape) - 1, ids.reshape(*[1] * (len(shape) - 1), -1))]
    state.put(node.outputs[0], found)


def index(state: Propagation, node: Node) -> None:
    """Propagate channels through indexing by tensors: those axes are fixed, the others pass."""
    source = node.args["self"]
    indices = node.args["indices"]
    places = [place for place, one in enumerate(indices) if one is not None]
    adjacent = bool(places) and places == list(range(places[0], places[-1] + 1))
    if not adjacent or any(state.of(indices[place]) for place in places):
        freeze_inputs(state, node)
        return
    state.freeze_axes(node, source, places, "it is indexed by a tensor")
    width = len(np.broadcast_shapes(*(state.shape(indices[place]) for place in places)))
    shift = width - len(places)
    found = []
    for block in state.of(source):
        if block.axis in places:
            continue
        if any(block.ids.shape[place] > 1 for place in places):
            state.freeze(node, block.ids, "its rows are indexed by a tensor")
            continue
        sizes = list(block.ids.shape)
        sizes[places[0] : places[-1] + 1] = [1] * width
        moved = block.axis + (shift if block.axis > places[-1] else 0)
        found.append(Block(moved, block.ids.reshape(sizes)))
    state.put(node.outputs[0], found)


def index_select(state: Propagation, node: Node) -> None:
    """Propagate channels through a selection of listed indices: that axis is fixed."""
    source = node.args["self"]
    axis = node.args["dim"] % len(state.shape(source))
    state.freeze_axes(node, source, [axis], "listed indices are taken from it")
    _pass_without(state, node, source, [axis])


def glu(state: Propagation, node: Node) -> None:
    """Propagate channels through a gated unit: tie the two halves of an axis."""
    source = node.args["self"]
    shape = state.shape(source)
    axis = _axis(node, len(shape))
    half = shape[axis] // 2
    found = []
    for block in state.of(source):
        ids = block.ids
        if ids.shape[axis] > 1:
            first, second = np.split(ids, 2, axis=axis)
            if block.axis == axis:
                state.balance(block.flat().reshape(-1, half))
            state.slots.unite(first, second)
            ids = first
        found.append(Block(block.axis, ids))
    state.put(node.outputs[0], found)


def _rules() -> dict[str, Rule]:
    table: dict[Rule, str] = {
        batch_norm: "native_batch_norm _native_batch_norm_legit _batch_norm_with_update "
        "_native_batch_norm_legit_no_training cudnn_batch_norm miopen_batch_norm "
        "_batch_norm_no_update",
        layer_norm: "native_layer_norm _fused_rms_norm",
        group_norm: "native_group_norm",
        along_axis: "_softmax _log_softmax softmax log_softmax cumsum cumprod sort topk "
        "logcumsumexp _safe_softmax renorm",
        pool: "max_pool2d_with_indices max_pool1d max_pool3d_with_indices avg_pool1d avg_pool2d "
        "avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d "
        "adaptive_max_pool3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
        "upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
        "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_nearest_exact2d "
        "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
        "replication_pad3d max_pool2d adaptive_avg_pool1d",
        reduction: "mean sum amax amin max min var std var_mean std_mean norm linalg_vector_norm "
        "logsumexp argmax argmin any all prod median nansum",
        embedding: "embedding",
        index: "index",
        index_select: "index_select",
        glu: "glu",
        # what torch does not tag as elementwise, though it is
        elementwise: "copy_ masked_fill masked_fill_ _prelu_kernel rrelu_with_noise where "
        "rrelu_with_noise_functional hardswish hardswish_ log_sigmoid_forward mish_ polar complex "
        "rsub",
    }
    return {f"aten.{name}": rule for rule, names in table.items() for name in names.split()}


RULES: Final = {**MOVEMENT_RULES, **CONTRACTION_RULES, **_rules()}
"""Rule by operation; operations that torch tags as elementwise need none."""
