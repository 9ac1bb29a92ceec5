"""Layers that share channels: sets of them, and the groups that their channels fall into.

A layer is a convolution, a Linear or a batch norm. Its channels belong to units of `Dependencies`;
layers that have a unit in common can lose that channel only together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from nni.compression.speedup.graph import Node, Ref
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.slots import Ids

Kinds = tuple[type[nn.Module], ...]

FILTERS: Final[Kinds] = (_ConvNd, nn.Linear)
"""Types of layers that have output channels of their own."""
NORMS: Final[Kinds] = (_BatchNorm,)
"""Types of layers that scale channels."""

_PRODUCTS: Final = frozenset(
    f"aten.{name}" for name in ("convolution", "linear", "mm", "addmm", "bmm", "baddbmm")
)


_MOST_CHANNELS: Final = 2**32
"""Distance of the numbers of two values without units."""


@dataclass(frozen=True, slots=True)
class LayerChannels:
    """Units of the output and the input channels of a layer, and its number of groups.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import find_dependencies
        >>> from nni.compression.speedup.dependency import layer_channels
        >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
        >>> layers = layer_channels(model, find_dependencies(model, torch.zeros(1, 3)))
        >>> [(one.name, len(one.units), len(one.input_units)) for one in layers]
        [('0', 2, 3), ('2', 1, 2)]
    """

    name: str
    """Dotted name of the module."""
    units: Ids
    """Unit of each output channel; negative if the tensor has a fixed size."""
    input_units: Ids
    """Unit of each input channel, or feature of a Linear; negative likewise."""
    groups: int
    """Groups of a convolution, else 1."""
    depthwise: bool
    """Whether each output channel is computed from one input channel of the same unit."""


def is_depthwise(module: nn.Module) -> bool:
    """Return whether a module is a convolution with one input channel a group.

    Args:
        module: any module.
    """
    return isinstance(module, _ConvNd) and module.groups == module.in_channels > 1


def layer_channels(
    model: nn.Module, dependencies: Dependencies, kinds: Kinds = FILTERS
) -> list[LayerChannels]:
    """Return the channels of a model's layers: in running order, then those that did not run.

    Args:
        model: The model.
        dependencies: What `find_dependencies` returned for it.
        kinds: Types of the layers.

    Returns:
        All layers of these types: in the order in which they ran, then those that did not run.
    """
    nodes: dict[str, Node] = {}
    for node in dependencies.graph.nodes:
        if node.op in _PRODUCTS or "batch_norm" in node.op:
            nodes.setdefault(node.module, node)
    modules = {name: one for name, one in model.named_modules() if isinstance(one, kinds)}
    ran = [name for name in nodes if name in modules]
    idle = [name for name in modules if name not in nodes]
    unused = len(dependencies.graph.values)
    return [
        *(_channels(name, modules[name], dependencies, nodes[name]) for name in ran),
        *(_own_channels(name, modules[name], unused + 2 * at) for at, name in enumerate(idle)),
    ]


def _channels(
    name: str, module: nn.Module, dependencies: Dependencies, node: Node
) -> LayerChannels:
    """Return the channels of a layer that ran."""
    source = node.args.get("input", node.args.get("mat1", node.args.get("self")))
    assert isinstance(source, Ref)
    axis = -1 if isinstance(module, nn.Linear) else 1
    own = _own_channels(name, module, 0)
    return replace(
        own,
        units=_units_of(dependencies, node.outputs[0], axis, len(own.units)),
        input_units=_units_of(dependencies, source.index, axis, len(own.input_units)),
    )


def _own_channels(name: str, module: nn.Module, value: int) -> LayerChannels:
    """Return the channels of a layer that shares none, numbered by a value and the next one."""
    inputs, outputs = _widths(module)
    groups = module.groups if isinstance(module, _ConvNd) else 1
    return LayerChannels(
        name, _numbered(value, outputs), _numbered(value + 1, inputs), groups, is_depthwise(module)
    )


def _numbered(value: int, count: int) -> Ids:
    """Return negative numbers that represent the channels of a value without units."""
    return -1 - value * _MOST_CHANNELS - np.arange(count)


def _widths(module: nn.Module) -> tuple[int, int]:
    if isinstance(module, _ConvNd):
        return module.in_channels, module.out_channels
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    assert isinstance(module, _BatchNorm)
    return module.num_features, module.num_features


def _units_of(dependencies: Dependencies, value: int, axis: int, count: int) -> Ids:
    """Return the units of an axis of a value; negative numbers if it has none."""
    place = axis % len(dependencies.graph.values[value].shape)
    for block in dependencies.value_blocks.get(value, []):
        if block.axis == place and block.ids.size == count:
            found: Ids = dependencies.roots[block.ids].ravel()
            return found
    return _numbered(value, count)


def shared_sets(units: Mapping[str, Ids]) -> list[list[str]]:
    """Return the sets of names that have units in common, directly or through others.

    Args:
        units: Units by name.

    Returns:
        Sets in the order of their first names; each name is in one set.

    Examples:
        >>> import numpy as np
        >>> from nni.compression.speedup.dependency import shared_sets
        >>> shared_sets({"a": np.array([1]), "b": np.array([2, 3]), "c": np.array([3, 1])})
        [['a', 'b', 'c']]
    """
    owner: dict[int, str] = {}
    parent = {name: name for name in units}

    def first(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    order = {name: place for place, name in enumerate(units)}
    for name, own in units.items():
        for unit in np.unique(own).tolist():
            pair = sorted((first(owner.setdefault(unit, name)), first(name)), key=order.__getitem__)
            parent[pair[1]] = pair[0]
    found: dict[str, list[str]] = {}
    for name in units:
        found.setdefault(first(name), []).append(name)
    return list(found.values())


def group_counts(layers: Sequence[LayerChannels]) -> dict[str, list[int]]:
    """Return by layer its own number of groups, and those of layers that read its channels.

    Args:
        layers: Layers of a model.

    Returns:
        By name: the groups of the layer itself and of each grouped convolution that reads its
        channels. A depthwise convolution counts as one group.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup import find_dependencies
        >>> from nni.compression.speedup.dependency import group_counts, layer_channels
        >>> model = nn.Sequential(nn.Conv2d(4, 8, 1, groups=2), nn.Conv2d(8, 8, 1, groups=4))
        >>> layers = layer_channels(model, find_dependencies(model, torch.zeros(1, 4, 1, 1)))
        >>> group_counts(layers)
        {'0': [2, 4], '1': [4]}
    """
    readers = [one for one in layers if one.groups > 1 and not one.depthwise]
    return {
        one.name: [
            1 if one.depthwise else one.groups,
            *(
                reader.groups
                for reader in readers
                if reader is not one and np.isin(one.units, reader.input_units).any()
            ),
        ]
        for one in layers
    }


def parts_of(counts: Mapping[str, Iterable[int]], names: Iterable[str]) -> int:
    """Return the least common multiple of the group counts of layers.

    Args:
        counts: What `group_counts` returned.
        names: Names of layers.
    """
    return math.lcm(*(count for name in names for count in counts[name]))
