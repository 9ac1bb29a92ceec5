"""Input channels that can be pruned, and what a model costs without some of them."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from nni.compression.speedup.dependency import LayerChannels, layer_channels, shared_sets
from nni.compression.speedup.groups import Dependencies
from nni.compression.speedup.slots import Flags, Ids


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Units of one layer's channels, and its FLOPs, whole or with some of the units."""

    channels: LayerChannels
    """Units of its input and output channels."""
    flops: int
    """Multiplications with an addition for one sample, with all channels."""

    def flops_with(self, kept: Flags) -> float:
        """Return the layer's FLOPs if only some units are left in its inputs and outputs.

        Args:
            kept: by unit, whether it stays.
        """
        outputs = _share(self.channels.units, kept)
        if self.channels.depthwise:
            return self.flops * outputs
        return self.flops * outputs * _share(self.channels.input_units, kept)


@dataclass(frozen=True, slots=True)
class ChannelSet:
    """Units of one decision, the most important first, and the layers that read them."""

    layers: tuple[str, ...]
    """Layers that read them, in the order of the model."""
    units: Ids
    """Units, the most important one first."""

    def kept_count(self, ratio: float, multiple: int) -> int:
        """Return how many units a ratio keeps: rounded up to a multiple, at least one of it.

        Args:
            ratio: part to keep, in [0, 1].
            multiple: number that the count is a multiple of, unless there are fewer units.
        """
        steps = max(math.ceil(ratio * len(self.units) / multiple - 1e-9), 1)
        return min(steps * multiple, len(self.units))


def layer_costs(
    model: nn.Module, dependencies: Dependencies, flops: Mapping[str, int]
) -> list[LayerCost]:
    """Return channel units and FLOPs of convolutions and Linear layers, in running order.

    Args:
        model: an unwrapped model.
        dependencies: of the model.
        flops: operations of each layer, by name; layers that are missing are left out.
    """
    return [
        LayerCost(one, flops[one.name])
        for one in layer_channels(model, dependencies)
        if one.name in flops
    ]


def channel_sets(
    layers: Sequence[LayerCost],
    prunable: Collection[str],
    frozen: Flags,
    weights: Mapping[str, Tensor],
) -> list[ChannelSet]:
    """Return the sets of input channels that can be pruned, most important first, in model order.

    A unit can be pruned if every convolution or Linear that reads it can be, depthwise ones
    aside, which follow. The units of layers that share some are one set.

    Args:
        layers: all layers.
        prunable: names of the layers whose inputs may be masked.
        frozen: by unit, whether it must stay.
        weights: `(outputs, inputs, ...)` of the prunable layers, by name.

    Returns:
        Sets of at least two units, ordered by the sum of the absolute weights that read a unit.
    """
    fixed = frozen.copy()
    readers = [one.channels for one in layers if not one.channels.depthwise]
    for one in readers:
        if one.name not in prunable or one.groups > 1:
            fixed[_known(one.input_units)] = True
    read = {one.name: np.unique(_known(one.input_units)) for one in readers if one.name in prunable}
    free = {name: units[~fixed[units]] for name, units in read.items()}
    importance = _importance(readers, weights, len(frozen))
    found = []
    for names in shared_sets({name: units for name, units in free.items() if units.size}):
        units = np.unique(np.concatenate([free[name] for name in names]))
        if len(units) > 1:
            order = np.argsort(-importance[units], kind="stable")
            found.append(ChannelSet(tuple(names), units[order]))
    return found


def total_flops(layers: Sequence[LayerCost], kept: Flags) -> float:
    """Return the FLOPs of the layers if only the kept units are left.

    Args:
        layers: all layers.
        kept: by unit, whether it stays.
    """
    return sum(one.flops_with(kept) for one in layers)


def _importance(
    readers: Sequence[LayerChannels], weights: Mapping[str, Tensor], count: int
) -> npt.NDArray[np.float64]:
    """Return by unit the sum of the absolute weights, of ungrouped layers, that read it."""
    found = np.zeros(count)
    for one in readers:
        if one.name in weights and one.groups == 1:
            sums = weights[one.name].detach().abs().transpose(0, 1).flatten(1).sum(1)
            known = one.input_units >= 0
            np.add.at(found, one.input_units[known], sums.double().cpu().numpy()[known])
    return found


def _known(units: Ids) -> Ids:
    """Return the units that are numbered; others belong to tensors of a fixed size."""
    return units[units >= 0]


def _share(units: Ids, kept: Flags) -> float:
    known = units >= 0
    return float((kept[units[known]].sum() + (~known).sum()) / max(len(units), 1))
