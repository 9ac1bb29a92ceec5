"""Expected hypervolume improvement of normal predictions of several losses.

Pure arithmetic: n results of k losses, m predictions, b boxes. The non-dominated region, up to a
reference, is cut into boxes. A result y takes from a box with the corners l and u the product over
the losses of `max(0, u - max(l, y))`; where the predictions of losses are normal and independent,
the mean of that is a product of differences of expected improvements.

Source: Yang, Emmerich, Deutz and Back, Efficient Computation of Expected Hypervolume Improvement
Using Box Decomposition Algorithms, Journal of Global Optimization 75, 2019, section 3; the
logarithm as in Ament et al., Unexpected Improvements to Expected Improvement, NeurIPS 2023.

Departures: of more than two losses, all but the first two are rounded down to a few values before
boxes are made, which keeps them few and never counts volume that is dominated already.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.normal_distribution import (
    log_normal_cdf,
    log_normal_density,
    log_unit_improvement,
)

_LEVELS: Final = {3: 16, 4: 6}
"""By how many losses there are, the values to which one of them is rounded."""
_FEW_LEVELS: Final = 3
"""The same for more losses."""
_EXACT: Final = 2
"""Losses up to which nothing is rounded."""
_NEVER: Final = -1e30
"""Logarithm of no volume: finite, so that differences of it are numbers."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Disjoint boxes between the corners of known results and a reference."""

    edges: tuple[Floats, ...]
    """Per loss `(e,)`, ascending ends of intervals; the first is minus infinity."""
    low: Ints
    """`(b, k)`, positions of the lower ends among the edges."""
    high: Ints
    """`(b, k)`, of the upper ends."""


def non_dominated_boxes(front: Floats, reference: Floats) -> Boxes:
    """Return the non-dominated region cut into boxes, coarser for many objectives.

    Args:
        front: `(n, k)`, finite losses; dominated results may be among them.
        reference: `(k,)`, upper corner of the region.
    """
    count = len(reference)
    inside = front[(front < reference).all(axis=1)]
    levels = None if count <= _EXACT else _LEVELS.get(count, _FEW_LEVELS)
    boxes = np.array(list(_boxes(inside, reference, levels)))  # (b, k, 2)
    edges, places = [], []
    for axis in range(count):
        values, place = np.unique(boxes[:, axis, :], return_inverse=True)
        edges.append(values)
        places.append(place.reshape(len(boxes), 2))
    ends = np.stack(places, axis=1)
    return Boxes(tuple(edges), ends[:, :, 0], ends[:, :, 1])


def _boxes(
    front: Floats, reference: Floats, levels: int | None
) -> Iterator[list[tuple[float, float]]]:
    """Yield each box as intervals of the losses: slabs of the last loss, cut in turn."""
    if len(reference) == 1:
        yield [(-np.inf, float(front[:, 0].min(initial=reference[0])))]
        return
    last = front[:, -1]
    cuts = np.unique(last)
    if levels is not None and len(reference) > _EXACT and len(cuts) > levels:
        cuts = cuts[np.linspace(0, len(cuts) - 1, levels).round().astype(np.int64)]
    for low, high in pairwise([-np.inf, *cuts.tolist(), float(reference[-1])]):
        for inner in _boxes(front[last < high, :-1], reference[:-1], levels):
            yield [*inner, (low, high)]


def log_hypervolume_improvement(means: Floats, deviations: Floats, boxes: Boxes) -> Floats:
    """Return the logarithm of the expected hypervolume improvement, `(m,)`.

    Args:
        means: `(m, k)` of the losses.
        deviations: `(m, k)`, > 0.
        boxes: the non-dominated region.
    """
    total = np.zeros((len(means), len(boxes.low)))
    for axis, edges in enumerate(boxes.edges):
        improvements = _log_improvements(means[:, axis], deviations[:, axis], edges)
        total += _log_widths(improvements, boxes, axis)
    most = total.max(axis=1)
    volume: Floats = most + np.log(np.exp(total - most[:, None]).sum(axis=1))
    return volume


def hypervolume_improvement_derivatives(
    mean: Floats, deviation: Floats, boxes: Boxes
) -> tuple[float, Floats, Floats]:
    """Return the log improvement of one prediction, and derivatives `(k,)` by mean and deviation.

    Args:
        mean: `(k,)` of the losses.
        deviation: `(k,)`, > 0.
        boxes: the non-dominated region.
    """
    widths = np.empty((len(mean), len(boxes.low)))
    by_mean, by_deviation = np.empty_like(widths), np.empty_like(widths)
    for axis, edges in enumerate(boxes.edges):
        low, high = boxes.low[:, axis], boxes.high[:, axis]
        improvements = _log_improvements(mean[axis, None], deviation[axis, None], edges)
        width = widths[axis] = _log_widths(improvements, boxes, axis)[0]
        z = (edges - mean[axis]) / deviation[axis]
        # The derivatives of an expected improvement: by the mean -Phi(z), by the deviation phi(z).
        chance = np.concatenate([[_NEVER], log_normal_cdf(z[1:])])
        density = np.concatenate([[_NEVER], log_normal_density(z[1:])])
        by_mean[axis] = np.exp(chance[low] - width) - np.exp(chance[high] - width)
        by_deviation[axis] = np.exp(density[high] - width) - np.exp(density[low] - width)
    logs = widths.sum(axis=0)
    most = float(logs.max())
    shares = np.exp(logs - most)
    total = float(shares.sum())
    shares /= total
    return most + float(np.log(total)), by_mean @ shares, by_deviation @ shares


def _log_improvements(means: Floats, deviations: Floats, edges: Floats) -> Floats:
    """Return logarithms of expected improvements up to edges, `(m, e)`; none up to the first."""
    z = (edges[None, 1:] - means[:, None]) / deviations[:, None]
    improvements = np.full((len(means), len(edges)), _NEVER)
    improvements[:, 1:] = np.log(deviations)[:, None] + log_unit_improvement(z)
    return improvements


def _log_widths(improvements: Floats, boxes: Boxes, axis: int) -> Floats:
    """Return logarithms of the mean lengths that a result takes from boxes, `(m, b)`."""
    low, high = improvements[:, boxes.low[:, axis]], improvements[:, boxes.high[:, axis]]
    # Edges that differ in the last digits only may have no difference at all.
    return high + np.log(-np.expm1(np.minimum(low - high, -1e-15)))
