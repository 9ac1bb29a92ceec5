"""Analysis of a model before pruning: layers whose channels depend on each other."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from torch import nn
from torch.nn.modules.conv import _ConvNd

from nni.compression.speedup.ancestry import attention_layers, nearest_layers
from nni.compression.speedup.dependency import (
    FILTERS,
    Kinds,
    LayerChannels,
    group_counts,
    layer_channels,
    parts_of,
    shared_sets,
)
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.model_speedup import refuse_wrapped
from nni.compression.speedup.recording import capture

PruneType = Literal["Filter", "Batchnorm"]

_KINDS: Final[dict[str, Kinds]] = {"Filter": FILTERS, "Batchnorm": (nn.BatchNorm2d,)}
_RESHAPES: Final = frozenset({"view", "reshape"})


class Dependency(ABC):
    """Base of analyses of how the layers of a model depend on each other.

    The model runs once in eval mode and is the same afterwards.

    Args:
        model: The model, without wrappers of a pruner.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced_model: Not needed; NNI 2.x took a scripted model here.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `model` is wrapped by a pruner.
    """

    def __init__(self, model: nn.Module, dummy_input: Inputs, traced_model: object = None) -> None:
        del traced_model
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        if dummy_input is None:
            raise TypeError("dummy_input must be inputs of the model, got None")
        refuse_wrapped(model)
        self.model = model
        self.dummy_input = dummy_input
        self.build_dependency()

    @abstractmethod
    def build_dependency(self) -> None:
        """Analyse the model and set `dependency_sets`; the constructor calls it."""

    @abstractmethod
    def export(self, filepath: str | Path) -> None:
        """Write the result as CSV.

        Args:
            filepath: The file.
        """

    def _layers(self, kinds: Kinds = FILTERS) -> list[LayerChannels]:
        found = find_dependencies(self.model, self.dummy_input)
        return layer_channels(self.model, found, kinds)


def _write_rows(filepath: str | Path, rows: Iterable[Sequence[object]]) -> None:
    with Path(filepath).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


class _LayerSets(Dependency):
    """Base of the analyses whose result is a list of sets of layers."""

    dependency_sets: list[set[str]]
    """Sets in the order of their first layers; each layer is in one."""
    header: str = "Dependency Set,Convolutional Layers"
    """First line of the CSV file."""
    _order: dict[str, int]

    def export(self, filepath: str | Path) -> None:
        """Write a CSV file with a header and a row for each set: its number and its layers.

        Args:
            filepath: The file.
        """
        rows = [
            [f"Set {place}", *sorted(names, key=self._order.__getitem__)]
            for place, names in enumerate(self.dependency_sets, 1)
        ]
        _write_rows(filepath, [self.header.split(","), *rows])

    def _keep(self, layers: Sequence[LayerChannels], sets: list[list[str]]) -> None:
        linear = {
            one.name for one in layers if isinstance(self.model.get_submodule(one.name), nn.Linear)
        }
        self._order = {one.name: place for place, one in enumerate(layers)}
        self.dependency_sets = [
            set(names) for names in sets if len(names) > 1 or names[0] not in linear
        ]


class ChannelDependency(_LayerSets):
    """Sets of layers that must keep the same output channels, as their outputs are added.

    Every convolution is in a set, maybe alone; a Linear is in one if it shares its channels. A
    depthwise convolution is in the set of the layer that it follows.

    Args:
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced_model: Not needed; NNI 2.x took a scripted model here.
        prune_type: `Filter` for convolutions and Linear, `Batchnorm` for BatchNorm2d.

    Attributes:
        dependency_sets: Sets in the order of their first layers; each layer is in one.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `prune_type` is unknown, or `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import ChannelDependency
        >>> class Block(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.one, self.other = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)
        ...     def forward(self, image):
        ...         return self.one(image) + self.other(image)
        >>> found = ChannelDependency(Block(), torch.zeros(1, 3, 1, 1))
        >>> [sorted(one) for one in found.dependency_sets]
        [['one', 'other']]
    """

    def __init__(
        self,
        model: nn.Module,
        dummy_input: Inputs,
        traced_model: object = None,
        prune_type: PruneType = "Filter",
    ) -> None:
        if prune_type not in _KINDS:
            raise ValueError(f"prune_type must be 'Filter' or 'Batchnorm', got {prune_type!r}")
        self.prune_type = prune_type
        super().__init__(model, dummy_input, traced_model)

    def build_dependency(self) -> None:
        """Set the sets of layers that share output channels; the constructor calls it."""
        layers = self._layers(_KINDS[self.prune_type])
        self._keep(layers, shared_sets({one.name: one.units for one in layers}))


class InputChannelDependency(_LayerSets):
    """Sets of layers that read the same channels, and so can lose input channels only together.

    Every convolution is in a set, maybe alone; a Linear is in one if it shares its inputs.

    Args:
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced_model: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        dependency_sets: Sets in the order of their first layers; each layer is in one.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import InputChannelDependency
        >>> model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1))
        >>> InputChannelDependency(model, torch.zeros(1, 3, 1, 1)).dependency_sets
        [{'0'}, {'1'}]
    """

    def build_dependency(self) -> None:
        """Set the sets of layers that share input channels; the constructor calls it."""
        layers = self._layers()
        self._keep(layers, shared_sets({one.name: one.input_units for one in layers}))


class GroupDependency(Dependency):
    """Number of groups into which the output channels of each convolution fall.

    Each of them must keep equally many channels. It is the least common multiple of the groups of
    the convolution and of those of the grouped convolutions that read its channels; a depthwise
    convolution counts as one group.

    Args:
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced_model: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        dependency_sets: Number by name of the convolution.
        min_groups: Smallest of the group counts, by name of the convolution.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import GroupDependency
        >>> model = nn.Sequential(nn.Conv2d(4, 8, 1, groups=2), nn.Conv2d(8, 8, 1, groups=4))
        >>> GroupDependency(model, torch.zeros(1, 4, 1, 1)).dependency_sets
        {'0': 4, '1': 4}
    """

    dependency_sets: dict[str, int]
    min_groups: dict[str, int]

    def build_dependency(self) -> None:
        """Set the number of groups of each convolution from the dependencies."""
        counts = group_counts(self._layers((_ConvNd,)))
        self.dependency_sets = {name: parts_of(counts, [name]) for name in counts}
        self.min_groups = {name: min(own) for name, own in counts.items()}

    def export(self, filepath: str | Path) -> None:
        """Write a row for each convolution: its name and its number of groups.

        Args:
            filepath: The file.
        """
        _write_rows(filepath, [("Conv Layer Name", "Group"), *self.dependency_sets.items()])


class ReshapeDependency(Dependency):
    """Layers whose outputs reach a `view` or `reshape`, which may have sizes written into the code.

    Args:
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced_model: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        dependency_sets: Names of layers by operation, `<module>.<function>`; a number is added
            where a module calls a function again.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import ReshapeDependency
        >>> class Flat(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.conv = nn.Conv2d(3, 4, 1)
        ...     def forward(self, image):
        ...         return self.conv(image).view(-1, 16)
        >>> ReshapeDependency(Flat(), torch.zeros(1, 3, 2, 2)).dependency_sets
        {'view': ['conv']}
    """

    dependency_sets: dict[str, list[str]]

    def build_dependency(self) -> None:
        """Record a run; set the layers whose outputs each `view` or `reshape` gets."""
        names = {name for name, one in self.model.named_modules() if isinstance(one, FILTERS)}
        graph = capture(self.model, self.dummy_input)
        self.dependency_sets = {}
        calls: dict[str, int] = {}
        for call in graph.calls:
            if call.name not in _RESHAPES:
                continue
            path = [*call.modules[-1:], call.name]
            name = ".".join(part for part in path if part)
            calls[name] = calls.get(name, -1) + 1
            name = f"{name}_{calls[name]}" if calls[name] else name
            layers = [nearest_layers(graph, output, names) for output in call.outputs]
            self.dependency_sets[name] = [one for found in layers for one in found]

    def export(self, filepath: str | Path) -> None:
        """Write a row for each operation: its name and its layers.

        Args:
            filepath: The file.
        """
        rows = [(name, *layers) for name, layers in self.dependency_sets.items()]
        _write_rows(filepath, [("Reshape OP", "Dependent Layers"), *rows])


class AttentionWeightDependency(Dependency):
    """Linear layers of each attention: three input projections and the output projection.

    Args:
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced_model: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        dependency_sets: Names of the projections of query, key and value, in the order in which
            they ran, and of the output projection, for each attention.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import AttentionWeightDependency
        >>> AttentionWeightDependency(nn.Linear(2, 2), torch.zeros(1, 2)).dependency_sets
        []
    """

    dependency_sets: list[list[str]]

    def build_dependency(self) -> None:
        """Record a run; set the projections of each attention."""
        names = {name for name, one in self.model.named_modules() if isinstance(one, nn.Linear)}
        found = attention_layers(capture(self.model, self.dummy_input), names)
        self.dependency_sets = [list(one) for one in found]

    def export(self, filepath: str | Path) -> None:
        """Write a row for each attention: its number and its layers.

        Args:
            filepath: The file.
        """
        rows = [(f"Group {at}", *names) for at, names in enumerate(self.dependency_sets, 1)]
        _write_rows(filepath, [("Dependency Set", "Linear Layers"), *rows])


def not_safe_to_prune(model: nn.Module, dummy_input: Inputs) -> list[str]:
    """Return the layers whose outputs reach a `view` or `reshape` without another layer between.

    If a smaller model fails with a wrong shape, exclude them and try again. `ModelSpeedup` adapts
    the sizes of such calls itself.

    Args:
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.

    Returns:
        Names of convolutions and Linear layers.

    Raises:
        TypeError: `model` is no module, or `dummy_input` is missing.
        ValueError: `model` is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import not_safe_to_prune
        >>> not_safe_to_prune(nn.Sequential(nn.Conv2d(3, 4, 1)), torch.zeros(1, 3, 2, 2))
        []
    """
    found = ReshapeDependency(model, dummy_input).dependency_sets
    return list(dict.fromkeys(name for layers in found.values() for name in layers))
