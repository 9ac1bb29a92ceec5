import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.quantization import BNNQuantizer

WEIGHT: dict[str, object] = {"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 1}
OUTPUT: dict[str, object] = {"op_types": ["Hardtanh"], "quant_types": ["output"], "quant_bits": 1}


@pytest.mark.claim("compression", 64)
def test_signs_of_outputs_and_their_gradient() -> None:
    model = nn.Sequential(nn.Identity(), nn.Hardtanh(-3, 3))
    BNNQuantizer(model, [OUTPUT])
    value = torch.tensor([-2.0, -0.5, 0.0, 1.0, 2.0], requires_grad=True)

    found = model(value)
    found.sum().backward()

    assert found.tolist() == [-1, -1, 1, 1, 1]
    assert value.grad.tolist() == [0, 1, 1, 1, 0]


def test_weights_are_clipped_after_a_step() -> None:
    model = nn.Sequential(nn.Linear(2, 1, bias=False))
    quantizer = BNNQuantizer(model, [WEIGHT])
    weight = quantizer.get_modules_wrapper()["0"].parameter("weight")
    weight.data = torch.tensor([[-3.0, 0.5]])

    output = model(torch.eye(2)).flatten().tolist()
    with torch.no_grad():
        quantizer.step_with_optimizer()

    assert output == [-1, 1]
    assert weight.tolist() == [[-1, 0.5]]


def test_one_bit_only() -> None:
    with pytest.raises(ConfigListError, match="BNNQuantizer needs uint1 to uint1"):
        BNNQuantizer(nn.Sequential(nn.Linear(2, 1)), [{**WEIGHT, "quant_bits": 2}])
    with pytest.raises(ConfigListError, match="BNNQuantizer quantizes only weight, output"):
        BNNQuantizer(nn.Sequential(nn.Linear(2, 1)), [{**WEIGHT, "quant_types": ["input"]}])
