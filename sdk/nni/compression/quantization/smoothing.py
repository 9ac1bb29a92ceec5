"""Migration of activation outliers into weights before quantization: SmoothQuant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nni.compression.quantization.smoothing_groups import SmoothingGroup, smoothing_groups
from nni.compression.speedup.caches import independent_copy
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.running import run, unchanged

_FLOOR: Final = 1e-5
"""Smallest magnitude of a channel in a quotient."""
_PRODUCTS: Final[Mapping[str, tuple[int, int]]] = {"aten.mm": (0, 1), "aten.addmm": (1, 2)}
"""Places of activation and weight among the arguments of matrix products."""


@dataclass(frozen=True, slots=True)
class SmoothedNorm:
    """Norm whose channels were scaled, the weights that read it, and spread before and after."""

    norm: tuple[str, ...]
    """Names of the parameters that were divided by the scales."""
    weights: tuple[str, ...]
    """Names of the weights whose input channels were multiplied by the scales."""
    spread_before: float
    """Largest activation, divided by the median of the largest ones of all channels."""
    spread_after: float
    """The same after the migration."""


@dataclass(frozen=True, slots=True)
class SmoothingReport:
    """Result of `smooth_activations`: smoothed norms, and why others were skipped.

    Examples:
        >>> from nni.compression.quantization.smoothing import SmoothingReport
        >>> SmoothingReport((), {"norm.weight": "it is an output of the model"}).smoothed
        ()
    """

    smoothed: tuple[SmoothedNorm, ...]
    """Norms in the order of the run."""
    skipped: Mapping[str, str]
    """Reason by name of the parameter, for norms that stay as they are."""


def migration_scales(
    activations: Tensor, weights: Tensor, alpha: float, *, powers_of_two: bool = False
) -> Tensor:
    """Return the scales by which channels of activations are divided and of weights multiplied.

    Args:
        activations: `(channels,)`, the largest magnitude of each channel.
        weights: `(channels,)`, the largest magnitude of each input channel of all weights.
        alpha: part of the difficulty that moves into the weights, in [0, 1].
        powers_of_two: whether scales are rounded to the nearest powers of two.

    Returns:
        `(channels,)`, > 0; 1 for channels in which either magnitude is 0.

    Source: Xiao et al., SmoothQuant: Accurate and Efficient Post-Training Quantization for Large
        Language Models, 2023, equation 4.

    Examples:
        >>> migration_scales(torch.tensor([16.0, 1.0]), torch.tensor([1.0, 1.0]), 0.5)
        tensor([4., 1.])
    """
    scales = activations.clamp(min=_FLOOR) ** alpha / weights.clamp(min=_FLOOR) ** (1 - alpha)
    if powers_of_two:
        scales = torch.exp2(torch.log2(scales).round())
    used = (activations > 0) & (weights > 0)
    return torch.where(used, scales, torch.ones_like(scales))


def smooth_activations(
    model: nn.Module,
    batches: Sequence[Inputs],
    alpha: float = 0.5,
    *,
    powers_of_two: bool = True,
) -> tuple[nn.Module, SmoothingReport]:
    """Return a copy of a model with norms scaled so that few activations stand out, and a report.

    Each channel of a norm is divided by a scale, and the weights that read it are multiplied by
    the same scale. The function of the model stays; activations and weights are then equally hard
    to quantize. Norms are found in a recorded run: LayerNorm, RMSNorm, or own code that multiplies
    channels by a parameter. Quantize the returned model afterwards, with `PtqQuantizer` for
    example.

    Args:
        model: The model; it is not changed.
        batches: Calibration inputs of some runs, at least one.
        alpha: Part of the difficulty that moves into the weights, in [0, 1]; 0.5 suits most
            models, 0.75 those with larger outliers.
        powers_of_two: Whether scales are powers of two. The outputs then are the same bit by bit,
            unless a value overflows; else they differ by rounding.

    Returns:
        The model with other parameters, and a report.

    Raises:
        ValueError: `alpha` is out of range, there is no batch, or no norm can be scaled.

    Source: Xiao et al., SmoothQuant, 2023.

    Departures: scales are rounded to powers of two, unless `powers_of_two` is false.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.quantization import smooth_activations
        >>> model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2))
        >>> batch = torch.randn(8, 4)
        >>> smoothed, report = smooth_activations(model, [batch])
        >>> bool((smoothed(batch) == model(batch)).all()), report.smoothed[0].weights
        (True, ('1.weight',))
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be in [0, 1], got {alpha}")
    if not batches:
        raise ValueError("batches must hold at least one calibration input, got none")
    smoothed = independent_copy(model)
    groups = smoothing_groups(smoothed, batches[0])
    if not groups.found:
        reasons = "".join(f"; {name}: {why}" for name, why in groups.skipped.items())
        raise ValueError(f"model has no norm that only weights read{reasons}")
    parameters = dict(smoothed.named_parameters())
    largest = _largest_inputs(smoothed, batches, groups.found, parameters)
    done = []
    for group, activations in zip(groups.found, largest, strict=True):
        weights = _largest_weights(group, parameters)
        scales = migration_scales(activations, weights, alpha, powers_of_two=powers_of_two)
        _migrate(group, parameters, scales)
        done.append(
            SmoothedNorm(
                group.norm,
                tuple(one.name for one in group.weights),
                _spread(activations),
                _spread(activations / scales),
            )
        )
    return smoothed, SmoothingReport(tuple(done), groups.skipped)


class _InputObserver(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Dispatch mode that keeps the largest magnitudes of what is multiplied with some weights."""

    def __init__(self, numbers: Mapping[int, int], largest: list[Tensor | None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._numbers = numbers
        self._largest = largest

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - the signature of torch
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        del types
        places = _PRODUCTS.get(str(func.overloadpacket))
        if places is not None:
            number = self._numbers.get(args[places[1]].data_ptr())
            if number is not None:
                self._observe(number, args[places[0]])
        return func(*args, **(kwargs or {}))

    def _observe(self, number: int, value: Tensor) -> None:
        found = value.detach().abs().float().flatten(0, -2).amax(0)
        earlier = self._largest[number]
        self._largest[number] = found if earlier is None else torch.maximum(earlier, found)


def _largest_inputs(
    model: nn.Module,
    batches: Sequence[Inputs],
    groups: Sequence[SmoothingGroup],
    parameters: Mapping[str, nn.Parameter],
) -> list[Tensor]:
    """Return the largest magnitude of each channel of the norms, `(channels,)` each."""
    numbers = {
        parameters[group.weights[0].name].data_ptr(): number for number, group in enumerate(groups)
    }
    largest: list[Tensor | None] = [None] * len(groups)
    with unchanged(model), _InputObserver(numbers, largest):
        for batch in batches:
            run(model, batch)
    found = [one for one in largest if one is not None]
    assert len(found) == len(groups)  # the groups come from a run of the first batch
    return found


def _largest_weights(group: SmoothingGroup, parameters: Mapping[str, nn.Parameter]) -> Tensor:
    """Return the largest magnitude of each input channel of the weights of a group."""
    found = [
        parameters[one.name].detach().abs().float().amax(1 - one.axis) for one in group.weights
    ]
    return torch.stack(found).amax(0)


def _migrate(group: SmoothingGroup, parameters: Mapping[str, nn.Parameter], scales: Tensor) -> None:
    with torch.no_grad():
        for name in group.norm:
            parameters[name].div_(scales.to(parameters[name]))
        for one in group.weights:
            weight = parameters[one.name]
            weight.mul_(scales.to(weight).unsqueeze(1 - one.axis))


def _spread(largest: Tensor) -> float:
    return float(largest.max() / largest.median().clamp(min=_FLOOR))
