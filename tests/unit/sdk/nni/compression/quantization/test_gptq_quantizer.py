from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from nni.compression import TorchEvaluator
from nni.compression.base.numerics import IntegerType
from nni.compression.config.settings import ConfigListError
from nni.compression.pruning import LevelPruner
from nni.compression.quantization import GptqQuantizer, PtqQuantizer
from nni.compression.quantization.gptq import gptq_rounded, input_hessian
from nni.compression.utils import perplexity

Entry = dict[str, object]


def entry(bits: int = 4, **settings: object) -> Entry:
    return {
        "op_types": ["Linear"],
        "target_names": ["weight"],
        "quant_dtype": f"int{bits}",
        "granularity": "out_channel",
        **settings,
    }


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 6))


def samples() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(128, 4, generator=generator)
    return hidden @ torch.randn(4, 16, generator=generator)


def weight_of(model: nn.Module, name: str) -> Tensor:
    return model.get_parameter(f"{name}.weight").detach()


def evaluating(model: nn.Module, evaluate: Callable[[nn.Module], float]) -> TorchEvaluator:
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return TorchEvaluator(print, sgd, print, evaluating_func=evaluate)


def run(model: nn.Module) -> float:
    return float(model(samples()).sum())


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"granularity": "default"},
        {"granularity": [1, 4]},
        {"quant_dtype": "uint4", "quant_scheme": "affine"},
    ],
)
@pytest.mark.parametrize("act_order", [False, True])
def test_outputs_change_less_than_with_the_nearest_integers(
    bits: int, settings: Entry, act_order: bool
) -> None:
    model = layers()
    quantizer = GptqQuantizer(
        model, [entry(bits, **settings)], evaluating(model, run), act_order=act_order
    )

    quantizer.compress()

    for error in quantizer.layer_errors.values():
        assert error.gptq < error.nearest
    assert list(quantizer.layer_errors) == ["0", "2"]


def test_the_output_is_closer_than_after_rounding_by_ranges() -> None:
    expected = layers()(samples()).detach()
    errors = []
    for kind in (GptqQuantizer, PtqQuantizer):
        model = layers()
        quantizer = kind(model, [entry(3)], evaluating(model, run))
        quantizer.compress()
        with torch.no_grad():
            errors.append(float((model.eval()(samples()) - expected).square().sum()))

    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("sequential", [True, False])
def test_a_layer_is_calibrated_with_the_inputs_that_it_gets(sequential: bool) -> None:
    model, original = layers(), layers()
    quantizer = GptqQuantizer(
        model, [entry()], evaluating(model, run), sequential=sequential, damping=0.1
    )

    quantizer.compress()

    quantizer.unwrap_model()
    first = model[0] if sequential else original[0]
    with torch.no_grad():
        hessian = input_hessian(original[1](first(samples())))
    integer = IntegerType(4, signed=True)
    expected = gptq_rounded(
        original[2].weight.detach(), hessian, integer, "symmetric", (1, 12), damping=0.1
    )
    # Scales pass the ends of their range once, which rounds the last digit of a float32.
    assert torch.allclose(weight_of(model, "2"), expected.values, rtol=1e-5, atol=0)


def test_the_calibration_holds_the_scales_of_the_groups() -> None:
    model = layers()
    quantizer = GptqQuantizer(model, [entry(granularity=[1, 4])], evaluating(model, run))

    _, calibration = quantizer.compress()

    scale = torch.tensor(calibration["0"]["weight"]["scale"])
    assert scale.shape == (12, 4)
    quantizer.unwrap_model()
    integers = weight_of(model, "0") / scale.repeat_interleave(4, 1)
    assert torch.allclose(integers, integers.round(), atol=1e-4)
    assert integers.abs().max() < 7.5
    assert "tracked_max" in calibration["0"]["_input_0"]


def test_masked_weights_stay_zero() -> None:
    model = layers()
    pruner = LevelPruner(model, [{"op_names": ["0"], "sparse_ratio": 0.5}], mode="balance")
    _, masks = pruner.compress()
    model(samples())
    pruner.unwrap_model()

    quantizer = GptqQuantizer(model, [entry()], evaluating(model, run))
    quantizer.compress()

    assert not weight_of(quantizer.unwrap_model(), "0")[masks["0"]["weight"] == 0].any()


def test_a_decoder_keeps_its_perplexity() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )
    batches = [torch.randint(0, 32, (4, 8))]
    before = perplexity(model, batches)
    score = partial(perplexity, batches=batches)
    config_list = [entry(granularity=[1, 8], exclude_op_names=["lm_head"])]

    quantizer = GptqQuantizer(model, config_list, evaluating(model, score), sequential=False)
    quantized, _ = quantizer.compress()

    assert len(quantizer.layer_errors) == 14
    assert perplexity(quantized, batches) == pytest.approx(before, rel=0.01)
    assert all(one.gptq < one.nearest for one in quantizer.layer_errors.values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"op_types": ["Conv1d"], "target_names": ["weight"]},
        {"op_types": ["Linear"], "target_names": ["bias"]},
        {"op_types": ["Linear"], "target_names": ["_input_"]},
    ],
)
def test_other_targets_are_refused(wrong: Entry) -> None:
    model = nn.Sequential(nn.Conv1d(4, 4, 1), nn.Linear(4, 4))

    with pytest.raises(ConfigListError, match="GptqQuantizer"):
        GptqQuantizer(model, [wrong], evaluating(model, run))


def test_wrong_arguments_are_refused() -> None:
    model = layers()
    evaluator = evaluating(model, run)

    with pytest.raises(ValueError, match="damping must be > 0, got 0"):
        GptqQuantizer(model, [entry()], evaluator, damping=0)
    with pytest.raises(ValueError, match="block_size must be >= 1, got 0"):
        GptqQuantizer(model, [entry()], evaluator, block_size=0)
    with pytest.raises(TypeError, match="evaluator"):
        GptqQuantizer(model, [entry()], None)  # type: ignore[arg-type]


def test_a_layer_that_does_not_run_is_named() -> None:
    model = layers()
    quantizer = GptqQuantizer(model, [entry()], evaluating(model, lambda one: run(one[:2])))

    with pytest.raises(ValueError, match="2 did not run in the evaluation; exclude it"):
        quantizer.compress()
