"""Filter of models by their predicted latency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nni.nas.profiler.base import Profiler

Predictor = Callable[[Any], float]
"""Function from a model to its latency."""


class LatencyFilter:
    """Predicate that admits models with a predicted latency below a threshold, or not below.

    It is passed to `nni.nas.strategy.middleware.Filter`, or as `model_filter` of NNI 2.x.

    Args:
        threshold: latency, in the unit of the predictor, mostly milliseconds.
        predictor: a profiler, which predicts from the model's sample; a function of the model; or
            the name of a predictor of nn-Meter, such as `"cortexA76cpu_tflite21"`.
        predictor_version: version of a predictor of nn-Meter; None for the newest.
        reverse: admit the models at or above the threshold instead.

    Raises:
        TypeError: the predictor is none of these.
        ImportError: it is a name, and nn-Meter is not installed.

    Examples:
        >>> admits = LatencyFilter(100, predictor=lambda model: model["ms"])
        >>> [admits({"ms": latency}) for latency in (99, 100, 101)]
        [True, False, False]
    """

    def __init__(
        self,
        threshold: float,
        predictor: Profiler | Predictor | str,
        predictor_version: float | None = None,
        reverse: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
    ) -> None:
        self.threshold = threshold
        self.reverse = reverse
        self._predict = _prediction(predictor, predictor_version)

    def __call__(self, model: Any) -> bool:  # noqa: ANN401 - of any format
        """Return whether a model's latency is below the threshold; with `reverse`, not below.

        Args:
            model: executable model; a profiler reads its `sample`.

        Returns:
            True if its latency is below the threshold, or not below it with `reverse`.
        """
        return (self._predict(model) < self.threshold) is not self.reverse


def _prediction(predictor: Profiler | Predictor | str, version: float | None) -> Predictor:
    if isinstance(predictor, Profiler):
        profiler = predictor
        return lambda model: profiler.profile(model.sample)
    if isinstance(predictor, str):
        from nni.nas.profiler.pytorch.nn_meter import load_predictor

        loaded = load_predictor(predictor, version)
        return lambda model: float(loaded.predict(model.executable_model()))
    if callable(predictor):
        return predictor
    raise TypeError(
        "predictor must be a Profiler, a function of the model, or a name of nn-Meter, got "
        f"{predictor!r}"
    )
