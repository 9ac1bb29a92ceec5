"""How results stand to each other that have several losses; standard library only."""

import math
from collections.abc import Sequence


def crowding_distances(front: Sequence[Sequence[float]]) -> list[float]:
    """Return how far each result is from its neighbours, summed up over the objectives.

    Args:
        front: one tuple of finite losses per result, all of one length.

    Returns:
        A number per result, infinite for the ends of the front.

    Source: Deb et al., A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II, IEEE
    Transactions on Evolutionary Computation 6(2), 2002, section III B.
    """
    room = [0.0] * len(front)
    for axis in range(len(front[0]) if front else 0):
        order = sorted(range(len(front)), key=lambda index: front[index][axis])
        extent = front[order[-1]][axis] - front[order[0]][axis]
        room[order[0]] = room[order[-1]] = math.inf
        for before, index, after in zip(order, order[1:], order[2:], strict=False):
            if extent > 0:
                room[index] += (front[after][axis] - front[before][axis]) / extent
    return room
