from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.config.settings import ConfigListError
from nni.compression.quantization import ObserverQuantizer
from tests.unit.sdk.nni.compression.models import Plain, randomised

CONFIG: list[dict[str, object]] = [
    {"quant_bits": 8, "quant_types": ["weight", "input"], "op_types": ["Conv2d", "Linear"]},
    {"quant_bits": 8, "quant_types": ["output"], "op_types": ["ReLU"]},
]


def images(seed: int = 0) -> Tensor:
    return torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def calibrated(model: Any) -> ObserverQuantizer:
    quantizer = ObserverQuantizer(model, CONFIG)
    with torch.no_grad():
        for seed in range(2):
            model(images(seed))
    return quantizer


@pytest.mark.claim("compression", 69)
def test_nothing_changes_before_and_weights_are_rounded_after() -> None:
    model = randomised(Plain())
    exact = model(images())
    weight = model.fc.weight.detach().clone()

    quantizer = calibrated(model)
    before = model(images())
    kept = model.fc.parameter("weight").detach().clone()
    quantizer.compress()

    assert torch.equal(before, exact)
    assert torch.equal(kept, weight)
    scale = weight.abs().max() / 127
    expected = scale * torch.round(weight / scale)
    assert torch.allclose(model.fc.parameter("weight"), expected, atol=1e-6)
    error = (model(images()) - exact).detach().abs().max() / exact.detach().abs().max()
    assert 0 < float(error) < 0.1


@pytest.mark.claim("compression", 69)
def test_later_runs_change_no_scale() -> None:
    model = randomised(Plain())
    quantizer = calibrated(model)
    quantizer.compress()
    before = quantizer.get_calibration_config()

    model(images(5) * 10)
    model.train()(images(6))

    assert quantizer.get_calibration_config() == before


def test_activations_have_integers_of_a_reduced_range() -> None:
    model = randomised(Plain())
    quantizer = calibrated(model)

    quantizer.compress()

    found = quantizer.get_calibration_config()["conv1.2"]["_output_0"]
    assert (found["quant_bits"], found["tracked_qmin"], found["tracked_qmax"]) == (8, 0, 127)
    assert found["scale"] == pytest.approx(found["tracked_max"] / 127)
    assert model.conv1(images()).unique().numel() <= 128


def test_targets_without_observations_pass() -> None:
    model = nn.Sequential(nn.ReLU()).eval()

    ObserverQuantizer(model, [{"op_types": ["ReLU"]}]).compress()

    assert model(torch.tensor([0.3])).tolist() == torch.tensor([0.3]).tolist()


def test_training_mode_and_other_bits_are_refused() -> None:
    with pytest.raises(ValueError, match=r"model must be in eval mode; call model\.eval"):
        ObserverQuantizer(Plain(), CONFIG)
    with pytest.raises(ConfigListError, match="ObserverQuantizer needs uint8 to uint8"):
        ObserverQuantizer(Plain().eval(), [{**CONFIG[0], "quant_bits": 4}])
