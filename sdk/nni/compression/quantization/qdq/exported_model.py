"""Model as an export sees it: wrapped by its quantizer, or by a calibration configuration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.quantization.batch_norm_pairs import batch_norm_pairs
from nni.compression.quantization.qdq.calibrated import calibrated_wrappers, in_model
from nni.compression.quantization.quantizer import Quantizer

Inputs = Tensor | tuple[object, ...] | dict[str, object]
"""Only argument of a call, positional arguments, or named ones."""


@contextmanager
def wrapped_model(
    model: nn.Module,
    calibration: Quantizer | Mapping[str, Mapping[str, object]],
    example_inputs: Inputs,
    *,
    fold_batch_norms: bool,
) -> Iterator[None]:
    """In a block, put a configuration's wrappers into a model, or check its quantizer's.

    Args:
        model: the model that `calibration` quantizes, or an unwrapped one that it describes; as
            before afterwards.
        calibration: the quantizer, or a calibration configuration.
        example_inputs: of a call.
        fold_batch_norms: whether a configuration describes layers with the batch norm after them
            folded in.

    Yields:
        Nothing.

    Raises:
        TypeError: `calibration` or `example_inputs` is something else.
        ValueError: the model has wrappers and should have none, or the reverse.
    """
    if not isinstance(example_inputs, Tensor | tuple | dict):
        raise TypeError(
            "example_inputs must be a tensor, a tuple of arguments or a dict of named ones, got "
            f"{type(example_inputs).__name__}"
        )
    if isinstance(calibration, Quantizer):
        _check_wrapped(model, calibration)
        yield
    elif isinstance(calibration, Mapping):
        _check_unwrapped(model)
        folded = batch_norm_pairs(model, example_inputs) if fold_batch_norms else []
        with in_model(model, calibrated_wrappers(model, calibration, folded), folded):
            yield
    else:
        raise TypeError(
            "calibration must be a Quantizer or a calibration configuration, got "
            f"{type(calibration).__name__}"
        )


def _check_wrapped(model: nn.Module, quantizer: Quantizer) -> None:
    wrappers = {id(one) for one in quantizer.get_modules_wrapper().values()}
    if not wrappers & {id(one) for one in model.modules()}:
        raise ValueError(
            "model must be the one that calibration quantizes, wrapped; give quantizer.bound_model "
            "after quantizer.wrap_model(), or a calibration configuration"
        )


def _check_unwrapped(model: nn.Module) -> None:
    if any(isinstance(one, ModuleWrapper) for one in model.modules()):
        raise ValueError(
            "model must be unwrapped if calibration is a configuration; call "
            "quantizer.unwrap_model(), or give the quantizer"
        )
