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
    priors=True,
)
class RandomTuner(Tuner):
    """Random search: independent draws of every active parameter from its prior.

    It never ends and learns nothing from results.

    Args:
        optimize_mode: accepted for uniformity; without effect.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import RandomTuner
        >>> tuner = RandomTuner(seed=0)
        >>> tuner.update_search_space({"x": {"_type": "randint", "_value": [0, 10]}})
        >>> [tuner.generate_parameters(trial) for trial in range(3)]
        [{'x': 6}, {'x': 6}, {'x': 0}]
    """

    lookahead: ClassVar[bool] = True

    def __init__(self, optimize_mode: Mode = "minimize", seed: Seed = None) -> None:
        checked_optimize_mode(optimize_mode)
        self._rng = Random(seed)
        self._space = Space(())

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the space that all later proposals are drawn from."""
        self._space = parse_space(search_space, algorithm="Random")

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return a random draw of the space, perhaps an earlier one again."""
        del parameter_id, kwargs
        return self._space.draw(self._rng)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Ignore a result: random search learns nothing."""

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Ignore samples, with a log line."""
        _logger.info("Random ignores %d imported samples", len(data))

    def state(self) -> dict[str, JsonValue]:
        """Return the state of the random generator as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {"rng": random_state(self._rng)}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the state of the random generator.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        restore_random(self._rng, state["rng"])
