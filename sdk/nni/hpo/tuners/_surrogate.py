"""A Gaussian process that is kept up to date with the results of an experiment.

What its lengths and noise are is learnt anew now and then only; what it believes, at every ask.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.json_value import JsonValue
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
from nni.hpo.tuners._targets import warped

_MOST_FITTED: Final = 150
"""Results from which lengths and noise are learnt."""
_MOST_MODELLED: Final = 400
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

    def believe(self, points: list[Floats], losses: list[float]) -> Belief:
        """Return what to believe after results; there is at least one."""
        known = np.array(losses)
        kept = representatives(known, _MOST_MODELLED)
        rows, targets = np.array(points)[kept], warped(known[kept])
        if self._parameters is None or len(losses) > self._fitted * (1.0 + _REFIT_SHARE):
            self._parameters = self._fit(rows, targets)
            self._fitted = len(losses)
        return Belief(self._posterior(rows, targets), rows, targets, kept)

    def expecting(self, belief: Belief, running: list[Floats]) -> Posterior:
        """Return the belief if running trials come out as predicted."""
        if not running:
            return belief.model
        open_points = np.array(running)
        means, _ = belief.model.predict(open_points)
        return self._posterior(
            np.concatenate([belief.points, open_points]), np.concatenate([belief.targets, means])
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

    def _posterior(self, rows: Floats, targets: Floats) -> Posterior:
        assert self._parameters is not None
        owners, parameters = self._owners, self._parameters
        expanded = parameters if owners is None else shared(parameters, owners)
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
