"""Outliers among noisy results, and the results that are to be measured again.

A result that is far better than its neighbours is either a narrow optimum or a lucky measurement.
Only a second measurement tells: while none differs from the first, results count as exact, and
nothing is left out. Once measurements of a configuration differ, lucky results that noise with
heavy tails explains better than the process are outliers, which the model does not see. Unlucky
ones stay: the scale of losses damps them, and that of the worst ones says nothing about noise.

Shapes: n results, f features.

Source: Martinez-Cantin, Tee and McCourt, Practical Bayesian Optimization in the Presence of
Outliers, AISTATS 2018 (outliers by a Student-t likelihood, left out of the model).

Departures: second measurements decide whether there is noise, and only lucky results are left out;
see also `student_t`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.encoding.encoded_space import VectorKey, vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import MOST_MODELLED, GPModel
from nni.hpo.models.gp_regression import Kernel, correlations, gp_posterior
from nni.hpo.models.student_t import noise_weights
from nni.hpo.models.subsets import covering_subset
from nni.hpo.models.targets import scaled, standardised

_SUSPICIOUS: Final = -2.5
"""Standardised residual of the best result, predicted from all others, from which on a second
measurement pays."""
_OUTLYING: Final = 1 / 3
"""Weight below which a result is an outlier: its residual is over 3.3 usual deviations."""
_MOST_REPEATS: Final = 0.2
"""Second measurements, as a share of all results."""


@dataclass(frozen=True, slots=True)
class MeasuredResults:
    """Configurations with their losses; equal ones are measurements of the same configuration."""

    vectors: Floats
    """`(n, d)`, n >= 1."""
    inputs: Floats
    """`(n, f)`, features of the vectors."""
    losses: Floats
    """`(n,)`, finite."""

    @property
    def keys(self) -> list[VectorKey]:
        """Keys of the vectors."""
        return [vector_key(vector) for vector in self.vectors]


class Outliers:
    """Outliers among the results of a search, with the configurations that were measured again."""

    def __init__(self) -> None:
        self._repeated: list[Floats] = []
        """Vectors that were proposed a second time."""
        self._positions: set[int] = set()
        """Positions of the outliers among all results, as found last."""

    def credible(self, count: int) -> Bools:
        """Return `(n,)`, false for results that are outliers; newer results are none.

        Args:
            count: number of results.
        """
        mask = np.ones(count, dtype=bool)
        mask[[position for position in self._positions if position < count]] = False
        return mask

    def suspect(
        self, results: MeasuredResults, running: set[VectorKey], model: GPModel
    ) -> Floats | None:
        """Find the outliers anew; return the vector `(d,)` to be measured again, or None.

        Args:
            results: all of them.
            running: keys of running trials.
            model: of the results; before its first fit nothing is suspicious.
        """
        if model.hyperparameters is None:
            return None
        self.update(results, model.kernel, model.hyperparameters)
        return self.repeat(results, running, model.kernel, model.hyperparameters)

    def update(self, results: MeasuredResults, kernel: Kernel, fit: Floats) -> None:
        """Find the outliers among results anew; none while measurements are exact.

        Args:
            results: all of them.
            kernel: of the process.
            fit: `(a + 2,)`, hyperparameters of the process.
        """
        self._positions, keys = set(), results.keys
        if is_noisy(keys, results.losses):
            kept = covering_subset(results.inputs, results.losses, MOST_MODELLED)
            inputs = results.inputs[kept]
            targets = standardised(scaled(results.losses, 0.0).values[kept])
            weights, residuals = noise_weights(correlations(inputs, inputs, kernel, fit), targets)
            lucky = (weights < _OUTLYING) & (residuals < 0)
            self._positions = _without_confirmed({int(place) for place in kept[lucky]}, keys)

    def repeat(
        self, results: MeasuredResults, running: set[VectorKey], kernel: Kernel, fit: Floats
    ) -> Floats | None:
        """Return the best vector `(d,)` if it is to be measured again, and register that.

        Args:
            results: all of them.
            running: keys of running trials.
            kernel: of the process.
            fit: `(a + 2,)`, hyperparameters of the process.
        """
        keys, losses = results.keys, results.losses
        if is_exact(keys, losses) or len(self._repeated) >= _MOST_REPEATS * len(losses):
            return None
        credible = np.flatnonzero(self.credible(len(losses)))
        best = credible[int(np.argmin(losses[credible]))]
        repeated = {vector_key(vector) for vector in self._repeated}
        if keys[best] in repeated | running or keys.count(keys[best]) > 1:
            return None
        kept = credible[covering_subset(results.inputs[credible], losses[credible], MOST_MODELLED)]
        place = int(np.searchsorted(kept, best))
        if _residual(results.inputs[kept], losses[kept], place, kernel, fit) > _SUSPICIOUS:
            return None
        self._repeated.append(results.vectors[best])
        return self._repeated[-1]

    def state(self) -> JsonValue:
        """Return the repeated vectors, and the positions of the outliers, as JSON."""
        return [[vector.tolist() for vector in self._repeated], sorted(self._positions)]

    def load_state(self, state: JsonValue) -> None:
        """Restore the repeated vectors, and the positions of the outliers, from a state."""
        repeated, positions = state
        self._repeated = [np.array(vector, dtype=np.float64) for vector in repeated]
        self._positions = set(positions)


def is_noisy(keys: Iterable[VectorKey], losses: Floats) -> bool:
    """Return whether two measurements of a configuration differ."""
    return any(len(set(found)) > 1 for found in _by_key(keys, losses))


def is_exact(keys: Iterable[VectorKey], losses: Floats) -> bool:
    """Return whether a configuration was measured twice, and none with different results."""
    found = _by_key(keys, losses)
    return any(len(one) > 1 for one in found) and all(len(set(one)) == 1 for one in found)


def _residual(inputs: Floats, losses: Floats, place: int, kernel: Kernel, fit: Floats) -> float:
    """Return the standardised residual of a loss that is predicted from all others."""
    targets = scaled(losses, 0.0).values
    posterior = gp_posterior(inputs, targets, kernel, fit)
    means, deviations = posterior.gaussian.leave_one_out(targets)
    return float((targets[place] - means[place]) / deviations[place])


def _without_confirmed(outlying: set[int], keys: Sequence[VectorKey]) -> set[int]:
    """Return outliers but those whose configuration has several measurements, all outlying.

    They confirm each other: the process is too smooth there.
    """
    measured = Counter(keys)
    refuted = Counter(keys[position] for position in outlying)
    return {
        position
        for position in outlying
        if measured[keys[position]] == 1 or refuted[keys[position]] < measured[keys[position]]
    }


def _by_key(keys: Iterable[VectorKey], losses: Floats) -> list[list[float]]:
    found: dict[VectorKey, list[float]] = defaultdict(list)
    for key, loss in zip(keys, losses.tolist(), strict=True):
        found[key].append(loss)
    return list(found.values())
