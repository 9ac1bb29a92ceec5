"""Proposals of TPE beside those of a Gaussian process.

TPE copes with branches and with results that are no smooth function.

Source: that a mixture of samplers beats each of them: Turner et al., Bayesian Optimization is
Superior to Random Search for Machine Learning Hyperparameter Tuning, 2021, section 5.
"""

from collections.abc import Mapping
from random import Random
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace, VectorKey, vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.acceptance import accepted
from nni.hpo.models.cost_model import CostPrediction
from nni.hpo.models.plateaus import KnownPlateaus
from nni.hpo.tuners.tpe import TPETuner

_FLAT_SHARE: Final = 0.15
_BRANCHED_SHARE: Final = 0.5
_MANY_SHARE: Final = 0.7
"""Share of TPE's proposals: in a flat space, with branches, with many parameters."""
_MANY_FEATURES: Final = 80
"""Features from which a space has many parameters."""
_TRIES: Final = 5
_NOVEL: Final = 0.5
"""Probability of a new result from which a proposal is taken."""
_DRAWS: Final = 5
"""Proposals of which one is accepted by its predicted cost."""


class TPEProposer:
    """TPE that is updated with the results of another search.

    Args:
        seed: of its draws; None for different ones in every process.
    """

    def __init__(self, seed: int | None) -> None:
        self._tpe = TPETuner("minimize", seed=seed)

    def share(self, space: EncodedSpace) -> float:
        """Return TPE's share of the proposals in a space: 15 %, more with branches or many axes."""
        if len(space.feature_axes) > _MANY_FEATURES:
            return _MANY_SHARE
        return _BRANCHED_SHARE if space.has_branches else _FLAT_SHARE

    def update_search_space(self, search_space: JsonValue) -> None:
        """Search another space; results are to be learnt again."""
        self._tpe.update_search_space(search_space)

    def learn(self, configuration: JsonValue, placed: Mapping[str, JsonValue], loss: float) -> None:
        """Add an observation; see `ModelBasedTuner._add`."""
        self._tpe.learn(configuration, placed, loss)

    def learn_failure(self, configuration: JsonValue, placed: Mapping[str, JsonValue]) -> None:
        """Add a failed trial; see `ModelBasedTuner._add_failure`."""
        self._tpe.learn_failure(configuration, placed)

    def reset(self) -> None:
        """Drop all observations and failed trials; the generators continue."""
        empty: dict[str, JsonValue] = {"observed": [], "failed": [], "running": []}
        self._tpe.load_state({**self._tpe.state(), **empty})

    def propose(
        self, space: EncodedSpace, taken: set[VectorKey], plateaus: KnownPlateaus | None
    ) -> Floats | None:
        """Return a vector `(d,)` that is not taken and likely has a new result; None after tries.

        Args:
            space: of the observations.
            taken: keys of vectors that must not be returned.
            plateaus: known results; None where every vector has a result of its own.
        """
        for _ in range(_TRIES):
            vector = space.encode(self._tpe.suggest())
            if vector_key(vector) in taken:
                continue
            if plateaus is None or plateaus.novelty(vector[None, :])[0] > _NOVEL:
                return vector
        return None

    def propose_by_cost(
        self,
        space: EncodedSpace,
        taken: set[VectorKey],
        plateaus: KnownPlateaus | None,
        cost: CostPrediction | None,
        rng: Random,
    ) -> Floats | None:
        """Return a proposal as `propose` does; of several, one accepted by its predicted cost.

        Args:
            space: of the observations.
            taken: keys of vectors that must not be returned.
            plateaus: see `propose`.
            cost: of a trial; None leaves costs out.
            rng: of the acceptance.
        """
        if cost is None:
            return self.propose(space, taken, plateaus)
        proposed = (self.propose(space, taken, plateaus) for _ in range(_DRAWS))
        draws = [vector for vector in proposed if vector is not None]
        if not draws:
            return None
        weights = cost.log_weight(space.features(np.array(draws)))
        return accepted(draws, (weights - weights.max()).tolist(), rng)

    def state(self) -> JsonValue:
        """Return the state of the generators, as JSON; observations are learnt again."""
        state = self._tpe.state()
        return {"rng": state["rng"], "prior": state["prior"]}

    def load_state(self, state: JsonValue) -> None:
        """Restore the random generators from a state; observations stay."""
        self._tpe.load_draws(state)
