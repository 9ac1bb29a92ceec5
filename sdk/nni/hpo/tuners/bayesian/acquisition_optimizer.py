"""Maximisation of an acquisition function over an encoded space.

All vectors of a small space are evaluated. Otherwise candidates are evaluated, gradient ascent
starts from the best of them along their active numbers, and its ends move to better neighbours in
their discrete coordinates. Every step stays within the constraints.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey
from nni.hpo.models.feasibility import Feasibility
from nni.hpo.models.gp_regression import GPPosterior
from nni.hpo.models.lbfgs import minimise
from nni.hpo.models.plateaus import KnownPlateaus
from nni.hpo.tuners.bayesian.acquisition import AcquisitionFunction
from nni.hpo.tuners.bayesian.candidates import Region, best_untaken, distinct
from nni.hpo.tuners.bayesian.search_budget import SearchBudget

_STARTS: Final = 400
"""Best candidates among which those that ascent starts from are chosen."""
_KEPT: Final = 32
"""Best candidates that compete with the ends of the ascents."""
_LEAST_NOVELTY: Final = 1e-6
"""Probability of a new result, at least, so that its logarithm is finite."""
_MOVES: Final = 4
"""Moves to a better discrete neighbour, at most."""
_HALVINGS: Final = 8
"""Halvings of the way from an allowed vector to one against a constraint."""


class Acquisition(Protocol):
    """Protocol of an acquisition function over an encoded space, with its gradient."""

    def values(self, vectors: Floats) -> Floats:
        """Return the values `(m,)` at vectors `(m, d)`; larger is better."""
        ...

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the value at features `(f,)`, and the gradient `(f,)`."""
        ...


@dataclass(frozen=True, slots=True)
class LossAcquisition:
    """Acquisition of one loss: posterior, function, loss to improve on, known plateaus."""

    space: EncodedSpace
    posterior: GPPosterior
    """Over features."""
    function: AcquisitionFunction
    incumbent: float
    """Loss to improve on, on the model's scale."""
    plateaus: KnownPlateaus | None = None
    """Known results that a vector may repeat; None where every vector has a result of its own."""

    def values(self, vectors: Floats) -> Floats:
        """Return the acquisition `(m,)` at vectors, plus the log probability of a new result."""
        means, deviations = self.posterior.predict(self.space.features(vectors))
        values = self.function(means, deviations, self.incumbent)[0]
        if self.plateaus is not None:
            values += np.log(np.maximum(self.plateaus.novelty(vectors), _LEAST_NOVELTY))
        return values

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return the acquisition at one point and its gradient; plateaus are not regarded."""
        mean, deviation, mean_gradient, deviation_gradient = self.posterior.predict_with_gradient(
            features
        )
        value, by_mean, by_deviation = self.function(
            np.array([mean]), np.array([deviation]), self.incumbent
        )
        return float(value[0]), by_mean[0] * mean_gradient + by_deviation[0] * deviation_gradient


@dataclass(frozen=True, slots=True)
class FeasibleAcquisition:
    """Logarithmic acquisition plus the log probability of success; implements `Acquisition`."""

    space: EncodedSpace
    acquisition: Acquisition
    feasibility: Feasibility

    def values(self, vectors: Floats) -> Floats:
        """Return the acquisition plus the log weight of success, `(m,)` at `(m, d)` vectors."""
        chances = self.feasibility.log_weight(self.space.features(vectors))
        return self.acquisition.values(vectors) + chances

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        """Return acquisition plus log weight of success at features `(f,)`, and its gradient."""
        value, gradient = self.acquisition.value_and_gradient(features)
        chance, slope = self.feasibility.log_weight_and_gradient(features)
        return value + chance, gradient + slope


def weighted_by_success(
    space: EncodedSpace, acquisition: Acquisition, feasibility: Feasibility | None
) -> Acquisition:
    """Return a log acquisition plus the log probability of success; itself if that is not known."""
    if feasibility is None:
        return acquisition
    return FeasibleAcquisition(space, acquisition, feasibility)


@dataclass(frozen=True, slots=True)
class AcquisitionOptimizer:
    """Search for the vector of greatest acquisition that is not taken."""

    space: EncodedSpace
    acquisition: Acquisition
    taken: set[VectorKey]
    """Keys of vectors that are not returned."""
    budget: SearchBudget

    def best_of(self, vectors: Floats) -> Floats | None:
        """Return the best of vectors `(m, d)` as they are; None if none is left."""
        return best_untaken(self.space, vectors, self.acquisition.values(vectors), self.taken)

    def best_from(self, candidates: Floats, region: Region, *, discrete: bool) -> Floats | None:
        """Return the best vector `(d,)` that is found from candidates; None if none is left.

        Args:
            candidates: `(m, d)` allowed vectors.
            region: within which ascents stay.
            discrete: whether to move to neighbours in discrete coordinates.
        """
        values = self.acquisition.values(candidates)
        order = np.argsort(-values, kind="stable")
        found = [candidates[order[:_KEPT]]]
        for start in distinct(candidates[order[:_STARTS]], self.budget.climbs):
            end = self._ascend(start, region)
            found.append((self._best_neighbour(end) if discrete else end)[None, :])
        return self.best_of(np.concatenate(found))

    def _ascend(self, start: Floats, region: Region) -> Floats:
        """Return the allowed end of a gradient ascent from a vector along its active numbers."""
        space = self.space
        axes = np.flatnonzero(space.ordered & space.active(start[None, :])[0])
        if not len(axes):
            return start
        columns = np.array([space.axes[axis].feature for axis in axes])
        features = space.features(start[None, :])[0]

        def negative(numbers: Floats) -> tuple[float, Floats]:
            features[columns] = numbers
            value, gradient = self.acquisition.value_and_gradient(features)
            return -value, -gradient[columns]

        low = np.minimum(region.low[axes], start[axes])
        high = np.maximum(region.high[axes], start[axes])
        numbers, _ = minimise(negative, start[axes], low, high, evaluations=self.budget.evaluations)
        end = start.copy()
        end[axes] = numbers
        return self._allowed_towards(start, end)

    def _allowed_towards(self, start: Floats, end: Floats) -> Floats:
        """Return `end` snapped if allowed, else the last allowed vector towards it (bisection)."""
        space = self.space
        snapped: Floats = space.snap(end[None, :])[0]
        if space.allows(snapped):
            return snapped
        inside, outside = start, end
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            if space.allows(space.snap(middle[None, :])[0]):
                inside = middle
            else:
                outside = middle
        allowed: Floats = space.snap(inside[None, :])[0]
        return allowed

    def _best_neighbour(self, vector: Floats) -> Floats:
        """Move to the best allowed neighbour while the acquisition rises; return the end."""
        best = -np.inf
        for _ in range(_MOVES):
            neighbours = self.space.allowed(self.space.neighbours(vector))
            if not len(neighbours):
                return vector
            near = np.concatenate([vector[None, :], neighbours])
            values = self.acquisition.values(near)
            top = int(np.argmax(values))
            if top == 0 or values[top] <= best:
                return vector
            vector, best = near[top], float(values[top])
        return vector
