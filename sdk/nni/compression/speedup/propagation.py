"""Forward propagation of slots through a recorded graph.

`Propagation` visits the nodes in order. A rule per operation, found in `RULES`, maps the blocks of
the inputs to the blocks of the outputs and states what must be removed together (`tie`), what
cannot be removed (`freeze`), which rows must keep equal counts (`balance`) and where a channel is
summed against weights (`Sink`). An operation without a rule freezes its inputs.

Where a reshape splits a shrinkable axis, as heads are split from features, one of the new axes can
shrink. The largest one is tried first. If slots of the split turn out frozen, the next axis is
tried in another pass over the graph; the axis that leaves most slots free is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.graph import Node, OperationGraph, Ref
from nni.compression.speedup.slots import Block, Ids, Slots, compressed, lifted

Rule = Callable[["Propagation", Node], None]
Shape = tuple[int, ...]
SplitKey = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sink:
    """Contraction of an axis of activations with one of weights: slots, and slots of outputs."""

    node: int
    ids: Ids
    """Slots of the contracted axis; shape (K,)."""
    row_ids: Ids
    """Slots of the outputs that each index contributes to; shape (K, M)."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """Slots that cannot be removed, and why."""

    ids: Ids
    node: int
    """Index of the node that decided it; -1 for outputs of the model."""
    reason: str


@dataclass(slots=True)
class AxisSplit:
    """Reshape of a shrinkable axis into several: the axes that may shrink, and the chosen one."""

    key: SplitKey
    module: str
    sizes: Shape
    candidates: list[int]
    """Places in `sizes`, best first."""
    chosen: int
    ids: Ids


@dataclass
class Propagation:
    """State of one pass over a graph: slots by value, conditions found, and rules' operations."""

    graph: OperationGraph
    choices: Mapping[SplitKey, int] = field(default_factory=dict)
    """Place of the axis that shrinks in the sizes of a split, where it is not the first one."""
    allow_norm_change: bool = False
    deadline: Deadline = field(default_factory=lambda: Deadline(None))
    slots: Slots = field(default_factory=Slots)
    blocks: dict[int, list[Block]] = field(default_factory=dict)
    static: set[int] = field(default_factory=set)
    """Values that depend on parameters, buffers and constants only."""
    freezes: list[Freeze] = field(default_factory=list)
    balances: list[Ids] = field(default_factory=list)
    """Arrays of shape (rows, n): each row keeps the same number of slots."""
    sinks: list[Sink] = field(default_factory=list)
    splits: list[AxisSplit] = field(default_factory=list)
    interleaved: list[Ids] = field(default_factory=list)
    """Frozen slots for which no other axis is tried."""
    changed_norms: list[str] = field(default_factory=list)
    """Normalisations whose statistics change by a removal, under `allow_norm_change`."""

    def run(self, rules: Mapping[str, Rule]) -> None:
        """Visit all nodes by their rules; after the deadline, freeze the inputs of the rest.

        Args:
            rules: Rule by operation; elementwise operations need none.
        """
        for value in self.graph.values:
            if not value.computed and value.index not in self.graph.inputs:
                self.static.add(value.index)
        late = False
        for node in self.graph.nodes:
            inputs = node.inputs()
            if all(one in self.static for one in inputs):
                self.static.update(node.outputs)
            late = late or self.deadline.passed()
            if late:
                freeze_inputs(self, node, self.deadline.reason)
            else:
                rules.get(node.op, elementwise if node.pointwise else freeze_inputs)(self, node)
        for index in self.graph.outputs:
            for block in self.of(index):
                self.freeze(-1, block.ids, "it is an output of the model")

    # What rules read

    def shape(self, value: Ref | int) -> Shape:
        """Return the shape of a value."""
        return self.graph.values[value.index if isinstance(value, Ref) else value].shape

    def of(self, value: Ref | int | None) -> list[Block]:
        """Return the blocks of a value, empty if fixed; a parameter gets slots when first used."""
        if value is None:
            return []
        index = value.index if isinstance(value, Ref) else value
        if index not in self.blocks:
            found = self.graph.values[index]
            named = found.source is not None and found.floating
            self.blocks[index] = self.fresh(found.shape) if named else []
        return self.blocks[index]

    def at(self, value: Ref | int | None, axis: int) -> Block | None:
        """Return the block of one axis of a value; None if that axis has none."""
        return next((block for block in self.of(value) if block.axis == axis), None)

    def fresh(self, shape: Sequence[int]) -> list[Block]:
        """Return blocks of new slots for all axes of a shape."""
        found = []
        for axis, size in enumerate(shape):
            if size > 1:
                full = [1] * len(shape)
                full[axis] = size
                found.append(Block(axis, self.slots.new(size).reshape(full)))
        return found

    # What rules state

    def put(self, value: int, blocks: Sequence[Block]) -> None:
        """Set the blocks of a value; freeze slots that contradict each other."""
        shape = self.shape(value)
        kept: list[Block] = []
        for block in sorted(map(compressed, blocks), key=lambda one: len(one.rows())):
            same = [one for one in kept if one.axis == block.axis]
            crossed = [one for one in kept if one.axis in block.rows()]
            if shape[block.axis] == 1:
                self.freeze(len(self.graph.nodes), block.ids, "a single index is taken from it")
            elif block.ids.shape[block.axis] != shape[block.axis] or same or crossed:
                self.freeze(len(self.graph.nodes), block.ids, "two axes that shrink are mixed")
            else:
                kept.append(block)
        self.blocks[value] = kept

    def freeze(self, node: Node | int, ids: Ids, reason: str) -> None:
        """Record slots that cannot be removed, with the reason."""
        if isinstance(node, Node):
            self.freezes.append(Freeze(ids.ravel(), node.index, f"{reason} ({node.describe()})"))
        else:
            self.freezes.append(Freeze(ids.ravel(), node, reason))

    def freeze_axes(self, node: Node, value: Ref, axes: Sequence[int], reason: str) -> None:
        """Exclude the slots of axes of a value from removal."""
        for block in self.of(value):
            if block.axis in axes:
                self.freeze(node, block.ids, reason)

    def balance(self, rows: Ids) -> None:
        """Require that each row of slots keeps the same number."""
        if rows.shape[0] > 1:
            self.balances.append(rows)

    def tie(
        self, node: Node, operands: Sequence[tuple[Sequence[Block], Shape]], shape: Shape
    ) -> list[Block]:
        """Unite the slots of broadcast operands; return the blocks of the result.

        Args:
            node: The operation, for messages.
            operands: Blocks and shape of each operand.
            shape: Shape of the result.

        Returns:
            One block for each axis that all operands can shrink.
        """
        rank = len(shape)
        lifts = [
            ([lifted(one, rank) for one in blocks], (1,) * (rank - len(own)) + tuple(own))
            for blocks, own in operands
        ]
        found = []
        for axis in range(rank):
            wide = [blocks for blocks, own in lifts if own[axis] == shape[axis] != 1]
            members = [one for blocks in wide for one in blocks if one.axis == axis]
            if not members:
                continue
            ids = members[0].ids
            for other in members[1:]:
                self.slots.unite(ids, other.ids)
                if ids.size < other.ids.size:
                    ids = other.ids
                if ids.shape != np.broadcast_shapes(ids.shape, other.ids.shape):
                    ids = np.broadcast_arrays(ids, other.ids)[0]
            if len(members) == len(wide):
                found.append(Block(axis, ids))
            else:
                self.freeze(node, ids, "it meets a tensor of fixed size")
        return found

    def line(self, node: Node, value: Ref, axis: int) -> Ids | None:
        """Return the slots of an axis as a vector; None if the axis is fixed.

        Slots that differ between rows are frozen, because weights are shared by all rows.
        """
        block = self.at(value, axis)
        if block is None:
            return None
        rows = block.flat()
        if len(rows) > 1 and not (self.slots.find(rows) == self.slots.find(rows[:1])).all():
            self.freeze(node, block.ids, "rows with different channels meet shared weights")
            return None
        first: Ids = rows[0]
        return first

    def join(self, node: Node, left: Ids | None, right: Ids | None, reason: str) -> Ids | None:
        """Unite two slot vectors, return one; if one is None, freeze the other, return None."""
        if left is not None and right is not None:
            self.slots.unite(left, right)
            return left
        for one in (left, right):
            if one is not None:
                self.freeze(node, one, reason)
        return None


def elementwise(state: Propagation, node: Node) -> None:
    """Propagate channels through an elementwise operation: tie all its tensors."""
    shape = state.shape(node.outputs[0])
    operands = [(state.of(index), state.shape(index)) for index in dict.fromkeys(node.inputs())]
    blocks = state.tie(node, operands, shape)
    for output in node.outputs:
        state.put(output, blocks)


def freeze_inputs(
    state: Propagation, node: Node, reason: str = "no rule for this operation"
) -> None:
    """Freeze the inputs of an operation, by default since it has no rule; its outputs are fixed."""
    for index in node.inputs():
        for block in state.of(index):
            state.freeze(node, block.ids, reason)
    for output in node.outputs:
        state.put(output, [])


def propagate(
    graph: OperationGraph,
    rules: Mapping[str, Rule],
    *,
    allow_norm_change: bool = False,
    deadline: Deadline | None = None,
) -> Propagation:
    """Return the slots of a graph under the best choice of axis for each split.

    Args:
        graph: The recorded operations.
        rules: Rule by operation.
        allow_norm_change: Whether axes that a LayerNorm or GroupNorm normalises may shrink.
        deadline: Instant after which the rest of the graph is frozen; None means no limit.

    Returns:
        The last pass over the graph.
    """
    deadline = Deadline(None) if deadline is None else deadline
    state = _passed(graph, {}, rules, allow_norm_change, deadline)
    splits = state.splits
    best = _scores(state, splits)
    used: dict[SplitKey, int] = {}
    for choices in _trials(splits, state):
        if all(one.complete for one in best.values()):
            break
        trial = _passed(graph, choices, rules, allow_norm_change, deadline)
        if deadline.passed():
            return state  # the trial may have been cut short
        state, used = trial, choices
        for module, score in _scores(state, splits).items():
            if score.value > best[module].value:
                best[module] = score
    chosen = {key: place for one in best.values() for key, place in one.places.items()}
    if all(used.get(key) == place for key, place in chosen.items()) or deadline.passed():
        return state
    final = _passed(graph, chosen, rules, allow_norm_change, deadline)
    return state if deadline.passed() else final


def _passed(
    graph: OperationGraph,
    choices: Mapping[SplitKey, int],
    rules: Mapping[str, Rule],
    allow_norm_change: bool,  # noqa: FBT001 - the order of the fields of Propagation
    deadline: Deadline,
) -> Propagation:
    """Run the rules once over the graph with some choices of axes; return the propagation."""
    state = Propagation(graph, choices, allow_norm_change, deadline)
    state.run(rules)
    return state


@dataclass(frozen=True, slots=True)
class _Score:
    """Score of one choice of axes for the splits of a module: free slots, then sizes."""

    value: tuple[int, int]
    """Number of free slots, and the sizes of the chosen axes."""
    complete: bool
    places: dict[SplitKey, int]


def _scores(state: Propagation, splits: Sequence[AxisSplit]) -> dict[str, _Score]:
    """Return a score of the pass's choices for each module."""
    frozen = np.zeros(state.slots.count, dtype=bool)
    for one in state.freezes:
        frozen[state.slots.find(one.ids)] = True
    for ids in state.interleaved:  # no other axis helps
        frozen[state.slots.find(ids)] = False
    found = {}
    now = {one.key: one for one in state.splits}
    for module in dict.fromkeys(one.module for one in splits):
        own = [now[one.key] for one in splits if one.module == module and one.key in now]
        flags = [~frozen[state.slots.find(one.ids)] for one in own]
        free = sum(int(one.sum()) for one in flags)
        sizes = sum(one.sizes[one.chosen] for one in own)
        places = {one.key: one.chosen for one in own}
        found[module] = _Score((free, sizes), all(one.all() for one in flags), places)
    return found


def _trials(splits: Sequence[AxisSplit], state: Propagation) -> list[dict[SplitKey, int]]:
    """Return choices to try: the last, second or third axis from the end of each split.

    First only the splits whose slots no later split shares are varied, then all.
    """
    later = np.zeros(state.slots.count, dtype=bool)
    last = []
    for split in reversed(splits):
        roots = state.slots.find(split.ids)
        if not later[roots].any():
            last.append(split)
        later[roots] = True
    return [
        {one.key: _nearest(one, place) for one in varied}
        for varied, places in ((last, (1, 2, 3)), (splits, (1, 2, 3)))
        for place in places
    ]


def _nearest(split: AxisSplit, place: int) -> int:
    """Return the candidate that is nearest to a place counted from the end."""
    wanted = len(split.sizes) - place
    return min(split.candidates, key=lambda one: abs(one - wanted))
