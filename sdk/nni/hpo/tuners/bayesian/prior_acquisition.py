"""Acquisition function that is weighted by the user priors of a space.

Source: see `nni.hpo.space.user_priors`, there section 4.1.
"""

from dataclasses import dataclass
from typing import Final

from nni.hpo.arrays import Floats
from nni.hpo.models.prior_density import prior_exponent
from nni.hpo.models.space_prior import SpacePrior
from nni.hpo.tuners.bayesian.acquisition_optimizer import Acquisition

STRENGTH: Final = 10.0
"""Results after which the exponent of the prior is 1, as in the paper."""


@dataclass(frozen=True, slots=True)
class PriorAcquisition:
    """Logarithmic acquisition plus a weighted log prior; implements `Acquisition`."""

    acquisition: Acquisition
    prior: SpacePrior
    exponent: float
    """Weight of the log prior; it falls with the number of results."""

    def values(self, vectors: Floats) -> Floats:
        """Return the acquisition plus the weighted log prior, `(m,)` at `(m, d)` vectors."""
        weights = self.exponent * self.prior.log_ratio(vectors)
        found: Floats = self.acquisition.values(vectors) + weights
        return found

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return acquisition plus weighted log prior at features `(f,)`, and its gradient."""
        value, gradient = self.acquisition.value_and_gradient(features)
        ratio, slope = self.prior.log_ratio_and_gradient(features)
        return value + self.exponent * ratio, gradient + self.exponent * slope


def weighted_by_prior(
    acquisition: Acquisition, prior: SpacePrior | None, results: int
) -> Acquisition:
    """Return a log acquisition times the prior to a power; itself if there is no prior.

    Args:
        acquisition: logarithm of an acquisition function.
        prior: of the user; None for none.
        results: known so far, on which the power depends.
    """
    if prior is None:
        return acquisition
    return PriorAcquisition(acquisition, prior, prior_exponent(results, STRENGTH))
