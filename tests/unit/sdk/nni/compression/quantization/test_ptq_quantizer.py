from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization import PtqQuantizer
from tests.unit.sdk.nni.compression.models import Plain, randomised

ALL: list[dict[str, object]] = [{"op_types": ["Conv2d", "Linear"], "quant_scheme": "affine"}]


def evaluated(model: nn.Module, *batches: Tensor) -> TorchEvaluator:
    def evaluate(one: nn.Module) -> float:
        return sum(float(one(batch).sum()) for batch in batches)

    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return TorchEvaluator(print, sgd, print, evaluating_func=evaluate)


def images(seed: int = 0) -> Tensor:
    return torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def test_the_ranges_are_those_of_one_evaluation() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Linear(2, 1))
    evaluator = evaluated(model, torch.tensor([0.5, 1.0]), torch.tensor([2.0, -3.0]))
    quantizer = PtqQuantizer(model, [{"op_types": ["ReLU"], "quant_scheme": "affine"}], evaluator)
    number = torch.tensor([0.3, 0.3])
    before = model[0](number)

    _, calibration = quantizer.compress()
    model(number * 30)

    assert torch.equal(before, number)
    found = calibration["0"]["_output_0"]
    assert (found["tracked_min"], found["tracked_max"]) == (0, 2)
    assert found["scale"] == pytest.approx(2 / 254)
    assert quantizer.get_calibration_config() == calibration


def test_the_model_is_evaluated_in_eval_mode_and_comes_back_as_it_was() -> None:
    model = randomised(Plain()).train()
    mean = model.conv1[1].running_mean.clone()
    quantizer = PtqQuantizer(model, ALL, evaluated(model, images()))

    quantizer.compress()

    assert model.training
    assert torch.equal(model.conv1[1].running_mean, mean)


def test_weights_and_activations_are_quantized_afterwards() -> None:
    model = randomised(Plain())
    exact = model(images())

    PtqQuantizer(model, ALL, evaluated(model, images()), dummy_input=images()).compress()

    error = (model(images()) - exact).detach().abs().max() / exact.detach().abs().max()
    assert 0 < float(error) < 0.05


@pytest.mark.parametrize("folded", [False, True])
def test_bias_correction_removes_the_mean_error(folded: bool) -> None:
    config = [{"op_types": ["Conv2d"], "target_names": ["weight"], "quant_dtype": "int3"}]
    errors = []

    for corrects in (False, True):
        model: Any = randomised(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)))
        exact = model(images())
        example = images() if folded else None
        evaluator = evaluated(model, images())
        PtqQuantizer(model, config, evaluator, corrects, dummy_input=example).compress()
        errors.append((model(images()) - exact).mean((0, 2, 3)).abs().max())

    assert errors[0] > 1e-2
    assert errors[1] < 1e-5


def test_layers_without_bias_are_left_without() -> None:
    model = nn.Sequential(nn.Linear(3, 2, bias=False))
    config = [{"op_types": ["Linear"], "target_names": ["weight"]}]

    evaluator = evaluated(model, torch.ones(1, 3))
    PtqQuantizer(model, config, evaluator, is_bias_correction=True).compress()

    assert [name for name, _ in model.named_parameters()] == ["0.module.weight"]


def test_an_evaluator_is_required() -> None:
    with pytest.raises(TypeError, match=r"evaluator must be an Evaluator.* got None"):
        PtqQuantizer(Plain(), ALL, None)  # type: ignore[arg-type]  # the error is the point
