"""Surrogates of earlier searches, each of the ranks of its own results.

The results of one search are replaced by the normal quantiles of their ranks, since the scales of
related tasks differ. A Gaussian process of these scores predicts where the search found good
results; far from all of them it returns the mean.

Shapes: n results, f features, a axes, m predictions.

Source: rank-based scores of several data sets: Bardenet, Brendel, Kegl and Sebag, Collaborative
Hyperparameter Tuning, ICML 2013; one surrogate a task: Feurer, Letham and Bakshy, Scalable
Meta-Learning for Bayesian Optimization Using Ranking-Weighted Gaussian Process Ensembles, 2018.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.gp_regression import (
    GPPosterior,
    Kernel,
    fit_hyperparameters,
    gp_posterior,
    initial_hyperparameters,
)
from nni.hpo.models.matern import Matern
from nni.hpo.models.subsets import quantile_subset

MOST_RESULTS: Final = 80
"""Results of one search that its surrogate is conditioned on, at most."""
_FEWEST_RESULTS: Final = 3
"""Results below which a search says too little."""
_EVALUATIONS: Final = 12
"""Evaluations of the density of hyperparameters."""
_LEAST_NOISE: Final = 1e-4
"""Least noise variance of scores, relative to their scale: ranks are no smooth function."""
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class EarlierTask:
    """Surrogate of the scores of one earlier search."""

    columns: Ints
    """Features of the new space that the search had, ascending."""
    axes: Ints
    """Axes of the new space that these features belong to, ascending."""
    hyperparameters: Floats
    """`(a + 2,)` of the process over these axes."""
    posterior: GPPosterior

    def scores(self, features: Floats) -> Floats:
        """Return the predicted scores `(m,)` at `(m, f)` features of the new space; less is better.

        Features that the search did not have are not regarded.
        """
        return self.posterior.predict(features[:, self.columns])[0]


def normal_scores(losses: Floats) -> Floats:
    """Return the normal quantiles `(n,)` of the ranks of losses `(n,)`; equal losses share one."""
    _, places, counts = np.unique(losses, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - 0.5 * counts
    quantiles = [_NORMAL.inv_cdf(float(middle) / len(losses)) for middle in middles]
    return np.array(quantiles)[places]


def earlier_task(
    features: Floats, known: Ints, feature_axes: Ints, losses: Floats
) -> EarlierTask | None:
    """Return the surrogate of a search; None if it has too few results, or all are equal.

    Args:
        features: `(n, f)` of its results in the new space.
        known: axes of the new space that the search had, ascending.
        feature_axes: `(f,)`, the axis of each feature.
        losses: `(n,)`, finite; on any scale.
    """
    columns = np.flatnonzero(np.isin(feature_axes, known))
    if len(losses) < _FEWEST_RESULTS or losses.min() == losses.max() or not len(columns):
        return None
    kept = quantile_subset(losses, MOST_RESULTS)
    scores = normal_scores(losses)[kept]
    inputs = features[kept][:, columns]
    kernel = transfer_kernel(np.searchsorted(known, feature_axes[columns]))
    start = initial_hyperparameters(kernel.axes)
    parameters = fit_hyperparameters(inputs, scores, kernel, [start], evaluations=_EVALUATIONS)
    return EarlierTask(columns, known, parameters, gp_posterior(inputs, scores, kernel, parameters))


def transfer_kernel(feature_axes: Ints) -> Kernel:
    """Return the kernel of scores over features `(f,)` of the given axes."""
    return Kernel(feature_axes, Matern.of(2.5), _LEAST_NOISE)
