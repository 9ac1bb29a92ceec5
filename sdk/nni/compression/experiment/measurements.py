"""Measurements of a compressed model that an experiment can optimise beside its metric."""

from collections.abc import Mapping
from typing import Any, Final

from torch import nn

from nni.compression.quantization.quantizer import Quantizer
from nni.compression.speedup.counter import count_flops_params
from nni.compression.utils.latency import measure_latency

_BITS_OF_BYTE: Final = 8


def measurements(
    model: nn.Module,
    example_inputs: Any,  # noqa: ANN401 - inputs of any form
    bits: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Return a model's latency (ms), FLOPs, number of parameters and size (bytes) by name.

    Args:
        model: the model, without wrappers.
        example_inputs: inputs of one run.
        bits: bits of each quantized parameter by name; None for none.

    Returns:
        `latency_ms` of floats with one thread, `flops`, `parameters`, and `size_bytes` of all
        parameters, where a quantized one has the bits of its integers.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> found = measurements(nn.Sequential(nn.Linear(4, 2)), torch.zeros(1, 4), {"0.weight": 4})
        >>> found["parameters"], found["size_bytes"]
        (10.0, 12.0)
    """
    given = bits or {}
    flops, _, _ = count_flops_params(model, example_inputs, verbose=False)
    parameters = dict(model.named_parameters())
    size = sum(
        one.numel() * given.get(name, one.element_size() * _BITS_OF_BYTE)
        for name, one in parameters.items()
    )
    return {
        "latency_ms": measure_latency(model, example_inputs, threads=1).median_ms,
        "flops": float(flops),
        "parameters": float(sum(one.numel() for one in parameters.values())),
        "size_bytes": size / _BITS_OF_BYTE,
    }


def quantized_bits(quantizer: Quantizer) -> dict[str, int]:
    """Return the bits of each parameter by full name, without those that are only observed.

    Args:
        quantizer: a quantizer that is in its model.

    Returns:
        Bits by the name that the parameter has without wrappers.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.quantization import QATQuantizer
        >>> entry = {"op_types": ["Linear"], "target_names": ["weight"], "quant_dtype": "int4"}
        >>> quantized_bits(QATQuantizer(nn.Sequential(nn.Linear(4, 2)), [entry]))
        {'0.weight': 4}
    """
    return {
        f"{place.module_name}.{place.target}": one.settings.bits
        for place, one in quantizer.target_quantizers()
        if place.is_parameter and one.settings.apply_method != "bypass"
    }
