"""Latency of layers, measured on this machine and kept in a table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from nni.mutable import Mutable
from nni.nas.profiler.base import ExpressionProfiler
from nni.nas.profiler.pytorch.arguments import mutable_arguments
from nni.nas.profiler.pytorch.cases import Number, leaves_of, tabulated
from nni.nas.profiler.pytorch.shapes import frozen_shapes, map_shapes, shapes_in
from nni.nas.profiler.pytorch.tracing import CostTrace, LayerCostFunction, example_shapes

_MILLISECONDS: Final = 1000
_SHOWN: Final = (bool, int, float, str, tuple)
"""Types of attributes that tell layers of one class apart."""
Measure = Callable[[nn.Module, Sequence[Any]], float]
"""From a layer without mutables, and its inputs, to its cost."""


def measured_cost(measure: Measure) -> LayerCostFunction:
    """Return a function that measures a layer for each combination of arguments and sizes.

    Args:
        measure: cost of one layer without mutables.

    Examples:
        >>> from nni.nas.profiler.pytorch import ShapeTensor
        >>> trace = CostTrace(measured_cost(lambda layer, inputs: 2.0))
        >>> _ = trace.run(nn.Sequential(nn.ReLU(), nn.ReLU()), (ShapeTensor((1, 3)),))
        >>> trace.total
        4.0
    """

    def cost(module: nn.Module, inputs: Sequence[Any], output: Any) -> Number:  # noqa: ANN401
        del output
        sizes = [size for one in shapes_in(inputs) for size in one.shape]
        own = [module] if mutable_arguments(module) else []

        def measured(sample: dict[str, Any]) -> float:
            layer = module.freeze(sample) if isinstance(module, Mutable) and own else module
            return measure(layer, frozen_shapes(inputs, sample))

        reason = f"the latency of {type(module).__name__} is measured one by one"
        return tabulated(leaves_of([*own, *sizes]), measured, reason=reason)

    return cost


class LatencyTable:
    """Table of latencies of layers on this machine (ms), which measures those it does not have.

    A layer is measured when it is asked for the first time, as the median of several runs; the
    table can be stored and read on another day. A row is one class with its arguments and the
    shapes of its inputs.

    Args:
        rows: text of a layer and its inputs to milliseconds.
        repeats: number of measured runs of a layer.
        warm_up: number of runs before.
        threads: threads of an operation on the CPU; one is the least disturbed by other programs.
        device: device that layers run on.
        clock: seconds; for tests.

    Raises:
        ValueError: `repeats` is not positive.

    Examples:
        >>> from nni.nas.profiler.pytorch import ShapeTensor
        >>> table = LatencyTable(repeats=3)
        >>> latency = table.measure(nn.Linear(3, 4), [ShapeTensor((1, 3))])
        >>> list(table.rows), latency == table.measure(nn.Linear(3, 4), [ShapeTensor((1, 3))])
        (['Linear(in_features=3, out_features=4, bias=True) (1, 3)'], True)
    """

    def __init__(
        self,
        rows: dict[str, float] | None = None,
        *,
        repeats: int = 20,
        warm_up: int = 3,
        threads: int = 1,
        device: str = "cpu",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if repeats < 1:
            raise ValueError(f"repeats must be >= 1, got {repeats}")
        self.rows = dict(rows or {})
        self.repeats = repeats
        self.warm_up = warm_up
        self.threads = threads
        self.device = torch.device(device)
        self._clock = clock

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> LatencyTable:  # noqa: ANN401 - of the class
        """Return the table of a file.

        Args:
            path: file that `save` wrote.
            **options: options of the class.
        """
        return cls(json.loads(Path(path).read_text("utf-8")), **options)

    def save(self, path: str | Path) -> None:
        """Write the table to a file.

        Args:
            path: JSON file.
        """
        Path(path).write_text(json.dumps(self.rows, indent=1, sort_keys=True), "utf-8")

    def measure(self, layer: nn.Module, inputs: Sequence[Any]) -> float:
        """Return a layer's latency in milliseconds; measure and store it if the table lacks it.

        Args:
            layer: layer without mutables.
            inputs: its inputs; tensors are `ShapeTensor`.

        Returns:
            Milliseconds.
        """
        row = f"{_text_of(layer)} {' '.join(str(one.shape) for one in shapes_in(inputs))}"
        if row not in self.rows:
            threads = torch.get_num_threads()
            torch.set_num_threads(self.threads)
            try:
                self.rows[row] = self._timed(layer, inputs)
            finally:
                torch.set_num_threads(threads)
        return self.rows[row]

    @torch.no_grad()
    def _timed(self, layer: nn.Module, inputs: Sequence[Any]) -> float:
        training, place = layer.training, next(layer.parameters(), torch.empty(0)).device
        layer.to(self.device).eval()
        given = map_shapes(
            list(inputs),
            lambda one: torch.zeros(one.shape, dtype=one.dtype, device=self.device),
        )
        times = []
        for run in range(self.warm_up + self.repeats):
            start = self._clock()
            layer(*given)
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            if run >= self.warm_up:
                times.append(self._clock() - start)
        layer.to(place).train(training)
        return statistics.median(times) * _MILLISECONDS


def _text_of(layer: nn.Module) -> str:
    """Return a layer's text; with its plain attributes, if its text shows no arguments.

    Attention has no arguments in its text, for example: heads of any number would share a row.
    """
    if layer.extra_repr() or type(layer).__repr__ is not nn.Module.__repr__:
        return repr(layer)
    shown = {
        name: value
        for name, value in sorted(vars(layer).items())
        if not name.startswith("_")
        and name != "training"
        and value is not False  # a flag that is off, as most are
        and isinstance(value, _SHOWN)
    }
    return f"{layer!r} {shown}" if shown else repr(layer)


class LatencyProfiler(ExpressionProfiler):
    """Profiler of the latency of a model space on this machine: sum of the latencies of its layers.

    Additions and other functions between layers count as nothing, and layers are taken to run one
    after another, so the sum is for comparison; measure the chosen network as a whole.

    Args:
        model_space: space in PyTorch.
        args: example input, or tuple of inputs, with the batch that latency is wanted for.
        table: table of measured layers; a new one without.

    Raises:
        nni.nas.profiler.pytorch.cases.CannotProfileError: a module or function has no formula.

    Examples:
        >>> from nni.nas.nn.pytorch import LayerChoice
        >>> layer = LayerChoice([nn.Linear(64, 64), nn.Identity()], label="layer")
        >>> profiler = LatencyProfiler(layer, torch.zeros(8, 64))
        >>> profiler.profile({"layer": 0}) > 0
        True
    """

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - a module that is a mutable
        args: Any,  # noqa: ANN401 - tensors
        table: LatencyTable | None = None,
    ) -> None:
        self.table = LatencyTable() if table is None else table
        """Table with a row for each layer that the space may have."""
        trace = CostTrace(measured_cost(self.table.measure))
        trace.run(model_space, example_shapes(args))
        super().__init__(model_space, trace.total)
