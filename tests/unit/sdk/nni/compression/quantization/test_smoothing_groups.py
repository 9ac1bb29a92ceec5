import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from nni.compression.quantization.smoothing_groups import (
    SmoothingGroup,
    WeightAxis,
    smoothing_groups,
)


def llama(*, tied: bool = False) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=tied,
        )
    )


def tokens() -> Tensor:
    return torch.tensor([[1, 2, 3, 4]])


def test_the_norms_of_a_llama_are_read_by_projections() -> None:
    found = smoothing_groups(llama(), tokens())

    block = "model.layers.0"
    by_norm = {one.norm: [weight.name for weight in one.weights] for one in found.found}
    assert by_norm == {
        (f"{block}.input_layernorm.weight",): [
            f"{block}.self_attn.{name}_proj.weight" for name in "qkv"
        ],
        (f"{block}.post_attention_layernorm.weight",): [
            f"{block}.mlp.{name}_proj.weight" for name in ("gate", "up")
        ],
        ("model.norm.weight",): ["lm_head.weight"],
    }
    assert {weight.axis for one in found.found for weight in one.weights} == {1}
    assert found.skipped == {}


def test_a_weight_that_is_the_embedding_too_is_left() -> None:
    found = smoothing_groups(llama(tied=True), tokens())

    assert len(found.found) == 2
    assert "is used more than once" in found.skipped["model.norm.weight"]


def test_weights_with_inputs_first_are_found_by_their_products() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=32))

    found = smoothing_groups(model, tokens())

    block = "transformer.h.0"
    assert found.found == [
        SmoothingGroup(
            (f"{block}.ln_1.weight", f"{block}.ln_1.bias"),
            (WeightAxis(f"{block}.attn.c_attn.weight", 0),),
        ),
        SmoothingGroup(
            (f"{block}.ln_2.weight", f"{block}.ln_2.bias"),
            (WeightAxis(f"{block}.mlp.c_fc.weight", 0),),
        ),
    ]


class OwnNorm(nn.Module):
    """Norm and product without modules of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
        self.matrix = nn.Parameter(torch.randn(3, 4))

    def forward(self, value: Tensor) -> Tensor:
        value = value / value.abs().amax(-1, keepdim=True)
        return functional.linear(value * self.gain + self.shift, self.matrix)


@pytest.mark.parametrize(
    ("norm", "names"),
    [
        (nn.LayerNorm(4), ("0.weight", "0.bias")),
        (nn.LayerNorm(4, bias=False), ("0.weight",)),
        (nn.RMSNorm(4), ("0.weight",)),
    ],
)
def test_norms_of_torch_are_found(norm: nn.Module, names: tuple[str, ...]) -> None:
    found = smoothing_groups(nn.Sequential(norm, nn.Linear(4, 2)), torch.randn(2, 3, 4))

    assert found.found == [SmoothingGroup(names, (WeightAxis("1.weight", 1),))]


def test_a_norm_of_ones_own_is_found_by_its_operations() -> None:
    found = smoothing_groups(OwnNorm(), torch.randn(2, 4))

    assert found.found == [SmoothingGroup(("gain", "shift"), (WeightAxis("matrix", 1),))]


class Branches(nn.Module):
    """Norm whose output something else than a weight reads, too."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.norm, self.linear = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, value: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        normed: Tensor = self.norm(value)
        found: Tensor = self.linear(normed)
        match self.kind:
            case "residual":
                return found + normed
            case "output":
                return found, normed
            case "twice":
                return self.linear(found)
            case _:
                return found + normed.transpose(0, 1)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("residual", "it is read by add in the model itself"),
        ("output", "it is an output of the model"),
        ("twice", "linear.weight is used more than once"),
        ("transposed", "it is read by transpose in the model itself"),
    ],
)
def test_a_norm_with_another_reader_is_skipped_with_the_reason(kind: str, reason: str) -> None:
    found = smoothing_groups(Branches(kind), torch.randn(4, 4))

    assert found.found == []
    assert found.skipped == {"norm.weight": reason}
