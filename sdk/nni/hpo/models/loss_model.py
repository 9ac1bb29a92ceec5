"""Gaussian process model of one loss on a scale that is learnt from the results."""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import MOST_MODELLED, FittedGP, GPModel
from nni.hpo.models.gp_regression import GPPosterior, Kernel, gp_posterior
from nni.hpo.models.subsets import covering_subset
from nni.hpo.models.targets import SCALES, Scale, Targets, scaled, standardised

_PLAIN_LOG_ODDS: Final = 2.0
"""Log odds of the first scale against each other one, before any result."""


class LossModel:
    """Gaussian process of one loss that also chooses the loss's scale, such as a logarithm.

    Args:
        kernel: of the process.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.gp: Final = GPModel(kernel)
        self.scale: Scale = SCALES[0]
        """Of the losses, as chosen last."""

    def update(self, inputs: Floats, losses: Floats) -> FittedGP:
        """Return the posterior after results, or a subset of many; rescale losses if refit is due.

        Args:
            inputs: `(n, f)`, n >= 1.
            losses: `(n,)`, finite.
        """
        kept = covering_subset(inputs, losses, MOST_MODELLED)
        parameters, count = self.gp.hyperparameters, len(losses)
        if parameters is not None and len(kept) == count and self.gp.refit_due(count):
            self.scale = self._best_scale(inputs, losses, parameters)
        targets = scaled(losses, self.scale).values
        if len(kept) < count:
            # Scaled before the choice, which has made the worse half another one.
            inputs, targets = inputs[kept], standardised(targets[kept])
        return self.gp.update(inputs, targets, kept, count)

    def reset(self) -> None:
        """Forget hyperparameters and scale: the space is another one."""
        self.gp.reset()
        self.scale = SCALES[0]

    def state(self) -> JsonValue:
        """Return hyperparameters, the number of results at their fit, and the scale as JSON."""
        return [*self.gp.state(), self.scale]

    def load_state(self, state: JsonValue) -> None:
        """Restore the state that `state` returned; one of an older version may lack the scale."""
        parameters, fitted, *scale = state
        self.gp.load_state([parameters, fitted])
        self.scale = scale[0] if scale else SCALES[0]

    def _best_scale(self, inputs: Floats, losses: Floats, parameters: Floats) -> Scale:
        """Return the scale on which each good result is predicted best by all others."""
        options = [scaled(losses, scale) for scale in SCALES]
        posterior = gp_posterior(inputs, options[0].values, self.gp.kernel, parameters)
        evidence = [_log_predictive_density(posterior, targets) for targets in options]
        evidence[0] += _PLAIN_LOG_ODDS
        return SCALES[int(np.argmax(evidence))]


def _log_predictive_density(posterior: GPPosterior, targets: Targets) -> float:
    """Return the leave-one-out log predictive density of the better half of the results."""
    means, deviations = posterior.gaussian.leave_one_out(targets.values)
    residuals = ((targets.values - means) / deviations)[targets.better]
    log_deviations = np.log(deviations[targets.better])
    return float((targets.log_slope - 0.5 * residuals * residuals - log_deviations).sum())
