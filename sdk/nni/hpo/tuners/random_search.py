"""Random search: independent draws from the prior.

Source: Bergstra and Bengio, Random Search for Hyper-Parameter Optimization, JMLR 2012.
"""

import logging
from random import Random
from typing import ClassVar

from nni.hpo.base import Tuner
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import checked_optimize_mode
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import parse_space

_logger = logging.getLogger(__name__)


@algorithm(
    "Random",
    use_when="A baseline to compare with, cheap trials, or uniform coverage of the space.",
    parallel="All are served, independently of each other.",
    documented_as="nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner",
    imports=False,
)
class RandomTuner(Tuner):
    """Draws every active parameter from its prior; never runs out, learns nothing.

    Args:
        optimize_mode: accepted because all tuners have it; without effect.
        seed: of the draws; None for different ones in every process.
    """

    lookahead: ClassVar[bool] = True

    def __init__(self, optimize_mode: Mode = "minimize", seed: Seed = None) -> None:
        checked_optimize_mode(optimize_mode)
        self._rng = Random(seed)
        self._space = Space(())

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base."""
        self._space = parse_space(search_space, algorithm="Random")

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        del parameter_id, kwargs
        return self._space.draw(self._rng)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base; ignored."""

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """See the base; ignored."""
        _logger.info("Random ignores %d imported samples", len(data))

    def state(self) -> dict[str, JsonValue]:
        """Return what `load_state` needs to go on from here, as JSON."""
        return {"rng": random_state(self._rng)}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state of a tuner that was built and given its space alike."""
        restore_random(self._rng, state["rng"])
