"""Results of a study whose trials are in this process: incumbent, Pareto front, table."""

from contextlib import AbstractContextManager
from typing import Any

from nni.hpo.json_value import JsonValue
from nni.hpo.search.outcomes import FrontPoint, Outcomes, StudyTrial
from nni.hpo.search.trial_table import ResultTable


class LocalResults(ResultTable):
    """Base of studies in one process: their results, the incumbent and the Pareto front."""

    _lock: AbstractContextManager[Any]
    """Held while outcomes are added or read."""
    _outcomes: Outcomes

    @property
    def best_value(self) -> float:
        """Value of the incumbent: the best feasible result as it was measured.

        Under noise it is a lucky one; see `Study.recommended`.

        Raises:
            ValueError: there is no feasible finite result, or there are several objectives.
        """
        return self._outcomes.best()[0]

    @property
    def best_trial(self) -> StudyTrial:
        """The incumbent: the first trial with `best_value`; ValueError if there is none."""
        return self._outcomes.best()[1]

    @property
    def best_parameters(self) -> JsonValue:
        """Configuration of the incumbent; ValueError if there is none."""
        return self.best_trial.parameters

    @property
    def pareto_front(self) -> list[FrontPoint]:
        """The feasible non-dominated trials, in the order of `tell`.

        With one objective these are all trials with the best value. Infeasible results, and those
        without finite numbers, are excluded.
        """
        with self._lock:
            return self._outcomes.front()

    @property
    def results(self) -> list[tuple[StudyTrial, JsonValue]]:
        """All trials with a result, and the result, in the order of `tell`."""
        with self._lock:
            return list(self._outcomes.results)
