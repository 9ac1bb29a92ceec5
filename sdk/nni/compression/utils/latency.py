"""Latency meter: how long a model takes for example inputs, on the device that it is on."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from nni.compression.base.arguments import check_count
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.running import run, tensors_in

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of a model in milliseconds: median, range, runs, threads and device.

    Args:
        median_ms: median of all measurements.
        low_ms: first decile.
        high_ms: last decile.
        repeats: number of measurements.
        threads: threads of an operation on the CPU.
        device: device of the inputs, such as `cpu` or `cuda:0`.

    Examples:
        >>> from nni.compression.utils import Latency
        >>> print(Latency(2.0, 1.9, 2.3, 50, 1, "cpu"))
        2 ms (1.9 to 2.3, 50 runs on cpu, 1 thread)
    """

    median_ms: float
    low_ms: float
    high_ms: float
    repeats: int
    threads: int
    device: str

    def __str__(self) -> str:
        """Return the numbers as a sentence."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{self.median_ms:.3g} ms ({self.low_ms:.3g} to {self.high_ms:.3g}, {self.repeats} "
            f"runs on {self.device}, {threads})"
        )


@dataclass(frozen=True, slots=True)
class LatencyComparison:
    """Latency of two models that were measured in turn.

    Args:
        before: latency of the first model.
        after: latency of the second model.
        ratio: median of the ratios of neighbouring measurements, first by second: above 1, the
            second model is faster.

    Examples:
        >>> from nni.compression.utils import Latency, LatencyComparison
        >>> slow, fast = Latency(4, 4, 4, 9, 1, "cpu"), Latency(2, 2, 2, 9, 1, "cpu")
        >>> LatencyComparison(slow, fast, 2.0).ratio
        2.0
    """

    before: Latency
    after: Latency
    ratio: float


def measure_latency(
    model: nn.Module,
    example_inputs: Inputs,
    *,
    warm_up: int = 10,
    repeats: int = 50,
    threads: int | None = None,
    clock: Clock = time.perf_counter,
) -> Latency:
    """Return median and range of how long a model takes, in eval mode without gradients.

    On a GPU each measurement waits until the device is done.

    Args:
        model: the model; it is the same afterwards.
        example_inputs: a tensor, a list or tuple of positional inputs, or a dict by name.
        warm_up: runs before the first measurement, >= 1.
        repeats: number of measurements, >= 1.
        threads: threads of an operation on the CPU; None for those of torch now.
        clock: returns seconds.

    Returns:
        The latency.

    Raises:
        TypeError: a number is no int.
        ValueError: a number is below 1, or the inputs hold no tensor.

    Examples:
        >>> import torch
        >>> from nni.compression.utils import measure_latency
        >>> latency = measure_latency(torch.nn.Linear(4, 4), torch.zeros(1, 4), repeats=5)
        >>> latency.low_ms <= latency.median_ms <= latency.high_ms
        True
    """
    with _conditions([model], warm_up, repeats, threads):
        (seconds,) = _measured([model], example_inputs, warm_up, repeats, clock)
        return _latency(seconds, example_inputs)


def compare_latency(
    before: nn.Module,
    after: nn.Module,
    example_inputs: Inputs,
    *,
    warm_up: int = 10,
    repeats: int = 50,
    threads: int | None = None,
    clock: Clock = time.perf_counter,
) -> LatencyComparison:
    """Return latencies of two models and their ratio; run in turn, a busy machine slows both.

    Args:
        before: first model; it is the same afterwards.
        after: second model; likewise.
        example_inputs: inputs of both.
        warm_up: runs of each before the first measurement, >= 1.
        repeats: number of measurements of each, >= 1.
        threads: threads of an operation on the CPU; None for those of torch now.
        clock: returns seconds.

    Returns:
        Both latencies and their ratio.

    Raises:
        TypeError: a number is no int.
        ValueError: a number is below 1, or the inputs hold no tensor.

    Examples:
        >>> import torch
        >>> from nni.compression.utils import compare_latency
        >>> large, small = torch.nn.Linear(2000, 2000), torch.nn.Linear(2000, 1)
        >>> compare_latency(large, small, torch.zeros(8, 2000), repeats=9).ratio > 1
        True
    """
    with _conditions([before, after], warm_up, repeats, threads):
        first, second = _measured([before, after], example_inputs, warm_up, repeats, clock)
        return LatencyComparison(
            _latency(first, example_inputs),
            _latency(second, example_inputs),
            statistics.median(one / other for one, other in zip(first, second, strict=True)),
        )


@contextmanager
def _conditions(
    models: list[nn.Module], warm_up: int, repeats: int, threads: int | None
) -> Iterator[None]:
    """Within a block, set models to eval mode and set the threads; raise for bad numbers."""
    check_count("warm_up", warm_up)
    check_count("repeats", repeats)
    if threads is not None:
        check_count("threads", threads)
    modes = [(module, module.training) for model in models for module in model.modules()]
    with ExitStack() as restored:
        restored.callback(torch.set_num_threads, torch.get_num_threads())
        for module, training in modes:
            restored.callback(setattr, module, "training", training)
            module.training = False
        if threads is not None:
            torch.set_num_threads(threads)
        restored.enter_context(torch.no_grad())
        yield


def _measured(
    models: list[nn.Module], inputs: Inputs, warm_up: int, repeats: int, clock: Clock
) -> list[list[float]]:
    """Return the seconds of each run, by model; the models run alternately."""
    device = _device(inputs)
    for _ in range(warm_up):
        for model in models:
            run(model, inputs)
    _finish(device)
    seconds: list[list[float]] = [[] for _ in models]
    for _ in range(repeats):
        for model, own in zip(models, seconds, strict=True):
            start = clock()
            run(model, inputs)
            _finish(device)
            own.append(clock() - start)
    return seconds


def _device(inputs: Inputs) -> torch.device:
    found = tensors_in(inputs)
    if not found:
        raise ValueError("example_inputs holds no tensor; pass the inputs of model.forward")
    return found[0].device


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _latency(seconds: list[float], inputs: Inputs) -> Latency:
    ordered = sorted(1000 * one for one in seconds)
    last = len(ordered) - 1
    return Latency(
        median_ms=statistics.median(ordered),
        low_ms=ordered[round(0.1 * last)],
        high_ms=ordered[round(0.9 * last)],
        repeats=len(ordered),
        threads=torch.get_num_threads(),
        device=str(_device(inputs)),
    )
