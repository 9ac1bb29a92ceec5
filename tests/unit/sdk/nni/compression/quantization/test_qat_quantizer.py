import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.config.settings import ConfigListError
from nni.compression.quantization import QATQuantizer, quant_scheme_dtype
from tests.unit.sdk.nni.compression.models import Plain, randomised

ALL: list[dict[str, object]] = [{"op_types": ["Conv2d", "Linear"]}]


def images(seed: int = 0) -> Tensor:
    return torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def model_of(*modules: nn.Module) -> Any:
    return randomised(nn.Sequential(*modules)).train()


def one_of(quantizer: QATQuantizer, where: str) -> Any:
    return next(one for place, one in quantizer.target_quantizers() if place.where == where)


def test_ranges_of_weights_are_current_and_those_of_activations_averages() -> None:
    model = model_of(nn.Linear(1, 1))
    quantizer = QATQuantizer(model, ALL)

    for number in (1.0, 2.0):
        quantizer.get_modules_wrapper()["0"].parameter("weight").data.fill_(number)
        model(torch.full((1, 1), number))

    assert one_of(quantizer, "0.weight").largest == 2
    assert float(one_of(quantizer, "0._input_0").largest) == pytest.approx(1.01)


@pytest.mark.claim("compression", 58)
def test_the_start_step_of_an_entry_comes_before_that_of_the_quantizer() -> None:
    model = model_of(nn.ReLU(), nn.ReLU6())
    entry = {"quant_types": ["output"], "quant_bits": 2}
    config_list = [
        {**entry, "op_types": ["ReLU"]},
        {**entry, "op_types": ["ReLU6"], "quant_start_step": 2},
    ]
    quantizer = QATQuantizer(model, config_list, quant_start_step=3)
    value = torch.tensor([0.0, 0.4, 3.0])
    found = []

    for _ in range(3):
        found.append(model(value).tolist())
        quantizer.step_with_optimizer()

    assert one_of(quantizer, "0._output_0").start_step == 3
    assert found == [value.tolist(), [0, 0, 3], [0, 0, 3]]


@pytest.mark.claim("compression", 60)
def test_no_gradient_passes_out_of_range() -> None:
    model = model_of(nn.Identity())
    quantizer = QATQuantizer(model, [{"op_types": ["Identity"], "target_names": ["_output_"]}])
    model(torch.tensor([-1.0, 1.0]))
    value = torch.tensor([-3.0, 0.5], requires_grad=True)

    quantizer.bound_model.eval()(value).sum().backward()

    assert value.grad.tolist() == [0, 1]


@pytest.mark.claim("compression", 59)
def test_eval_mode_quantizes_with_frozen_statistics() -> None:
    model = randomised(Plain()).train()
    QATQuantizer(model, ALL, dummy_input=images())
    for seed in range(2):
        model(images(seed))
    before = copy.deepcopy(model.state_dict())

    model.eval()(images(3) * 9)

    assert all(torch.equal(model.state_dict()[key], one) for key, one in before.items())


@pytest.mark.claim("compression", 61)
def test_scales_for_each_channel() -> None:
    model = model_of(nn.Conv2d(3, 5, 3))
    config = {"quant_types": ["weight", "input"], "quant_bits": 8, "op_types": ["Conv2d"]}
    quantizer = QATQuantizer(model, [{**config, "quant_scheme": "per_channel_affine"}])

    model(images())

    assert one_of(quantizer, "0.weight").scale.shape == (5, 1, 1, 1)
    assert one_of(quantizer, "0._input_0").scale.shape == (1, 3, 1, 1)


@pytest.mark.claim("compression", 66)
def test_folding_leaves_the_outputs_of_the_float_model() -> None:
    model = randomised(Plain())
    before = model(images())
    bypass = [{**ALL[0], "apply_method": "bypass"}]

    QATQuantizer(model, bypass, dummy_input=images())

    assert torch.allclose(model(images()), before, atol=1e-5)


@pytest.mark.claim("compression", 67)
def test_training_with_folded_batch_norms_exports_the_float_names(tmp_path: Path) -> None:
    model = randomised(Plain()).train()
    names = list(model.state_dict())
    quantizer = QATQuantizer(model, ALL, dummy_input=images())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(images()).square().mean().backward()
    optimizer.step()
    trained = {name: one.clone() for name, one in model.conv1[1].module.state_dict().items()}

    quantizer.export_model(tmp_path / "model.pth")

    saved = torch.load(tmp_path / "model.pth", weights_only=True)
    assert list(saved) == names
    assert all(torch.equal(saved[f"conv1.1.{name}"], one) for name, one in trained.items())
    fresh = Plain()
    fresh.load_state_dict(saved)
    assert torch.equal(fresh.eval()(images()), model.eval()(images()))


@pytest.mark.claim("compression", 68)
def test_a_new_quantizer_resumes_from_an_exported_calibration(tmp_path: Path) -> None:
    first = QATQuantizer(randomised(Plain()).train(), ALL)
    for seed in range(3):
        first.bound_model(images(seed))
    calibration = first.export_model(tmp_path / "model.pth", tmp_path / "calibration.pth")

    second = QATQuantizer(randomised(Plain(), seed=1), ALL)
    second.load_calibration_config(torch.load(tmp_path / "calibration.pth", weights_only=True))

    assert second.get_calibration_config() == calibration


def test_an_error_falls_with_the_bits() -> None:
    plain = randomised(Plain())
    exact = plain(images()).detach()
    errors = []

    for bits in (4, 6, 8, 12):
        model = copy.deepcopy(plain).train()
        config = [{**ALL[0], "quant_dtype": f"int{bits}", "quant_scheme": "affine"}]
        QATQuantizer(model, config, dummy_input=images())
        for layer in model.modules():
            layer.momentum = 0.0  # the statistics of the norms stay
        model(images())
        errors.append(float((model.eval()(images()).detach() - exact).abs().max()))

    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 0.01 * float(exact.abs().max())


@pytest.mark.claim("compression", 70)
def test_defaults_of_the_process_count_for_new_quantizers_only() -> None:
    entry = {"op_types": ["Linear"], "quant_types": ["weight"], "quant_bits": 8}
    before = QATQuantizer(model_of(nn.Linear(2, 2)), [entry])

    with quant_scheme_dtype("weight", "per_channel_symmetric", "int"):
        chosen = QATQuantizer(model_of(nn.Linear(2, 2)), [entry])
        given = QATQuantizer(model_of(nn.Linear(2, 2)), [{**entry, "quant_dtype": "uint"}])

    dtypes = [one_of(one, "0.weight").settings.quant_dtype for one in (before, chosen, given)]
    assert dtypes == ["uint8", "int8", "uint8"]
    assert one_of(chosen, "0.weight").scale.shape == (2, 1)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"quant_dtype": "int1"}, "QATQuantizer needs int2 to int31"),
        ({"quant_dtype": "uint32"}, "QATQuantizer needs uint1 to uint31"),
    ],
)
def test_bits_out_of_range_are_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        QATQuantizer(model_of(nn.Linear(2, 2)), [{**ALL[0], **values}])


def test_a_wrong_start_step_is_refused() -> None:
    with pytest.raises(ConfigListError, match="quant_start_step must be an int >= 0, got -1"):
        QATQuantizer(model_of(nn.Linear(2, 2)), ALL, quant_start_step=-1)
