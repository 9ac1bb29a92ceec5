"""Naive evolution: of two random individuals a mutated copy of the better replaces the worse.

Source: Real et al., Large-Scale Evolution of Image Classifiers, ICML 2017, section 3.1.

Departures: a mutated value is drawn again until it differs from the old one, a few times at most;
a single individual is mutated without a tournament, so that a population of one can evolve.
"""

import copy
import logging
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Annotated, Final

from nni.hpo.base import DEFERRED, StartLater, Tuner, samples
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import IntRange
from nni.hpo.space.domains import Space, active_places, same_value
from nni.hpo.space.parser import contains, parse_space
from nni.hpo.tuners._repair import repaired

_logger = logging.getLogger(__name__)

_REDRAWS: Final = 8
"""Limit of the draws of one mutation; a parameter may have a single allowed value."""


@dataclass(frozen=True, slots=True)
class Individual:
    """Evaluated member of the population: a configuration and its loss."""

    configuration: JsonValue
    loss: float


@algorithm(
    "Evolution",
    use_when="Trials are cheap and many, or a child can inherit the weights of its parent.",
    parallel="Served while individuals are unsent or two are evaluated; deferred otherwise.",
    documented_as="nni.algorithms.hpo.evolution_tuner.EvolutionTuner",
)
class EvolutionTuner(Tuner):
    """Evolution of a population by tournaments of two and mutation; strong with many trials.

    At any time `population_size` individuals are evaluated, running or not yet drawn. A request
    gets an undrawn individual; if there is none, a mutated copy of the better of two evaluated
    ones; if there are no two, it is deferred until a result comes. A trial that fails, or reports
    no finite number, is replaced by a random individual at once.

    Args:
        optimize_mode: `maximize` or `minimize`.
        population_size: number of individuals; should be much larger than the number of concurrent
            trials.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> arguments = {"population_size": 8}
        >>> found = optimize(
        ...     lambda p: p["x"] ** 2, space, tuner="Evolution", tuner_args=arguments, seed=0
        ... )
        >>> abs(found.best_parameters["x"]) < 0.1
        True
    """

    def __init__(
        self,
        optimize_mode: Mode = "maximize",
        population_size: Annotated[int, IntRange(1, 99_999)] = 32,
        seed: Seed = None,
    ) -> None:
        self._mode = checked_optimize_mode(optimize_mode)
        self._size = population_size
        self._rng = Random(seed)
        self._space = Space(())
        self._unsent = population_size
        self._running: dict[int, JsonValue] = {}
        self._evaluated: list[Individual] = []
        self._deferred: deque[int] = deque()
        self._start_later: StartLater | None = None

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the search space; replace individuals outside it, and serve deferred requests."""
        self._space = parse_space(search_space, algorithm="Evolution", priors=False)
        self._evaluated = [one for one in self._evaluated if self._has(one.configuration)]
        self._refill()
        self._serve_deferred()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        """Return the next individual's configuration; defer the request if none is ready."""
        start_later = kwargs.get("st_callback")
        if callable(start_later):
            self._start_later = start_later
            self._serve_deferred()
        configuration = self._next()
        if configuration is not None:
            self._running[parameter_id] = copy.deepcopy(configuration)
            return configuration
        if callable(start_later):  # without a callable the caller asks again
            self._deferred.append(parameter_id)
        return DEFERRED

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Record the loss of a trial, refill the queue, and serve deferred requests."""
        del parameters, kwargs
        if parameter_id not in self._running:
            return  # a duplicate report
        configuration = self._running.pop(parameter_id)
        loss = loss_of(value, self._mode)
        if loss is not None and self._has(configuration):
            self._evaluated.append(Individual(configuration, loss))
        self._refill()
        self._serve_deferred()

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Replace the individual of a trial without a result, and serve deferred requests."""
        del success, kwargs
        if self._running.pop(parameter_id, None) is not None:  # ended without a result
            self._refill()
            self._serve_deferred()

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Add results as individuals; they replace undrawn ones first, then the worst."""
        for sample in samples(data):
            loss = loss_of(sample.value, self._mode)
            if loss is None or not self._has(sample.parameter):
                _logger.warning("Evolution skips an imported sample: %.200r", sample)
                continue
            self._evaluated.append(Individual(copy.deepcopy(sample.parameter), loss))
            if self._unsent:
                self._unsent -= 1
            else:
                self._evaluated.remove(max(self._evaluated, key=lambda one: one.loss))
        self._serve_deferred()

    def state(self) -> dict[str, JsonValue]:
        """Return random state, population, running trials and deferred requests as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "rng": random_state(self._rng),
            "unsent": self._unsent,
            "running": [[number, configuration] for number, configuration in self._running.items()],
            "evaluated": [[one.configuration, one.loss] for one in self._evaluated],
            "deferred": list(self._deferred),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore random state, population, running trials and deferred requests.

        Deferred requests are served after the next request, which passes the callable for them.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        restore_random(self._rng, state["rng"])
        self._unsent = int(state["unsent"])
        self._running = dict(state["running"])
        self._evaluated = [
            Individual(configuration, loss) for configuration, loss in state["evaluated"]
        ]
        self._deferred = deque(state["deferred"])

    def _has(self, configuration: JsonValue) -> bool:
        return contains(self._space, configuration)

    def _refill(self) -> None:
        """Fill the population up with undrawn individuals."""
        self._unsent = max(0, self._size - len(self._running) - len(self._evaluated))

    def _serve_deferred(self) -> None:
        """Start trials for deferred requests while individuals are available."""
        while self._deferred and self._start_later is not None:
            configuration = self._next()
            if configuration is None:
                return
            parameter_id = self._deferred.popleft()
            self._running[parameter_id] = copy.deepcopy(configuration)
            self._start_later(parameter_id, configuration)

    def _next(self) -> dict[str, JsonValue] | None:
        """Return a new individual, or the better of two mutated, the worse dropped; or None."""
        if self._unsent:
            self._unsent -= 1
            return self._space.draw(self._rng)
        if len(self._evaluated) == 1 and not self._running:
            return self._mutated(self._evaluated[0].configuration)
        if len(self._evaluated) < 2:  # noqa: PLR2004 - a pair
            return None
        first, second = self._rng.sample(range(len(self._evaluated)), 2)
        if self._evaluated[first].loss > self._evaluated[second].loss:
            first, second = second, first
        better = self._evaluated[first]
        del self._evaluated[second]
        return self._mutated(better.configuration)

    def _mutated(self, configuration: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a copy with one random active parameter redrawn from its prior, then repaired."""
        child = copy.deepcopy(configuration)
        places = active_places(self._space, child)
        if not places:
            return child
        values, parameter = places[self._rng.randrange(len(places))]
        old = values[parameter.key]
        for _ in range(_REDRAWS):
            values[parameter.key] = Space((parameter,)).draw(self._rng)[parameter.key]
            if not same_value(values[parameter.key], old) and self._space.allows(child):
                break
        return repaired(self._space, child, self._rng)
