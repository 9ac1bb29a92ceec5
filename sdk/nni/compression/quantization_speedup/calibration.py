"""Calibration of the layers of a model by batches: scales of inputs and weights."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor, nn

from nni.compression.base.model_runs import eval_mode
from nni.compression.base.target_quantizer import Calibration
from nni.compression.config.quantization_settings import FIRST_INPUT
from nni.compression.quantization.calibration import CalibrationConfig
from nni.compression.quantization_speedup.calibrator import CalibrateType, Calibrator
from nni.compression.quantization_speedup.precisions import WEIGHTED
from nni.compression.quantization_speedup.ranges import (
    BINS,
    entropy_threshold,
    quantile_threshold,
)

_LARGEST_INTEGER = 127
_SMALLEST_SCALE = 1e-12


def calibrated(model: nn.Module, calibrator: Calibrator) -> CalibrationConfig:
    """Return scales of weighted layers and their inputs, from the cache, else by running the model.

    Integers are signed and symmetric: a scale for each input, and one for each output channel of a
    weight.

    Args:
        model: an unwrapped model.
        calibrator: batches and cache; the cache is written if it was missing.

    Raises:
        ValueError: the cache is that of another model.
    """
    layers: dict[str, nn.Module] = {
        name: one for name, one in model.named_modules() if isinstance(one, WEIGHTED)
    }
    cache = calibrator.read_calibration_cache()
    if cache is None:
        scales = _input_scales(model, layers, calibrator)
        calibrator.write_calibration_cache(json.dumps(scales, indent=1).encode())
    else:
        scales = _read(cache, layers, calibrator)
    return {
        name: {
            FIRST_INPUT: _numbers(torch.tensor(scale)),
            "weight": _numbers(_weight_scale(layers[name])),
        }
        for name, scale in scales.items()
    }


def _read(cache: bytes, layers: dict[str, nn.Module], calibrator: Calibrator) -> dict[str, float]:
    try:
        found = {str(name): float(scale) for name, scale in json.loads(cache).items()}
    except (ValueError, TypeError, AttributeError):
        found = {}
    if not found.keys() <= layers.keys() or (layers and not found):
        raise ValueError(
            f"{calibrator.cache_file} is no calibration of this model; delete it, or name another "
            "file in calibration_cache"
        )
    return found


def _input_scales(
    model: nn.Module, layers: dict[str, nn.Module], calibrator: Calibrator
) -> dict[str, float]:
    largest: dict[str, float] = {}

    def note_largest(name: str, value: Tensor) -> None:
        largest[name] = max(largest.get(name, 0.0), float(value.abs().max()))

    _observe(model, layers, calibrator, note_largest)
    thresholds = largest
    if calibrator.get_algorithm() is not CalibrateType.MINMAX:
        thresholds = _thresholds(model, layers, calibrator, largest)
    return {
        name: max(value, _SMALLEST_SCALE) / _LARGEST_INTEGER for name, value in thresholds.items()
    }


def _thresholds(
    model: nn.Module,
    layers: dict[str, nn.Module],
    calibrator: Calibrator,
    largest: dict[str, float],
) -> dict[str, float]:
    counts = {name: torch.zeros(BINS) for name in largest}

    def count(name: str, value: Tensor) -> None:
        end = max(largest[name], _SMALLEST_SCALE)
        counts[name] += torch.histc(value.detach().abs().float().cpu(), BINS, 0.0, end)

    _observe(model, layers, calibrator, count)
    legacy = calibrator.get_algorithm() is CalibrateType.LEGACY
    choose = quantile_threshold if legacy else entropy_threshold
    return {name: choose(counts[name], largest[name]) for name in largest}


def _observe(
    model: nn.Module,
    layers: dict[str, nn.Module],
    calibrator: Calibrator,
    note: Callable[[str, Tensor], None],
) -> None:
    """Run all batches in eval mode; pass name and first input of each layer call to `note`."""
    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    with ExitStack() as stack:
        stack.enter_context(eval_mode(model))
        stack.enter_context(torch.no_grad())
        for name, layer in layers.items():
            hook = layer.register_forward_pre_hook(partial(_note_first, note, name))
            stack.callback(hook.remove)
        for batch in _batches(calibrator):
            model(batch.to(device).float())  # arrays of numpy have 64 bits


def _note_first(
    note: Callable[[str, Tensor], None], name: str, _: nn.Module, inputs: tuple[Tensor, ...]
) -> None:
    note(name, inputs[0])


def _batches(calibrator: Calibrator) -> Iterator[Tensor]:
    while (batch := calibrator.get_batch()) is not None:
        yield batch


def _weight_scale(layer: nn.Module) -> Tensor:
    """Return a scale for each output channel, of a shape that broadcasts to the weight."""
    weight = layer.get_parameter("weight").detach().abs()
    channel = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    others = [axis for axis in range(weight.dim()) if axis != channel]
    return weight.amax(others, keepdim=True).clamp_min(_SMALLEST_SCALE) / _LARGEST_INTEGER


def _numbers(scale: Tensor) -> Calibration:
    return {
        "quant_bits": 8,
        "quant_dtype": "int8",
        "scale": scale.tolist(),
        "zero_point": torch.zeros_like(scale).tolist(),
        "tracked_qmin": -_LARGEST_INTEGER,
        "tracked_qmax": _LARGEST_INTEGER,
    }
