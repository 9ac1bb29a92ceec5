import logging
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.config.settings import ConfigListError
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.quantization import LsqPlusQuantizer, LsqQuantizer, QATQuantizer

WEIGHT: list[dict[str, object]] = [{"op_types": ["Linear"], "target_names": ["weight"]}]
ALL: list[dict[str, object]] = [{"op_types": ["Linear"]}]


def linear(*weights: float) -> Any:
    model = nn.Sequential(nn.Linear(len(weights), 1, bias=False))
    model[0].weight.data = torch.tensor([weights])
    return model


def one_of(quantizer: LsqQuantizer, target: str) -> Any:
    return next(one for place, one in quantizer.target_quantizers() if place.target == target)


def trained(model: nn.Module) -> TorchEvaluator:
    def train(one: nn.Module, optimizer: Any, step: Any, _schedulers: Any, *limits: Any) -> None:
        for _ in range(limits[0]):
            optimizer.zero_grad()
            loss: Tensor = step(torch.tensor([[1.0, 0.5]]), one)
            torch.autograd.backward(loss)
            optimizer.step()

    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return TorchEvaluator(train, sgd, lambda batch, one: (one(batch) - 1).square().mean())


@pytest.mark.claim("compression", 65)
def test_the_scale_begins_by_the_weight_and_is_trained() -> None:
    model = linear(1.0, -1.0)
    quantizer = LsqQuantizer(model, WEIGHT, trained(model))
    before = float(one_of(quantizer, "weight").scale.detach())

    quantizer.compress(max_steps=1)

    assert before == pytest.approx(0.177471, abs=1e-6)
    assert float(one_of(quantizer, "weight").scale.detach()) != before


def test_the_scale_of_an_input_begins_with_the_first_batch() -> None:
    model = linear(1.0, -1.0)
    quantizer = LsqQuantizer(model, ALL)
    value = torch.tensor([[3.0, -1.0]])
    assert torch.equal(one_of(quantizer, "_input_0").eval()(value), value)

    model.train()(value)
    model(10 * value)

    assert float(one_of(quantizer, "_input_0").scale.detach()) == pytest.approx(2 * 2 / 127**0.5)


def test_the_lowest_integer_is_used() -> None:
    quantizer = LsqQuantizer(linear(1.0, -1.0), [{**WEIGHT[0], "quant_dtype": "int2"}])
    one = one_of(quantizer, "weight")
    one.scale.data.fill_(1)

    assert one(torch.tensor([-9.0, -1.4, 0.4, 9.0])).tolist() == [-2, -1, 0, 1]


def test_unsigned_outputs_have_no_negative_integers() -> None:
    model = nn.Sequential(nn.ReLU())
    quantizer = LsqQuantizer(model, [{"op_types": ["ReLU"], "quant_dtype": "uint2"}])
    one = one_of(quantizer, "_output_0")
    one.load({"tracked_min": 0.0, "tracked_max": 3.0})

    assert one(torch.tensor([-1.0, 1.4, 9.0])).tolist() == [0, 1, 3]
    assert [float(end) for end in one.tracked_range()] == [0, 3]


def test_each_channel_of_a_weight_may_have_a_scale() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1))
    config = {"op_types": ["Conv2d"], "target_names": ["weight"], "granularity": "out_channel"}
    one = one_of(LsqQuantizer(model, [config]), "weight")

    expected = 2 * model[0].parameter("weight").abs().mean((1, 2, 3), keepdim=True) / 127**0.5

    assert torch.allclose(one.scale, expected)


def test_a_scale_stays_positive() -> None:
    quantizer = LsqQuantizer(linear(1.0, -1.0), WEIGHT)
    one_of(quantizer, "weight").scale.data.fill_(-1)

    quantizer.step_with_optimizer()

    assert float(one_of(quantizer, "weight").scale.detach()) > 0


@pytest.mark.claim("compression", 68)
def test_a_calibration_of_another_algorithm_gives_the_scale() -> None:
    model = linear(1.0, -2.0)
    first = QATQuantizer(model, ALL)
    model.train()(torch.tensor([[2.0, -0.5]]))
    calibration = first.get_calibration_config()
    first.unwrap_model()

    second = LsqQuantizer(model, ALL)
    second.load_calibration_config(calibration)

    for target, largest in (("weight", 2), ("_input_0", 2)):
        assert float(one_of(second, target).scale.detach()) == pytest.approx(largest / 127)
    found = second.get_calibration_config()["0"]["_input_0"]
    assert (found["tracked_min"], found["tracked_max"]) == (pytest.approx(-2), pytest.approx(2))
    assert found["zero_point"] == 0
    one_of(second, "weight").load({"quant_bits": 8})
    assert float(one_of(second, "weight").scale.detach()) == pytest.approx(2 / 127)


def test_another_scheme_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        LsqQuantizer(linear(1.0), [{**WEIGHT[0], "quant_scheme": "affine"}])

    assert "0.weight is quantized by the scheme symmetric, which LsqQuantizer has" in caplog.text


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"quant_dtype": "uint8"}, r"has uint8 for 0\.weight; LsqQuantizer needs int for param"),
        (
            {"target_names": ["_input_"], "granularity": "per_channel"},
            r"'per_channel' for 0\._input_0; LsqQuantizer learns one scale for inputs and out",
        ),
    ],
)
def test_a_broken_rule_is_named(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigListError, match=problem):
        LsqQuantizer(linear(1.0), [{**WEIGHT[0], **values}])


@pytest.mark.parametrize("kind", [LsqQuantizer, LsqPlusQuantizer])
def test_an_empty_batch_passes(kind: type[LsqQuantizer]) -> None:
    model = linear(1.0, -1.0)
    affine = "affine" if kind is LsqPlusQuantizer else "symmetric"
    quantizer = kind(model, [{**ALL[0], "quant_scheme": affine}])
    model(torch.ones(2, 2))

    found = model(torch.ones(0, 2))
    torch.autograd.backward(found.sum())

    assert found.shape == (0, 1)
    assert float(one_of(quantizer, "_input_0").scale.grad) == 0
