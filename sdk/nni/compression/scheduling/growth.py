"""Growth of sparsity over the iterations of a pruning: pure functions of numbers, without torch."""

import math
from typing import Final

_ROUNDING: Final = 1e-12
"""Added to a quotient, so that its product with a count is not rounded down to one too few."""


def linear_part(iteration: int, iterations: int) -> float:
    """Return the part of the final ratio after an iteration, in equal increments.

    Args:
        iteration: from 0 (nothing is masked) to `iterations`.
        iterations: number of iterations, >= 1.

    Examples:
        >>> [0.5 * linear_part(iteration, 5) for iteration in range(6)]
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    """
    return iteration / iterations


def agp_part(iteration: int, iterations: int) -> float:
    """Return the part of the final ratio after an iteration, with the largest increments first.

    Args:
        iteration: from 0 (nothing is masked) to `iterations`.
        iterations: number of iterations, >= 1.

    Source: Zhu and Gupta, To prune, or not to prune, 2017, equation 1.

    Examples:
        >>> [agp_part(iteration, 2) for iteration in range(3)]
        [0.0, 0.875, 1.0]
    """
    return 1 - (1 - iteration / iterations) ** 3


def agp_part_of_epoch(epoch: int, epochs: int, interval: int) -> float:
    """Return the part of the final ratio after an epoch, where masks change every few epochs.

    Args:
        epoch: from 0, a multiple of `interval`; the last update reaches the final ratio.
        epochs: number of epochs in all, >= 1.
        interval: epochs between two updates, >= 1.

    Source: as `agp_part`; the schedule of NNI 1.x, whose span ends at the last update.

    Examples:
        >>> [round(0.8 * agp_part_of_epoch(epoch, 10, 2), 4) for epoch in range(0, 10, 2)]
        [0.0, 0.4625, 0.7, 0.7875, 0.8]
    """
    span = (epochs - 1) // interval * interval
    return 1.0 if span == 0 else agp_part(min(epoch, span), span)


def lottery_ratio(final: float, iteration: int, iterations: int) -> float:
    """Return the ratio after an iteration that masks the same part of what is left as all others.

    Args:
        final: ratio after the last iteration, in [0, 1).
        iteration: from 0 to `iterations`.
        iterations: number of iterations, >= 1.

    Source: Frankle and Carbin, The Lottery Ticket Hypothesis, 2019, section 1.

    Examples:
        >>> [round(lottery_ratio(0.8, iteration, 5), 4) for iteration in range(1, 6)]
        [0.2752, 0.4747, 0.6193, 0.7241, 0.8]
    """
    if iteration == iterations:
        return final  # without the rounding error of the power
    return 1 - math.pow(1 - final, iteration / iterations)


def ratio_of_rest(target: float, removed: float) -> float:
    """Return the ratio to mask of what is left, so that a target of the original is reached.

    Args:
        target: part of the original that is to be gone, in [0, 1].
        removed: part of the original that is removed already, in [0, 1).

    Examples:
        >>> round(ratio_of_rest(0.8, 0.7), 4)
        0.3333
        >>> ratio_of_rest(0.5, 0.7)
        0.0
    """
    if target <= removed:
        return 0.0
    rest = (target - removed) / (1 - removed)
    return rest if removed == 0 else min(rest + _ROUNDING, 1.0)
