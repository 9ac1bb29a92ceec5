"""A Gaussian process that is kept up to date with the results of an experiment.

What its lengths and noise are is learnt anew now and then only; what it believes, at every ask.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._covering import covering
from nni.hpo.tuners._gaussian_process import (
    Posterior,
    default_parameters,
    fitted_parameters,
    posterior,
    representatives,
    shared,
)
from nni.hpo.tuners._matern import Matern
from nni.hpo.tuners._parzen import Floats, Ints
from nni.hpo.tuners._targets import standardised, warped

_MOST_FITTED: Final = 150
"""Results from which lengths and noise are learnt."""
MOST_MODELLED: Final = 500
"""Results from which values are predicted."""
_FEW: Final = 40
"""Results up to which the search for lengths also starts afresh: they are still uncertain."""
_EVALUATIONS: Final = 12
"""Of the posterior of lengths and noise, per start."""
_REFIT_SHARE: Final = 0.02
"""Share of new results after which lengths and noise are learnt anew."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is believed now, on a scale of its own."""

    model: Posterior
    points: Floats
    """`(n, d)`, the results that the model is made of."""
    targets: Floats
    """`(n,)`, their losses on the model's scale."""
    kept: Ints
    """`(n,)`, their positions among all results."""
    shrinkage: float = 1.0
    """What the learnt lengths were multiplied by."""

    @property
    def best(self) -> float:
        """The least loss, on the model's scale."""
        return float(self.targets.min())


class Surrogate:
    """Lengths and noise, and how many results they were learnt from.

    Args:
        kernel: the correlation.
        alpha: least noise, relative to the variance of the process.
        owners: `(d,)`, for every column the axis whose length it shares; see `fitted_parameters`.
    """

    def __init__(self, kernel: Matern, alpha: float, owners: Ints | None = None) -> None:
        self._kernel = kernel
        self._alpha = alpha
        self._owners = owners
        self._parameters: Floats | None = None
        self._fitted = 0

    def believe(
        self, points: list[Floats], losses: list[float], *, shrinkage: float = 1.0
    ) -> Belief:
        """Return what to believe after results.

        Args:
            points: `(d,)` each, one at least.
            losses: of the points.
            shrinkage: the lengths are multiplied by it, > 0: below 1, less is taken for known.
        """
        known = np.array(losses)
        rows = np.array(points)
        kept = covering(rows, known, MOST_MODELLED)
        # Warped before the choice, which has made the worse half another one.
        rows, targets = rows[kept], standardised(warped(known)[kept])
        return self.believe_in(rows, targets, kept, len(losses), shrinkage=shrinkage)

    def believe_in(
        self, rows: Floats, targets: Floats, kept: Ints, count: int, *, shrinkage: float = 1.0
    ) -> Belief:
        """Return what to believe after some of the results, already on the model's scale.

        Args:
            rows: `(n, d)`, their points; n >= 1.
            targets: `(n,)`, mean 0 and variance 1.
            kept: `(n,)`, their positions among all results.
            count: how many results there are in all.
            shrinkage: see `believe`.
        """
        if self._parameters is None or count > self._fitted * (1.0 + _REFIT_SHARE):
            self._parameters = self._fit(rows, targets)
            self._fitted = count
        model = self._posterior(rows, targets, shrinkage)
        return Belief(model, rows, targets, kept, shrinkage)

    def expecting(self, belief: Belief, running: list[Floats]) -> Posterior:
        """Return the belief if running trials come out as predicted."""
        if not running:
            return belief.model
        open_points = np.array(running)
        means, _ = belief.model.predict(open_points)
        return self._posterior(
            np.concatenate([belief.points, open_points]),
            np.concatenate([belief.targets, means]),
            belief.shrinkage,
        )

    def lengths(self) -> Floats:
        """Return the length of every axis `(a,)`, as learnt last."""
        assert self._parameters is not None
        lengths: Floats = np.exp(self._parameters[:-1])
        return lengths

    def noise(self) -> float:
        """Return the noise as learnt last, relative to the variance of the process."""
        assert self._parameters is not None
        return float(np.exp(self._parameters[-1]))

    def forget(self) -> None:
        """Begin again, for another space."""
        self._parameters, self._fitted = None, 0

    def state(self) -> JsonValue:
        """Return what `load_state` needs, as JSON."""
        parameters = None if self._parameters is None else self._parameters.tolist()
        return [parameters, self._fitted]

    def load_state(self, state: JsonValue) -> None:
        """Take over what `state` gave."""
        parameters, self._fitted = state
        self._parameters = None if parameters is None else np.array(parameters, dtype=np.float64)

    def _posterior(self, rows: Floats, targets: Floats, shrinkage: float) -> Posterior:
        assert self._parameters is not None
        parameters = self._parameters.copy()
        parameters[:-1] += math.log(shrinkage)
        expanded = parameters if self._owners is None else shared(parameters, self._owners)
        return posterior(rows, targets, self._kernel, self._alpha, expanded)

    def _fit(self, rows: Floats, targets: Floats) -> Floats:
        kept = representatives(targets, _MOST_FITTED)
        owners = self._owners
        default = default_parameters(rows.shape[1] if owners is None else int(owners[-1]) + 1)
        starts = [default] if self._parameters is None else [self._parameters]
        if self._parameters is not None and len(targets) <= _FEW:
            starts.append(default)
        return fitted_parameters(
            rows[kept],
            targets[kept],
            self._kernel,
            self._alpha,
            starts,
            evaluations=_EVALUATIONS,
            owners=owners,
        )
