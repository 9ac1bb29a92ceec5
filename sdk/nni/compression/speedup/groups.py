"""Dependency groups of a model: which channels are removed together, and which cannot be.

`Dependencies` is the summary of a propagation that planning and removal need. A *unit* is a set of
channels, rows and columns that go together, such as an output filter, its bias, its norm and the
matching input channel of the next layer. A *group* is a set of units of equal structure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from nni.compression.speedup.caches import clear_caches
from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.graph import Inputs, OperationGraph
from nni.compression.speedup.layer_rules import RULES
from nni.compression.speedup.propagation import Propagation, Sink, propagate
from nni.compression.speedup.recording import capture
from nni.compression.speedup.slots import Block, Flags, Ids

SourceAxis = tuple[str, int]
"""Name of a parameter or buffer, and an axis of it."""


@dataclass(frozen=True, slots=True)
class ChannelGroup:
    """Group of coupled-channel units, each of which shortens the same axes of the same parameters.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import find_dependencies
        >>> model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> [group] = find_dependencies(model, torch.zeros(1, 3)).groups()
        >>> len(group.units), group.axes
        (8, (('0.weight', 0), ('0.bias', 0), ('2.weight', 1)))
    """

    units: Ids
    """Representatives of the units, in the order of their channels."""
    axes: tuple[SourceAxis, ...]
    """Axes of parameters and buffers that lose one or more indices with each unit."""


@dataclass
class Dependencies:
    """Coupled-channel units of a model: axes that each shrinks, balances, frozen ones with reasons.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import find_dependencies
        >>> model = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.Linear(8, 2))
        >>> dependencies = find_dependencies(model, torch.zeros(1, 3))
        >>> dependencies.groups()
        []
        >>> dependencies.reasons()["1.weight"]
        'its mean and variance would change; allow_norm_change=True permits that (...)'
    """

    graph: OperationGraph
    """The recorded run."""
    roots: Ids
    """Representative of the unit of each slot."""
    blocks: dict[str, list[Block]]
    """Slots of the axes of each parameter and buffer that the run used."""
    balances: list[Ids]
    """Units by row; every row keeps the same number."""
    sinks: list[Sink]
    """Places where channels are summed against weights."""
    frozen: Flags
    """By representative: whether the unit cannot be removed."""
    causes: dict[int, str] = field(default_factory=dict)
    """First reason for each frozen representative."""
    value_blocks: dict[int, list[Block]] = field(default_factory=dict)
    """Slots of the axes of every value of the graph."""
    changed_norms: tuple[str, ...] = ()
    """Modules whose statistics change when units are removed."""

    def free(self) -> Ids:
        """Return the representatives of the coupled-channel units that are not frozen.

        Returns:
            Sorted numbers.
        """
        named = [self.roots[block.ids].ravel() for own in self.blocks.values() for block in own]
        units = np.unique(np.concatenate(named)) if named else np.zeros(0, dtype=np.int64)
        return units[~self.frozen[units]]

    def groups(self) -> list[ChannelGroup]:
        """Group the removable units of coupled channels by the parameter axes that they shorten.

        Returns:
            Each removable unit is in exactly one group.
        """
        axes: list[SourceAxis] = []
        units: list[Ids] = [np.zeros(0, dtype=np.int64)]
        for name, blocks in self.blocks.items():
            for block in blocks:
                units.append(np.unique(self.roots[block.ids]))
                axes.append((name, block.axis))
        places = np.repeat(np.arange(len(axes)), [len(one) for one in units[1:]])
        joined = np.concatenate(units)
        order = np.argsort(joined, kind="stable")
        joined, places = joined[order], places[order].astype(np.int64)
        members: dict[bytes, list[int]] = defaultdict(list)
        free = self.free()
        starts, ends = (np.searchsorted(joined, free, side) for side in ("left", "right"))
        for unit, start, end in zip(free.tolist(), starts.tolist(), ends.tolist(), strict=True):
            members[places[start:end].tobytes()].append(unit)
        return [
            ChannelGroup(
                np.array(own, dtype=np.int64),
                tuple(axes[place] for place in np.frombuffer(key, dtype=np.int64)),
            )
            for key, own in members.items()
        ]

    def reasons(self) -> dict[str, str]:
        """Return by name why parameters cannot shrink along any axis.

        Returns:
            First reason by name of the parameter, for parameters with no removable index at all.
        """
        found = {}
        for name, blocks in self.blocks.items():
            units = [np.unique(self.roots[block.ids]) for block in blocks]
            if units and all(self.frozen[one].all() for one in units):
                found[name] = self.causes[int(units[0][0])]
        return found

    def freeze(self, units: Ids, reason: str) -> None:
        """Exclude units from removal; the first reason for a unit stays.

        Args:
            units: Representatives.
            reason: Text for the report.
        """
        for unit in np.unique(units).tolist():
            self.causes.setdefault(unit, reason)
        self.frozen[units] = True

    def units_of_module(self, path: str) -> Ids:
        """Return the coupled-channel units of a module and its submodules, without the frozen ones.

        Args:
            path: Path of the module; operations of its submodules count too.

        Returns:
            Representatives.
        """
        names = [name for name in self.blocks if name.startswith(f"{path}." if path else "")]
        found = [self.roots[block.ids].ravel() for name in names for block in self.blocks[name]]
        units = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
        return units[~self.frozen[units]]

    def units_of_node(self, index: int) -> Ids:
        """Return the coupled-channel units of an operation's inputs and outputs, if not frozen.

        Args:
            index: Index of its node.

        Returns:
            Representatives.
        """
        node = self.graph.nodes[index]
        values = [*node.inputs(), *node.outputs]
        blocks = [block for one in values for block in self.value_blocks.get(one, [])]
        found = [self.roots[block.ids].ravel() for block in blocks]
        units = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
        return units[~self.frozen[units]]


def summarise(state: Propagation) -> Dependencies:
    """Return the units of a propagation, with what is frozen and why, and their balances."""
    roots = state.slots.roots()
    frozen = np.zeros(len(roots), dtype=bool)
    causes: dict[int, str] = {}
    for one in sorted(state.freezes, key=lambda freeze: freeze.node):
        units = np.unique(roots[one.ids])
        frozen[units] = True
        for unit in units.tolist():
            causes.setdefault(unit, one.reason)
    balances = []
    for rows in state.balances:
        units = roots[rows]
        ordered = np.sort(units, axis=1)
        if not (ordered == ordered[:1]).all():
            balances.append(units)
    blocks = {
        value.source: state.blocks[value.index]
        for value in state.graph.values
        if value.source is not None and state.blocks.get(value.index)
    }
    norms = tuple(dict.fromkeys(state.changed_norms))
    return Dependencies(
        state.graph, roots, blocks, balances, state.sinks, frozen, causes, state.blocks, norms
    )


def find_dependencies(
    model: nn.Module,
    inputs: Inputs,
    *,
    allow_norm_change: bool = False,
    deadline: Deadline | None = None,
) -> Dependencies:
    """Clear a model's caches, record one run, and return its dependency groups.

    Args:
        model: The model, which runs once in eval mode and is the same afterwards; its caches of
            tensors are cleared.
        inputs: Example inputs: a tensor, a list or tuple, or a dict by name.
        allow_norm_change: Whether axes that a LayerNorm or GroupNorm normalises may shrink, which
            changes the statistics and so the function.
        deadline: Instant after which the rest of the model is left as it is, with this reason;
            None means no limit.

    Returns:
        The units, their groups, and what cannot be removed with the reason.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import find_dependencies
        >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
        >>> dependencies = find_dependencies(model, torch.zeros(1, 3, 8, 8))
        >>> [len(group.units) for group in dependencies.groups()]
        [4]
    """
    clear_caches(model, inputs)
    graph = capture(model, inputs)
    state = propagate(graph, RULES, allow_norm_change=allow_norm_change, deadline=deadline)
    return summarise(state)
