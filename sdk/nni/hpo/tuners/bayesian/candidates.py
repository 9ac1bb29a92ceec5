"""Candidates of a search: where the maximisation of an acquisition function starts.

Shapes: m candidates, d axes.

Source of the region around the best vector: Eriksson, Pearce, Gardner, Turner and Poloczek,
Scalable Global Optimization via Local Bayesian Optimization, NeurIPS 2019, section 2.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey, vector_key
from nni.hpo.models.space_prior import SpacePrior

_STEPS: Final = (0.3, 0.1, 0.03, 0.01, 0.001)
"""Standard deviations of the steps from good vectors, for numbers."""
_LOCAL_STEPS: Final = (0.3, 0.1, 0.03, 0.01)
"""The same within a region, in shares of its sides."""
_FEWEST_MOVED: Final = 4
"""Axes that change, at least, in a candidate within a region."""
_SHARE_MOVED: Final = 0.3
"""Share of the axes that change there."""
_MOST_FLIPPED: Final = 0.5
_LEAST_FLIPPED: Final = 0.1
"""Bounds of the probability that an unordered choice is drawn anew there."""
_LENGTHSCALE_RATIOS: Final = (0.3, 3.0)
"""Bounds of a side of the region, relative to their geometric mean."""
_DISTINCT: Final = 1e-5
"""Greatest difference in any coordinate up to which two candidates count as one."""


@dataclass(frozen=True, slots=True)
class Region:
    """Box of coordinates within which numbers may change."""

    low: Floats
    """`(d,)`"""
    high: Floats
    """`(d,)`"""


def whole_region(space: EncodedSpace) -> Region:
    """Return the region that is the whole space."""
    return Region(np.zeros(len(space)), np.ones(len(space)))


def region_around(centre: Floats, lengthscales: Floats, size: float, least: Floats) -> Region:
    """Return a box around a vector `(d,)`, longer where the function changes slowly.

    Args:
        centre: of the box.
        lengthscales: `(d,)`.
        size: geometric mean of the sides, in coordinates.
        least: `(d,)`, least distance of a side from the centre.
    """
    ratios = np.clip(lengthscales / np.exp(np.log(lengthscales).mean()), *_LENGTHSCALE_RATIOS)
    reach = np.maximum(0.5 * size * ratios, least)
    return Region(np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1))


def global_candidates(
    space: EncodedSpace,
    good: Floats,
    count: int,
    rng: np.random.Generator,
    prior: SpacePrior | None = None,
) -> Floats:
    """Return candidates: half from the distribution of the space, half near good vectors.

    Args:
        space: of the candidates.
        good: `(k, d)`; if there are none, all are from the distribution of the space.
        count: >= 1.
        rng: of the draws.
        prior: user priors, of which half of the former are drawn; None for none.

    Returns:
        `(m, d)`, m is `count`.
    """
    near = _near(space, good, count // 2, rng)
    drawn = space.sample_filled(rng, count - len(near))
    if prior is not None:
        drawn[::2] = prior.redrawn(drawn[::2], rng)
    return np.concatenate([space.snap(drawn), space.snap(near)])


def local_candidates(
    space: EncodedSpace,
    centre: Floats,
    region: Region,
    size: float,
    count: int,
    rng: np.random.Generator,
) -> Floats:
    """Return `count` candidates `(m, d)` in a region, each with a few coordinates changed.

    Args:
        space: of the candidates.
        centre: `(d,)`, the vector that they differ from.
        region: around the centre.
        size: geometric mean of its sides; unordered choices change less in a small region.
        count: >= 1.
        rng: of the draws.
    """
    dimensions = len(space)
    start = space.fill_inactive(np.repeat(centre[None, :], count, axis=0), rng)
    sides = region.high - region.low
    scales = np.array(_LOCAL_STEPS)[rng.integers(len(_LOCAL_STEPS), size=count)][:, None]
    moved = np.clip(
        start + scales * sides * rng.standard_normal(start.shape), region.low, region.high
    )
    half = count // 2
    moved[:half] = region.low + sides * rng.random((half, dimensions))
    share = min(1.0, max(_FEWEST_MOVED, _SHARE_MOVED * dimensions) / dimensions)
    mask = rng.random(start.shape) < share
    mask[np.arange(count), rng.integers(dimensions, size=count)] = True
    flip = min(_MOST_FLIPPED, max(0.5 * size, _LEAST_FLIPPED))
    mask &= space.ordered | (rng.random(start.shape) < flip)
    wanted = np.where(space.ordered, moved, space.sample_filled(rng, count))
    return space.snap(np.where(mask, wanted, start))


def option_candidates(
    space: EncodedSpace,
    good: Floats,
    chosen: tuple[int, int],
    count: int,
    rng: np.random.Generator,
) -> Floats:
    """Return `count` candidates `(m, d)` with one option of a choice, half near good vectors.

    Args:
        space: of the candidates.
        good: `(k, d)` vectors with that option, near which half of them lie; may be empty.
        chosen: the axis and the coordinate of the option.
        count: >= 1.
        rng: of the draws.
    """
    near = space.fill_inactive(_near(space, good, count // 2, rng), rng)
    filled = np.concatenate([space.sample_filled(rng, count - len(near)), near])
    return space.with_option(filled, *chosen)


def distinct(candidates: Floats, count: int) -> list[Floats]:
    """Return up to `count` candidates, in order, without those nearly equal to an earlier one."""
    chosen: list[Floats] = []
    for candidate in candidates:
        if len(chosen) == count:
            break
        if all(np.abs(candidate - other).max(initial=0.0) > _DISTINCT for other in chosen):
            chosen.append(candidate)
    return chosen


def best_untaken(
    space: EncodedSpace, candidates: Floats, values: Floats, taken: set[VectorKey]
) -> Floats | None:
    """Return the allowed candidate `(d,)` of greatest value that is not taken; None if none is.

    Args:
        space: of the candidates.
        candidates: `(m, d)`.
        values: `(m,)`; of equal ones the first candidate wins.
        taken: keys of vectors that must not be returned.
    """
    for index in np.argsort(-values, kind="stable"):
        if vector_key(candidates[index]) not in taken and space.allows(candidates[index]):
            chosen: Floats = candidates[index]
            return chosen
    return None


def _near(space: EncodedSpace, good: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return `(count, d)` filled coordinates near good vectors; none if there are no such."""
    if not len(good):
        return np.empty((0, len(space)))
    centres = space.fill_inactive(good[rng.integers(len(good), size=count)], rng)
    scales = np.array(_STEPS)[rng.integers(len(_STEPS), size=count)][:, None]
    moved = centres + scales * rng.standard_normal(centres.shape)
    wanted = np.where(space.ordered, moved, space.sample_filled(rng, count))
    # Most steps change some coordinates only, as most parameters matter little.
    changed = rng.random(centres.shape) < rng.random((count, 1))
    return np.where(changed, wanted, centres)
