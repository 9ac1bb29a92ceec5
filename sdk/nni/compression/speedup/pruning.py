"""Pruning in one call: groups are found, ranked by L1 norm, and removed with a shared mask."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nni.compression.speedup.caches import independent_copy
from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.groups import ChannelGroup, Dependencies, find_dependencies
from nni.compression.speedup.removal import Undo
from nni.compression.speedup.report import SpeedupReport
from nni.compression.speedup.selection import balanced, components
from nni.compression.speedup.shrinking import shrink
from nni.compression.speedup.slots import Flags

Scores = npt.NDArray[np.float64]


def l1_scores(model: nn.Module, dependencies: Dependencies) -> Scores:
    """Return the L1 norm of the parameters of each unit.

    Args:
        model: The model.
        dependencies: Its units.

    Returns:
        By representative: the sum of absolute values of all elements that go with the unit.
    """
    units, values = [np.zeros(0, np.intp)], [np.zeros(0)]
    for name, tensor in model.named_parameters(remove_duplicate=False):
        for block in dependencies.blocks.get(name, []):
            axes = [axis for axis, size in enumerate(block.ids.shape) if size == 1]
            norms = _l1_norms(tensor.detach(), axes)
            values.append(norms.double().numpy(force=True).ravel())
            units.append(dependencies.roots[block.ids].ravel())
    count = len(dependencies.roots)
    return np.bincount(np.concatenate(units), np.concatenate(values), count).astype(np.float64)


def _l1_norms(tensor: Tensor, axes: list[int]) -> Tensor:
    """Return the sums of absolute values over axes, without these axes."""
    if not axes:
        return tensor.abs()
    if axes[0] > 0:
        norms: Tensor = torch.linalg.vector_norm(tensor, 1, axes)
        return norms
    # Over the first axis `vector_norm` takes up to ten times as long.
    total = tensor.abs().sum(0)
    return total.sum([axis - 1 for axis in axes[1:]]) if axes[1:] else total


@contextmanager
def masked(model: nn.Module, dependencies: Dependencies, removed: Flags) -> Iterator[None]:
    """Set the parameters of removed units to zero, and restore them at the end.

    Args:
        model: The model.
        dependencies: Its units.
        removed: By representative: whether the unit is masked.
    """
    undo = Undo()
    try:
        for name, tensor in model.named_parameters():
            before = tensor.detach()
            data = before
            for block in dependencies.blocks.get(name, []):
                dead = removed[dependencies.roots[block.ids]]
                if dead.any():
                    data = data.masked_fill(torch.from_numpy(dead).to(data.device), 0)
            if data is not before:
                undo.replace(tensor, data)
        yield
    finally:
        undo.restore()


def choose_units(
    dependencies: Dependencies,
    scores: Scores,
    sparsity: float,
    round_to: int = 1,
    deadline: Deadline | None = None,
) -> Flags:
    """Return flags of the lowest units of each group whose removal keeps equal rows equal.

    Args:
        dependencies: Units of a model.
        scores: Importance by representative.
        sparsity: Part of each group to remove; the number is rounded down.
        round_to: Multiple to which the widths that stay are rounded up.
        deadline: Instant after which no more is chosen from groups that balances connect; their
            rest is frozen. None means no limit.

    Returns:
        By representative: whether the unit goes.
    """
    removed = np.zeros(len(dependencies.roots), dtype=bool)
    linked = np.zeros(len(dependencies.roots), dtype=bool)
    for component in components(dependencies.balances, sparsity):
        linked[component.units] = True
        free = ~dependencies.frozen[component.units]
        order = sorted(np.flatnonzero(free).tolist(), key=lambda at: scores[component.units[at]])
        widths = component.table.sum(axis=1)
        spans = np.diff(np.append(component.starts, len(component.table)))
        limits = {
            row: int(width - _rounded(int(width - int(width * sparsity)), round_to, int(span)))
            for row, (width, span) in enumerate(zip(widths, np.repeat(spans, spans), strict=True))
        }
        removed[balanced(component, free, order, limits, deadline)] = True
        if deadline is not None and deadline.passed():
            dependencies.freeze(component.units[~removed[component.units]], deadline.reason)
    for group in dependencies.groups():
        units = group.units[~linked[group.units]]
        count = len(units)
        kept = _rounded(count - int(count * sparsity), round_to, unit_width(dependencies, group))
        lowest = np.argsort(scores[units], kind="stable")
        removed[units[lowest[: max(count - max(kept, 1), 0)]]] = True
    return removed


def _rounded(kept: int, multiple: int, width: int) -> int:
    """Return the next number of units, each `width` wide, that fills a multiple."""
    step = multiple // math.gcd(multiple, max(width, 1))
    return -(-kept // step) * step


def unit_width(dependencies: Dependencies, group: ChannelGroup) -> int:
    """Return how many indices of its first axis go with one unit of a group.

    Args:
        dependencies: Units of a model.
        group: One of its groups.
    """
    name, axis = group.axes[0]
    block = next(one for one in dependencies.blocks[name] if one.axis == axis)
    return int((dependencies.roots[block.flat()[0]] == group.units[0]).sum())


def prune(
    model: nn.Module,
    example_inputs: Inputs,
    sparsity: float = 0.5,
    *,
    round_to: int = 1,
    allow_norm_change: bool = False,
    time_limit_s: float | None = 300.0,
) -> tuple[nn.Module, SpeedupReport]:
    """Return a copy of a model without its channels of smallest L1 norm, and a report.

    Dependency groups are found from one run. In each group the channels with the smallest L1 norm,
    summed over all parameters of the group, are removed. Outputs keep their sizes.

    Args:
        model: The model; it is not changed.
        example_inputs: A tensor, a list or tuple of positional inputs, or a dict by name.
        sparsity: Part of the channels of each group to remove.
        round_to: Multiple to which the widths that stay are rounded up, such as 8.
        allow_norm_change: Whether to shrink axes that a LayerNorm or GroupNorm normalises. The
            result is then another function than the masked model, and the report says so.
        time_limit_s: Limit in seconds for planning; None means no limit. What was not planned by
            then keeps its size, and the report lists it.

    Returns:
        The smaller model in the train / eval mode of the given one, and a report.

    Raises:
        ValueError: `sparsity`, `round_to` or `time_limit_s` is out of range.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import prune
        >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2))
        >>> smaller, report = prune(model, torch.zeros(1, 3, 5, 5), sparsity=0.5)
        >>> smaller[0], smaller[3]
        (Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1)), Linear(in_features=36, ...))
        >>> report.error < 1e-4
        True
    """
    if not 0 <= sparsity < 1:
        raise ValueError(f"sparsity must be at least 0 and below 1, but is {sparsity}")
    if round_to < 1:
        raise ValueError(f"round_to must be at least 1, but is {round_to}")
    deadline = Deadline(time_limit_s)

    def lowest(smaller: nn.Module, dependencies: Dependencies) -> Flags:
        scores = l1_scores(smaller, dependencies)
        return choose_units(dependencies, scores, sparsity, round_to, deadline)

    return remove_units(
        model, example_inputs, lowest, allow_norm_change=allow_norm_change, deadline=deadline
    )


def remove_units(
    model: nn.Module,
    example_inputs: Inputs,
    choose: Callable[[nn.Module, Dependencies], Flags],
    *,
    allow_norm_change: bool = False,
    deadline: Deadline,
) -> tuple[nn.Module, SpeedupReport]:
    """Return a copy of a model without the chosen coupled-channel units, and a report.

    Args:
        model: The model; it is not changed.
        example_inputs: As of `prune`.
        choose: Function of the copy and its units that returns by representative whether the unit
            goes.
        allow_norm_change: As of `prune`.
        deadline: Instant after which nothing more is planned.

    Returns:
        The smaller model in the train / eval mode of the given one, and a report.
    """
    smaller = independent_copy(model)
    start = time.process_time()
    dependencies = find_dependencies(
        smaller, example_inputs, allow_norm_change=allow_norm_change, deadline=deadline
    )
    before = {name: tuple(one.shape) for name, one in smaller.state_dict().items()}
    count = sum(one.numel() for one in smaller.parameters())
    wanted = choose(smaller, dependencies)
    fixed = dependencies.reasons()
    planned = time.process_time() - start
    result = shrink(
        smaller,
        example_inputs,
        dependencies,
        wanted,
        lambda removed: masked(smaller, dependencies, removed),
        deadline=deadline,
    )
    after = {name: tuple(one.shape) for name, one in smaller.state_dict().items()}
    report = SpeedupReport(
        error=result.error,
        parameters_before=count,
        parameters_after=sum(one.numel() for one in smaller.parameters()),
        shapes={name: (old, after[name]) for name, old in before.items() if old != after[name]},
        fixed={**fixed, **dependencies.reasons()},
        changed_norms=dependencies.changed_norms,
        changes=result.changes,
        planning_s=planned,
    )
    return smaller, report
