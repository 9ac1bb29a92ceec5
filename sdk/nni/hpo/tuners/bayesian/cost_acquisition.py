"""Acquisition function that is divided by the predicted cost of a trial.

Source: see `nni.hpo.models.cost_model`.
"""

from dataclasses import dataclass

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.models.cost_model import CostPrediction
from nni.hpo.tuners.bayesian.acquisition_optimizer import Acquisition


@dataclass(frozen=True, slots=True)
class CostAcquisition:
    """Logarithmic acquisition minus the weighted log cost; implements `Acquisition`."""

    space: EncodedSpace
    acquisition: Acquisition
    cost: CostPrediction

    def values(self, vectors: Floats) -> Floats:
        """Return the acquisition minus the weighted log cost, `(m,)` at `(m, d)` vectors."""
        weights = self.cost.log_weight(self.space.features(vectors))
        found: Floats = self.acquisition.values(vectors) + weights
        return found

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return acquisition minus weighted log cost at features `(f,)`, and its gradient."""
        value, gradient = self.acquisition.value_and_gradient(features)
        weight, slope = self.cost.log_weight_and_gradient(features)
        return value + weight, gradient + slope


def divided_by_cost(
    space: EncodedSpace, acquisition: Acquisition, cost: CostPrediction | None
) -> Acquisition:
    """Return a log acquisition divided by the cost to a power; itself if costs do not count.

    Args:
        space: of the vectors.
        acquisition: logarithm of an acquisition function.
        cost: predicted; None where costs are not known, or do not count.
    """
    return acquisition if cost is None else CostAcquisition(space, acquisition, cost)
