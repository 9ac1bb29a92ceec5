"""Selections of results for a model that cannot use all of them.

Source of the farthest-first order: Gonzalez, Clustering to Minimize the Maximum Intercluster
Distance, Theoretical Computer Science 38, 1985.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints

_BEST_SHARE: Final = 0.3
"""Share of the best results in a covering subset."""
_MOST_REGARDED: Final = 2000
"""Number of the other results that are regarded: an ask must not cost more as history grows."""


def covering_subset(inputs: Floats, losses: Floats, limit: int) -> Ints:
    """Return ascending positions of at most `limit` results: the best ones, and a covering.

    Beside the best ones, each further result is the farthest from all that are chosen already. A
    choice by losses alone would leave regions empty, where a model would return to its prior.

    Args:
        inputs: `(n, f)`.
        losses: `(n,)`; of equal ones the earlier result is better.
        limit: >= 1.
    """
    order = np.argsort(losses, kind="stable")
    if len(order) <= limit:
        return np.arange(len(order))
    best = max(1, int(limit * _BEST_SHARE))
    kept, rest = order[:best], np.sort(order[best:])
    missing = limit - best
    if len(rest) > max(_MOST_REGARDED, missing):
        places = np.linspace(0, len(rest) - 1, max(_MOST_REGARDED, missing))
        rest = rest[places.round().astype(np.int64)]
    return np.sort(
        np.concatenate([kept, rest[_farthest_first(inputs[rest], inputs[kept], missing)]])
    )


def quantile_subset(losses: Floats, limit: int) -> Ints:
    """Return positions of at most `limit` results: the best half, and quantiles of the rest.

    The second half is spread evenly over the remaining results in the order of their losses.

    Args:
        losses: `(n,)`; of equal ones the earlier result is better.
        limit: >= 1.
    """
    order = np.argsort(losses, kind="stable")
    if len(order) <= limit:
        return np.arange(len(order))
    best = limit // 2
    spread = np.linspace(best, len(order) - 1, limit - best).round().astype(np.int64)
    return np.sort(np.concatenate([order[:best], order[spread]]))


def _farthest_first(inputs: Floats, kept: Floats, count: int) -> Ints:
    """Return positions of `count` `(n, f)` inputs, each farthest from `kept` and those before."""
    distances = np.full(len(inputs), np.inf)
    for other in kept:
        np.minimum(distances, ((inputs - other) ** 2).sum(axis=1), out=distances)
    chosen = np.empty(count, dtype=np.int64)
    for place in range(count):
        index = chosen[place] = int(distances.argmax())
        np.minimum(distances, ((inputs - inputs[index]) ** 2).sum(axis=1), out=distances)
        distances[index] = -1.0  # not again, also where the others lie at the same place
    return chosen
