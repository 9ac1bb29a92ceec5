"""Evaluator that adds further objectives, such as size and latency, to the result of another."""

from collections.abc import Callable, Mapping
from typing import Any

import nni
from nni.nas.evaluator.base import Evaluator, MutableEvaluator
from nni.nas.evaluator.trial_reports import changed_finals

DEFAULT = "default"
"""Key of the metric that a search maximises."""


@nni.trace
class MultiObjectiveEvaluator(MutableEvaluator):
    """Evaluator whose result is a dict: that of another evaluator, and measures of the model.

    The other evaluator's result stands under `default`; if it is a dict, it keeps its keys.
    Intermediate results stay as they are. Each measure is taken once, before the other evaluator
    starts, so that a model that cannot be measured costs no training.

    Args:
        evaluator: trains and validates the model.
        objectives: name to function of the model that returns a number, such as
            `nni.nas.evaluator.pytorch.parameter_count`. Functions with arguments are best made by
            `nni.trace`.

    Attributes:
        evaluator: trains and validates the model.
        objectives: the measures by name.

    Raises:
        ValueError: an objective is named `default`.

    Examples:
        >>> import nni
        >>> from nni.nas.evaluator import FunctionalEvaluator
        >>> def train(model):
        ...     nni.report_final_result(0.5)
        >>> MultiObjectiveEvaluator(FunctionalEvaluator(train), {"size": len}).evaluate("model")
        [...] INFO (nni) Final result: {'default': 0.5, 'size': 5.0}
    """

    def __init__(
        self, evaluator: Evaluator, objectives: Mapping[str, Callable[[Any], float]]
    ) -> None:
        super().__init__()
        if DEFAULT in objectives:
            raise ValueError(
                f"objectives must not have the name {DEFAULT!r}, which the evaluator's result has"
            )
        self.evaluator = evaluator
        self.objectives = dict(objectives)

    def evaluate(self, model: Any) -> Any:  # noqa: ANN401 - a network of any framework
        """Measure the model, then evaluate it, with the measures added to its final report."""
        measured = {name: float(measure(model)) for name, measure in self.objectives.items()}

        def change(metric: object) -> object:
            own = metric if isinstance(metric, dict) else {DEFAULT: metric}
            return {**own, **measured}

        with changed_finals(change):
            return self.evaluator.evaluate(model)
