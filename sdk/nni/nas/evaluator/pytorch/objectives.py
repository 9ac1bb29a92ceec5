"""Measures of a network, as further objectives of a search: size, and time of a forward pass."""

import time
from collections.abc import Callable, Sequence
from statistics import median

import torch
from torch import nn

import nni


def parameter_count(model: nn.Module) -> int:
    """Return the number of parameters of a network; shared ones count once.

    Args:
        model: network.

    Returns:
        Number of elements.

    Examples:
        >>> parameter_count(nn.Linear(3, 2))
        8
    """
    return sum(parameter.numel() for parameter in model.parameters())


def parameter_bytes(model: nn.Module) -> int:
    """Return the bytes of a network's parameters and buffers; shared tensors count once.

    Args:
        model: network.

    Returns:
        Bytes; what is shared counts once.

    Examples:
        >>> parameter_bytes(nn.Linear(3, 2))
        32
    """
    tensors = [*model.parameters(), *model.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@nni.trace
class ForwardTime:
    """Callable that returns a network's median time for a batch of zeros, on the network's device.

    The network runs in eval mode without gradients; its modes are as before afterwards.

    Args:
        input_shape: shape of the batch, such as `(1, 3, 32, 32)`.
        repeats: number of timed passes, from 1; the median counts.
        warm_up: number of passes before them.
        clock: function that returns seconds.

    Raises:
        ValueError: `repeats` is less than 1, or `warm_up` is negative.

    Examples:
        >>> measure = ForwardTime((1, 3), repeats=3)
        >>> measure(nn.Linear(3, 2)) > 0
        True
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        repeats: int = 10,
        warm_up: int = 2,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if repeats < 1 or warm_up < 0:
            raise ValueError(
                f"repeats must be >= 1 and warm_up >= 0, got {repeats!r} and {warm_up!r}"
            )
        self.input_shape = tuple(input_shape)
        self.repeats = repeats
        self.warm_up = warm_up
        self.clock = clock

    def __call__(self, model: nn.Module) -> float:
        """Return the median seconds of a forward pass, without warm-ups, in eval mode and no_grad.

        Args:
            model: network.
        """
        device = next((one.device for one in model.parameters()), torch.device("cpu"))
        batch = torch.zeros(self.input_shape, device=device)
        modes = [(module, module.training) for module in model.modules()]
        try:
            model.eval()
            with torch.no_grad():
                times = [
                    self._time(model, batch, device) for _ in range(self.warm_up + self.repeats)
                ]
        finally:
            for module, training in modes:
                module.training = training
        return median(times[self.warm_up :])

    def _time(self, model: nn.Module, batch: torch.Tensor, device: torch.device) -> float:
        start = self.clock()
        model(batch)
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # else only the launch of the kernels is timed
        return self.clock() - start
