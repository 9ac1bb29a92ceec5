"""Rules of contractions: convolutions, matrix products and attention."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nni.compression.speedup.graph import Node, Ref
from nni.compression.speedup.propagation import Propagation, Rule, Shape, Sink, freeze_inputs
from nni.compression.speedup.slots import Block, Ids

_FIXED: Final = "its partner in a product has a fixed size"
_MATRIX_RANK: Final = 2
_BATCH_RANK: Final = 3
"""Rank of a batch of matrices, such as the heads of an attention."""


def convolution(state: Propagation, node: Node) -> None:
    """Propagate channels through a convolution: tie inputs with the weight, create outputs."""
    image, weight, bias = node.args["input"], node.args["weight"], node.args["bias"]
    groups, transposed = node.args["groups"], node.args["transposed"]
    rank = len(state.shape(image))
    state.freeze_axes(node, image, range(2, rank), "it is convolved")
    state.freeze_axes(node, weight, range(2, rank), "it is a kernel")
    channels = state.line(node, image, 1)
    in_axis, out_axis = (0, 1) if transposed else (1, 0)
    if groups == 1:
        ins, outs = state.line(node, weight, in_axis), state.line(node, weight, out_axis)
        ids = state.join(node, channels, ins, _FIXED)
        if ids is not None:
            count = state.shape(weight)[out_axis]
            outputs = outs if outs is not None else np.zeros(0, dtype=np.int64)
            rows = np.broadcast_to(outputs, (len(ids), len(outputs)))
            if outs is not None or count == 1:
                state.sinks.append(Sink(node.index, ids, rows))
    else:
        outs = _grouped(state, node, channels)
    found = [] if outs is None else [Block(1, outs.reshape(1, -1, *[1] * (rank - 2)))]
    if bias is not None:
        own = state.line(node, bias, 0)
        state.join(node, outs, own, _FIXED)
    state.put(node.outputs[0], [*_batches(state, node, image), *found])


def _batches(state: Propagation, node: Node, image: Ref) -> list[Block]:
    """Return the block of the batch axis, which may hold heads; its rows must be equal."""
    block = state.at(image, 0)
    if block is None:
        return []
    if block.rows():
        state.freeze(node, block.ids, "rows with different channels are convolved")
        return []
    return [block]


def _grouped(state: Propagation, node: Node, channels: Ids | None) -> Ids | None:
    """Tie or balance the channels of a grouped convolution; return the output's, None if unknown.

    One input channel a group (depthwise): input and output channels are tied, and groups go.
    Otherwise the number of groups stays, and each group keeps the same number of channels.
    """
    weight, groups, transposed = (node.args[one] for one in ("weight", "groups", "transposed"))
    shape = state.shape(weight)
    in_width = (shape[0] // groups) if transposed else shape[1]
    out_width = shape[1] if transposed else shape[0] // groups
    stored = state.line(node, weight, 0)
    computed = state.graph.values[weight.index].source is None and (in_width > 1 or transposed)
    if stored is None or channels is None or computed:
        for ids in (stored, channels):
            if ids is not None:
                state.freeze(node, ids, _FIXED)
        state.freeze_axes(node, weight, [0, 1], _FIXED)
        # Frozen channels still tell which layers they reach.
        return None if transposed or computed else stored
    outs = state.slots.new(groups * out_width) if transposed else stored
    if in_width == 1:
        state.slots.unite(channels[:, None], outs.reshape(groups, out_width))
        if transposed:
            state.slots.unite(channels, stored)
        state.freeze_axes(node, weight, [1], "all groups share it")
        return outs
    if transposed:
        state.slots.unite(stored, channels)
    state.balance(channels.reshape(groups, in_width))
    state.balance(outs.reshape(groups, out_width))
    inner = channels if not transposed else outs
    rows = inner.reshape(groups, 1, -1)
    rows = np.broadcast_to(rows, (groups, shape[0] // groups, rows.shape[2])).reshape(shape[:2])
    ragged = rows.reshape(*shape[:2], *[1] * (len(shape) - 2))
    held = state.at(weight, 1)
    if held is not None and len(held.flat()) == 1:  # the first use of this weight
        kept = [block for block in state.of(weight) if block.axis != 1]
        state.blocks[weight.index] = [*kept, Block(1, ragged)]
    elif held is not None:
        state.slots.unite(held.ids, ragged)
    outputs = np.repeat(outs.reshape(groups, out_width), in_width, axis=0)
    state.sinks.append(Sink(node.index, channels, outputs))
    return outs


def linear(state: Propagation, node: Node) -> None:
    """Propagate channels through a linear layer, which contracts the last axes."""
    names = [one for one in ("input", "weight", "bias") if one in node.args]
    source, weight, bias = (node.args[one] for one in names)
    shape = state.shape(source)
    ids = state.join(
        node, state.line(node, source, len(shape) - 1), state.line(node, weight, 1), _FIXED
    )
    outs = state.line(node, weight, 0)
    _add_sink(state, node, ids, outs)
    found = [block for block in state.of(source) if block.axis != len(shape) - 1]
    if outs is not None:
        found.append(Block(len(shape) - 1, outs.reshape(*[1] * (len(shape) - 1), -1)))
    if bias is not None:
        state.join(node, outs, state.line(node, bias, 0), _FIXED)
    state.put(node.outputs[0], found)


def _add_sink(state: Propagation, node: Node, ids: Ids | None, outs: Ids | None) -> None:
    if ids is not None:
        outputs = np.zeros(0, dtype=np.int64) if outs is None else outs
        state.sinks.append(
            Sink(node.index, ids, np.broadcast_to(outputs, (len(ids), len(outputs))))
        )


def matrix_product(state: Propagation, node: Node) -> None:
    """Propagate channels through a product of two matrices, or of two batches of matrices."""
    names = [one for one in ("mat1", "batch1", "self") if isinstance(node.args.get(one), Ref)]
    left: Ref = node.args[names[0]]
    right: Ref = node.args["mat2" if "mat2" in node.args else "batch2"]
    bias: Ref | None = node.args["self"] if names[0] != "self" else None
    rank = len(state.shape(left))
    shape = state.shape(node.outputs[0])
    heads = state.tie(
        node, [(_leading(state, one), _leading_shape(state, one)) for one in (left, right)],
        (*shape[:-2], 1, 1),
    )  # fmt: skip
    _contract(state, node, left, right)
    found = [
        *heads,
        *(block for block in state.of(left) if block.axis == rank - 2),
        *(block for block in state.of(right) if block.axis == rank - 1),
    ]
    found = [_without_axis(state, node, block, rank - 1, rank - 2) for block in found]
    if bias is not None:
        found = state.tie(node, [(found, shape), (state.of(bias), state.shape(bias))], shape)
    state.put(node.outputs[0], found)


def _leading(state: Propagation, value: Ref) -> list[Block]:
    rank = len(state.shape(value))
    blocks = [block for block in state.of(value) if block.axis < rank - 2]
    return [block for block in blocks if block.ids.shape[-2:] == (1, 1)]


def _leading_shape(state: Propagation, value: Ref) -> Shape:
    return (*state.shape(value)[:-2], 1, 1)


def _without_axis(state: Propagation, node: Node, block: Block, row: int, column: int) -> Block:
    """Return a block without rows on the axes of a product; freeze rows that differ."""
    other = row if block.axis == column else column
    if block.ids.shape[other] > 1:
        state.freeze(node, block.ids, "rows with different channels are multiplied")
        return Block(block.axis, block.ids.take([0], axis=other))
    return block


def _contract(state: Propagation, node: Node, left: Ref, right: Ref) -> None:
    """Tie the contracted axes: with a weight it is a sink, between activations it is frozen."""
    rank = len(state.shape(left))
    first, second = state.at(left, rank - 1), state.at(right, rank - 2)
    weighted = [one.index in state.static for one in (left, right)]
    if math.prod(state.shape(left)[:-2]) == 1 and any(weighted):
        row, column = rank - 2, rank - 1
        ids = state.join(node, state.line(node, left, column), state.line(node, right, row), _FIXED)
        static_left = weighted[0] and not weighted[1]
        outs = state.line(node, left, row) if static_left else state.line(node, right, column)
        _add_sink(state, node, ids, outs)
        return
    for block in (first, second):
        if block is not None:
            state.freeze(node, block.ids, "two activations are multiplied along it")


def grouped_product(state: Propagation, node: Node) -> None:
    """Propagate channels through a product of rows, sorted by expert, and experts' matrices."""
    left, right = node.args["self"], node.args["mat2"]
    ranks = len(state.shape(left)), len(state.shape(right))
    if ranks != (_MATRIX_RANK, _BATCH_RANK) or node.args.get("bias") is not None:
        freeze_inputs(state, node)
        return
    state.freeze_axes(node, left, [0], "rows are counted by expert")
    state.freeze_axes(node, right, [0], "experts are counted")
    ids = state.join(node, state.line(node, left, 1), state.line(node, right, 1), _FIXED)
    outs = state.line(node, right, 2)
    _add_sink(state, node, ids, outs)
    state.put(node.outputs[0], [] if outs is None else [Block(1, outs.reshape(1, -1))])


def attention(state: Propagation, node: Node) -> None:
    """Propagate channels through attention: tie heads, freeze key widths, pass value widths."""
    query, key, value = (node.args[one] for one in ("query", "key", "value"))
    mask = node.args.get("attn_mask", node.args.get("attn_bias"))
    rank = len(state.shape(query))
    for one in (query, key, value):
        state.freeze_axes(node, one, [rank - 2], "attention weights are normalised over it")
    for one in (query, key):
        state.freeze_axes(node, one, [rank - 1], "two activations are multiplied along it")
    count = state.shape(query)[rank - 3] if rank >= _BATCH_RANK else 1
    operands = [_heads(state, one, count) for one in (query, key, value)]
    if mask is not None:
        operands.append((_leading(state, mask), _leading_shape(state, mask)))
        missing = rank - len(state.shape(mask))
        state.freeze_axes(node, mask, [rank - 2 - missing, rank - 1 - missing], "it is a mask")
    heads = state.tie(node, operands, (*state.shape(query)[:-2], 1, 1))
    widths = [block for block in state.of(value) if block.axis == rank - 1]
    repeated = [_repeated(block, state.shape(value), count) for block in widths]
    state.put(node.outputs[0], [*heads, *repeated])


def _heads(state: Propagation, value: Ref, count: int) -> tuple[list[Block], Shape]:
    """Return the head blocks of an operand and its shape, with as many heads as the query.

    Grouped queries share the heads of keys and values; these are repeated, so that a head goes
    together with the queries of its group.
    """
    shape = _leading_shape(state, value)
    blocks = [_repeated(block, shape, count) for block in _leading(state, value)]
    if len(shape) < _BATCH_RANK or shape[-3] == 1:
        return blocks, shape
    return blocks, (*shape[:-3], count, 1, 1)


def _repeated(block: Block, shape: Shape, count: int) -> Block:
    """Return a block in which each head is repeated for the queries of its group."""
    axis = len(shape) - 3
    if axis < 0 or block.ids.shape[axis] in {1, count}:
        return block
    return Block(block.axis, np.repeat(block.ids, count // shape[axis], axis=axis))


RULES: Final[dict[str, Rule]] = {
    "aten.convolution": convolution,
    "aten.linear": linear,
    "aten._grouped_mm": grouped_product,
    **dict.fromkeys(("aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"), matrix_product),
    **dict.fromkeys(
        (
            "aten._scaled_dot_product_flash_attention_for_cpu",
            "aten._scaled_dot_product_flash_attention",
            "aten._scaled_dot_product_efficient_attention",
            "aten._scaled_dot_product_cudnn_attention",
            "aten._scaled_dot_product_fused_attention_overrideable",
        ),
        attention,
    ),
}
"""Rule by operation."""
