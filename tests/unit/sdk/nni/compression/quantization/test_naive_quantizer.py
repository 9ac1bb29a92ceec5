import pytest
import torch
from torch import nn

from nni.compression.config.settings import ConfigListError
from nni.compression.quantization import NaiveQuantizer


def linear(*weights: float) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(len(weights), 1, bias=False))
    model[0].weight.data = torch.tensor([weights])
    return model


@pytest.mark.claim("compression", 62)
def test_weights_are_rounded_towards_zero() -> None:
    model = NaiveQuantizer(linear(127 / 64, -0.5, 1.5 / 64)).compress()

    assert model(torch.eye(3)).flatten().tolist() == [127 / 64, -0.5, 1 / 64]


def test_the_scale_never_falls_and_rises_in_training_only() -> None:
    model = linear(127.0, 1.5)
    quantizer = NaiveQuantizer(model)
    weight = quantizer.get_modules_wrapper()["0"].parameter("weight")
    found = []

    for largest, training in ((12.7, True), (254.0, False), (254.0, True)):
        weight.data[0, 0] = largest
        model.train(training)(torch.eye(2))
        found.append(quantizer.get_calibration_config()["0"]["weight"]["scale"])

    assert found == [1, 1, 2]


def test_gradients_pass_unchanged() -> None:
    model = NaiveQuantizer(linear(127.0, 1.5)).compress()

    model(torch.tensor([[2.0, 3.0]])).sum().backward()

    assert model.get_submodule("0").parameter("weight").grad.tolist() == [[2, 3]]


def test_only_weights_of_eight_bits_are_quantized() -> None:
    entry = {"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 8}

    NaiveQuantizer(linear(1.0), [entry])

    with pytest.raises(
        ConfigListError, match=r"has uint4 for 0\.weight; NaiveQuantizer needs uint8"
    ):
        NaiveQuantizer(linear(1.0), [{**entry, "quant_bits": 4}])
    with pytest.raises(ConfigListError, match="NaiveQuantizer quantizes only weight: leave it"):
        NaiveQuantizer(linear(1.0), [{**entry, "quant_types": ["output"]}])
