"""Stopping rules, which end a search before its budget is used up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Protocol

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, checked_optimize_mode
from nni.hpo.registry.validation import check_count
from nni.hpo.space.domains import Space

_MIN_RESULTS: Final = 10
"""Fewest results for an estimate of the regret."""
_CANDIDATES: Final = 500
"""Samples of the space over which the lower confidence bound is minimised."""
_SMOOTHNESS: Final = 2.5
_LEAST_NOISE: Final = 1e-6
_WIDTH: Final = 1.96
"""Standard deviations of a two-sided 95 % interval of a normal distribution."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Configuration with its loss; infeasible ones have an infinite loss."""

    parameters: JsonValue
    loss: float
    """Loss of the single objective; smaller is better."""


class StoppingRule(Protocol):
    """Protocol of a rule that decides after each result whether the search ends."""

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """Return the reason to end the search as text; empty to continue.

        Args:
            results: all results in order of arrival; infeasible and non-finite ones have an
                infinite loss.
            search_space: space of the search.

        Returns:
            One sentence without a full stop, or an empty text.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoImprovement:
    """Stopping rule: no new incumbent within a number of results.

    Args:
        trials: number of results since the incumbent, >= 1.
        least: smallest improvement that counts, in the unit of the objective.

    Raises:
        ValueError: an argument is out of its range.

    Examples:
        >>> from nni.hpo import NoImprovement, Study
        >>> space = {"x": {"_type": "choice", "_value": [1, 2, 3]}}
        >>> study = Study(space, tuner="GridSearch", stop=NoImprovement(2))
        >>> for _ in range(3):
        ...     trial = study.ask()
        ...     study.tell(trial, trial.parameters["x"])
        >>> study.stopped_because
        'no improvement over 2 trials'
    """

    trials: int
    least: float = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError unless the arguments are in range."""
        check_count("trials", self.trials, least=1)
        if not self.least >= 0:
            raise ValueError(f"least must be >= 0, got {self.least!r}")

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """Return a reason to end if the last results brought no new incumbent; else empty text.

        Args:
            results: all results in order of arrival.
            search_space: without effect.

        Returns:
            The number of results without improvement, as a sentence; or an empty text.
        """
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
    """Stopping rule: the incumbent has reached a target value.

    Args:
        value: target, in the unit of the objective.
        optimize_mode: mode of the objective, `minimize` or `maximize`; None for that of the search.

    Raises:
        ValueError: the target is not finite, or the mode is unknown.

    Examples:
        >>> from nni.hpo import Study, TargetReached
        >>> space = {"x": {"_type": "choice", "_value": [1, 2, 3]}}
        >>> study = Study(space, tuner="GridSearch", stop=TargetReached(1.5))
        >>> study.tell(study.ask(), 1.0)
        >>> study.stopped_because
        'the target 1.5 is reached'
    """

    value: float
    optimize_mode: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless the target is finite and the mode, if given, is known."""
        if not math.isfinite(self.value):
            raise ValueError(f"value must be finite, got {self.value!r}")
        if self.optimize_mode is not None:
            checked_optimize_mode(self.optimize_mode)

    def of_search(self, optimize_mode: str) -> "TargetReached":
        """Return the rule with the mode of a search; raise ValueError if it has another one.

        Args:
            optimize_mode: mode of the only objective.

        Returns:
            The same target, for results of that mode.

        Raises:
            ValueError: the rule was given the other mode.
        """
        if self.optimize_mode not in {None, optimize_mode}:
            raise ValueError(
                f"optimize_mode of TargetReached must be that of the search, {optimize_mode!r}, "
                f"got {self.optimize_mode!r}; leave it out"
            )
        return replace(self, optimize_mode=optimize_mode)

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """Return a reason to end if any result has reached the target; else an empty text.

        Args:
            results: all results in order of arrival.
            search_space: without effect.

        Returns:
            The target, as a sentence; or an empty text.
        """
        del search_space
        target = -self.value if self.optimize_mode == "maximize" else self.value
        if any(result.loss <= target for result in results):
            return f"the target {self.value:g} is reached"
        return ""


@dataclass(frozen=True, slots=True)
class RegretBound:
    """Stopping rule: an upper bound of the simple regret, by a Gaussian process, is small.

    Source: Makarova et al., Automatic Termination for Hyperparameter Optimization, AutoML 2022: the
    regret is at most the smallest upper confidence bound at an evaluated configuration minus the
    smallest lower confidence bound in the space.

    Departures: the lower bound is minimised over samples of the search space; the model is that of
    `GPTuner`, with the same warping of results.

    Args:
        bound: regret below which the search ends, in the unit of the objective; > 0.
        every: results between two estimates, >= 1; each costs as much as a proposal of `GPTuner`.

    Raises:
        ValueError: an argument is out of its range.

    Examples:
        >>> from nni.hpo import RegretBound, optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> found = optimize(
        ...     lambda p: p["x"] ** 2, space, tuner="Random", stop=RegretBound(0.1), seed=0
        ... )
        >>> len(found.trials) < 100
        True
    """

    bound: float
    every: int = 5

    def __post_init__(self) -> None:
        """Raise ValueError unless the arguments are in range."""
        check_count("every", self.every, least=1)
        if not 0 < self.bound < math.inf:
            raise ValueError(f"bound must be > 0 and finite, got {self.bound!r}")

    def reason(self, results: Sequence[SearchResult], search_space: JsonValue) -> str:
        """Return a reason to end if the regret bound is small, tested every few results; else ''.

        Args:
            results: all results in order of arrival; those outside the space do not count.
            search_space: JSON; with one of a tuner's own form the search goes on.

        Returns:
            The bound of what can still be gained, as a sentence; or an empty text.
        """
        from nni.hpo.space.feasibility import read_parameters

        if len(results) < _MIN_RESULTS or len(results) % self.every:
            return ""
        try:
            space = read_parameters(search_space)
        except ValueError:
            return ""  # a form of the tuner's own, which the model does not support
        # After a change of the space, earlier results may lie outside.
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
    """Return a configuration as a flat dict of path to value, without keys a tuner added."""
    from nni.hpo.space.parser import place

    own = {parameter.key for parameter in space.parameters}
    return place(space, parameters, ignore=frozenset(parameters.keys() - own))


def regret_upper_bound(results: Sequence[SearchResult], search_space: JsonValue) -> float:
    """Return an upper bound of the simple regret, by a Gaussian process's 95 % intervals.

    Args:
        results: at least two, with finite losses.
        search_space: the space in JSON.

    Returns:
        The bound, in the unit of the objective; 0 or more.
    """
    import numpy as np

    from nni.hpo.importance import columns_of
    from nni.hpo.models.gp_regression import Kernel
    from nni.hpo.models.loss_model import LossModel
    from nni.hpo.models.matern import Matern
    from nni.hpo.space.feasibility import read_parameters

    space = read_parameters(search_space)
    axes = columns_of(space)
    rng = Random(0)

    def row(configuration: JsonValue) -> list[float]:
        placed = _placed(space, configuration)
        return [axis.unit_coordinate(placed) for axis in axes]

    inputs = np.array([row(result.parameters) for result in results])
    losses = [result.loss for result in results]
    kernel = Kernel(np.arange(len(axes)), Matern.of(_SMOOTHNESS), _LEAST_NOISE)
    fitted = LossModel(kernel).update(inputs, np.array(losses))
    drawn = np.array([row(space.draw(rng)) for _ in range(_CANDIDATES)])
    means, deviations = fitted.posterior.predict(np.concatenate([fitted.inputs, drawn]))
    count = len(fitted.inputs)
    upper = float((means[:count] + _WIDTH * deviations[:count]).min())
    lower = float((means - _WIDTH * deviations).min())
    return max(0.0, upper - lower) * _unit_of(sorted(losses), sorted(fitted.targets.tolist()))


def _unit_of(losses: list[float], targets: list[float]) -> float:
    """Return how much loss one unit of the warped targets is, within the better half."""
    middle = (len(targets) - 1) // 2
    rise = targets[middle] - targets[0]
    return (losses[(len(losses) - 1) // 2] - losses[0]) / rise if rise > 0 else 0.0


class StoppingMonitor:
    """Collector of the results of a search that evaluates the stopping rules.

    Args:
        rules: stopping rules; any of them ends the search.
        objectives: the single objective, and limits.

    Raises:
        ValueError: there are rules and several objectives, which rules do not support; or a
            target has another mode than the objective.
    """

    def __init__(self, rules: Sequence[StoppingRule], objectives: Objectives) -> None:
        if rules and objectives.several:
            raise ValueError("stopping rules need one objective; leave them out with several")
        mode = objectives.items[0].mode
        self._rules = tuple(
            rule.of_search(mode) if isinstance(rule, TargetReached) else rule for rule in rules
        )
        self._objectives = objectives
        self._results: list[SearchResult] = []
        self.reason = ""
        """Reason of the rule that ended the search; empty while it goes on."""

    def tell(self, parameters: JsonValue, value: JsonValue, search_space: JsonValue) -> None:
        """Add a result, None for a trial without one, and evaluate the rules."""
        self.replay([(parameters, value)], search_space)

    def replay(
        self, results: Sequence[tuple[JsonValue, JsonValue]], search_space: JsonValue
    ) -> None:
        """Add several results in order of arrival; set `reason` if a rule ends the search.

        A rule that ended the search before its interruption ends it again.
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
        """Return results and the reason of an end as JSON, for `load_state`."""
        return [[[f.parameters, f.loss] for f in self._results], self.reason]

    def load_state(self, state: JsonValue) -> None:
        """Restore results and the reason of an end from a state."""
        results, self.reason = state
        self._results = [SearchResult(parameters, loss) for parameters, loss in results]
