"""Crossover and mutation of two points of an encoded space.

Source: Deb and Agrawal, Simulated Binary Crossover for Continuous Search Space, 1995; Deb and
Goyal, A Combined Genetic Adaptive Search, 1996, for the mutation; both bounded, as in NSGA-II.

Departures: parameters that are active in one parent only are drawn for the other one first, so that
a child of two branches is complete.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace

_CROSSING: Final = 0.9
"""Probability of crossover; else the child is a copy of the first parent."""
_CROSSING_INDEX: Final = 10.0
_MUTATION_INDEX: Final = 20.0
"""Distribution index; the larger, the nearer children are to their parents."""
_ALIKE: Final = 1e-12


def child_of(space: EncodedSpace, parents: Floats, rng: np.random.Generator) -> Floats:
    """Return a child `(d,)` of two parents by crossover and mutation, rounded to the space.

    Args:
        space: the space, with at least one parameter.
        parents: `(2, d)`; the child is more like the first.
        rng: of the draws.
    """
    filled = space.fill_inactive(parents, rng)
    child = _crossed(space, filled, rng) if rng.random() < _CROSSING else filled[0].copy()
    changes = rng.random(len(space)) < 1.0 / len(space)
    changes[rng.integers(len(space))] |= bool((child == filled[0]).all())
    drawn = space.sample_filled(rng, 1)[0]
    mutated = np.where(space.ordered, _mutated(child, rng), drawn)
    wanted = np.where(changes, mutated, child)
    snapped: Floats = space.snap(wanted[None, :])[0]
    return snapped


def _crossed(space: EncodedSpace, parents: Floats, rng: np.random.Generator) -> Floats:
    """Return a child `(d,)` by simulated binary crossover; half of the coordinates take part."""
    first, second = parents
    u = rng.random(len(space))
    power = 1.0 / (_CROSSING_INDEX + 1.0)
    spread = np.where(u <= 0.5, (2 * u) ** power, (1.0 / (2 * (1 - u))) ** power)  # noqa: PLR2004 - half
    swap = np.where(rng.random(len(space)) < 0.5, 1.0, -1.0)  # noqa: PLR2004 - half
    mixed = 0.5 * (first + second) + 0.5 * swap * spread * (first - second)
    takes_part = (rng.random(len(space)) < 0.5) & (np.abs(first - second) > _ALIKE)  # noqa: PLR2004 - half
    chosen = np.where(space.ordered, np.clip(mixed, 0.0, 1.0), second)
    child: Floats = np.where(takes_part, chosen, first)
    return child


def _mutated(point: Floats, rng: np.random.Generator) -> Floats:
    """Return the polynomial mutation of all coordinates `(d,)`, clipped to [0, 1]."""
    inside = np.clip(point, 0.0, 1.0)
    u = rng.random(len(point))
    power = 1.0 / (_MUTATION_INDEX + 1.0)
    below = (2 * u + (1 - 2 * u) * (1 - inside) ** (_MUTATION_INDEX + 1)) ** power - 1
    above = 1 - (2 * (1 - u) + (2 * u - 1) * inside ** (_MUTATION_INDEX + 1)) ** power
    return np.clip(inside + np.where(u < 0.5, below, above), 0.0, 1.0)  # noqa: PLR2004 - half
