"""Allocation of sparsity: which blocks of which targets are masked, given their metrics.

Targets that share a mask form a unit. First the number of blocks that each unit loses is decided,
by a threshold, by a ratio of its own, or by one ratio for a global group of units; then each unit
loses its blocks of the smallest metric. All functions are pure.
"""

import logging
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import torch
from torch import Tensor

from nni.compression.config.settings import GroupId, PruningSettings

_Key = TypeVar("_Key", bound=Hashable)

_logger = logging.getLogger(__name__)

_TOLERANCE: Final = 1e-9
"""Rounding error of a ratio times a count, when it is rounded up."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Metric, unmasked blocks, size and settings of one target."""

    metric: Tensor
    """One value for each block; the smallest are masked first; NaN counts as smallest."""
    kept: Tensor
    """bool, of the shape of `metric`: blocks that an earlier round has not masked."""
    elements: int
    """Number of elements of the target."""
    settings: PruningSettings
    """Settings of the target."""


@dataclass(frozen=True, slots=True)
class _Unit(Generic[_Key]):
    """Targets that get the same mask: flat metric, unmasked blocks, weight, parts and settings."""

    keys: tuple[_Key, ...]
    metric: Tensor  # flat
    kept: Tensor  # flat
    weight: float  # elements that the mask of one block removes
    blocks: int  # number of parts that must lose equally many
    settings: PruningSettings


def allocate(scores: Mapping[_Key, Scores]) -> dict[_Key, Tensor]:
    """Return bool tensors of the blocks that stay, by a target's or a group's ratio or threshold.

    Blocks that are masked already are masked first. Ties are broken by the lower index. A count
    is the ratio times the number of blocks, rounded down. Members of a dependency group are
    ranked by the mean of their metrics, and lose the same blocks. In a global group the blocks of
    all units are ranked together, each with the number of elements that it removes, and masked
    until the next one would exceed the ratio; each unit keeps a block unless `max_sparse_ratio`
    is 1.

    Args:
        scores: scores by target.

    Returns:
        bool tensors of the shapes of the metrics, by target; true where a block stays.

    Raises:
        ValueError: members of a dependency group have different numbers of blocks, or a number of
            blocks is no multiple of `internal_metric_block`.

    Examples:
        >>> metric = torch.tensor([3.0, 1.0, 2.0, 1.0])
        >>> settings = PruningSettings(sparse_ratio=0.5)
        >>> allocate({"a": Scores(metric, metric > 0, 4, settings)})["a"]
        tensor([ True, False,  True, False])
    """
    units = _units(scores)
    counts = [_own_count(unit) for unit in units]
    groups: dict[GroupId, list[int]] = {}
    for index, unit in enumerate(units):
        group = unit.settings.global_group_id
        if group is not None and unit.settings.sparse_ratio is not None:
            groups.setdefault(group, []).append(index)
    for group, members in groups.items():
        shared = _global_counts([units[index] for index in members], group)
        for index, count in zip(members, shared, strict=True):
            counts[index] = count
    return {
        key: kept.reshape(scores[key].metric.shape)
        for unit, count in zip(units, counts, strict=True)
        for kept in [_largest(unit, count)]
        for key in unit.keys
    }


def _units(scores: Mapping[_Key, Scores]) -> list[_Unit[_Key]]:
    members: dict[tuple[str, Hashable], list[_Key]] = {}
    for key, one in scores.items():
        group = one.settings.dependency_group_id
        name: tuple[str, Hashable] = ("target", key) if group is None else ("group", group)
        members.setdefault(name, []).append(key)
    return [_unit(keys, [scores[key] for key in keys]) for keys in members.values()]


def _unit(keys: list[_Key], members: list[Scores]) -> _Unit[_Key]:
    numbers = {one.metric.numel() for one in members}
    group = members[0].settings.dependency_group_id
    if len(numbers) > 1:
        raise ValueError(
            f"dependency_group_id {group!r} needs equally many channels in all members, got "
            f"{dict(zip(keys, [one.metric.numel() for one in members], strict=True))}"
        )
    number = numbers.pop()
    parts = math.lcm(*(one.settings.internal_metric_block or 1 for one in members))
    if number % parts:
        raise ValueError(
            f"internal_metric_block {parts} does not divide the {number} channels of {keys[0]!r}"
        )
    return _Unit(
        keys=tuple(keys),
        metric=torch.stack([one.metric.flatten() for one in members]).mean(0),
        kept=torch.stack([one.kept.flatten() for one in members]).any(0),
        weight=sum(one.elements for one in members) / max(number, 1),
        blocks=parts,
        settings=members[0].settings,
    )


def _own_count(unit: _Unit[_Key]) -> int:
    """Return how many blocks a unit loses by its threshold or ratio, within its bounds."""
    number = unit.metric.numel()
    settings = unit.settings
    if settings.sparse_threshold is not None:
        count = int((unit.metric < settings.sparse_threshold).sum())
    else:
        # Truncation is part of the definition: counts of published results depend on it.
        count = int(number * (settings.sparse_ratio or 0.0))
    most = number if settings.max_sparse_ratio is None else int(number * settings.max_sparse_ratio)
    return max(min(count, most), _least(unit))


def _least(unit: _Unit[_Key]) -> int:
    return math.ceil(unit.metric.numel() * (unit.settings.min_sparse_ratio or 0.0) - _TOLERANCE)


def _most_in_group(unit: _Unit[_Key]) -> int:
    """Return how many blocks a unit of a global group may lose; without a cap all but one."""
    number = unit.metric.numel()
    cap = unit.settings.max_sparse_ratio
    if cap is None:
        return max(number - 1, 0)
    return number - math.ceil((1 - cap) * number - _TOLERANCE)


def _global_counts(units: Sequence[_Unit[_Key]], group: GroupId) -> list[int]:
    """Return how many blocks each unit loses if a group's smallest go until its ratio is met."""
    ratio = units[0].settings.sparse_ratio or 0.0
    total = sum(unit.weight * unit.metric.numel() for unit in units)
    budget = int(total * ratio + _TOLERANCE)
    counts = [_least(unit) for unit in units]
    used = sum(count * unit.weight for count, unit in zip(counts, units, strict=True))
    metrics, owners = [], []
    for index, unit in enumerate(units):
        free = _order(unit.metric, unit.kept)[counts[index] : _most_in_group(unit)]
        metrics.append(_comparable(unit.metric, unit.kept)[free])
        owners.append(torch.full((free.numel(),), index, dtype=torch.int64, device=free.device))
    order = torch.argsort(torch.cat(metrics), stable=True)
    ranked = torch.cat(owners)[order]
    weights = torch.tensor([unit.weight for unit in units], dtype=torch.float64)
    reached = used + weights.to(ranked.device)[ranked].cumsum(0)
    taken = int((reached <= budget + _TOLERANCE * max(total, 1)).sum())
    added = torch.bincount(ranked[:taken], minlength=len(units)).tolist()
    if taken == ranked.numel() and (reached[-1] if taken else used) < budget:
        _logger.warning(
            "global group %r cannot reach the ratio %s within max_sparse_ratio", group, ratio
        )
    return [count + more for count, more in zip(counts, added, strict=True)]


def _largest(unit: _Unit[_Key], count: int) -> Tensor:
    """Return a bool tensor of the blocks that stay if a unit loses its `count` smallest ones."""
    kept = torch.ones(unit.metric.numel(), dtype=torch.bool, device=unit.metric.device)
    kept[_smallest(unit.metric, unit.kept, count // unit.blocks, unit.blocks)] = False
    return kept


def _smallest(metric: Tensor, kept: Tensor, per_part: int, parts: int) -> Tensor:
    """Return indices of the smallest values of each of several equal parts, masked ones first."""
    size = metric.numel() // parts
    return torch.cat(
        [
            part * size + _order(metric[span], kept[span])[:per_part]
            for part in range(parts)
            for span in [slice(part * size, (part + 1) * size)]
        ]
    )


def _order(metric: Tensor, kept: Tensor) -> Tensor:
    """Return the indices from the smallest value to the largest; masked ones come first."""
    by_value = torch.argsort(torch.nan_to_num(metric, nan=-torch.inf), stable=True)
    return by_value[torch.argsort(kept[by_value].to(torch.int8), stable=True)]


def _comparable(metric: Tensor, kept: Tensor) -> Tensor:
    """Return metrics with -inf for masked blocks and NaN, so that they rank first."""
    values = torch.nan_to_num(metric, nan=-torch.inf)
    return torch.where(kept, values, torch.full_like(values, -torch.inf))
