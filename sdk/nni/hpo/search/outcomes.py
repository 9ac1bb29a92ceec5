"""Trials of a search in one process, their results, the incumbent and the Pareto front."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives
from nni.hpo.pareto import pareto_front
from nni.hpo.space.typed_space import TypedSpace


@dataclass(frozen=True, slots=True)
class StudyTrial:
    """Trial of `Study.ask`: id, configuration to evaluate, user attributes.

    Examples:
        >>> from nni.hpo import Study
        >>> trial = Study({"x": {"_type": "choice", "_value": [7]}}, seed=0).ask()
        >>> trial.id, trial.parameters
        (0, {'x': 7})
    """

    id: int
    """Counts from 0 within the search."""

    parameters: JsonValue
    """The configuration; for built-in algorithms a dict of plain Python values."""

    typed_space: TypedSpace | None = field(default=None, repr=False, compare=False)
    """Type that declares the space; None if the space was given as JSON."""

    user_attrs: dict[str, JsonValue] = field(default_factory=dict, repr=False, compare=False)
    """Values that `set_user_attr` has attached to the trial."""

    def set_user_attr(self, key: str, value: JsonValue) -> None:
        """Attach a value to the trial, such as the size of its model; no tuner gets it.

        Args:
            key: name of the value; one that is known is replaced.
            value: JSON value.

        Raises:
            TypeError: the value cannot be written as JSON.
        """
        self.user_attrs[key] = checked_attribute(key, value)

    @property
    def configuration(self) -> Any:  # noqa: ANN401 - the type that the search was given
        """`parameters` as an object of the type that declares the space.

        For a function these are its keyword arguments; for a space in JSON, `parameters` itself.

        Raises:
            ValueError: the type rejects the values by a rule of its own.
        """
        if self.typed_space is None:
            return self.parameters
        return self.typed_space.configuration(self.parameters)


def checked_attribute(key: str, value: JsonValue) -> JsonValue:
    """Return the value of a user attribute; raise TypeError unless JSON can hold it.

    Raises:
        TypeError: the value cannot be written as JSON.
    """
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"user attribute {key!r} must be a JSON value, got {value!r:.200}: {error}"
        ) from error
    return value


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """Non-dominated trial of a search with several objectives, and its value of each.

    Examples:
        >>> from nni.hpo import Study
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> study = Study(space, tuner="GridSearch", optimize_mode={"a": "minimize"})
        >>> for _ in range(2):
        ...     trial = study.ask()
        ...     study.tell(trial, {"a": trial.parameters["x"]})
        >>> [point.values for point in study.pareto_front]
        [{'a': 1.0}]
    """

    trial: StudyTrial
    """Trial whose values these are."""
    values: dict[str, float]
    """Value of each objective, by metric."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Trial whose configuration is to be used, with its expected or measured value.

    Examples:
        >>> from nni.hpo import Study
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> study = Study(space, tuner="GridSearch")
        >>> for _ in range(2):
        ...     trial = study.ask()
        ...     study.tell(trial, trial.parameters["x"])
        >>> study.recommended.value, study.recommended.measured
        (1.0, True)
    """

    trial: StudyTrial
    """One of the trials with a result."""
    value: float
    """Expected value of the objective, or the measured one."""
    measured: bool
    """True if `value` was measured; False if a model of noisy results expects it."""


class Outcomes:
    """Results of a search in the order of `tell`, with the incumbent.

    Args:
        objectives: objectives that compare the results.
    """

    def __init__(self, objectives: Objectives) -> None:
        self._objectives = objectives
        self._best: tuple[float, StudyTrial] | None = None
        self.results: list[tuple[StudyTrial, JsonValue]] = []
        """All trials with a result, and the result."""

    def add(self, trial: StudyTrial, value: JsonValue) -> None:
        """Add a numeric result; a feasible one that is better becomes the incumbent."""
        self.results.append((trial, value))
        losses = self._objectives.losses(value)
        feasible = losses is not None and self._objectives.excess(value) == 0
        if losses and feasible and (self._best is None or losses[0] < self._best[0]):
            self._best = (losses[0], trial)

    def best(self) -> tuple[float, StudyTrial]:
        """Return value and trial of the first best feasible result; ValueError if there is none.

        Raises:
            ValueError: no feasible finite result exists, or there are several objectives.
        """
        if self._objectives.several:
            raise ValueError("with several objectives there is no best one; see pareto_front")
        if self._best is None:
            raise ValueError("no trial has been told a finite value yet")
        loss, trial = self._best
        return (-loss if self._objectives.items[0].mode == "maximize" else loss), trial

    def recommended(
        self, expected: Callable[[list[JsonValue]], list[float] | None]
    ) -> Recommendation:
        """Return the trial of the best expected value; the incumbent if nothing is expected.

        Args:
            expected: returns expected values of configurations, or None.

        Raises:
            ValueError: as of `best`.
        """
        value, trial = self.best()
        trials = [
            one
            for one, report in self.results
            if self._objectives.losses(report) is not None and self._objectives.excess(report) == 0
        ]
        values = expected([one.parameters for one in trials])
        if values is None:
            return Recommendation(trial, value, measured=True)
        chosen = min if self._objectives.items[0].mode == "minimize" else max
        place = chosen(range(len(values)), key=values.__getitem__)
        return Recommendation(trials[place], values[place], measured=False)

    def front(self) -> list[FrontPoint]:
        """Return the feasible non-dominated trials, in the order of `tell`.

        With one objective these are all trials with the best value. Infeasible results, and those
        without finite numbers, are excluded.
        """
        complete = [
            (trial, value, losses)
            for trial, value in list(self.results)
            if self._objectives.excess(value) == 0
            and (losses := self._objectives.losses(value)) is not None
        ]
        best = pareto_front([losses for _, _, losses in complete])
        return [
            FrontPoint(trial, self._objectives.numbers(value) or {})
            for trial, value, _ in (complete[position] for position in best)
        ]
