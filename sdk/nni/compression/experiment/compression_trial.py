"""One trial of an auto-compression experiment: compress a model by parameters, and measure it."""

import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nni.compression.base.module_wrapper import plain_parameters
from nni.compression.base.pruner import Masks
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.experiment.flat_keys import QUANTIZER_NAMES, parsed
from nni.compression.experiment.interface import AbstractAutoCompressionModule
from nni.compression.experiment.measurements import measurements, quantized_bits
from nni.compression.experiment.search_space import ALGORITHM, NO_QUANTIZATION, QUANTIZATION
from nni.compression.pruning.named_pruners import make_pruner
from nni.compression.quantization.legacy_adapters import (
    LegacyBNNQuantizer,
    LegacyDoReFaQuantizer,
    LegacyLsqQuantizer,
    LegacyQATQuantizer,
)
from nni.compression.quantization.naive_quantizer import NaiveQuantizer
from nni.compression.quantization.quantizer import Quantizer
from nni.compression.speedup.model_speedup import ModelSpeedup, apply_masks

_logger = logging.getLogger(__name__)

Module = type[AbstractAutoCompressionModule]

_TRAINED: Final[Mapping[str, Mapping[str, object]]] = {
    "slim": {"training_epochs": 10},
    "taylorfo": {"training_steps": 1},
    "apoz": {"training_steps": 1},
    "mean_activation": {"training_steps": 1},
    "admm": {"iterations": 30, "training_epochs": 5},
}
"""Pruners that train, and how long by default in NNI 2.x."""
_RENAMED: Final = {
    "sparsifying_training_batches": "training_steps",
    "sparsifying_training_epochs": "training_epochs",
    "training_batches": "training_steps",
    "num_iterations": "iterations",
    "epochs_per_iteration": "training_epochs",
    "row": "rho",
}
"""Arguments of pruners by their names in NNI 2.x."""
_MODES: Final = {"global_sort": "global", "dependency_aware": "dependency_aware"}
"""Flags of pruners in NNI 1.x, and the mode that each means."""
_QUANTIZERS: Final[Mapping[str, Callable[..., Quantizer]]] = {
    "naive": NaiveQuantizer,
    "qat": LegacyQATQuantizer,
    "dorefa": LegacyDoReFaQuantizer,
    "bnn": LegacyBNNQuantizer,
    "lsq": LegacyLsqQuantizer,
}
"""Quantizers by name, with an optimizer as third argument."""


def compress_and_measure(module: Module, parameters: Mapping[str, Any]) -> float | dict[str, float]:
    """Compress a new model by parameters, fine-tune it; return its metric, or several by name.

    Masks hold while the model is fine-tuned and quantized. What is measured is the model without
    its masked channels. A quantizer simulates integers: the latency of its model is that of floats.

    Args:
        module: code of the user.
        parameters: what a tuner chose from the space of `AutoCompressionSearchSpaceGenerator`.

    Returns:
        The metric; with a dummy input a dict with the metric as `default`, and `latency_ms`,
        `flops`, `parameters` and `size_bytes`.

    Raises:
        ValueError: the parameters are of another space, or `module` lacks what they need.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.experiment import AbstractAutoCompressionModule
        >>> from nni.compression.experiment import compress_and_measure
        >>> class Module(AbstractAutoCompressionModule):
        ...     @classmethod
        ...     def model(cls):
        ...         return nn.Sequential(nn.Linear(4, 2))
        ...     @classmethod
        ...     def evaluator(cls):
        ...         return lambda model: float((model[0].weight == 0).sum())
        >>> chosen = {"_name": "level", "config_list::Linear::::sparsity": 0.5}
        >>> compress_and_measure(Module, {"algorithm_name": chosen})
        4.0
    """
    model = module.model()
    masks: Masks = {}
    quantizer: Quantizer | None = None
    for chosen in _chosen(parameters):
        name = chosen["_name"]
        config_list, arguments = parsed(
            name, {key: value for key, value in chosen.items() if key != "_name"}
        )
        _logger.info("%s with config_list %s and %s", name, config_list, arguments)
        if name in QUANTIZER_NAMES:
            quantizer = _quantized(module, model, masks, name, config_list, arguments)
        else:
            masks = _pruned(module, model, name, config_list, arguments)
    return _measured(module, model, masks, quantizer)


def _chosen(parameters: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the options of one or two algorithms to apply in turn; raise ValueError if none."""
    first = parameters.get(ALGORITHM)
    if not isinstance(first, Mapping) or "_name" not in first:
        raise ValueError(
            f"parameters must have {ALGORITHM!r}, as the space of a generator does, got "
            f"{dict(parameters)!r:.200}"
        )
    second = parameters.get(QUANTIZATION)
    if second is None or second["_name"] == NO_QUANTIZATION or first["_name"] in QUANTIZER_NAMES:
        return [first]
    return [first, second]


def _pruned(
    module: Module,
    model: nn.Module,
    name: str,
    config_list: list[dict[str, Any]],
    arguments: Mapping[str, Any],
) -> Masks:
    """Prune a model in place, fine-tune it, and return the masks."""
    pruner = make_pruner(name, _pruner_arguments(module, model, name, arguments))
    pruner.reset(model, config_list)
    _, masks = pruner.compress()
    pruner.unwrap_model()
    apply_masks(model, masks)
    _fine_tune(module, model, masks, name, None)
    return masks


def _pruner_arguments(
    module: Module, model: nn.Module, name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    given = {_RENAMED.get(key, key): value for key, value in arguments.items()}
    if name in _TRAINED:
        defaults = {} if "training_steps" in given else _TRAINED[name]
        given = {**defaults, **given, "evaluator": _training(module, model, name)}
    for flag, mode in _MODES.items():
        if given.pop(flag, False):
            given["mode"] = mode
    if given.get("mode") == "dependency_aware":
        given["dummy_input"] = module.dummy_input()
    return given


def _quantized(
    module: Module,
    model: nn.Module,
    masks: Masks,
    name: str,
    config_list: list[dict[str, Any]],
    arguments: Mapping[str, Any],
) -> Quantizer:
    """Quantize a model in place, train it, and return the quantizer, which is in the model."""
    factory = module.optimizer_factory()
    optimizer = None if factory is None else factory(model.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a space has the names of NNI 2.x
        quantizer = _QUANTIZERS[name](model, config_list, optimizer, **arguments)
    _fine_tune(module, model, masks, name, optimizer)
    return quantizer


def _training(module: Module, model: nn.Module, name: str) -> LegacyEvaluator:
    trainer = module.sparsifying_trainer(name)
    factory, criterion = module.optimizer_factory(), module.criterion()
    missing = [
        needed
        for needed, value in (
            (f"sparsifying_trainer({name!r})", trainer),
            ("optimizer_factory()", factory),
            ("criterion()", criterion),
        )
        if value is None
    ]
    if missing or trainer is None or factory is None or criterion is None:
        raise ValueError(f"{name} needs {', '.join(missing)} of {module.__name__}, got None")

    def train(one: nn.Module, optimizer: Optimizer, loss: object, epoch: int) -> object:
        return trainer(one, optimizer, loss, epoch)

    return LegacyEvaluator(train, factory(model.parameters()), criterion)


def _fine_tune(
    module: Module, model: nn.Module, masks: Masks, name: str, optimizer: Optimizer | None
) -> None:
    """Train a compressed model, masked values kept zero; nothing without trainer or epochs."""
    epochs = module.post_compress_finetuning_epochs(name)
    trainer = module.post_compress_finetuning_trainer(name)
    if trainer is None or epochs == 0:
        return
    factory = module.optimizer_factory()
    if optimizer is None and factory is not None:
        optimizer = factory(model.parameters())
    if optimizer is None:
        raise ValueError(f"fine-tuning needs optimizer_factory() of {module.__name__}, got None")
    kept = _masked_parameters(model, masks)
    hook = optimizer.register_step_post_hook(lambda *_: _set_masked_to_zero(kept))
    model.train()
    try:
        for epoch in range(epochs):
            trainer(model, optimizer, module.criterion(), epoch)
    finally:
        hook.remove()


def _masked_parameters(model: nn.Module, masks: Masks) -> list[tuple[Tensor, Tensor]]:
    parameters = plain_parameters(model)
    return [
        (parameters[f"{name}.{target}"], mask)
        for name, targets in masks.items()
        for target, mask in targets.items()
    ]


def _set_masked_to_zero(kept: list[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for parameter, mask in kept:
            parameter.mul_(mask.to(parameter))


def _measured(
    module: Module, model: nn.Module, masks: Masks, quantizer: Quantizer | None
) -> float | dict[str, float]:
    model.eval()
    metric = module.evaluator()(model)
    inputs = module.dummy_input()
    if inputs is None:
        return dict(metric) if isinstance(metric, Mapping) else float(metric)
    metrics = dict(metric) if isinstance(metric, Mapping) else {"default": float(metric)}
    bits = {} if quantizer is None else quantized_bits(quantizer)
    if quantizer is not None:
        quantizer.unwrap_model()
    if masks:
        ModelSpeedup(model, inputs, masks).speedup_model()
    return {**metrics, **measurements(model, inputs, bits)}
