"""When a search has found enough: rules that end it before its budget does."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives
from nni.hpo.registry.validation import check_count
from nni.hpo.space.domains import Space

_MIN_RESULTS: Final = 10
"""Results before which no bound is believed."""
_CANDIDATES: Final = 500
"""Draws among which the best that may still be there is looked for."""
_SMOOTHNESS: Final = 2.5
_LEAST_NOISE: Final = 1e-6
_WIDTH: Final = 1.96
"""Deviations to either side that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One feasible result of a search."""

    parameters: JsonValue
    loss: float
    """Of the only objective; smaller is better."""


class StoppingRule(Protocol):
    """Says after each result whether the search may end."""

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """Return why the search may end, in words; empty if it may not.

        Args:
            results: all feasible results with a finite number, in the order of their coming;
                results without one stand as an infinite loss.
            search_space: of the search.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoImprovement:
    """Ends a search whose best result is old.

    Args:
        trials: how many results must have come since the best one, >= 1.
        least: what counts as better: by more than this, in the unit of the objective.
    """

    trials: int
    least: float = 0.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        check_count("trials", self.trials, least=1)
        if not self.least >= 0:
            raise ValueError(f"least must be >= 0, got {self.least!r}")

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """See `StoppingRule`."""
        del search_space
        best, age = math.inf, 0
        for result in results:
            age += 1
            if result.loss < best - self.least:
                best, age = result.loss, 0
        if best < math.inf and age >= self.trials:
            return f"no improvement over {age} trials"
        return ""


@dataclass(frozen=True, slots=True)
class TargetReached:
    """Ends a search that has found what was looked for.

    Args:
        value: of the objective, in its own direction: at least this good is enough.
        optimize_mode: of the objective.
    """

    value: float
    optimize_mode: str = "minimize"

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not math.isfinite(self.value):
            raise ValueError(f"value must be finite, got {self.value!r}")

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """See `StoppingRule`."""
        del search_space
        target = -self.value if self.optimize_mode == "maximize" else self.value
        if any(result.loss <= target for result in results):
            return f"the target {self.value:g} is reached"
        return ""


@dataclass(frozen=True, slots=True)
class RegretBound:
    """Ends a search when what can still be gained is little, as far as a model knows.

    Source: Makarova et al., Automatic Termination for Hyperparameter Optimization, AutoML 2022: the
    regret is at most the best upper bound of what was tried minus the best lower bound anywhere.

    Departures: the lower bound is looked for among draws of the search space; the model is that of
    `GPTuner`, on results warped as there.

    Args:
        bound: gain, in the unit of the objective, below which the search ends; > 0.
        every: results between two looks, >= 1; each costs as much as a proposal of `GPTuner`.
    """

    bound: float
    every: int = 5

    def __post_init__(self) -> None:
        """Check the arguments."""
        check_count("every", self.every, least=1)
        if not 0 < self.bound < math.inf:
            raise ValueError(f"bound must be > 0 and finite, got {self.bound!r}")

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """See `StoppingRule`."""
        from nni.hpo.space.parser import parse_space

        if len(results) < _MIN_RESULTS or len(results) % self.every:
            return ""
        try:
            space = parse_space(search_space)
        except ValueError:
            return ""  # a language of the tuner's own, of which nothing is modelled
        # A space that was changed has left results behind.
        known = [f for f in results if f.loss < math.inf and _lies_in(space, f.parameters)]
        if len(known) < _MIN_RESULTS:
            return ""
        gain = regret_upper_bound(known, search_space)
        return f"at most {gain:.3g} can still be gained" if gain < self.bound else ""


def _lies_in(space: Space, parameters: JsonValue) -> bool:
    try:
        _placed(space, parameters)
    except ValueError:
        return False
    return True


def _placed(space: Space, parameters: JsonValue) -> dict[str, object]:
    """Return a configuration as the space has it, without what a tuner has added to it."""
    from nni.hpo.space.parser import place

    own = {parameter.key for parameter in space.parameters}
    return place(space, parameters, ignore=frozenset(parameters.keys() - own))


def regret_upper_bound(results: Sequence[SearchResult], search_space: JsonValue) -> float:
    """Return by how much the best result may still be beaten, with 95 % confidence.

    Args:
        results: at least two, with finite losses.
        search_space: of the usual language.
    """
    import numpy as np

    from nni.hpo.importance import columns_of
    from nni.hpo.models.matern import Matern
    from nni.hpo.models.surrogate import Surrogate
    from nni.hpo.space.parser import parse_space

    space = parse_space(search_space)
    axes = columns_of(space)
    rng = Random(0)

    def row(configuration: JsonValue) -> list[float]:
        placed = _placed(space, configuration)
        return [axis.unit_coordinate(placed) for axis in axes]

    points = [np.array(row(result.parameters)) for result in results]
    losses = [result.loss for result in results]
    belief = Surrogate(Matern.of(_SMOOTHNESS), _LEAST_NOISE).believe(points, losses)
    drawn = np.array([row(space.draw(rng)) for _ in range(_CANDIDATES)])
    means, deviations = belief.model.predict(np.concatenate([belief.points, drawn]))
    count = len(belief.points)
    upper = float((means[:count] + _WIDTH * deviations[:count]).min())
    lower = float((means - _WIDTH * deviations).min())
    return max(0.0, upper - lower) * _unit_of(sorted(losses), sorted(belief.targets.tolist()))


def _unit_of(losses: list[float], targets: list[float]) -> float:
    """Return what one step of the model's scale is among the better half, which keeps its shape."""
    middle = (len(targets) - 1) // 2
    rise = targets[middle] - targets[0]
    return (losses[(len(losses) - 1) // 2] - losses[0]) / rise if rise > 0 else 0.0


class StoppingMonitor:
    """Collects the results of a search and asks the rules about them.

    Args:
        rules: any of them ends the search.
        objectives: the only objective, and limits.

    Raises:
        ValueError: there are rules, and several objectives, of which no rule knows.
    """

    def __init__(self, rules: Sequence[StoppingRule], objectives: Objectives) -> None:
        if rules and objectives.several:
            raise ValueError("stopping rules need one objective; leave them out with several")
        self._rules = tuple(rules)
        self._objectives = objectives
        self._results: list[SearchResult] = []
        self.reason = ""
        """Why the search may end; empty while it may not."""

    def tell(self, parameters: JsonValue, value: JsonValue, search_space: JsonValue) -> None:
        """Learn a result; None of a trial that gave none."""
        self.replay([(parameters, value)], search_space)

    def replay(
        self, results: Sequence[tuple[JsonValue, JsonValue]], search_space: JsonValue
    ) -> None:
        """Learn parameters and values that this search gave already, in the order of their coming.

        A rule that they fulfil ends the search once more.
        """
        if not self._rules or self.reason or not results:
            return
        for parameters, value in results:
            losses = self._objectives.losses(value)
            feasible = losses is not None and self._objectives.excess(value) == 0
            loss = losses[0] if losses is not None and feasible else math.inf
            self._results.append(SearchResult(parameters, loss))
        for rule in self._rules:
            self.reason = self.reason or rule.reason(self._results, search_space)

    def state(self) -> JsonValue:
        """Return what `load_state` needs, as JSON."""
        return [[[f.parameters, f.loss] for f in self._results], self.reason]

    def load_state(self, state: JsonValue) -> None:
        """Go on from a state."""
        results, self.reason = state
        self._results = [SearchResult(parameters, loss) for parameters, loss in results]
