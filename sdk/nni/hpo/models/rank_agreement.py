"""Agreement of earlier tasks with the results of a new one, by the order of the results.

Every result is compared with those before it: an earlier task errs in the share of the pairs that
its predictions put into the wrong order. The new task's own model is judged alike, by predictions
of each result from those before it. Predictors are weighted by the exponential of their errors;
two competitors bound the weight of the earlier tasks: the own model, and a random order.

Shapes: n results in the order of their arrival, k earlier tasks.

Source: Freund and Schapire, A Decision-Theoretic Generalization of On-Line Learning, 1997, section
2 (exponential weights); Feurer, Letham and Bakshy, Scalable Meta-Learning for Bayesian
Optimization Using Ranking-Weighted Gaussian Process Ensembles, 2018 (pairs in the wrong order, and
the own model as the threshold against dilution).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

_RATE: Final = 3.0
"""Decrease of a predictor's log weight for a result that is in the wrong order with all others."""
_MEMORY: Final = 0.9
"""Factor by which an error counts less with each further result."""
_RANDOM: Final = 0.5
"""Share of the pairs that a random order puts into the wrong one."""
_PRIORS: Final = (0.5, 0.25, 0.25)
"""Weights of the earlier tasks, the own model and a random order before there are results."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Weights of earlier tasks after some results of a new one."""

    weights: Floats
    """`(k,)` of the tasks, sum 1."""
    trust: float
    """Weight, in (0, 1), of the weighted tasks against the own model and a random order."""


def agreement(losses: Floats, scores: Floats, own: Floats) -> Agreement:
    """Return weights of earlier tasks by how well they order the losses, and trust in them.

    Args:
        losses: `(n,)`, on any scale; less is better.
        scores: `(n, k)`, predictions of the earlier tasks, each on a scale of its own.
        own: `(n,)`, prediction of each loss from those before it, on the scale of the losses.
    """
    above = losses[:, None] - losses[None, :]
    differences = [column[:, None] - column[None, :] for column in scores.T]
    differences.append(own[:, None] - losses[None, :])
    errors = np.stack([_errors(predicted, above) for predicted in differences])
    rates = _RATE * np.power(_MEMORY, np.arange(len(losses), dtype=np.float64)[::-1])
    rates[0] = 0.0  # the first result is compared with none
    logs = np.array([*(-errors @ rates), _log_weight_of_random_order(rates)])
    count = scores.shape[1]
    tasks, own_model, random = _PRIORS
    weights = np.array([tasks / count] * count + [own_model, random]) * np.exp(logs - logs.max())
    total = weights[:count].sum()
    return Agreement(weights[:count] / total, float(total / weights.sum()))


def _log_weight_of_random_order(rates: Floats) -> float:
    """Return the log of the mean weight of predictors that put each result at a random place.

    Tasks that say nothing have the same mean weight, so that trust in them rises by chance seldom.
    The weight of the mean error would be less: errors of single predictors scatter.

    Args:
        rates: `(n,)`, decrease of the log weight for an error of 1 at each result.
    """
    return sum(
        math.log(float(np.exp(-rate * np.arange(number + 1) / max(number, 1)).mean()))
        for number, rate in enumerate(rates)
    )


def _errors(predicted: Floats, above: Floats) -> Floats:
    """Return for each result the share of earlier ones that are on the wrong side of it, `(n,)`.

    Args:
        predicted: `(n, n)`, differences that are predicted of a result from each other one.
        above: `(n, n)`, the same as measured; pairs of equal losses are not counted.
    """
    counted = np.tril(above != 0, -1)
    wrong = 0.5 * (1.0 - np.sign(predicted) * np.sign(above))
    counts = counted.sum(axis=1)
    shares: Floats = (wrong * counted).sum(axis=1) / np.maximum(counts, 1)
    return np.where(counts > 0, shares, _RANDOM)
