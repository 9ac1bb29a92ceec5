"""Non-dominated sorting and crowding distances of results with several losses.

Standard library only: the dispatcher calls these functions in its own process.
"""

import math
from collections.abc import Sequence
from typing import Final

_PAIR: Final = 2


def pareto_front(losses: Sequence[Sequence[float]]) -> list[int]:
    """Return the ascending positions of the non-dominated results; equal ones are all on it.

    A result dominates another one if it is worse in no objective and better in at least one, so
    that equal results do not dominate each other.

    Args:
        losses: one tuple of finite numbers per result, all of one length >= 1; smaller is better.

    Returns:
        Positions in `losses`, ascending.

    Source: Kung, Luccio and Preparata, On Finding the Maxima of a Set of Vectors, 1975, for two
    objectives; for more, comparison with the front so far in lexicographic order.

    Examples:
        >>> from nni.hpo import pareto_front
        >>> pareto_front([(1, 3), (2, 2), (3, 3), (3, 1)])
        [0, 1, 3]
    """
    order = sorted(range(len(losses)), key=lambda index: tuple(losses[index]))
    if losses and len(losses[0]) == 1:
        best = losses[order[0]][0]
        return [index for index, loss in enumerate(losses) if loss[0] == best]
    if losses and len(losses[0]) == _PAIR:
        return sorted(_front_of_pairs(losses, order))
    front: list[int] = []
    for index in order:
        # In this order no result dominates an earlier one.
        if not any(dominates(losses[other], losses[index]) for other in front):
            front.append(index)
    return sorted(front)


def _front_of_pairs(losses: Sequence[Sequence[float]], order: list[int]) -> list[int]:
    front: list[int] = []
    for index in order:
        if not front:
            front.append(index)
            continue
        last = losses[front[-1]]
        if losses[index][1] < last[1] or tuple(losses[index]) == tuple(last):
            front.append(index)
    return front


def dominates(left: Sequence[float], right: Sequence[float]) -> bool:
    """Return whether `left` is worse than `right` in no objective and better in at least one."""
    return all(a <= b for a, b in zip(left, right, strict=True)) and any(
        a < b for a, b in zip(left, right, strict=True)
    )


def ranks(losses: Sequence[Sequence[float]]) -> list[int]:
    """Return the non-domination rank of each result: 0 for the Pareto front, 1 for the next, ...

    Args:
        losses: as for `pareto_front`.
    """
    found = [0] * len(losses)
    left = list(range(len(losses)))
    rank = 0
    while left:
        front = {left[position] for position in pareto_front([losses[i] for i in left])}
        for index in front:
            found[index] = rank
        left = [index for index in left if index not in front]
        rank += 1
    return found


def crowding_distances(front: Sequence[Sequence[float]]) -> list[float]:
    """Return each result's crowding distance, summed over scaled objectives; inf at extremes.

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
