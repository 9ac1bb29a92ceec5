"""What the trials of a search in this process gave, and which of them are best."""

from dataclasses import dataclass, field
from typing import Any

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives
from nni.hpo.pareto import pareto_front
from nni.hpo.space.typed_space import TypedSpace


@dataclass(frozen=True, slots=True)
class StudyTrial:
    """One configuration that was handed out for evaluation."""

    id: int
    """Counts from 0 within the search."""

    parameters: JsonValue
    """What to evaluate: for the built-in algorithms a dict of plain Python values."""

    typed_space: TypedSpace | None = field(default=None, repr=False, compare=False)
    """What `parameters` are a configuration of; None if the space was given as JSON."""

    @property
    def configuration(self) -> Any:  # noqa: ANN401 - the type that the search was given
        """`parameters` as an object of the type that is the search space.

        For a function these are the arguments to call it with; for a space in JSON it is
        `parameters` itself.

        Raises:
            ValueError: the type refuses the values, by a rule that the space does not know.
        """
        if self.typed_space is None:
            return self.parameters
        return self.typed_space.configuration(self.parameters)


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One trial that no other one beats in every objective."""

    trial: StudyTrial
    values: dict[str, float]
    """Number of each objective, by metric."""


class Outcomes:
    """The results of a search, in the order of telling.

    Args:
        objectives: by which they are compared.
    """

    def __init__(self, objectives: Objectives) -> None:
        self._objectives = objectives
        self._best: tuple[float, StudyTrial] | None = None
        self.results: list[tuple[StudyTrial, JsonValue]] = []
        """All trials that gave a result, and what it was."""

    def add(self, trial: StudyTrial, value: JsonValue) -> None:
        """Take in what a trial gave; whether it is numeric has been checked."""
        self.results.append((trial, value))
        losses = self._objectives.losses(value)
        feasible = losses is not None and self._objectives.excess(value) == 0
        if losses and feasible and (self._best is None or losses[0] < self._best[0]):
            self._best = (losses[0], trial)

    def best(self) -> tuple[float, StudyTrial]:
        """Return the best number within all limits, and the first trial that reached it.

        Raises:
            ValueError: no finite number was told, or there are several objectives.
        """
        if self._objectives.several:
            raise ValueError("with several objectives there is no best one; see pareto_front")
        if self._best is None:
            raise ValueError("no trial has been told a finite value yet")
        loss, trial = self._best
        return (-loss if self._objectives.items[0].mode == "maximize" else loss), trial

    def front(self) -> list[FrontPoint]:
        """Return the trials that no other one beats in every objective, in the order of telling.

        With one objective, all that reached the best value. What is beyond a limit, or lacks a
        finite number, is not among them.
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
