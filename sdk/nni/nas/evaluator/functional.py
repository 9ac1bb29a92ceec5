"""Evaluator that calls a function."""

from collections.abc import Callable
from typing import Any

import nni
from nni.nas.evaluator.base import MutableEvaluator


@nni.trace
class FunctionalEvaluator(MutableEvaluator):
    """Evaluator that calls a function with the model; the function reports the metrics.

    The function should be importable by other processes; one of the main script is written by
    value. The class is traced already.

    Args:
        function: called as `function(model, **kwargs)`.
        **kwargs: further arguments of the function; mutables are dimensions of the search.

    Attributes:
        function: the function.
        arguments: its further arguments, with mutables replaced by their values.

    Raises:
        TypeError: `function` cannot be called.

    Examples:
        >>> import nni
        >>> def train(model, epochs):
        ...     nni.report_final_result(model * epochs)
        >>> FunctionalEvaluator(train, epochs=2).evaluate(0.25)
        [...] INFO (nni) Final result: 0.5
    """

    def __init__(self, function: Callable[..., Any], **kwargs: Any) -> None:  # noqa: ANN401 - the user's
        super().__init__()
        if not callable(function):
            raise TypeError(f"function must be a function of a model, got {function!r}")
        self.function = function
        self.arguments = kwargs

    def evaluate(self, model: Any) -> Any:  # noqa: ANN401 - a network of any framework
        """Call the function with a model; return what it returns."""
        return self.function(model, **self.arguments)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", self.function)
        return f"FunctionalEvaluator({name}, {self.arguments})"
