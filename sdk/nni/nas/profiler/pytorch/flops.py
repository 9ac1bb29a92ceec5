"""Profilers of FLOPs and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from nni.mutable import Sample
from nni.nas.profiler.base import ExpressionProfiler, Profiler
from nni.nas.profiler.pytorch.cases import Number, frozen
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.layer_formulas import (
    FLOPS_FORMULAS,
    SHAPE_FORMULAS,
    FlopsFormula,
    ShapeFormula,
    checked_class,
    formula_of,
)
from nni.nas.profiler.pytorch.parameters import parameters_of
from nni.nas.profiler.pytorch.tracing import CostTrace, example_shapes, mark_leaf

__all__ = [
    "FlopsParamsCounterConfig",
    "FlopsParamsProfiler",
    "FlopsProfiler",
    "FlopsResult",
    "NumParamsProfiler",
    "count_flops_params",
    "profiler_leaf_module",
    "register_flops_formula",
    "register_shape_inference_formula",
]


@dataclass(frozen=True, slots=True)
class FlopsResult:
    """Cost of one network, or of a space if the numbers are expressions.

    Args:
        flops: floating-point operations of one sample; a multiplication with an addition is one.
        params: number of parameters.

    Examples:
        >>> FlopsResult(8, 8)
        FlopsResult(flops=8, params=8)
    """

    flops: Any
    params: Any


def count_flops_params(
    module: nn.Module,
    args: Any,  # noqa: ANN401 - tensors
    config: FlopsParamsCounterConfig | None = None,
) -> FlopsResult:
    """Return FLOPs and parameters of a network; of a model space, expressions of its labels.

    The network is not executed: only shapes pass through it.

    Args:
        module: network or model space.
        args: example input, or tuple of inputs; the batch dimension is left out of the count.
        config: what is counted; everything without.

    Returns:
        FLOPs and parameters.

    Raises:
        nni.nas.profiler.pytorch.cases.CannotProfileError: a module or function has no formula.

    Examples:
        >>> import torch
        >>> count_flops_params(nn.Conv2d(3, 2, 3), torch.zeros(1, 3, 224, 224))
        FlopsResult(flops=2759904, params=56)
    """
    config = config or FlopsParamsCounterConfig()

    def cost(module: nn.Module, inputs: Sequence[Any], output: Any) -> Number:  # noqa: ANN401
        own = getattr(module, "_count_flops", None)
        if own is not None:
            return own(inputs, output, config)
        formula = formula_of(module, FLOPS_FORMULAS)
        return 0 if formula is None else formula(module, inputs, output, config)

    trace = CostTrace(cost)
    trace.run(module, example_shapes(args))
    return FlopsResult(trace.total, parameters_of(module, config))


class FlopsParamsProfiler(Profiler):
    """Profiler of FLOPs and parameters of a model space, by one symbolic pass.

    Args:
        model_space: space in PyTorch.
        args: example input, or tuple of inputs; the batch dimension is left out of the count.
        count_bias: count biases.
        count_normalization: count normalization layers.
        count_activation: count activation functions.

    Raises:
        nni.nas.profiler.pytorch.cases.CannotProfileError: a module or function has no formula.

    Examples:
        >>> import nni, torch
        >>> from nni.nas.nn.pytorch import LayerChoice
        >>> layers = LayerChoice([nn.Linear(3, 3), nn.Identity()], label="layer")
        >>> profiler = FlopsParamsProfiler(layers, torch.zeros(1, 3))
        >>> profiler.profile({"layer": 0}), profiler.profile({"layer": 1})
        (FlopsResult(flops=12, params=12), FlopsResult(flops=0, params=0))
    """

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - a module that is a mutable
        args: Any,  # noqa: ANN401 - tensors
        count_bias: bool = True,  # noqa: FBT001, FBT002 - NNI's signature
        count_normalization: bool = True,  # noqa: FBT001, FBT002
        count_activation: bool = True,  # noqa: FBT001, FBT002
    ) -> None:
        super().__init__(model_space)
        config = FlopsParamsCounterConfig(count_bias, count_normalization, count_activation)
        self.expression = count_flops_params(model_space, args, config)
        """FLOPs and parameters as expressions of the labels."""

    def profile(self, sample: Sample) -> FlopsResult:  # type: ignore[override] # two numbers
        """Return FLOPs and parameters of a sample.

        Args:
            sample: value of every label of the space.

        Returns:
            Both numbers.
        """
        return FlopsResult(
            frozen(self.expression.flops, sample), frozen(self.expression.params, sample)
        )


class FlopsProfiler(ExpressionProfiler):
    """Profiler of FLOPs alone.

    Args:
        model_space: space in PyTorch.
        args: example input, or tuple of inputs.
        options: `count_bias`, `count_normalization` and `count_activation`, as for
            `FlopsParamsProfiler`.

    Examples:
        >>> import nni, torch
        >>> from nni.nas.nn.pytorch import MutableLinear
        >>> profiler = FlopsProfiler(
        ...     MutableLinear(3, nni.choice("width", [4, 8])), torch.zeros(1, 3)
        ... )
        >>> profiler.expression, profiler.profile({"width": 8})
        ((width * 4), 32)
    """

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - a module that is a mutable
        args: Any,  # noqa: ANN401 - tensors
        **options: bool,
    ) -> None:
        result = count_flops_params(model_space, args, FlopsParamsCounterConfig(**options))
        super().__init__(model_space, result.flops)


class NumParamsProfiler(ExpressionProfiler):
    """Profiler of the number of parameters alone; nothing passes through the space.

    Args:
        model_space: space in PyTorch.
        args: accepted as by the other profilers, not used.
        options: `count_bias`, `count_normalization` and `count_activation`, as for
            `FlopsParamsProfiler`.

    Examples:
        >>> import nni
        >>> from nni.nas.nn.pytorch import MutableLinear
        >>> NumParamsProfiler(MutableLinear(3, nni.choice("width", [4, 8]))).profile({"width": 4})
        16
    """

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - a module that is a mutable
        args: Any = None,  # noqa: ANN401 - tensors
        **options: bool,
    ) -> None:
        del args
        super().__init__(
            model_space, parameters_of(model_space, FlopsParamsCounterConfig(**options))
        )


def register_flops_formula(module_type: type[nn.Module], formula: FlopsFormula) -> None:
    """Register how the FLOPs of a class of modules are computed; later formulas replace earlier.

    A class of one's own may have a method `_count_flops(inputs, output, config)` instead.

    Args:
        module_type: class of modules; the formula holds for its subclasses too.
        formula: from the module, its inputs (a list; tensors are `ShapeTensor`, whose `shape` has
            the batch first), its output and a `FlopsParamsCounterConfig` to FLOPs of one sample.

    Raises:
        TypeError: `module_type` is no class of modules.

    Examples:
        >>> import torch
        >>> class Double(nn.Identity): ...
        >>> register_flops_formula(Double, lambda module, inputs, output, config: output.shape[1])
        >>> count_flops_params(Double(), torch.zeros(2, 5)).flops
        5
    """
    checked_class(module_type)
    FLOPS_FORMULAS[module_type] = formula


def register_shape_inference_formula(module_type: type[nn.Module], formula: ShapeFormula) -> None:
    """Register how the output shape of a class of modules is computed.

    Modules of the class then are one layer. A class of one's own may have a method
    `_shape_forward(*inputs)` instead, which returns the output.

    Args:
        module_type: class of modules; the formula holds for its subclasses too.
        formula: from the module and its inputs, each a `ShapeTensor`, to the output.

    Raises:
        TypeError: `module_type` is no class of modules.

    Examples:
        >>> class Twice(nn.Module): ...
        >>> register_shape_inference_formula(Twice, lambda module, tensor: tensor)
    """
    checked_class(module_type)
    SHAPE_FORMULAS[module_type] = formula


def profiler_leaf_module(module_type: type[nn.Module]) -> Any:  # noqa: ANN401 - the same class
    """Mark a class as one layer for profilers, which look inside others; return the class.

    Without a shape formula such a module runs without data, on inputs of fixed shapes.

    Args:
        module_type: class of modules.

    Returns:
        The same class.

    Raises:
        TypeError: `module_type` is no class of modules.

    Examples:
        >>> @profiler_leaf_module
        ... class Attention(nn.Module): ...
    """
    checked_class(module_type)
    mark_leaf(module_type)
    return module_type
