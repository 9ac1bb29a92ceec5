"""Simulated annealing of the sparsities of layers: pure functions of numbers, without torch.

A vector has one sparsity for each layer. Larger layers never have a lower sparsity than smaller
ones, unless a limit of their own demands it, and the layers together keep one total sparsity.
"""

import math
import random
from collections.abc import Sequence
from typing import Final

_TOLERANCE: Final = 1e-9
"""Rounding error of sums of sparsities times sizes."""
_LARGEST: Final = 1 - 1e-9
"""Largest sparsity that a change can reach: a layer keeps something."""


def first_sparsities(
    sizes: Sequence[int], total: float, limits: Sequence[float], generator: random.Random
) -> list[float]:
    """Return random sparsities, larger for larger layers, scaled to a total within limits.

    Args:
        sizes: number of weights of each layer.
        total: sparsity of all layers together, in [0, 1).
        limits: largest sparsity of each layer, in (0, 1].
        generator: source of random numbers.

    Returns:
        One sparsity for each layer, in [0, 1).

    Examples:
        >>> first_sparsities([100, 300], 0.5, [1.0, 1.0], random.Random(0))  # doctest: +ELLIPSIS
        [0.460..., 0.513...]
    """
    drawn = [generator.random() for _ in sizes]
    return _fitted(_by_size(drawn, sizes), sizes, total, limits)


def perturbed(
    sparsities: Sequence[float],
    sizes: Sequence[int],
    total: float,
    limits: Sequence[float],
    magnitude: float,
    generator: random.Random,
) -> list[float]:
    """Return random sparsities near given ones, ordered by layer size and scaled to a total.

    Args:
        sparsities: one for each layer, from `first_sparsities` or this function.
        sizes: number of weights of each layer.
        total: sparsity of all layers together, in [0, 1).
        limits: largest sparsity of each layer, in (0, 1].
        magnitude: largest change of a sparsity before the total is restored, >= 0.
        generator: source of random numbers.

    Returns:
        One sparsity for each layer, in [0, 1).
    """
    moved = [
        min(max(0.0, one + generator.uniform(-magnitude, magnitude)), _LARGEST)
        for one in sparsities
    ]
    return _fitted(_by_size(moved, sizes), sizes, total, limits)


def accepts(score: float, current: float, temperature: float, generator: random.Random) -> bool:
    """Return whether new sparsities are accepted: better always, worse by chance, NaN never.

    Args:
        score: of the other sparsities, larger is better; NaN is never accepted.
        current: score where the search is.
        temperature: above 0; the higher, the more often a worse score is accepted.
        generator: source of random numbers.

    Examples:
        >>> accepts(0.9, 0.8, 20, random.Random(0)), accepts(math.nan, 0.8, 20, random.Random(0))
        (True, False)
    """
    if not math.isfinite(score):
        return False
    if score > current or not math.isfinite(current):
        return True
    return generator.random() < math.exp(-abs(score - current) / temperature)


def _by_size(sparsities: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Return the given sparsities in layer order, dealt out so that larger layers get more."""
    ordered = sorted(sparsities)
    found = [0.0] * len(sizes)
    for sparsity, index in zip(ordered, _ascending(sizes), strict=True):
        found[index] = sparsity
    return found


def _ascending(sizes: Sequence[int]) -> list[int]:
    return sorted(range(len(sizes)), key=sizes.__getitem__)


def _fitted(
    sparsities: Sequence[float], sizes: Sequence[int], total: float, limits: Sequence[float]
) -> list[float]:
    """Return the sparsities scaled to a total, each within its limit.

    Layers that would exceed their limit get it, and the others share the rest.
    """
    found = list(sparsities)
    free = list(range(len(sizes)))
    budget = total * sum(sizes)
    while free:
        scaled = _scaled([found[one] for one in free], [sizes[one] for one in free], budget)
        for index, one in zip(free, scaled, strict=True):
            found[index] = one
        above = [index for index in free if found[index] > limits[index] + _TOLERANCE]
        if not above:
            return found
        for index in above:
            found[index] = limits[index]
            budget -= limits[index] * sizes[index]
        free = [index for index in free if index not in above]
    return found


def _scaled(sparsities: Sequence[float], sizes: Sequence[int], budget: float) -> list[float]:
    """Return the sparsities scaled to remove `budget` weights in all, each at most 1.

    They are multiplied by a factor. Where one would reach 1, the parts that stay are multiplied
    instead, so that all stay below 1.
    """
    whole = sum(sizes)
    budget = min(max(budget, 0.0), whole)
    current = sum(one * size for one, size in zip(sparsities, sizes, strict=True))
    if current > 0:
        scaled = [one * budget / current for one in sparsities]
        if max(scaled) < 1:
            return scaled
    kept = sum((1 - one) * size for one, size in zip(sparsities, sizes, strict=True))
    return [1 - (1 - one) * (whole - budget) / kept for one in sparsities]
