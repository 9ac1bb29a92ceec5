"""Tuner that evolves graphs of layers; its search space is empty."""

import math
import random

from graphs import mutated, smallest

from nni.tuner import Tuner


class GraphEvolution(Tuner):
    """Tournaments of two: the better graph stays and has a child, the worse one leaves.

    Args:
        optimize_mode: maximize or minimize.
        population: number of the first graphs.
        seed: makes the search repeatable.
    """

    def __init__(self, optimize_mode="maximize", population=8, seed=None):
        if optimize_mode not in ("maximize", "minimize"):
            raise ValueError(
                f"optimize_mode must be maximize or minimize, got {optimize_mode!r}; correct it"
            )
        if population < 2:
            raise ValueError(f"population must be >= 2, got {population}; give at least 2")
        self._sign = -1 if optimize_mode == "maximize" else 1
        self._random = random.Random(seed)
        self._unevaluated = [smallest()]
        while len(self._unevaluated) < population:
            self._unevaluated.append(mutated(self._unevaluated[0], self._random))
        self._population = []  # (loss, graph), of which a smaller loss is better

    def update_search_space(self, search_space):
        if search_space:
            raise ValueError(f"searchSpace must be empty, got {search_space!r}; write {{}}")

    def generate_parameters(self, parameter_id, **kwargs):
        if self._unevaluated:
            return self._unevaluated.pop(0)
        if not self._population:  # all are running, or have failed
            return mutated(smallest(), self._random)
        self._random.shuffle(self._population)
        pair = sorted(self._population[:2], key=lambda member: member[0])
        self._population[:2] = pair[:1]
        _loss, parent = pair[0]
        return mutated(parent, self._random)

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        value = value["default"] if isinstance(value, dict) else value
        if not math.isnan(value):
            self._population.append((self._sign * value, parameters))

    def import_data(self, data):
        """Learn the results from before a stop of the experiment."""
        self._unevaluated = []
        for sample in data:
            self.receive_trial_result(None, sample["parameter"], sample["value"])
