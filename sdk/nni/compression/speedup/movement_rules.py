"""Rules of operations that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from nni.compression.speedup.graph import Node, Ref
from nni.compression.speedup.propagation import AxisSplit, Propagation, Rule, freeze_inputs
from nni.compression.speedup.slots import (
    Block,
    Ids,
    axis_groups,
    compressed,
    lifted,
    permuted,
    regrouped,
)

END: Final = 2**62
"""Larger than every index; `slice` marks an open end by a larger number."""


def same(state: Propagation, node: Node) -> None:
    """Propagate channels through an operation that keeps the shape of its first input."""
    first = next(iter(node.inputs()), None)
    for output in node.outputs:
        fits = first is not None and state.shape(first) == state.shape(output)
        state.put(output, state.of(first) if fits else [])


def created(state: Propagation, node: Node) -> None:
    """Propagate channels from a tensor of equal elements, which may have any size: create slots."""
    for output in node.outputs:
        state.put(output, state.fresh(state.shape(output)))


def fixed(state: Propagation, node: Node) -> None:
    """Propagate no channels: the outputs have a fixed size."""
    for output in node.outputs:
        state.put(output, [])


def reshape(state: Propagation, node: Node) -> None:
    """Propagate channels through a reshape, which merges and splits axes."""
    source = node.args["self"]
    output = node.outputs[0]
    before, after = state.shape(source), state.shape(output)
    groups = axis_groups(before, after)
    if groups is None:
        freeze_inputs(state, node)
        return
    found = []
    for block in state.of(source):
        number, (_, outs) = next(
            (place, group) for place, group in enumerate(groups) if block.axis in group[0]
        )
        if _interleaved(state, block, groups[number][0]):
            state.freeze(node, block.ids, "channels of several rows are interleaved")
            state.interleaved.append(block.ids.ravel())
        ids = regrouped(block.ids, before, after, groups)
        if len(outs) == 1:
            found.append(Block(outs[0], ids))
        else:
            found.append(_split(state, node, number, ids, outs))
    state.put(output, found)


def _interleaved(state: Propagation, block: Block, group: Sequence[int]) -> bool:
    """Return whether a merge would mix rows with different slots: their order would change."""
    inner = [axis for axis in block.rows() if axis in group and axis > block.axis]
    ids = state.slots.find(block.ids)
    return any(not (ids == ids.take([0], axis=axis)).all() for axis in inner)


def _split(state: Propagation, node: Node, number: int, ids: Ids, axes: list[int]) -> Block:
    """Choose which of the new axes shrinks; unite the slots inside it, balance those around it."""
    sizes, whole = tuple(ids.shape[axis] for axis in axes), ids.ravel()
    key = (node.index, number)
    candidates = _candidates(ids, axes)
    chosen = state.choices.get(key, candidates[0])
    axis = axes[chosen]
    for inner in axes[chosen + 1 :]:
        first = ids.take([0], axis=inner)
        state.slots.unite(ids, first)
        ids = first
    block = compressed(Block(axis, ids))
    state.balance(block.flat())
    if len(candidates) > 1:
        state.splits.append(AxisSplit(key, node.module, sizes, candidates, chosen, whole))
    return block


def _candidates(ids: Ids, axes: list[int]) -> list[int]:
    """Return the places of the axes that may shrink, best first.

    If the slots repeat inside the last axes, they were split before, and the same axis is right; or
    they are the channels of patches, of which groups may go, too.
    """
    varying = [one for one, axis in enumerate(axes) if _varies(ids, axis, axes[one + 1 :])]
    if varying and varying[-1] < len(axes) - 1:
        return varying[::-1]
    return sorted(varying or range(len(axes)), key=lambda place: -ids.shape[axes[place]])


def _varies(ids: Ids, axis: int, inner: Sequence[int]) -> bool:
    """Return whether slots differ along an axis; slots that repeat along it do not."""
    for one in inner:
        ids = ids.take([0], axis=one)
    return ids.shape[axis] > 1 and not bool((ids == ids.take([0], axis=axis)).all())


def permute(state: Propagation, node: Node) -> None:
    """Propagate channels through a permutation of the axes."""
    source = node.args["self"]
    rank = len(state.shape(source))
    if "dims" in node.args:
        order = [axis % rank for axis in node.args["dims"]]
    else:
        order = list(range(rank))
        first, second = node.args.get("dim0", 0), node.args.get("dim1", 1)
        if rank > 1:
            order[first], order[second] = order[second], order[first]
    state.put(node.outputs[0], [permuted(block, order) for block in state.of(source)])


def expand(state: Propagation, node: Node) -> None:
    """Propagate channels through an expansion, which repeats axes of size 1."""
    rank = len(state.shape(node.outputs[0]))
    state.put(node.outputs[0], [lifted(block, rank) for block in state.of(node.args["self"])])


def repeat(state: Propagation, node: Node) -> None:
    """Propagate channels through a repetition of whole axes."""
    shape = state.shape(node.outputs[0])
    found = []
    for block in state.of(node.args["self"]):
        wide = lifted(block, len(shape))
        times = [
            times if wide.ids.shape[axis] > 1 else 1
            for axis, times in enumerate(node.args["repeats"])
        ]
        found.append(Block(wide.axis, np.tile(wide.ids, times)))
    state.put(node.outputs[0], found)


def take_slice(state: Propagation, node: Node) -> None:
    """Propagate channels through a slice of one axis; a single index freezes the axis."""
    source = node.args["self"]
    shape = state.shape(source)
    axis = node.args["dim"] % len(shape)
    start, end = node.args["start"] or 0, node.args["end"]
    if state.shape(node.outputs[0])[axis] == 1:
        state.freeze_axes(node, source, [axis], "single indices are taken from it")
    whole = slice(start, None if end is None or end >= END else end, node.args["step"])
    state.put(node.outputs[0], _indexed(state, source, axis, whole))


def narrow(state: Propagation, node: Node) -> None:
    """Propagate channels through a range of indices of one axis."""
    source = node.args["self"]
    axis = node.args["dim"] % len(state.shape(source))
    start = node.args["start"]
    taken = slice(start, start + node.args["length"])
    state.put(node.outputs[0], _indexed(state, source, axis, taken))


def _indexed(state: Propagation, source: Ref, axis: int, taken: slice) -> list[Block]:
    index: list[slice] = [slice(None)] * len(state.shape(source))
    index[axis] = taken
    return [
        Block(block.axis, block.ids[tuple(index)] if block.ids.shape[axis] > 1 else block.ids)
        for block in state.of(source)
    ]


def select(state: Propagation, node: Node) -> None:
    """Propagate channels through a selection of single indices: that axis is frozen."""
    source = node.args["self"]
    axis = node.args["dim"] % len(state.shape(source))
    state.freeze_axes(node, source, [axis], "single indices are taken from it")
    chosen = [node.args["index"]] if "index" in node.args else range(len(node.outputs))
    for output, index in zip(node.outputs, chosen, strict=True):
        found = []
        for block in state.of(source):
            if block.axis != axis:
                place = index if block.ids.shape[axis] > 1 else 0
                ids = block.ids.take([place], axis=axis).squeeze(axis)
                found.append(Block(block.axis - (block.axis > axis), ids))
        state.put(output, found)


def split(state: Propagation, node: Node) -> None:
    """Propagate channels through a split of an axis; equal parts stay equal."""
    source = node.args["self"]
    axis = node.args["dim"] % len(state.shape(source))
    sizes = [state.shape(output)[axis] for output in node.outputs]
    cuts = [0, *np.cumsum(sizes).tolist()]
    block = state.at(source, axis)
    if block is not None and len(set(sizes)) == 1:
        state.balance(block.flat().reshape(-1, sizes[0]))
    for output, start, end in zip(node.outputs, cuts, cuts[1:], strict=False):
        state.put(output, _indexed(state, source, axis, slice(start, end)))


def concatenate(state: Propagation, node: Node) -> None:
    """Propagate channels through a concatenation along an axis; the other axes are tied."""
    tensors: list[Ref] = [
        one for one in node.args["tensors"] if state.shape(one) != (0,)
    ]  # torch ignores empty vectors, as caches of keys begin with
    shape = state.shape(node.outputs[0])
    axis = node.args["dim"] % len(shape)
    operands = []
    for one in tensors:
        others = [block for block in state.of(one) if block.axis != axis]
        own = (*state.shape(one)[:axis], 1, *state.shape(one)[axis + 1 :])
        plain = [block for block in others if block.ids.shape[axis] == 1]
        operands.append((plain, own))
        for block in others:
            if block.ids.shape[axis] > 1:
                state.freeze(node, block.ids, "rows with different channels are joined")
    base = (*shape[:axis], 1, *shape[axis + 1 :])
    found = state.tie(node, operands, base)
    joined = _joined(state, node, tensors, axis)
    state.put(node.outputs[0], found if joined is None else [*found, joined])


def _joined(state: Propagation, node: Node, tensors: Sequence[Ref], axis: int) -> Block | None:
    """Return the block along a joined axis, fixed parts frozen; None if no tensor has one."""
    blocks = [state.at(one, axis) for one in tensors]
    if not any(block is not None for block in blocks):
        return None
    parts = []
    for one, block in zip(tensors, blocks, strict=True):
        shape = [1] * len(state.shape(one))
        shape[axis] = state.shape(one)[axis]
        if block is None:
            ids = state.slots.new(shape[axis]).reshape(shape)
            state.freeze(node, ids, "a part of fixed size is joined to it")
            parts.append(ids)
        else:
            parts.append(block.ids)
    wide = list(np.broadcast_shapes(*[tuple(_without(part.shape, axis)) for part in parts]))
    wide[axis] = -1
    full = [
        np.broadcast_to(part, [part.shape[axis] if one == -1 else one for one in wide])
        for part in parts
    ]
    return Block(axis, np.concatenate(full, axis=axis))


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [1 if one == axis else size for one, size in enumerate(shape)]


def stack(state: Propagation, node: Node) -> None:
    """Propagate channels through a stack along a new axis; the tensors are tied."""
    tensors: list[Ref] = node.args["tensors"]
    own = state.shape(tensors[0])
    axis = node.args["dim"] % (len(own) + 1)
    found = state.tie(node, [(state.of(one), own) for one in tensors], own)
    blocks = [
        Block(block.axis + (block.axis >= axis), np.expand_dims(block.ids, axis)) for block in found
    ]
    state.put(node.outputs[0], blocks)


def reorder(state: Propagation, node: Node) -> None:
    """Propagate channels through a flip or roll: the reordered axes are frozen."""
    source = node.args["self"]
    rank = len(state.shape(source))
    axes = [axis % rank for axis in node.args["dims"]] or list(range(rank))
    state.freeze_axes(node, source, axes, "its elements are reordered")
    found = [block for block in state.of(source) if block.axis not in axes]
    rows = [block for block in found if any(row in axes for row in block.rows())]
    for block in rows:
        state.freeze(node, block.ids, "its rows are reordered")
    state.put(node.outputs[0], [block for block in found if block not in rows])


def pad(state: Propagation, node: Node) -> None:
    """Propagate channels through padding: padded slots are frozen, and a cropped axis."""
    source = node.args["self"]
    shape, widths = state.shape(source), node.args["pad"]
    rank = len(shape)
    found = []
    for block in state.of(source):
        place = 2 * (rank - 1 - block.axis)
        before, after = widths[place : place + 2] if place < len(widths) else (0, 0)
        if any(any(widths[2 * (rank - 1 - row) : 2 * (rank - row)]) for row in block.rows()):
            state.freeze(node, block.ids, "its rows are padded")
            continue
        if min(before, after) < 0:
            state.freeze(node, block.ids, "it is cropped")
            continue
        ids = block.ids
        for width, first in ((before, True), (after, False)):
            if width:
                new = state.slots.new(width)
                state.freeze(node, new, "it is padding")
                part = np.broadcast_to(
                    new.reshape([-1 if one == block.axis else 1 for one in range(rank)]),
                    [width if one == block.axis else size for one, size in enumerate(ids.shape)],
                )
                ids = np.concatenate([part, ids] if first else [ids, part], axis=block.axis)
        found.append(Block(block.axis, ids))
    state.put(node.outputs[0], found)


def restride(state: Propagation, node: Node) -> None:
    """Propagate channels through a change of strides; one of sizes freezes them."""
    source = node.args["self"]
    if tuple(node.args["size"]) == state.shape(source) and not node.args["storage_offset"]:
        same(state, node)
    else:
        freeze_inputs(state, node)


def pixel_shuffle(state: Propagation, node: Node) -> None:
    """Propagate channels through a pixel shuffle: a group of channels is one unit."""
    source = node.args["self"]
    shape = state.shape(source)
    axis = len(shape) - 3
    factor = math.prod(state.shape(node.outputs[0])[-2:]) // math.prod(shape[-2:])
    state.freeze_axes(node, source, [axis + 1, axis + 2], "pixels are rearranged")
    ids = state.line(node, source, axis)
    _put_line(state, node, axis, None if ids is None else _units(state, ids, factor))


def unfold_patches(state: Propagation, node: Node) -> None:
    """Propagate channels through patches: each fills as many features as a patch has pixels."""
    source = node.args["self"]
    axis = len(state.shape(source)) - 3
    state.freeze_axes(node, source, [axis + 1, axis + 2], "patches of pixels are taken")
    ids = state.line(node, source, axis)
    pixels = math.prod(node.args["kernel_size"])
    _put_line(state, node, axis, None if ids is None else np.repeat(ids, pixels))


def fold_patches(state: Propagation, node: Node) -> None:
    """Propagate channels through the sum of patches: the features of a channel are one unit."""
    source = node.args["self"]
    axis = len(state.shape(source)) - 2
    state.freeze_axes(node, source, [axis + 1], "patches of pixels are summed")
    ids = state.line(node, source, axis)
    pixels = math.prod(node.args["kernel_size"])
    _put_line(state, node, axis, None if ids is None else _units(state, ids, pixels))


def _units(state: Propagation, ids: Ids, size: int) -> Ids:
    """Unite the slots of each run of a size; return one slot of each run."""
    runs = ids.reshape(-1, size)
    state.slots.unite(runs, runs[:, :1])
    return runs[:, 0]


def _put_line(state: Propagation, node: Node, axis: int, ids: Ids | None) -> None:
    """Set the vector of slots of one axis of the output; all others are fixed."""
    shape = [1] * len(state.shape(node.outputs[0]))
    if ids is not None:
        shape[axis] = len(ids)
    state.put(node.outputs[0], [] if ids is None else [Block(axis, ids.reshape(shape))])


def _rules() -> dict[str, Rule]:
    table: dict[Rule, str] = {
        same: "alias detach clone _to_copy contiguous lift_fresh lift_fresh_copy native_dropout "
        "dropout bernoulli zeros_like ones_like full_like empty_like rand_like randn_like fill_ "
        "zero_ fill zero triu tril positive channels_last_contiguous feature_dropout to "
        "_conj conj resolve_conj bernoulli_ uniform_ normal_ detach_",
        created: "zeros ones full empty new_zeros new_ones new_full new_empty",
        fixed: "arange linspace eye scalar_tensor rand randn randint randperm empty_strided "
        "new_empty_strided _local_scalar_dense",
        reshape: "view _unsafe_view reshape _reshape_alias view_copy squeeze squeeze_ unsqueeze "
        "unsqueeze_ flatten unflatten _reshape_copy squeeze_copy unsqueeze_copy",
        permute: "permute transpose t transpose_ t_ numpy_T permute_copy transpose_copy t_copy",
        expand: "expand expand_copy broadcast_to expand_as",
        repeat: "repeat",
        take_slice: "slice slice_copy",
        narrow: "narrow narrow_copy",
        select: "select unbind select_copy unbind_copy",
        split: "split split_with_sizes unsafe_split unsafe_split_with_sizes chunk unsafe_chunk "
        "split_copy split_with_sizes_copy",
        concatenate: "cat concat concatenate",
        stack: "stack",
        reorder: "flip roll",
        pad: "constant_pad_nd",
        restride: "as_strided as_strided_",
        pixel_shuffle: "pixel_shuffle",
        unfold_patches: "im2col",
        fold_patches: "col2im",
    }
    return {f"aten.{name}": rule for rule, names in table.items() for name in names.split()}


RULES: Final = _rules()
"""Rule by operation."""
