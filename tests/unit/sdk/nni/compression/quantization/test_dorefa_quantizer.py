import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.quantization import DoReFaQuantizer

WEIGHT: dict[str, object] = {"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 2}
OUTPUT: dict[str, object] = {"op_types": ["ReLU"], "quant_types": ["output"], "quant_bits": 2}


@pytest.mark.claim("compression", 63)
def test_weights_of_two_bits() -> None:
    model = nn.Sequential(nn.Linear(4, 1, bias=False))
    model[0].weight.data = torch.tensor([[-1.0, 0.0, 0.5, 1.0]])

    DoReFaQuantizer(model, [WEIGHT])

    found = model(torch.eye(4)).flatten().tolist()
    assert found == pytest.approx([-1, 1 / 3, 1 / 3, 1])


def test_activations_are_clamped_and_rounded() -> None:
    model = nn.Sequential(nn.ReLU())
    DoReFaQuantizer(model, [OUTPUT])
    value = torch.tensor([-1.0, 0.4, 2.0], requires_grad=True)

    found = model(value)
    found.sum().backward()

    assert found.tolist() == pytest.approx([0, 1 / 3, 1])
    assert value.grad.tolist() == [0, 1, 0]


def test_gradients_of_activations_are_rounded_without_bias() -> None:
    model = nn.Sequential(nn.ReLU())
    DoReFaQuantizer(model, [OUTPUT], gradient_bits=2)
    value = torch.full((1, 4000), 0.5, requires_grad=True)
    gradient = torch.full((1, 4000), 0.1)
    gradient[0, 0] = 1

    torch.manual_seed(0)
    model(value).backward(gradient)

    found = value.grad[0, 1:]
    assert {round(one, 4) for one in found.tolist()} == {-0.3333, 0.3333}
    # Mean of 3999 draws of +-1/3 with mean 0.1: four standard errors are 4 * 0.32 / 63 = 0.02.
    assert float(found.mean()) == pytest.approx(0.1, abs=0.02)


def test_the_calibration_has_bits_but_no_scale() -> None:
    quantizer = DoReFaQuantizer(nn.Sequential(nn.Linear(2, 1)), [WEIGHT])

    found = quantizer.get_calibration_config()["0"]["weight"]

    assert found == {"quant_dtype": "uint2", "quant_scheme": "affine", "quant_bits": 2}


def test_outputs_without_an_activation_are_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    entry = {"op_types": ["Linear"], "target_names": ["_output_"]}

    with pytest.raises(ConfigListError, match=r"0\._output_0 as target, the output of a Linear"):
        DoReFaQuantizer(model, [entry])
    DoReFaQuantizer(model, [{**entry, "fuse_names": [("0", "1")]}])

    assert float(model(torch.full((1, 2), -9.0)).detach().min()) >= 0


@pytest.mark.parametrize("bits", [0, 33, 1.5])
def test_wrong_bits_of_gradients_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="gradient_bits must be from 1 to 32 or None, got"):
        DoReFaQuantizer(nn.Sequential(nn.ReLU()), [OUTPUT], gradient_bits=bits)
