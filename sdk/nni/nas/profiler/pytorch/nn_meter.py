"""Latency as nn-Meter predicts it, for devices that are not at hand."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from torch import nn

from nni.nas.profiler.base import ExpressionProfiler
from nni.nas.profiler.pytorch.latency import measured_cost
from nni.nas.profiler.pytorch.shapes import ShapeTensor
from nni.nas.profiler.pytorch.tracing import CostTrace, example_shapes


def load_predictor(name: str, version: float | None = None) -> Any:  # noqa: ANN401 - nn-Meter's
    """Return a predictor of nn-Meter by name; raise ImportError if it is not installed.

    Args:
        name: name of the predictor, such as `"cortexA76cpu_tflite21"`.
        version: its version; None for the newest.

    Raises:
        ImportError: nn-Meter is not installed.

    Examples:
        >>> load_predictor("cortexA76cpu_tflite21")
        Traceback (most recent call last):
        ImportError: ...
    """
    try:
        nn_meter = import_module("nn_meter")
    except ImportError as error:
        raise ImportError(
            f"predictor {name!r} needs nn-Meter, which is not installed: `pip install nn-meter`, "
            "or measure on this machine by nni.nas.profiler.pytorch.LatencyProfiler"
        ) from error
    return nn_meter.load_latency_predictor(name, version)


class NnMeterProfiler(ExpressionProfiler):
    """Profiler of the latency of a model space on another device: sum of the predictions of layers.

    Args:
        model_space: space in PyTorch.
        args: example input, or tuple of inputs.
        predictor: a predictor of nn-Meter, or its name.
        custom_leaf_types: classes of modules that are predicted as a whole.
        simplify_shapes: accepted for compatibility; equal shapes are always one prediction.

    Raises:
        ImportError: `predictor` is a name, and nn-Meter is not installed.
        nni.nas.profiler.pytorch.cases.CannotProfileError: a module or function has no formula.

    Examples:
        >>> NnMeterProfiler(nn.Identity(), None, "cortexA76cpu_tflite21")
        Traceback (most recent call last):
        ImportError: ...
    """

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - a module that is a mutable
        args: Any,  # noqa: ANN401 - tensors
        predictor: Any,  # noqa: ANN401 - nn-Meter's
        custom_leaf_types: Sequence[type[nn.Module]] | None = None,
        simplify_shapes: bool = False,  # noqa: FBT001, FBT002 - NNI's signature
    ) -> None:
        del simplify_shapes
        loaded = load_predictor(predictor) if isinstance(predictor, str) else predictor

        def predicted(layer: nn.Module, inputs: Sequence[ShapeTensor]) -> float:
            shape = tuple(inputs[0].shape)
            return float(loaded.predict(layer, model_type="torch", input_shape=shape))

        trace = CostTrace(measured_cost(predicted), leaf_types=tuple(custom_leaf_types or ()))
        trace.run(model_space, example_shapes(args))
        super().__init__(model_space, trace.total)
