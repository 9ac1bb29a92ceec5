"""Simulated annealing: draws from the prior, shrunk around one of the best results.

Source: hyperopt 0.2.7, `hyperopt.anneal` (no paper).

Departures: one earlier result is the centre of a whole configuration, instead of one result per
parameter, so that values that are good together stay together. A parameter that is inactive in this
result (another branch of a choice) is centred at another result.
"""

import logging
import math
from bisect import insort
from random import Random
from typing import Final

from nni.hpo.base import Tuner, samples
from nni.hpo.encoding.columns import BELL_WIDTH, NumericColumn, levels_of
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.space.domains import Branch, ChoiceDomain, Domain, IntegerDomain, Parameter, Space
from nni.hpo.space.parser import parse_space, place
from nni.hpo.tuners._repair import repaired

_logger = logging.getLogger(__name__)

_STEP_DOWN: Final = 0.5
"""Chance to take the next worse result instead: the rank taken is 1 / (1 - 0.5) = 2 on average."""

_SHRINK_RATE: Final = 0.1
"""After T results of a parameter its prior is drawn at the width 1 / (1 + 0.1 T)."""

_TRIES: Final = 20
"""Attempts at a draw that keeps the constraints; the last one is repaired."""

Placed = dict[str, JsonValue]
"""The active parameters of a configuration: path to value, or to an option's position."""


@algorithm(
    "Anneal",
    use_when="Trials are cheap and the priors of the parameters are known to be good.",
    parallel="All are served; running trials are ignored.",
    documented_as="nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner",
)
class AnnealTuner(Tuner):
    """Simulated annealing: the prior shrinks around good results as their number grows.

    Integers (`randint`) and choices are unordered: they keep the earlier value, or are drawn anew
    with a chance that shrinks as the width of a number does. The rate does not adapt.

    Args:
        optimize_mode: `maximize` or `minimize`.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> found = optimize(lambda p: p["x"] ** 2, space, tuner="Anneal", trials=50, seed=0)
        >>> abs(found.best_parameters["x"]) < 0.05
        True
    """

    def __init__(self, optimize_mode: Mode = "minimize", seed: Seed = None) -> None:
        self._mode = checked_optimize_mode(optimize_mode)
        self._rng = Random(seed)
        self._observed: list[tuple[JsonValue, float]] = []
        self._set_space(Space(()))

    def _set_space(self, space: Space) -> None:
        self._space = space
        self._columns = {
            column.parameter.path: column for level in levels_of(space) for column in level.numeric
        }
        self._placed: list[Placed] = []
        self._ranking: list[tuple[float, int]] = []
        self._rankings: dict[str, list[tuple[float, int]]] = {}

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the search space, and learn again the observations that lie in it."""
        self._set_space(parse_space(search_space, algorithm="Anneal", priors=False))
        known, self._observed = self._observed, []
        for configuration, loss in known:
            self._learn(configuration, loss)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return `suggest()`: a configuration near a good result, whatever trials run."""
        del parameter_id, kwargs
        return self.suggest()

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Learn the loss of a final result; ignore one without a number."""
        del parameter_id, kwargs
        loss = loss_of(value, self._mode)
        if loss is not None:
            self._learn(parameters, loss)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Learn the loss of each sample; skip samples outside the space or without a number."""
        for sample in samples(data):
            loss = loss_of(sample.value, self._mode)
            if loss is None:
                _logger.warning("Anneal skips an imported sample without a number: %.200r", sample)
            else:
                self._learn(sample.parameter, loss)

    def suggest(self, *, from_prior: bool = False) -> dict[str, JsonValue]:
        """Return a configuration near a good result, or a prior draw; register no trial.

        Args:
            from_prior: whether to draw from the search space, without a look at the results.

        Returns:
            The configuration.
        """
        if from_prior or not self._ranking:
            return self._space.draw(self._rng)
        for _ in range(_TRIES):
            proposal = self._near(self._space, self._placed[self._pick(self._ranking)])
            if self._space.allows(proposal):
                return proposal
        return repaired(self._space, proposal, self._rng)

    def state(self) -> dict[str, JsonValue]:
        """Return the random state and all observations as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        observed = [[configuration, loss] for configuration, loss in self._observed]
        return {"rng": random_state(self._rng), "observed": observed}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the random state, and learn the observations of a state again.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        restore_random(self._rng, state["rng"])
        self._observed = []
        self._set_space(self._space)
        for configuration, loss in state["observed"]:
            self._learn(configuration, loss)

    def _learn(self, configuration: JsonValue, loss: float) -> None:
        try:
            placed = place(self._space, configuration)
        except ValueError as error:
            _logger.warning("Anneal drops a result outside the search space: %s", error)
            return
        index = len(self._placed)
        self._placed.append(placed)
        insort(self._ranking, (loss, index))
        for path in placed:
            insort(self._rankings.setdefault(path, []), (loss, index))
        self._observed.append((configuration, loss))

    def _pick(self, ranking: list[tuple[float, int]]) -> int:
        """Return the index of a result; its rank has a geometric distribution."""
        rank = 0
        while rank < len(ranking) - 1 and self._rng.random() < _STEP_DOWN:
            rank += 1
        return ranking[rank][1]

    def _near(self, space: Space, model: Placed) -> dict[str, JsonValue]:
        """Draw each parameter shrunk around `model`, or another good result if it lacks it."""
        values: dict[str, JsonValue] = {}
        for parameter in space.parameters:
            ranking = self._rankings.get(parameter.path, [])
            if not ranking:
                values[parameter.key] = Space((parameter,)).draw(self._rng)[parameter.key]
                continue
            own = model if parameter.path in model else self._placed[self._pick(ranking)]
            width = 1.0 / (1.0 + _SHRINK_RATE * len(ranking))
            values[parameter.key] = self._near_value(parameter, own, width)
        return values

    def _near_value(self, parameter: Parameter, model: Placed, width: float) -> JsonValue:
        around, domain = model[parameter.path], parameter.domain
        if not isinstance(domain, ChoiceDomain | IntegerDomain):
            return _near_number(self._columns[parameter.path], around, width, self._rng)
        if self._rng.random() < width:
            around = _drawn(domain, self._rng)
        if isinstance(domain, IntegerDomain):
            return around
        option = domain.options[around]
        if isinstance(option, Branch):
            return {"_name": option.name, **self._near(option.space, model)}
        return option


def _drawn(domain: Domain, rng: Random) -> int:
    """Return a draw of an unordered domain: an integer, or an option's position."""
    if isinstance(domain, ChoiceDomain):
        return rng.randrange(len(domain.options))
    assert isinstance(domain, IntegerDomain)
    return domain.draw(rng)


def _near_number(column: NumericColumn, around: float, width: float, rng: Random) -> float:
    """Return a draw from the prior, shrunk to a width and centred as near as bounds allow.

    Args:
        column: of the parameter.
        around: a value of its domain.
        width: in (0, 1].
        rng: of the draw.
    """
    coordinate = column.coordinate(around)
    if not math.isfinite(coordinate):  # a bell may overflow to infinity
        coordinate = 0.5
    if not column.bounded:
        return column.value(rng.gauss(coordinate, BELL_WIDTH * width))
    half = 0.5 * width
    centre = min(max(coordinate, half), 1.0 - half)
    return column.value(rng.uniform(centre - half, centre + half))
