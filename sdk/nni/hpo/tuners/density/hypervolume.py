"""Hypervolume of results, and the subset of a given size that dominates most of it.

The dominated volume is measured along rays from the reference point into the space: a result
reaches along a ray as far as the ray stays in what the result dominates, and the volume is
proportional to the mean of the reach to the power of the number of objectives. One formula serves
any number of objectives, and the gain of one more result is a difference of maxima.

Source: Deng and Zhang, Approximating Hypervolume and Hypervolume Contributions Using Polar
Coordinate, IEEE Transactions on Evolutionary Computation 23(5), 2019.
"""

from functools import cache
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints

_RAYS: Final = 128
_PLANE: Final = 2
_MARGIN: Final = 0.1
"""Distance of the reference point beyond the worst losses, in units of their range."""
_SEED: Final = 20_111
"""Seed of the rays in more than two dimensions, which are always the same."""


def reaches(losses: Floats) -> Floats:
    """Return the length that each result dominates along each ray, to the power m, `(k, r)`.

    Args:
        losses: `(k, m)`, k >= 1, smaller is better; every objective is scaled by its range here.
    """
    worst = losses.max(axis=0)
    extent = worst - losses.min(axis=0)
    depth = (worst - losses) / np.where(extent > 0, extent, 1.0) + _MARGIN
    lengths: Floats = (depth[:, None, :] / _rays(losses.shape[1])).min(axis=2)
    volumes: Floats = lengths ** losses.shape[1]
    return volumes


def spread_choice(volumes: Floats, count: int) -> Ints:
    """Return `(count,)` positions of results that together dominate most, in greedy order.

    Each next result adds most to those before; the volume is at least 63 % of the optimum.

    Args:
        volumes: `(k, r)` of `reaches`.
        count: from 1 to k.
    """
    covered = np.zeros(volumes.shape[1])
    chosen = np.empty(count, dtype=np.int64)
    free = np.ones(len(volumes), dtype=bool)
    for turn in range(count):
        gains = np.maximum(volumes - covered, 0.0).sum(axis=1)
        chosen[turn] = place = int(np.where(free, gains, -1.0).argmax())
        free[place] = False
        np.maximum(covered, volumes[place], out=covered)
    return chosen


def contributions(volumes: Floats) -> Floats:
    """Return the volume `(k,)` that only this result dominates; equal results have none.

    Args:
        volumes: `(k, r)` of `reaches`; k >= 1.
    """
    if len(volumes) == 1:
        only: Floats = volumes.sum(axis=1)
        return only
    ordered = np.partition(volumes, len(volumes) - 2, axis=0)
    second, first = ordered[-2], ordered[-1]
    gains: Floats = np.where(volumes == first, first - second, 0.0).sum(axis=1)
    return gains


@cache
def _rays(objectives: int) -> Floats:
    """Return `(r, m)` unit vectors, all components > 0, spread over all directions."""
    if objectives == _PLANE:
        angles = (np.arange(_RAYS) + 0.5) * (0.5 * np.pi / _RAYS)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rays = np.abs(np.random.default_rng(_SEED).standard_normal((_RAYS, objectives))) + 1e-9
    unit: Floats = rays / np.linalg.norm(rays, axis=1, keepdims=True)
    return unit
