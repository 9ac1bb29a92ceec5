from typing import Any

import torch
from torch import nn

from nni.compression.experiment.measurements import measurements, quantized_bits
from nni.compression.quantization import QATQuantizer
from tests.unit.sdk.nni.compression.experiment.compressed_module import INPUTS, network


def test_a_model_is_measured() -> None:
    found = measurements(network(), INPUTS[:1])

    assert found.pop("latency_ms") > 0
    assert found == {
        "flops": 4 * 8 + 8 * 2,
        "parameters": 5 * 8 + 9 * 2,
        "size_bytes": 4 * (5 * 8 + 9 * 2),
    }


def test_quantized_parameters_have_the_bits_of_their_integers() -> None:
    found = measurements(network(), INPUTS[:1], {"0.weight": 4, "2.weight": 8})

    assert found["size_bytes"] == 0.5 * 32 + 1 * 16 + 4 * (8 + 2)


def test_parameters_of_half_precision_are_half_as_large() -> None:
    model = nn.Sequential(nn.Linear(4, 2)).to(torch.bfloat16)

    assert measurements(model, INPUTS[:1].to(torch.bfloat16))["size_bytes"] == 2 * 10


def test_only_quantized_parameters_have_bits() -> None:
    config_list: list[dict[str, Any]] = [
        {"op_names": ["0"], "target_names": ["weight", "_output_"], "quant_dtype": "int4"},
        {
            "op_names": ["2"],
            "target_names": ["weight"],
            "target_settings": {"weight": {"apply_method": "bypass"}},
        },
    ]

    assert quantized_bits(QATQuantizer(network(), config_list)) == {"0.weight": 4}
