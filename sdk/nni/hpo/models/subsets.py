"""Which results a model is made of when there are too many for all of them.

Source of the order: Gonzalez, Clustering to Minimize the Maximum Intercluster Distance, Theoretical
Computer Science 38, 1985.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints

_BEST_SHARE: Final = 0.3
"""Share of the best results among those that are kept."""
_MOST_FROM: Final = 2000
"""Of the other results, how many are looked at: an ask must not cost more as history grows."""


def covering(points: Floats, losses: Floats, limit: int) -> Ints:
    """Return the ascending positions of at most `limit` results that stand for all.

    The best ones, and of the others those that lie farthest from all that are kept already. Chosen
    by their losses instead, the others would leave whole regions empty, of which a model would
    believe what it believes of any place.

    Args:
        points: `(n, d)`.
        losses: `(n,)`; of equal ones the earlier result is better.
        limit: >= 1.
    """
    order = np.argsort(losses, kind="stable")
    if len(order) <= limit:
        return np.arange(len(order))
    best = max(1, int(limit * _BEST_SHARE))
    kept, rest = order[:best], np.sort(order[best:])
    missing = limit - best
    if len(rest) > max(_MOST_FROM, missing):
        places = np.linspace(0, len(rest) - 1, max(_MOST_FROM, missing))
        rest = rest[places.round().astype(np.int64)]
    return np.sort(np.concatenate([kept, rest[_farthest(points[rest], points[kept], missing)]]))


def _farthest(points: Floats, kept: Floats, count: int) -> Ints:
    """Return positions of `count` of `(n, d)` points, each the farthest from those before."""
    away = np.full(len(points), np.inf)
    for other in kept:
        np.minimum(away, ((points - other) ** 2).sum(axis=1), out=away)
    chosen = np.empty(count, dtype=np.int64)
    for place in range(count):
        index = chosen[place] = int(away.argmax())
        np.minimum(away, ((points - points[index]) ** 2).sum(axis=1), out=away)
        away[index] = -1.0  # not again, also where the others lie at the same point
    return chosen
