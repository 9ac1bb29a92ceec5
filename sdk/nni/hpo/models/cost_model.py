"""Model of the run times of trials, and the weight of costs in an acquisition function.

The logarithm of the run time is a Gaussian process over the features of configurations.

Shapes: n run times, f features, m predictions.

Source: Lee, Perrone, Archambeau and Seeger, Cost-aware Bayesian Optimization, 2020 (acquisition
divided by the cost to a power that falls to 0, called cost cooling); Snoek, Larochelle and Adams,
Practical Bayesian Optimization, NIPS 2012 (a process of the logarithm of run times).

Departures:
- The exponent falls from 1 at the first trial; the initial design of the paper, which is cheap, is
  not used.
- Without a budget the exponent falls with the number of results.
- The cost is the exponential of the mean of the process: the median of the predicted run time.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import MOST_MODELLED, GPModel
from nni.hpo.models.gp_regression import GPPosterior, Kernel
from nni.hpo.models.matern import Matern
from nni.hpo.models.subsets import covering_subset
from nni.hpo.models.targets import standardised

HALF_AFTER: Final = 30.0
"""Results after which the exponent is one half, without a budget."""
FEWEST: Final = 4
"""Run times from which on they are modelled."""
LEAST_S: Final = 1e-3
"""Run time that shorter ones count as: their differences are those of the measurement."""
_SMOOTHNESS: Final = 2.5
_SAME: Final = 1e-3
"""Standard deviation of the logarithms up to which all run times count as equal."""


def cost_exponent(results: int, spent_s: float, budget_s: float | None) -> float:
    """Return the cost's exponent, from 1 down to 0 as budget is spent, or by number of results.

    Args:
        results: known so far.
        spent_s: run time of all trials so far.
        budget_s: run time after which costs do not count, > 0; None for an exponent that falls
            with the number of results.
    """
    if budget_s is None:
        return HALF_AFTER / (HALF_AFTER + results)
    return max(0.0, 1.0 - spent_s / budget_s)


@dataclass(frozen=True, slots=True)
class CostPrediction:
    """Prediction of log run times over features, with the exponent of the cost."""

    posterior: GPPosterior
    """Of the standardised logarithms."""
    spread: float
    """Standard deviation of the logarithms, > 0."""
    exponent: float
    """In (0, 1]."""

    def log_weight(self, features: Floats) -> Floats:
        """Return the log weights `(m,)` at `(m, f)` features, up to a constant; cheap is large."""
        means, _ = self.posterior.predict(features)
        weights: Floats = -self.exponent * self.spread * means
        return weights

    def log_weight_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the log weight at features `(f,)` and its gradient `(f,)`."""
        mean, _, gradient, _ = self.posterior.predict_with_gradient(features)
        factor = -self.exponent * self.spread
        return factor * mean, factor * gradient


class CostModel:
    """Gaussian process of the logarithm of run times, updated as trials end.

    Args:
        feature_axes: `(f,)`, see `Kernel`.
    """

    def __init__(self, feature_axes: Ints) -> None:
        self._gp = GPModel(Kernel(feature_axes, Matern.of(_SMOOTHNESS)))

    def predict(
        self, inputs: Floats, durations_s: Floats, exponent: float
    ) -> CostPrediction | None:
        """Fit and return a prediction; None for < 4 or nearly equal run times, or for exponent 0.

        Args:
            inputs: `(n, f)`.
            durations_s: `(n,)`, > 0.
            exponent: of the cost.
        """
        if len(durations_s) < FEWEST or exponent <= 0.0:
            return None
        logs = np.log(np.maximum(durations_s, LEAST_S))
        kept = covering_subset(inputs, logs, MOST_MODELLED)
        chosen = logs[kept]
        spread = float(chosen.std())
        if spread <= _SAME:
            return None
        fitted = self._gp.update(inputs[kept], standardised(chosen), kept, len(logs))
        return CostPrediction(fitted.posterior, spread, exponent)

    def state(self) -> JsonValue:
        """Return hyperparameters, and the number of run times at their fit, as JSON."""
        return self._gp.state()

    def load_state(self, state: JsonValue) -> None:
        """Restore hyperparameters, and the number of run times at their fit, from a state."""
        self._gp.load_state(state)
