"""`FunctionalEvaluator` of NNI 2.x, whose function takes a class of networks."""

from collections.abc import Callable
from typing import Any

import nni
from nni.nas.evaluator import FunctionalEvaluator
from nni.retiarii.deprecation import warn_once


@nni.trace
class LegacyFunctionalEvaluator(FunctionalEvaluator):
    """`FunctionalEvaluator` of NNI 2.x: it passes a function that returns the network.

    Args:
        function: called as `function(model_cls, **kwargs)`; `model_cls()` returns the network, the
            same one at each call.
        **kwargs: further arguments of the function; mutables are dimensions of the search.
    """

    def __init__(self, function: Callable[..., Any], **kwargs: Any) -> None:  # noqa: ANN401 - the user's
        warn_once("evaluator.FunctionalEvaluator", "nni.nas.evaluator.FunctionalEvaluator")
        super().__init__(function, **kwargs)

    def evaluate(self, model: Any) -> Any:  # noqa: ANN401 - a network of any framework
        """Call the function with a function that returns the model; return what it returns."""
        return self.function(lambda: model, **self.arguments)
