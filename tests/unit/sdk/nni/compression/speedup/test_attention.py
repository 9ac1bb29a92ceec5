"""Multi-head attention with fewer heads against the one of torch with masked heads."""

from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.speedup.attention import PrunedMultiheadAttention
from nni.compression.speedup.pruning import prune
from tests.unit.sdk.nni.compression.models import randomised


def pair(**options: Any) -> tuple[nn.MultiheadAttention, Any]:
    """Return attention of torch, and ours with the same parameters and all heads."""
    torch.manual_seed(0)
    dense = randomised(nn.MultiheadAttention(12, 3, **options))
    ours = randomised(nn.MultiheadAttention(12, 3, **options))
    ours.load_state_dict(dense.state_dict())
    ours.__class__ = PrunedMultiheadAttention
    return dense, ours


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"kdim": 12, "vdim": 12},
    ],
)
@pytest.mark.parametrize("average", [True, False])
def test_with_all_heads_it_is_the_attention_of_torch(
    options: dict[str, Any], average: bool
) -> None:
    dense, ours = pair(**options)
    tokens = torch.randn(4, 4, 12)
    padding = torch.tensor([[False, False, True, True]] * 4)
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    masks = {"key_padding_mask": padding, "attn_mask": causal, "average_attn_weights": average}

    expected = dense(tokens, tokens, tokens, **masks)
    found = ours(tokens, tokens, tokens, **masks)

    assert torch.allclose(expected[0], found[0], atol=1e-5)
    assert torch.allclose(expected[1], found[1], atol=1e-5)


@pytest.mark.parametrize("form", ["unbatched", "per head", "added"])
def test_other_forms_of_inputs_and_masks(form: str) -> None:
    dense, ours = pair()
    shape = (5, 12) if form == "unbatched" else (5, 2, 12)
    tokens = torch.randn(shape)
    mask = torch.randn(6, 5, 5) if form == "per head" else torch.randn(5, 5)
    padding = torch.zeros(5) if form == "unbatched" else None

    expected, _ = dense(tokens, tokens, tokens, padding, attn_mask=mask)
    found, weights = ours(tokens, tokens, tokens, padding, need_weights=False, attn_mask=mask)

    assert torch.allclose(expected, found, atol=1e-5)
    assert weights is None


def test_half_of_the_heads_of_an_encoder_go() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 4, 16, batch_first=True)
    model = randomised(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))

    smaller, report = prune(model, torch.randn(2, 5, 12), 0.5)

    attention: Any = smaller.layers[1].self_attn
    assert (attention.num_heads, attention.head_dim) == (2, 3)
    assert attention.in_proj_weight.shape == (18, 12)
    assert report.error <= 1e-4
