"""Model of a task's own results whose prior mean comes from surrogates of earlier tasks.

Losses are modelled as `a + s (M + D + g)`: M is the weighted mean of the earlier surrogates, D a
random combination of their differences from it, g a Gaussian process, and the scale s is fitted.
Of several hypotheses on the sizes of D, g and the noise, the most likely one is used.

Shapes: n own results, f features, k earlier tasks, m predictions.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 2.7 (basis
functions with a normal prior of their weights); Golovin et al., Google Vizier, KDD 2017, section
3.3 (a stack of regressors).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.earlier_tasks import EarlierTask, transfer_kernel
from nni.hpo.models.gp_regression import Kernel, correlations, initial_hyperparameters
from nni.hpo.models.rank_agreement import agreement
from nni.hpo.models.targets import warped

_OFFSET_VARIANCE: Final = 10.0
"""Prior variance of the constant a, relative to the scale."""
_SCALES: Final = np.exp(np.linspace(-2.5, 2.5, 21))
"""Scales s that are compared, relative to the deviation of the own results."""
_SCALE_DEVIATION: Final = 1.0
"""Deviation of the prior of log s."""
_AMPLITUDES: Final = (0.03, 0.1, 0.3, 1.0, 10.0)
"""Variances of g that are compared."""
_DIFFERENCES: Final = (0.0, 1.0)
"""Variances of the weights of D that are compared, times the number of tasks."""
_NOISES: Final = (1e-5, 1e-2)
"""Noise variances that are compared, relative to the variance of g."""
_SEQUENTIAL_NOISE: Final = 1e-2
"""Noise variance of the process that predicts each result from those before it."""
_LEAST_VARIANCE: Final = 1e-12
_JITTER: Final = 1e-8
"""Variance added to the diagonal, so that the matrix can be factorised."""


@dataclass(frozen=True, slots=True)
class _Hypothesis:
    """Hypothesis of the transfer model's variances: amplitude, task differences, noise."""

    amplitude: float
    differences: float
    noise: float


_HYPOTHESES: Final = tuple(
    _Hypothesis(amplitude, differences, noise)
    for amplitude in _AMPLITUDES
    for differences in _DIFFERENCES
    for noise in _NOISES
)


class TransferPosterior:
    """Prediction of own losses on the model's scale, as `TransferModel` returns it."""

    def __init__(
        self,
        prior: "_WeightedTasks",
        hypothesis: _Hypothesis,
        scale: float,
        trust: float,
        features: Floats,
        targets: Floats,
    ) -> None:
        self._prior, self._hypothesis, self._scale = prior, hypothesis, scale
        self._features, self._targets = features, targets
        self._bases = prior.bases(features)
        self._factor = prior.factor(hypothesis, features, self._bases)
        residuals = targets - scale * prior.means(self._bases)
        self._residual_weights = np.linalg.solve(
            self._factor.T, np.linalg.solve(self._factor, residuals)
        )
        self.trust: Final = trust
        """Weight, in (0, 1), of the earlier tasks, see `Agreement`."""
        self.incumbent: Final = float(self.predict(features)[0].min())
        """Least mean that is predicted at the results."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of own losses, free of noise."""
        bases = self._prior.bases(features)
        across = self._prior.covariance(
            self._hypothesis, (self._features, self._bases), (features, bases)
        )
        solved = np.linalg.solve(self._factor, across)
        own = self._prior.variances(self._hypothesis, bases)
        means: Floats = self._scale * self._prior.means(bases) + across.T @ self._residual_weights
        variances = np.maximum(own - (solved * solved).sum(axis=0), _LEAST_VARIANCE)
        return means, self._scale * np.sqrt(variances)

    def with_pending(self, features: Floats) -> "TransferPosterior":
        """Return the model as if running trials had come out as predicted.

        Args:
            features: `(r, f)` of the running trials.
        """
        return TransferPosterior(
            self._prior,
            self._hypothesis,
            self._scale,
            self.trust,
            np.concatenate([self._features, features]),
            np.concatenate([self._targets, self.predict(features)[0]]),
        )


class TransferModel:
    """Model of own losses over the surrogates of earlier tasks.

    Args:
        tasks: one or more earlier tasks.
        feature_axes: `(f,)`, the axis of each feature of the space.
    """

    def __init__(self, tasks: Sequence[EarlierTask], feature_axes: Ints) -> None:
        self._tasks = tuple(tasks)
        self._kernel: Kernel = transfer_kernel(feature_axes)
        self._parameters = _typical_hyperparameters(self._tasks, self._kernel.axes)

    def fit(self, features: Floats, losses: Floats) -> TransferPosterior:
        """Return the model of the most probable hypothesis, with tasks weighted by agreement.

        Args:
            features: `(n, f)` of own results in the order of their arrival, n >= 2.
            losses: `(n,)`, finite.
        """
        targets = warped(losses)
        bases = np.stack([task.scores(features) for task in self._tasks], axis=1)
        found = agreement(targets, bases, self._sequential_predictions(features, targets))
        prior = _WeightedTasks(self._tasks, found.weights, self._kernel, self._parameters)
        means = prior.means(bases)
        best = (-np.inf, _HYPOTHESES[0], 1.0)
        for hypothesis in _HYPOTHESES:
            densities = _log_densities(prior.factor(hypothesis, features, bases), targets, means)
            at = int(densities.argmax())
            if densities[at] > best[0]:
                best = (float(densities[at]), hypothesis, float(_SCALES[at]))
        return TransferPosterior(prior, best[1], best[2], found.trust, features, targets)

    def _sequential_predictions(self, features: Floats, targets: Floats) -> Floats:
        """Return the prediction of each target `(n,)` by a process of those before it."""
        matrix = correlations(features, features, self._kernel, self._parameters)
        matrix[np.diag_indices(len(matrix))] += _SEQUENTIAL_NOISE
        factor = np.linalg.cholesky(matrix)
        predictions: Floats = targets - np.diag(factor) * np.linalg.solve(factor, targets)
        return predictions


class _WeightedTasks:
    """Prior of own losses: weighted mean of earlier tasks, their differences, and a process."""

    def __init__(
        self, tasks: Sequence[EarlierTask], weights: Floats, kernel: Kernel, parameters: Floats
    ) -> None:
        self._tasks, self._weights = tasks, weights
        self._kernel, self._parameters = kernel, parameters

    def bases(self, features: Floats) -> Floats:
        """Return the scores `(m, k)` that the earlier tasks predict at `(m, f)` features."""
        return np.stack([task.scores(features) for task in self._tasks], axis=1)

    def means(self, bases: Floats) -> Floats:
        """Return the weighted means `(m,)` of bases `(m, k)`."""
        means: Floats = bases @ self._weights
        return means

    def covariance(
        self, hypothesis: _Hypothesis, left: tuple[Floats, Floats], right: tuple[Floats, Floats]
    ) -> Floats:
        """Return covariances `(n, m)` of two sets of features and their bases, at scale 1."""
        (inputs, bases), (others, other_bases) = left, right
        found = correlations(inputs, others, self._kernel, self._parameters)
        found *= hypothesis.amplitude
        found += _OFFSET_VARIANCE
        if hypothesis.differences:
            products = self._differences(bases) @ self._differences(other_bases).T
            found += hypothesis.differences * products
        return found

    def variances(self, hypothesis: _Hypothesis, bases: Floats) -> Floats:
        """Return the prior variances `(m,)` at features with these bases, at scale 1."""
        spread = (self._differences(bases) ** 2).sum(axis=1)
        variances: Floats = (
            hypothesis.amplitude + _OFFSET_VARIANCE + hypothesis.differences * spread
        )
        return variances

    def factor(self, hypothesis: _Hypothesis, features: Floats, bases: Floats) -> Floats:
        """Return the Cholesky factor `(n, n)` of the covariance of results, noise included."""
        matrix = self.covariance(hypothesis, (features, bases), (features, bases))
        matrix[np.diag_indices(len(matrix))] += hypothesis.amplitude * hypothesis.noise + _JITTER
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)

    def _differences(self, bases: Floats) -> Floats:
        """Return differences `(m, k)` of bases from their mean, times the roots of the weights."""
        differences: Floats = (bases - self.means(bases)[:, None]) * np.sqrt(self._weights)
        return differences


def _typical_hyperparameters(tasks: Sequence[EarlierTask], axes: int) -> Floats:
    """Return the median hyperparameters `(a + 2,)` of tasks; usual ones on unknown axes."""
    found = initial_hyperparameters(axes)
    for axis in range(axes):
        known = [
            task.hyperparameters[np.searchsorted(task.axes, axis)]
            for task in tasks
            if axis in task.axes
        ]
        if known:
            found[axis] = np.median(known)
    found[-1] = np.median([task.hyperparameters[-1] for task in tasks])
    return found


def _log_densities(factor: Floats, targets: Floats, means: Floats) -> Floats:
    """Return the log densities of targets for each scale, with the prior of the scale."""
    left, right = np.linalg.solve(factor, targets), np.linalg.solve(factor, means)
    quadratic = (left @ left) / _SCALES**2 - 2.0 * (left @ right) / _SCALES + right @ right
    logs = np.log(_SCALES)
    found: Floats = (
        -0.5 * quadratic
        - len(targets) * logs
        - np.log(np.diag(factor)).sum()
        - 0.5 * (logs / _SCALE_DEVIATION) ** 2
    )
    return found
