"""Gaussian process model that is updated with the results of an experiment.

Hyperparameters are fitted again only now and then; the posterior is new at every ask.

Source of the treatment of running trials (kriging believer): Ginsbourger, Le Riche and Carraro,
Kriging Is Well-Suited to Parallelize Optimization, 2010, section 3.2.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_regression import (
    GPPosterior,
    Kernel,
    fit_hyperparameters,
    gp_posterior,
    initial_hyperparameters,
)
from nni.hpo.models.subsets import quantile_subset

MOST_MODELLED: Final = 500
"""Results that a posterior is conditioned on, at most."""
_MOST_FITTED: Final = 150
"""Results that hyperparameters are fitted to, at most."""
_FEW: Final = 40
"""Results up to which a fit also starts afresh: hyperparameters are still uncertain."""
_EVALUATIONS: Final = 12
"""Evaluations of the posterior of the hyperparameters, per start."""
_REFIT_SHARE: Final = 0.02
"""Share of new results after which hyperparameters are fitted again."""


@dataclass(frozen=True, slots=True)
class FittedGP:
    """Posterior and the observations that it is conditioned on."""

    posterior: GPPosterior
    inputs: Floats
    """`(n, f)`"""
    targets: Floats
    """`(n,)`, losses on the model's scale: mean 0 and variance 1."""
    kept: Ints
    """`(n,)`, positions of the observations among all results."""

    @property
    def best_target(self) -> float:
        """Least target: the best loss, on the model's scale."""
        return float(self.targets.min())


class HyperparameterFit(Protocol):
    """Function that fits hyperparameters; see `fit_hyperparameters`."""

    def __call__(
        self,
        inputs: Floats,
        targets: Floats,
        kernel: Kernel,
        starts: list[Floats],
        *,
        evaluations: int,
    ) -> Floats:
        """Return the hyperparameters `(a + 2,)` of greatest posterior density."""
        ...


class GPModel:
    """Gaussian process whose hyperparameters are fitted again as results come in.

    Args:
        kernel: of the process.
        fit: of its hyperparameters.
    """

    def __init__(self, kernel: Kernel, fit: HyperparameterFit = fit_hyperparameters) -> None:
        self.kernel: Final = kernel
        self._fit_hyperparameters: Final = fit
        self.hyperparameters: Floats | None = None
        """`(a + 2,)`; None before the first fit."""
        self._fitted = 0

    def update(self, inputs: Floats, targets: Floats, kept: Ints, count: int) -> FittedGP:
        """Return the posterior of results; refit hyperparameters first if 2 % more are known.

        Args:
            inputs: `(n, f)`, n >= 1.
            targets: `(n,)`, mean 0 and variance 1.
            kept: `(n,)`, positions of these among all results.
            count: number of all results.
        """
        parameters = self.hyperparameters
        if parameters is None or self.refit_due(count):
            parameters = self.hyperparameters = self._fit(inputs, targets)
            self._fitted = count
        posterior = gp_posterior(inputs, targets, self.kernel, parameters)
        return FittedGP(posterior, inputs, targets, kept)

    def refit_due(self, count: int) -> bool:
        """Return whether `count` results are over 2 % more than at the last fit."""
        return count > self._fitted * (1.0 + _REFIT_SHARE)

    def with_pending(self, fitted: FittedGP, pending: Floats) -> GPPosterior:
        """Return the posterior as if running trials had come out at their predicted means.

        Args:
            fitted: of this model.
            pending: `(r, f)`, inputs of the running trials.
        """
        if not len(pending):
            return fitted.posterior
        means, _ = fitted.posterior.predict(pending)
        assert self.hyperparameters is not None
        return gp_posterior(
            np.concatenate([fitted.inputs, pending]),
            np.concatenate([fitted.targets, means]),
            self.kernel,
            self.hyperparameters,
        )

    def lengthscales(self) -> Floats:
        """Return the lengthscale of every axis `(a,)`, as fitted last."""
        assert self.hyperparameters is not None
        lengthscales: Floats = np.exp(self.hyperparameters[: self.kernel.axes])
        return lengthscales

    def noise_variance(self) -> float:
        """Return the noise variance as fitted last, relative to the output scale."""
        assert self.hyperparameters is not None
        return float(np.exp(self.hyperparameters[self.kernel.axes]))

    def reset(self) -> None:
        """Forget the hyperparameters: the space is another one."""
        self.hyperparameters, self._fitted = None, 0

    def state(self) -> JsonValue:
        """Return hyperparameters, and the number of results at their fit, as JSON."""
        found = self.hyperparameters
        return [None if found is None else found.tolist(), self._fitted]

    def load_state(self, state: JsonValue) -> None:
        """Restore hyperparameters from a state; drop those of another kernel.

        Hyperparameters of an older version, which had another kernel, are fitted again.
        """
        parameters, self._fitted = state
        if parameters is None or len(parameters) != self.kernel.hyperparameters:
            self.reset()
        else:
            self.hyperparameters = np.array(parameters, dtype=np.float64)

    def _fit(self, inputs: Floats, targets: Floats) -> Floats:
        kept = quantile_subset(targets, _MOST_FITTED)
        initial = initial_hyperparameters(self.kernel.axes)
        starts = [initial] if self.hyperparameters is None else [self.hyperparameters]
        if self.hyperparameters is not None and len(targets) <= _FEW:
            starts.append(initial)
        return self._fit_hyperparameters(
            inputs[kept], targets[kept], self.kernel, starts, evaluations=_EVALUATIONS
        )
