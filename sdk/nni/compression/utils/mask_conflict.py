"""Repair of masks that no smaller model can have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from nni.compression.speedup.dependency import (
    FILTERS,
    LayerChannels,
    group_counts,
    layer_channels,
    parts_of,
    shared_sets,
)
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import Dependencies, find_dependencies
from nni.compression.speedup.model_speedup import Masks, load_masks, refuse_wrapped
from nni.compression.speedup.slots import Flags
from nni.compression.utils.channel_masks import (
    common_channels,
    equal_losses,
    kept_channels,
    unmask_channels,
)

FixedMasks = dict[str, dict[str, Tensor | None]]
"""Masks by module and parameter; None means no mask."""


class MaskConflict:
    """Base of repairs, which unmask channels in copies of given masks.

    Args:
        masks: Masks by module and parameter, or the path of their file; they are not changed.
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        masks: Masks; those that `fix_mask` returned, if it was called.

    Raises:
        FileNotFoundError: the file of masks does not exist.
        ValueError: there are no masks, they do not fit the model, or it is wrapped by a pruner.
    """

    def __init__(
        self,
        masks: Masks | str | Path,
        model: nn.Module,
        dummy_input: Inputs,
        traced: object = None,
    ) -> None:
        del traced
        refuse_wrapped(model)
        found = load_masks(masks)
        if not found:
            raise ValueError("masks must hold a mask, got an empty dict")
        self.masks: FixedMasks = {
            name: {target: None if mask is None else mask.clone() for target, mask in own.items()}
            for name, own in found.items()
        }
        self.model = model
        self._check()
        self._dependencies: Dependencies = find_dependencies(model, dummy_input)

    def _check(self) -> None:
        modules = dict(self.model.named_modules())
        for name, own in self.masks.items():
            if name not in modules:
                raise ValueError(f"masks name the module {name!r}, which the model does not have")
            mask, weight = own.get("weight"), getattr(modules[name], "weight", None)
            if mask is not None and (not isinstance(weight, Tensor) or weight.shape != mask.shape):
                shape = tuple(weight.shape) if isinstance(weight, Tensor) else None
                raise ValueError(
                    f"mask of {name}.weight has the shape {tuple(mask.shape)}, but the parameter "
                    f"has {shape}"
                )

    def _masked(self, layers: list[LayerChannels]) -> Iterator[tuple[LayerChannels, Tensor]]:
        """Yield the layers that have a mask of their weight, and the mask."""
        for one in layers:
            mask = self.masks.get(one.name, {}).get("weight")
            if mask is not None:
                yield one, mask

    def _kept(self, layer: LayerChannels, mask: Tensor, dim: int) -> Flags:
        return kept_channels(self.model.get_submodule(layer.name), mask, dim)

    def _unmask(self, layer: LayerChannels, dim: int, stays: Flags) -> None:
        """Unmask the channels that stay but are masked as a whole."""
        own = self.masks[layer.name]
        mask = own["weight"]
        assert mask is not None  # only layers with a mask are repaired
        places = np.flatnonzero(stays & ~self._kept(layer, mask, dim))
        if len(places):
            module = self.model.get_submodule(layer.name)
            unmask_channels(module, mask, own.get("bias"), dim, places)


class GroupMaskConflict(MaskConflict):
    """Repair of masks under which groups of a convolution would keep unequal numbers of filters.

    Each part of the filters, see `GroupDependency`, may lose only as many as the one that loses
    least; the surplus is unmasked, the last filters first. A group that is lost as a whole stays
    lost.

    Args:
        masks: Masks by module and parameter, or the path of their file; they are not changed.
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        masks: Masks; those that `fix_mask` returned, if it was called.

    Raises:
        FileNotFoundError: the file of masks does not exist.
        ValueError: there are no masks, they do not fit the model, or it is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import GroupMaskConflict
        >>> model = nn.Sequential(nn.Conv2d(4, 4, 1, groups=2, bias=False))
        >>> masks = {"0": {"weight": torch.ones(4, 2, 1, 1)}}
        >>> masks["0"]["weight"][0] = 0
        >>> fixed = GroupMaskConflict(masks, model, torch.zeros(1, 4, 1, 1)).fix_mask()
        >>> fixed["0"]["weight"].amax((1, 2, 3))
        tensor([1., 1., 1., 1.])
    """

    def fix_mask(self) -> FixedMasks:
        """Unmask filters until all groups keep equally many; return the masks.

        Returns:
            Masks by module and parameter.
        """
        layers = layer_channels(self.model, self._dependencies)
        counts = group_counts(layers)
        for layer, mask in self._masked(layers):
            # A layer that feeds a part of a grouped convolution may have any number of filters.
            parts = math.gcd(parts_of(counts, [layer.name]), len(layer.units))
            smallest = math.gcd(min(counts[layer.name]), parts)
            kept = self._kept(layer, mask, 0)
            self._unmask(layer, 0, equal_losses(kept, parts, smallest))
        return self.masks


class ChannelMaskConflict(MaskConflict):
    """Repair of masks under which layers whose outputs meet would keep different channels.

    The channels that any layer of a set keeps stay in all of them; a layer without a mask keeps
    all. Masks of filters, of input channels and of batch norms are repaired, whichever the masks
    are. A depthwise convolution without a mask follows the layer before it.

    Args:
        masks: Masks by module and parameter, or the path of their file; they are not changed.
        model: The model, without wrappers of a pruner; it runs once and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced: Not needed; NNI 2.x took a scripted model here.

    Attributes:
        masks: Masks; those that `fix_mask` returned, if it was called.

    Raises:
        FileNotFoundError: the file of masks does not exist.
        ValueError: there are no masks, they do not fit the model, or it is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import ChannelMaskConflict
        >>> class Sum(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.one, self.other = nn.Linear(1, 2, bias=False), nn.Linear(1, 2, bias=False)
        ...     def forward(self, features):
        ...         return self.one(features) + self.other(features)
        >>> masks = {"one": {"weight": torch.tensor([[0.0], [1.0]])}}
        >>> fixed = ChannelMaskConflict(masks, Sum(), torch.zeros(1, 1)).fix_mask()
        >>> fixed["one"]["weight"].flatten()
        tensor([1., 1.])
    """

    def fix_mask(self) -> FixedMasks:
        """Unmask channels that another layer of their set keeps; return the masks.

        Returns:
            Masks by module and parameter.
        """
        modules = [self.model.get_submodule(name) for name in self.masks]
        norms = all(isinstance(one, nn.BatchNorm2d) for one in modules)
        kinds = (nn.BatchNorm2d,) if norms else FILTERS
        layers = {one.name: one for one in layer_channels(self.model, self._dependencies, kinds)}
        dim = 0 if norms else self._pruned_dim(list(layers.values()))
        units = {
            name: one.input_units if dim else one.units
            for name, one in layers.items()
            if not one.depthwise or name in self.masks
        }
        for names in shared_sets(units):
            own = {name: (self._kept_or_all(layers[name], dim), units[name]) for name in names}
            for name, stays in common_channels(own).items():
                if self.masks.get(name, {}).get("weight") is not None:
                    self._unmask(layers[name], dim, stays)
        return self.masks

    def _kept_or_all(self, layer: LayerChannels, dim: int) -> Flags:
        mask = self.masks.get(layer.name, {}).get("weight")
        if mask is None:
            return np.ones(len(layer.input_units if dim else layer.units), dtype=bool)
        return self._kept(layer, mask, dim)

    def _pruned_dim(self, layers: list[LayerChannels]) -> int:
        """Return 1 if a larger part of the input channels than of the filters is masked, else 0."""
        found = list(self._masked(layers))
        kept = [[self._kept(one, mask, dim) for one, mask in found] for dim in (0, 1)]
        parts = [float(np.concatenate(own).mean()) if own else 1.0 for own in kept]
        return int(parts[1] < parts[0])


def fix_mask_conflict(
    masks: Masks | str | Path, model: nn.Module, dummy_input: Inputs, traced: object = None
) -> FixedMasks:
    """Return copies of masks with channels unmasked until a smaller model can have them.

    Args:
        masks: Masks by module and parameter, or the path of their file; they are not changed.
        model: The model, without wrappers of a pruner; it runs and is the same afterwards.
        dummy_input: A tensor, a list or tuple of inputs, or a dict by name.
        traced: Not needed; NNI 2.x took a scripted model here.

    Returns:
        Masks by module and parameter. Channels are unmasked, none is masked in addition; a second
        call changes nothing.

    Raises:
        FileNotFoundError: the file of masks does not exist.
        ValueError: there are no masks, they do not fit the model, or it is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import fix_mask_conflict
        >>> model = nn.Sequential(nn.Conv2d(4, 4, 1, groups=2, bias=False))
        >>> masks = {"0": {"weight": torch.ones(4, 2, 1, 1)}}
        >>> masks["0"]["weight"][[0, 2, 3]] = 0
        >>> fixed = fix_mask_conflict(masks, model, torch.zeros(1, 4, 1, 1))
        >>> fixed["0"]["weight"].amax((1, 2, 3))
        tensor([0., 1., 0., 0.])
    """
    groups = GroupMaskConflict(masks, model, dummy_input)
    channels = ChannelMaskConflict(masks, model, dummy_input)
    while True:
        before = _kept_elements(groups.masks)
        channels.masks = groups.fix_mask()
        groups.masks = channels.fix_mask()
        if _kept_elements(groups.masks) == before:  # repairs only unmask
            return groups.masks


def fix_group_mask_conflict(
    masks: Masks | str | Path, model: nn.Module, dummy_input: Inputs
) -> FixedMasks:
    """Return masks under which the groups of convolutions keep equally many filters.

    Args:
        masks: as `GroupMaskConflict`.
        model: as `GroupMaskConflict`.
        dummy_input: as `GroupMaskConflict`.

    Returns:
        What `GroupMaskConflict.fix_mask` returns.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import fix_group_mask_conflict
        >>> masks = {"0": {"weight": torch.zeros(2, 1)}}
        >>> fix_group_mask_conflict(masks, nn.Sequential(nn.Linear(1, 2)), torch.zeros(1, 1))
        {'0': {'weight': tensor([[0.],
                [0.]])}}
    """
    return GroupMaskConflict(masks, model, dummy_input).fix_mask()


def fix_channel_mask_conflict(
    masks: Masks | str | Path, model: nn.Module, dummy_input: Inputs
) -> FixedMasks:
    """Return masks under which layers whose outputs meet keep the same channels.

    Args:
        masks: as `ChannelMaskConflict`.
        model: as `ChannelMaskConflict`.
        dummy_input: as `ChannelMaskConflict`.

    Returns:
        What `ChannelMaskConflict.fix_mask` returns.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import fix_channel_mask_conflict
        >>> masks = {"0": {"weight": torch.zeros(2, 1)}}
        >>> fix_channel_mask_conflict(masks, nn.Sequential(nn.Linear(1, 2)), torch.zeros(1, 1))
        {'0': {'weight': tensor([[0.],
                [0.]])}}
    """
    return ChannelMaskConflict(masks, model, dummy_input).fix_mask()


def _kept_elements(masks: Masks) -> int:
    return sum(
        int(mask.count_nonzero())
        for own in masks.values()
        for mask in own.values()
        if mask is not None
    )
