"""Transformers of the library `transformers`, built from tiny configurations."""

import copy
import warnings
from functools import partial
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from nni.compression.speedup.pruning import prune
from nni.compression.speedup.shrinking import outputs_of, relative_error
from tests.unit.sdk.nni.compression.models import randomised

_SIZES: dict[str, Any] = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "vocab_size": 30,
    "max_position_embeddings": 16,
}  # fmt: skip
_SHARED: dict[str, Any] = {
    **_SIZES,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 4,
}
_GPT2: dict[str, Any] = {
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 4,
    "n_positions": 16,
    "vocab_size": 30,
}
_T5: dict[str, Any] = {
    "d_model": 16,
    "d_kv": 4,
    "d_ff": 24,
    "num_layers": 1,
    "num_heads": 4,
    "vocab_size": 30,
}
_MAMBA: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4, "vocab_size": 30,
}  # fmt: skip
_ENDS: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
GROUPED: dict[str, partial[Any]] = {
    "LlamaForCausalLM": partial(transformers.LlamaConfig, **_SHARED),
    "Qwen2ForCausalLM": partial(transformers.Qwen2Config, **_SHARED),
    "MistralForCausalLM": partial(transformers.MistralConfig, **_SHARED),
}
"""Decoders whose queries share keys and values in groups."""
CONFIGURATIONS: dict[str, partial[Any]] = {
    **GROUPED,
    "Phi3ForCausalLM": partial(transformers.Phi3Config, **_SHARED, **_ENDS),
    "MixtralForCausalLM": partial(transformers.MixtralConfig, **_SHARED, num_local_experts=2),
    "MambaForCausalLM": partial(transformers.MambaConfig, **_MAMBA),
    "Mamba2ForCausalLM": partial(
        transformers.Mamba2Config, **_MAMBA, num_heads=8, head_dim=4, n_groups=2, chunk_size=4
    ),
    "GPT2LMHeadModel": partial(transformers.GPT2Config, **_GPT2, **_ENDS),
    "GPTNeoXForCausalLM": partial(transformers.GPTNeoXConfig, **_SIZES, num_attention_heads=4),
    "T5ForConditionalGeneration": partial(transformers.T5Config, **_T5),
    "BertForSequenceClassification": partial(
        transformers.BertConfig, **_SIZES, num_attention_heads=4
    ),
}


def build(name: str, attention: str = "sdpa") -> tuple[Any, dict[str, Tensor]]:
    """Return a randomised model by its class, and inputs for it."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(transformers, name)(CONFIGURATIONS[name]())
    if not name.startswith("Mamba"):
        model.set_attn_implementation(attention)
    inputs = {"input_ids": torch.arange(10).reshape(2, 5) + 2}
    if name.startswith("T5"):
        inputs["decoder_input_ids"] = torch.arange(6).reshape(2, 3) + 2
    return randomised(model), inputs


def masked_twin(model: nn.Module, smaller: nn.Module) -> nn.Module:
    """Return the model with zeros for what a smaller one lacks; its values are distinct."""
    twin = copy.deepcopy(model)
    rest = dict(smaller.named_parameters())
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            parameter.mul_(torch.isin(parameter, rest[name]))
    return twin


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_transformers_lose_heads_and_inner_width_exactly(name: str, attention: str) -> None:
    model, inputs = build(name, attention)

    smaller, report = prune(model, inputs)

    twin = masked_twin(model, smaller)
    found, expected = outputs_of(smaller, inputs), outputs_of(twin, inputs)
    assert max(report.error, relative_error(expected, found)) <= 1e-4
    assert relative_error(outputs_of(model, inputs), found) > 1e-4
    assert report.parameters_after < 0.85 * report.parameters_before


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", GROUPED)
def test_queries_go_together_with_the_keys_of_their_group(name: str, attention: str) -> None:
    model, inputs = build(name, attention)

    smaller, _ = prune(model, inputs)

    layer: Any = smaller.get_submodule("model.layers.0")
    widths = [getattr(layer.self_attn, f"{one}_proj").out_features for one in "qkv"]
    assert widths == [16, 4, 4]
    assert layer.self_attn.o_proj.in_features == 16
    assert layer.mlp.gate_proj.out_features == 12
    queries = model.model.layers[0].self_attn.q_proj.weight.detach()
    kept = torch.isin(queries, layer.self_attn.q_proj.weight).all(dim=1).reshape(2, 16)
    assert sorted(kept.sum(dim=1).tolist()) == [0, 16]


@pytest.mark.parametrize("name", [one for one in CONFIGURATIONS if not one.startswith("T5")])
def test_hidden_width_of_a_transformer_shrinks_if_norms_may_change(name: str) -> None:
    """The width of T5 stays: the hidden state of its encoder is an output."""
    model, inputs = build(name)

    smaller, report = prune(model, inputs, allow_norm_change=True)

    assert report.changed_norms
    assert report.parameters_after < 0.5 * report.parameters_before
    assert [one.shape for one in outputs_of(smaller, inputs)] == [
        one.shape for one in outputs_of(model, inputs)
    ]
