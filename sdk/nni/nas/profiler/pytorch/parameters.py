"""Number of parameters of a model space, as an expression of its labels."""

from __future__ import annotations

from typing import Any

from torch import nn

from nni.mutable import MutableExpression
from nni.nas.nn.pytorch import InputChoice, LayerChoice, ModelSpace, MutableModule, Repeat
from nni.nas.profiler.pytorch.arguments import mutable_arguments
from nni.nas.profiler.pytorch.cases import Number, added, leaves_of, switch, tabulated
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.layer_formulas import (
    NORMS,
    PARAMS_FORMULAS,
    formula_of,
)


def parameters_of(module: nn.Module, config: FlopsParamsCounterConfig) -> Number:
    """Return the number of parameters of a network or a space; shared modules count once.

    Args:
        module: network or model space.
        config: what is counted.

    Examples:
        >>> import nni
        >>> from nni.nas.nn.pytorch import MutableLinear
        >>> layer = MutableLinear(3, nni.choice("width", [4, 8]))
        >>> parameters_of(layer, FlopsParamsCounterConfig()).freeze({"width": 8})
        32
    """
    return _counted(module, config, set())


def _counted(module: nn.Module, config: FlopsParamsCounterConfig, seen: set[int]) -> Number:
    if id(module) in seen:
        return 0
    seen.add(id(module))
    match module:
        case InputChoice():
            return 0
        case LayerChoice():
            return switch(
                module.choice,
                {name: _counted(module[name], config, set(seen)) for name in module.names},
            )
        case Repeat():
            return _repeated(module, config, seen)
        case ModelSpace():
            return _own_and_children(module, config, seen)
    if isinstance(module, MutableModule) and (module.mutables or mutable_arguments(module)):
        return _of_mutable_arguments(module, config)
    return _own_and_children(module, config, seen)


def _repeated(module: Repeat, config: FlopsParamsCounterConfig, seen: set[int]) -> Number:
    total: Number = 0
    totals = {0: total}
    for index, block in enumerate(module.blocks, start=1):
        total = added(total, _counted(block, config, seen))
        totals[index] = total
    depth = module.depth_choice
    if not isinstance(depth, MutableExpression):
        return totals[depth]
    depths = range(module.min_depth, module.max_depth + 1)
    return switch(depth, {one: totals[one] for one in depths})


def _of_mutable_arguments(module: MutableModule, config: FlopsParamsCounterConfig) -> Number:
    formula = formula_of(module, PARAMS_FORMULAS)
    if formula is not None:
        return formula(module, config)

    def built(sample: dict[str, Any]) -> Number:
        return _counted(module.freeze(sample), config, set())

    reason = f"{type(module).__name__} has no formula for its parameters"
    return tabulated(leaves_of([module]), built, reason=reason)


def _own_and_children(
    module: nn.Module, config: FlopsParamsCounterConfig, seen: set[int]
) -> Number:
    total: Number = 0
    if config.count_normalization or not isinstance(module, NORMS):
        for name, parameter in module.named_parameters(recurse=False):
            is_bias = name.endswith("bias") and not isinstance(module, NORMS)
            if id(parameter) not in seen and (config.count_bias or not is_bias):
                seen.add(id(parameter))
                total = added(total, parameter.numel())
    for child in module.children():
        total = added(total, _counted(child, config, seen))
    return total
