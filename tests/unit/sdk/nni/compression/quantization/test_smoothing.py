import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from nni.compression import TorchEvaluator
from nni.compression.quantization import PtqQuantizer, smooth_activations
from nni.compression.quantization.smoothing import migration_scales
from nni.compression.utils import perplexity


def test_scales_are_those_of_equation_4() -> None:
    activations, weights = torch.tensor([100.0, 4.0, 1.0]), torch.tensor([0.25, 1.0, 4.0])

    for alpha in (0.0, 0.3, 0.5, 1.0):
        found = migration_scales(activations, weights, alpha)
        expected = [a**alpha / w ** (1 - alpha) for a, w in zip(activations, weights, strict=True)]
        assert found.tolist() == pytest.approx([float(one) for one in expected])
    rounded = migration_scales(activations, weights, 0.5, powers_of_two=True)
    assert rounded.tolist() == [16.0, 2.0, 0.5]


def test_channels_without_values_are_left() -> None:
    scales = migration_scales(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0]), 0.5)

    assert scales.tolist() == [1.0, 1.0]


def llama() -> LlamaForCausalLM:
    """Return a small decoder with a few channels of large activations."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.2,
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.uniform_(0.5, 1.5)
                parameter[3] = 100.0
            if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight", "lm_head.weight")):
                parameter[:, 3] /= 100
            if name.endswith(("gate_proj.weight", "up_proj.weight")):
                parameter[:, 3] /= 100
    model.train(mode=False)
    return model


def batches() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(0, 32, (4, 8), generator=generator) for _ in range(2)]


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(batches()[0]).logits
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.75, 1.0])
def test_the_function_stays_bit_by_bit(alpha: float) -> None:
    model = llama()
    before = {name: one.clone() for name, one in model.state_dict().items()}

    smoothed, report = smooth_activations(model, batches(), alpha)

    assert torch.equal(logits(smoothed), logits(model))
    assert len(report.smoothed) == 5
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())


def test_scales_of_the_paper_keep_the_function_up_to_rounding() -> None:
    smoothed, _ = smooth_activations(llama(), batches(), powers_of_two=False)

    assert torch.allclose(logits(smoothed), logits(llama()), atol=1e-4)


def test_channels_are_as_large_as_their_weights_with_half_of_the_difficulty_moved() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([1.0, 50.0, 0.1, 2.0]))
    batch = torch.randn(32, 4)

    smoothed, report = smooth_activations(model, [batch[:16], batch[16:]], powers_of_two=False)

    assert isinstance(smoothed, nn.Sequential)
    activations = smoothed[0](batch).detach().abs().amax(0)
    weights = smoothed[1].weight.detach().abs().amax(0)
    assert torch.allclose(activations, weights, rtol=1e-4)
    before = model[0](batch).detach().abs().amax(0)
    assert report.smoothed[0].spread_before == pytest.approx(float(before.max() / before.median()))
    assert report.smoothed[0].spread_after < report.smoothed[0].spread_before


def int8_error(model: nn.Module) -> float:
    """Return the relative squared error of the logits in int8, and leave the model quantized."""
    expected = logits(model)
    config_list = [{"op_types": ["Linear"], "target_names": ["_input_", "weight"]}]
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluator = TorchEvaluator(
        print, sgd, print, evaluating_func=lambda one: perplexity(one, batches())
    )
    PtqQuantizer(model, config_list, evaluator).compress()
    return float((logits(model) - expected).square().sum() / expected.square().sum())


def test_int8_errors_of_a_decoder_with_outliers_are_smaller_after_the_migration() -> None:
    smoothed, report = smooth_activations(llama(), batches())

    assert all(one.spread_after < one.spread_before / 4 for one in report.smoothed)
    assert int8_error(smoothed) < 0.1 * int8_error(llama())


def test_wrong_arguments_are_refused() -> None:
    model = nn.Sequential(nn.LayerNorm(2), nn.Linear(2, 2))

    with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\], got 1.5"):
        smooth_activations(model, [torch.ones(1, 2)], 1.5)
    with pytest.raises(ValueError, match="at least one calibration input, got none"):
        smooth_activations(model, [])
    with pytest.raises(ValueError, match=r"no norm .*; 0.weight: it is an output of the model"):
        smooth_activations(nn.Sequential(nn.LayerNorm(2)), [torch.ones(1, 2)])
