"""Deep networks for global optimisation: Bayesian linear regression on learnt features.

Source: Snoek et al., Scalable Bayesian Optimization Using Deep Neural Networks, ICML 2015.

Departures:
- Results are warped before they are modelled (see `targets`).
- Between two trainings of the network every result enters the linear model at once.
- A fifth of the candidates lie near the best results.
"""

from functools import partial
from typing import Annotated, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.numeric_space import NUMERIC_TYPES, numeric_space
from nni.hpo.json_value import JsonValue
from nni.hpo.models.network import Network, linear_posterior, trained_network
from nni.hpo.models.targets import warped
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import WholeNumber
from nni.hpo.tuners._model_based import ModelBasedTuner, loss_of_mode
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.candidates import best_untaken

_NAME: Final = "DNGOTuner"
_GOOD: Final = 5
"""Best results near which candidates are drawn."""
_NEAR_SHARE: Final = 0.2
"""Share of these candidates."""
_STEP: Final = 0.05
"""Standard deviation of the steps from good results."""


@algorithm(
    "DNGOTuner",
    use_when="Many trials, more than a Gaussian process can take, and numeric parameters.",
    parallel="All are served; the network is trained after every `trials_per_update` results.",
    documented_as="nni.algorithms.hpo.dngo_tuner.DNGOTuner",
    types=NUMERIC_TYPES,
    nested=False,
    space_check="nni.hpo.encoding.numeric_space:check_dngo_space",
    extra="hpo",
)
class DNGOTuner(ModelBasedTuner[float]):
    """Bayesian regression on the features of a network; its cost hardly grows with results.

    Configurations are random until there are `trials_per_update` results. The network is trained
    then, and after as many further results each time.

    Args:
        optimize_mode: `maximize` or `minimize`.
        sample_size: candidates per ask, >= 1.
        trials_per_update: results between two trainings, >= 1.
        num_epochs_per_training: >= 1.
        seed: of all draws; None for different ones in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-5, 5]}}
        >>> loss = lambda p: (p["x"] - 1) ** 2
        >>> found = optimize(loss, space, tuner="DNGOTuner", trials=25, seed=0)
        >>> found.best_value < 0.5
        True
    """

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        sample_size: Annotated[int, WholeNumber(1)] = 1000,
        trials_per_update: Annotated[int, WholeNumber(1)] = 20,
        num_epochs_per_training: Annotated[int, WholeNumber(1)] = 500,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            _NAME,
            partial(numeric_space, algorithm=_NAME, types=NUMERIC_TYPES),
            loss_of_mode(optimize_mode),
            seed,
        )
        self._sample_size = int(sample_size)
        self._update_every = int(trials_per_update)
        self._epochs = int(num_epochs_per_training)
        self._acquisition = expected_improvement(0.0)
        self._trained_on = 0
        self._training_seed = 0
        self._network: Network | None = None

    def _propose(self) -> Floats:
        if len(self._losses) < self._update_every:
            return self._random_vector()
        network = self._current_network()
        vectors, targets = np.array(self._vectors), warped(np.array(self._losses))
        posterior = linear_posterior(network.features(self._space.features(vectors)), targets)
        candidates = self._sampled(vectors[np.argsort(targets, kind="stable")[:_GOOD]])
        inputs = network.features(self._space.features(candidates))
        values, _, _ = self._acquisition(*posterior.predict(inputs), float(targets.min()))
        feasibility = self._feasibility()
        if feasibility is not None:
            values += feasibility.log_weight(self._space.features(candidates))
        vector = best_untaken(self._space, candidates, values, self._taken())
        return self._random_vector() if vector is None else vector

    def _sampled(self, good: Floats) -> Floats:
        """Return up to `(sample_size, d)` candidates: prior draws, and moves from good results."""
        near = int(_NEAR_SHARE * self._sample_size)
        drawn = self._space.sample(self._rng, self._sample_size - near)
        centres = good[self._rng.integers(len(good), size=near)]
        moved = centres + _STEP * self._rng.standard_normal(centres.shape)
        return np.concatenate([drawn, self._space.allowed(self._space.snap(moved))])

    def _current_network(self) -> Network:
        """Return the network; train a new one after each `update_every` results."""
        if len(self._losses) >= self._trained_on + self._update_every or self._trained_on == 0:
            self._trained_on = len(self._losses)
            self._training_seed = int(self._rng.integers(2**31))
            self._network = None
        if self._network is None:
            count = self._trained_on
            self._network = trained_network(
                self._space.features(np.array(self._vectors[:count])),
                warped(np.array(self._losses[:count])),
                self._epochs,
                np.random.default_rng(self._training_seed),
            )
        return self._network

    def _reset_model(self) -> None:
        self._trained_on = 0
        self._training_seed = 0
        self._network = None

    def _model_state(self) -> JsonValue:
        # The network is trained again from these, which are a thousand times smaller.
        return [self._trained_on, self._training_seed]

    def _load_model_state(self, state: JsonValue) -> None:
        self._trained_on, self._training_seed = state
