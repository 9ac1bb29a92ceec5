"""Training that is looked up in a table of learning curves, with budgets and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nni.hpo.checkpoint_folders import LOAD_KEY, SAVE_KEY
from nni.hpo.simulation.curve_table import Curve, CurveTable

BUDGET_KEY: Final = "TRIAL_BUDGET"
"""Key of a configuration's budget, in steps."""


@dataclass(slots=True)
class TableTraining:
    """Simulated training on a table of curves, with budgets and checkpoints."""

    table: CurveTable
    trial_steps: int
    """Steps of a configuration without a budget."""
    _saved: dict[str, int] = field(default_factory=dict)

    def segment(self, parameters: Mapping[str, Any]) -> Curve:
        """Return the part of the learning curve that training a configuration yields.

        It starts at the checkpoint, if there is one; beyond its end a curve is constant.

        Raises:
            ValueError: the configuration has no curve, or its budget is no number >= 1.
        """
        curve = self.table.curve(parameters)
        first, last = self.resumed_at(parameters), len(curve.values) - 1
        steps = range(first, self._budget(parameters, first + self.trial_steps))
        return Curve(tuple(curve.values[min(step, last)] for step in steps), curve.step_s)

    def resumed_at(self, parameters: Mapping[str, Any]) -> int:
        """Return the step of a configuration's checkpoint, below its budget; 0 without one.

        A checkpoint at or beyond the budget is trained for one step nevertheless.
        """
        saved = self._saved.get(parameters.get(LOAD_KEY, ""), 0)
        return min(saved, self._budget(parameters, saved + 1) - 1)

    def _budget(self, parameters: Mapping[str, Any], otherwise: int) -> int:
        """Return the budget of a configuration, else the given last step; ValueError if wrong."""
        budget = parameters.get(BUDGET_KEY, otherwise)
        if isinstance(budget, bool) or not isinstance(budget, int | float) or budget < 1:
            raise ValueError(f"{BUDGET_KEY} must be a number >= 1, got {budget!r}")
        return int(budget)

    def save(self, parameters: Mapping[str, Any], steps: int) -> None:
        """Save a checkpoint, if the configuration names a folder for it.

        Args:
            parameters: the configuration.
            steps: steps since its own checkpoint.
        """
        if SAVE_KEY in parameters:
            self._saved[parameters[SAVE_KEY]] = self.resumed_at(parameters) + steps
