"""Allocation of sparsity to layers that can lose a channel only together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChannelScores:
    """Metric, mask, unit ids and ratio of the output channels of one layer."""

    metric: Tensor
    """`(channels,)`; the smallest are masked first; NaN counts as smallest."""
    kept: Tensor
    """bool `(channels,)`: channels that an earlier round has not masked."""
    units: Ids
    """`(channels,)`: equal numbers, in this and other layers, go together."""
    ratio: float
    """Part of the channels that the layer loses, in [0, 1]."""


def shared_channels(
    layers: Sequence[ChannelScores], parts: int = 1, common_ratio: float | None = None
) -> list[Tensor]:
    """Return bool tensors of channels that stay if layers lose common ones first, then own.

    Units that all layers of a set share are ranked by the sum of the metrics of their channels, and
    lost in all layers, as far as the smallest ratio goes; they are spread equally over the parts.
    Then each layer loses channels by its own metric until it reaches its ratio. What an earlier
    round has masked is lost first. Ties are broken by the lower index.

    Args:
        layers: Scores of the layers of a set.
        parts: Number of equal consecutive parts of the channels of each layer that lose equally
            many common ones; one that does not divide the channels counts for no layer.
        common_ratio: Part of the channels that are lost in all layers; None for the smallest ratio.

    Returns:
        bool `(channels,)` for each layer, on the device of its metric; true where a channel stays.

    Examples:
        >>> units = np.arange(4)
        >>> one, other = torch.tensor([1.0, 9.0, 2.0, 9.0]), torch.tensor([1.0, 1.0, 9.0, 9.0])
        >>> layers = [
        ...     ChannelScores(one, one > 0, units, 0.5),
        ...     ChannelScores(other, other > 0, units, 0.25),
        ... ]
        >>> shared_channels(layers)
        [tensor([False,  True, False,  True]), tensor([False,  True,  True,  True])]
    """
    ratio = min(one.ratio for one in layers) if common_ratio is None else common_ratio
    joint, places = np.unique(np.concatenate([one.units for one in layers]), return_inverse=True)
    cuts = np.cumsum([len(one.units) for one in layers])[:-1]
    of_layers = np.split(places, cuts)
    chosen = _common_units(layers, of_layers, len(joint), parts, ratio)
    return [_own(one, chosen[own]) for one, own in zip(layers, of_layers, strict=True)]


def _common_units(
    layers: Sequence[ChannelScores], places: Sequence[Ids], count: int, parts: int, ratio: float
) -> npt.NDArray[np.bool_]:
    """Return a bool array of the units that all layers lose, the smallest first, within ratios."""
    rows, limits, sums, alive = [], [], np.zeros(count), np.zeros(count, dtype=bool)
    for one, own in zip(layers, places, strict=True):
        channels = len(own)
        number = parts if channels % parts == 0 else 1
        for part in own.reshape(number, -1):
            rows.append(np.bincount(part, minlength=count))
            limits.append(int(channels * ratio) // number)
        live = one.kept.numpy(force=True)
        sums += np.bincount(own, _values(one.metric), count)
        alive[own[live]] = True
        # Channels that the layer has lost on its own leave less room for common ones.
        rows.append(np.bincount(own[live], minlength=count))
        limits.append(int(channels * one.ratio) - int((~live).sum()))
    table, room = np.stack(rows), np.array(limits)
    chosen = np.zeros(count, dtype=bool)
    for unit in np.lexsort((sums, alive)).tolist():
        needed = table[:, unit]
        if (needed <= room)[needed > 0].all():
            chosen[unit] = True
            room -= needed
    return chosen


def _own(layer: ChannelScores, common: npt.NDArray[np.bool_]) -> Tensor:
    """Return which channels stay: common ones go first, then masked, then the smallest."""
    channels = len(common)
    masked = ~layer.kept.numpy(force=True)
    order = np.lexsort((_values(layer.metric), ~masked, ~common))
    stays = np.ones(channels, dtype=bool)
    stays[order[: max(int(channels * layer.ratio), int(common.sum()))]] = False
    return torch.from_numpy(stays).to(layer.metric.device)


def _values(metric: Tensor) -> Values:
    found: Values = metric.double().nan_to_num(nan=-torch.inf).numpy(force=True)
    return found
