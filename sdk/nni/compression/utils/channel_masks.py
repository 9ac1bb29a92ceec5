"""Channels that masks keep: read from masks, made consistent, and written back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from nni.compression.speedup.slots import Flags, Ids


def equal_losses(kept: Flags, parts: int, smallest: int) -> Flags:
    """Return the channels that stay if all parts lose equally many: as few as any part loses.

    Args:
        kept: `(channels,)`: whether a channel is kept.
        parts: Number of equal parts that must keep equally many.
        smallest: Number of larger parts, a divisor of `parts`; one that is lost as a whole stays
            lost, as a whole group can be removed.

    Returns:
        `(channels,)`: what was kept, and the last channels of the parts that lost too many.

    Examples:
        >>> import numpy as np
        >>> from nni.compression.utils.channel_masks import equal_losses
        >>> equal_losses(np.array([False, False, True, False, True, True]), 2, 1).astype(int)
        array([0, 1, 1, 0, 1, 1])
    """
    rows = kept.reshape(parts, -1)
    alive = np.repeat(rows.reshape(smallest, -1).any(axis=1), parts // smallest)
    if not alive.any():
        return kept
    lost = int((~rows[alive]).sum(axis=1).min())
    order = np.cumsum(~rows, axis=1)  # 1 for the first lost channel of a part
    found: Flags = rows | ((order > lost) & alive[:, None])
    return found.reshape(-1)


def common_channels(layers: Mapping[str, tuple[Flags, Ids]]) -> dict[str, Flags]:
    """Return the channels that stay if a channel goes only where all layers lose it.

    Args:
        layers: By name, kept channels and their units.

    Returns:
        Kept channels by name.

    Examples:
        >>> import numpy as np
        >>> from nni.compression.utils.channel_masks import common_channels
        >>> units = np.array([5, 6])
        >>> one, other = np.array([True, False]), np.array([False, False])
        >>> common_channels({"a": (one, units), "b": (other, units)})["b"].astype(int)
        array([1, 0])
    """
    stays = np.unique(np.concatenate([units[kept] for kept, units in layers.values()]))
    return {name: np.isin(units, stays) for name, (_, units) in layers.items()}


def kept_channels(module: nn.Module, mask: Tensor, dim: int) -> Flags:
    """Return which channels of a layer are not masked as a whole.

    Args:
        module: The layer.
        mask: Mask of its weight; a vector for a batch norm.
        dim: 0 for output channels, 1 for input channels.

    Returns:
        `(channels,)`.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils.channel_masks import kept_channels
        >>> kept_channels(nn.Linear(2, 2), torch.tensor([[0.0, 0.0], [0.0, 1.0]]), 1).astype(int)
        array([0, 1])
    """
    rows = _channels_first(module, mask, dim)
    kept: Flags = rows.flatten(1).any(1).numpy(force=True)
    return kept


def unmask_channels(
    module: nn.Module, mask: Tensor, bias_mask: Tensor | None, dim: int, places: Ids
) -> None:
    """Set the mask of some channels, and of their biases, to one, in place.

    Args:
        module: The layer.
        mask: Mask of its weight.
        bias_mask: Mask of its bias; it changes with output channels only.
        dim: 0 for output channels, 1 for input channels.
        places: Indices of the channels.

    Examples:
        >>> import numpy as np
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils.channel_masks import unmask_channels
        >>> mask = torch.zeros(2, 1)
        >>> unmask_channels(nn.Linear(1, 2), mask, None, 0, np.array([1]))
        >>> mask
        tensor([[0.],
                [1.]])
    """
    index = torch.from_numpy(places).to(mask.device)
    rows = _channels_first(module, mask, dim).clone()
    rows[index] = 1
    mask.copy_(_restored(module, rows, mask, dim))
    if dim == 0 and bias_mask is not None:
        bias_mask[index] = 1


def _is_split(module: nn.Module, axis: int) -> bool:
    """Return whether an axis of the weight has the channels of one group only."""
    return axis == 1 and isinstance(module, _ConvNd) and module.groups > 1


def _axis(module: nn.Module, dim: int) -> int:
    return 1 - dim if isinstance(module, _ConvTransposeNd) else dim


def _channels_first(module: nn.Module, mask: Tensor, dim: int) -> Tensor:
    """Return the elements of a mask as `(channels, elements, ...)`."""
    if mask.dim() == 1:
        return mask[:, None]
    axis = _axis(module, dim)
    if not _is_split(module, axis):
        return mask.transpose(0, axis)
    assert isinstance(module, _ConvNd)
    rows = mask.reshape(module.groups, -1, *mask.shape[1:])
    return rows.transpose(1, 2).flatten(0, 1)


def _restored(module: nn.Module, rows: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Return channels first as elements of a mask again: the inverse of `_channels_first`."""
    if mask.dim() == 1:
        return rows[:, 0]
    axis = _axis(module, dim)
    if not _is_split(module, axis):
        return rows.transpose(0, axis)
    assert isinstance(module, _ConvNd)
    groups = rows.reshape(module.groups, -1, *rows.shape[1:])
    return groups.transpose(1, 2).reshape(mask.shape)
