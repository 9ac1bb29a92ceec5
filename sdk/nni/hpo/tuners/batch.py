"""Batch tuner: a list of configurations from the search space, in order.

Source: none; the search space is the list.
"""

from collections.abc import Mapping
from typing import ClassVar

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner, samples
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import checked_optimize_mode
from nni.hpo.registry.arguments import Mode
from nni.hpo.registry.declaration import algorithm
from nni.hpo.space.domains import configuration_hash, same_value
from nni.hpo.space.feasibility import combine_params


@algorithm(
    "BatchTuner",
    use_when="The configurations to try are known, and listed in the search space.",
    parallel="All are served, in the order of the list.",
    documented_as="nni.algorithms.hpo.batch_tuner.BatchTuner",
    types=("choice",),
    nested=False,
    space_check=combine_params,
    defaults={},
)
class BatchTuner(Tuner):
    """List of configurations: proposes the options of `combine_params` in order, each once.

    A new search space replaces the list; configurations that were proposed are not repeated.

    Args:
        optimize_mode: accepted for uniformity; without effect.

    Examples:
        >>> from nni.hpo import optimize
        >>> options = [{"x": 1, "y": 2}, {"x": 3, "y": 0}]
        >>> space = {"combine_params": {"_type": "choice", "_value": options}}
        >>> found = optimize(lambda p: p["x"] + p["y"], space, tuner="BatchTuner")
        >>> [trial.value for trial in found.trials]
        [3.0, 3.0]
    """

    lookahead: ClassVar[bool] = True

    def __init__(self, optimize_mode: Mode = "minimize") -> None:
        checked_optimize_mode(optimize_mode)
        self._queue: list[dict[str, JsonValue]] = []
        self._next = 0
        self._done: list[dict[str, JsonValue]] = []

    def is_valid(self, search_space: JsonValue) -> list[dict[str, JsonValue]] | None:
        """Return the configurations in a search space of this tuner, None for any other.

        Args:
            search_space: `{"combine_params": {"_type": "choice", "_value": [...]}}`.

        Returns:
            The list of `_value`, or None.
        """
        try:
            return combine_params(search_space)
        except ValueError:
            return None

    def update_search_space(self, search_space: JsonValue) -> None:
        """Queue the configurations of a space, without those already proposed."""
        options = list(combine_params(search_space))
        self._done += self._queue[: self._next]
        self._queue, self._next = _without(options, self._done), 0

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return the next configuration of the queue; raise NoMoreTrialError at its end."""
        del parameter_id, kwargs
        if self._next >= len(self._queue):
            raise NoMoreTrialError("all configurations of the batch have been proposed")
        self._next += 1
        return dict(self._queue[self._next - 1])

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Ignore a result: the batch is tried in its order."""

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Remove one waiting configuration from the list for each equal imported one."""
        imported = [sample.parameter for sample in samples(data)]
        self._done += imported
        self._queue[self._next :] = _without(self._queue[self._next :], imported)

    def state(self) -> dict[str, JsonValue]:
        """Return the queue, the position in it and the configurations done as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {"queue": self._queue, "next": self._next, "done": self._done}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the queue, the position in it and the configurations done.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        self._queue, self._next = list(state["queue"]), int(state["next"])
        self._done = list(state["done"])


def _without(
    options: list[dict[str, JsonValue]], done: list[dict[str, JsonValue]]
) -> list[dict[str, JsonValue]]:
    """Return the options without one equal option for each configuration in `done`."""
    left = dict(enumerate(options))
    places: dict[str, list[int]] = {}
    for position, option in reversed(left.items()):
        places.setdefault(configuration_hash(option), []).append(position)
    for finished in done:
        equal = places.get(configuration_hash(finished), [])
        while equal and equal[-1] not in left:
            equal.pop()
        left.pop(equal.pop() if equal else _close_place(left, finished), None)
    return list(left.values())


def _close_place(options: Mapping[int, object], finished: object) -> int:
    """Return the place of the first option that is equal up to rounding; -1 if there is none."""
    return next((place for place, one in options.items() if same_value(one, finished)), -1)
