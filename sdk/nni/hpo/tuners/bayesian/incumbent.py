"""Loss that a Bayesian search has to beat, and expected losses under noise.

Shapes: n results, m configurations, r running trials, f features.
"""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_model import MOST_MODELLED, FittedGP, GPModel
from nni.hpo.models.gp_regression import GPPosterior, Kernel
from nni.hpo.models.subsets import covering_subset
from nni.hpo.models.targets import standardised
from nni.hpo.tuners.bayesian.search_modes import SearchMode

_MARGIN: Final = 0.05
"""Improvement that exploring asks for, relative to the distance from the median to the best."""
_RUNNING_MARGIN: Final = 0.001
"""The same beyond the predictions of running trials; without it all of them would be proposed in
the same basin."""


def loss_to_beat(
    fitted: FittedGP, posterior: GPPosterior, pending: Floats, mode: SearchMode, *, noisy: bool
) -> float:
    """Return the loss to beat, on the model's scale; running trials and some modes lower it.

    Args:
        fitted: the results.
        posterior: after them and the running trials.
        pending: `(r, f)`, inputs of the running trials.
        mode: of the proposal.
        noisy: whether the noise is notable.
    """
    best, median = fitted.best_target, float(np.median(fitted.targets))
    if noisy:
        # A lucky measurement is no better than the mean that is predicted there.
        best = float(posterior.predict(fitted.inputs)[0].min())
    if len(pending):
        # Running trials count as if they had come out as predicted.
        best = min(best, float(posterior.predict(pending)[0].min()))
        best -= _RUNNING_MARGIN * (median - best)
    if mode in {"explore", "option"}:
        best -= _MARGIN * (median - best)
    return best


def believed_losses(fitted: FittedGP, *, noisy: bool) -> Floats:
    """Return the losses `(n,)` that rank results: as measured, or their means where it is noisy."""
    return fitted.posterior.predict(fitted.inputs)[0] if noisy else fitted.targets


def expected_losses(
    kernel: Kernel, inputs: Floats, losses: Floats, wanted: Floats
) -> list[float] | None:
    """Return posterior means of losses by a process of its own that is linear in the losses.

    A logarithmic scale, as proposals may have it, would overrate lucky results.

    Args:
        kernel: of the process.
        inputs: `(n, f)`, n >= 1.
        losses: `(n,)`, finite.
        wanted: `(m, f)`, whose losses are expected.

    Returns:
        m numbers; None if one of them is greater than a float can be.
    """
    kept = covering_subset(inputs, losses, MOST_MODELLED)
    inputs, losses = inputs[kept], losses[kept]
    fitted = GPModel(kernel).update(inputs, standardised(losses), kept, len(losses))
    means = fitted.posterior.predict(wanted)[0]
    with np.errstate(over="ignore", invalid="ignore"):  # of the greatest floats
        expected = losses.mean() + losses.std() * means
    return [float(one) for one in expected] if np.isfinite(expected).all() else None
