import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from nni.compression import prune_decoder
from nni.compression.utils import perplexity


def llama(layers: int = 2) -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=layers,
            num_attention_heads=8,
            num_key_value_heads=4,
            initializer_range=0.2,
        )
    )
    model.train(mode=False)
    return model


def tokens() -> Tensor:
    return torch.randint(0, 32, (2, 6), generator=torch.Generator().manual_seed(0))


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(tokens()).logits
    return found


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the projections of the first block."""
    return {
        name.split(".")[-2]: tuple(one.shape)
        for name, one in model.named_parameters()
        if name.startswith("model.layers.0.") and name.endswith("proj.weight")
    }


def test_heads_go_in_groups_of_their_key_and_value() -> None:
    model = llama()

    smaller, report = prune_decoder(model, [tokens()], heads=0.5)

    assert shapes(smaller) == {
        "q_proj": (8, 16),
        "k_proj": (4, 16),
        "v_proj": (4, 16),
        "o_proj": (16, 8),
        "gate_proj": (24, 16),
        "up_proj": (24, 16),
        "down_proj": (16, 24),
    }
    assert report.removal is not None
    assert report.removal.error < 1e-4
    assert report.perplexity == (perplexity(model, [tokens()]), perplexity(smaller, [tokens()]))
    assert shapes(model)["q_proj"] == (16, 16)


def test_the_groups_of_smallest_norm_are_those_that_a_mask_removes() -> None:
    model = llama()

    smaller, _ = prune_decoder(model, [tokens()], heads=0.5, width=0.5)

    with torch.no_grad():
        for block in model.model.layers:
            attention, mlp = block.self_attn, block.mlp
            by_group = torch.zeros(4)
            for layer, rows in (
                (attention.q_proj, 4),
                (attention.k_proj, 2),
                (attention.v_proj, 2),
            ):
                by_group += layer.weight.abs().reshape(4, rows, -1).sum((1, 2))
            by_group += attention.o_proj.weight.T.abs().reshape(4, 4, -1).sum((1, 2))
            lost = by_group.argsort()[:2]
            attention.o_proj.weight.reshape(16, 4, 4)[:, lost] = 0
            by_channel = mlp.down_proj.weight.abs().sum(0)
            by_channel += mlp.gate_proj.weight.abs().sum(1) + mlp.up_proj.weight.abs().sum(1)
            mlp.down_proj.weight[:, by_channel.argsort()[:12]] = 0
    assert torch.allclose(logits(smaller), logits(model), atol=1e-5)


def test_widths_fill_a_multiple_and_heads_stay() -> None:
    smaller, report = prune_decoder(llama(), [tokens()], width=0.5, round_to=8)

    found = shapes(smaller)
    assert (found["gate_proj"], found["down_proj"]) == ((16, 16), (16, 16))
    assert found["q_proj"] == (16, 16)
    assert report.parameters[1] == report.parameters[0] - 2 * 3 * 8 * 16


def test_blocks_go_before_heads_and_widths() -> None:
    smaller, report = prune_decoder(llama(3), [tokens()], heads=0.25, width=0.25, depth=1)

    assert isinstance(smaller, LlamaForCausalLM)
    assert len(smaller.model.layers) == smaller.config.num_hidden_layers == 2
    assert report.depth is not None
    assert len(report.depth.removed) == 1
    assert "removed from model.layers: [" in str(report)
    assert shapes(smaller)["k_proj"] == (6, 16)
    assert report.perplexity[1] == perplexity(smaller, [tokens()])


def test_the_cache_of_keys_and_values_works_afterwards() -> None:
    smaller, _ = prune_decoder(llama(), [tokens()], heads=0.5, width=0.5, depth=1)

    first = smaller(tokens()[:, :4], use_cache=True)
    rest = smaller(tokens()[:, 4:], past_key_values=first.past_key_values)

    # A matrix product of two rows may round its sums in another order than one of six.
    assert torch.allclose(rest.logits, logits(smaller)[:, 4:], atol=1e-5)


def test_depth_alone_is_drop_blocks() -> None:
    smaller, report = prune_decoder(llama(), [{"input_ids": tokens()}], depth=1)

    assert report.removal is None
    assert report.depth is not None
    assert report.parameters == (report.depth.parameters_before, report.depth.parameters_after)
    assert isinstance(smaller, LlamaForCausalLM)


def test_a_fused_projection_loses_heads_of_queries_keys_and_values() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=16, vocab_size=32))
    model.train(mode=False)

    smaller, report = prune_decoder(model, [tokens()], heads=0.5, width=0.25)

    assert isinstance(smaller, GPT2LMHeadModel)
    block = "transformer.h.0"
    assert smaller.get_parameter(f"{block}.attn.c_attn.weight").shape == (16, 24)
    assert smaller.get_parameter(f"{block}.mlp.c_fc.weight").shape == (16, 48)
    assert report.removal is not None
    assert report.removal.error < 1e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": 1.0}, "heads must be at least 0 and below 1, but is 1.0"),
        ({"width": -0.1}, "width must be at least 0 and below 1, but is -0.1"),
        ({"depth": -1}, "depth must be at least 0, but is -1"),
        ({"depth": 2}, "count must be at least 1 and below the 2 blocks, got 2"),
        ({"width": 0.5, "round_to": 0}, "round_to must be at least 1, but is 0"),
        ({}, "nothing is to be removed; set heads, width or depth"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prune_decoder(llama(), [tokens()], **arguments)  # type: ignore[arg-type]


def test_a_model_without_heads_names_the_reasons() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)

        def forward(self, value: Tensor) -> Tensor:
            found: Tensor = value + self.down(self.up(value).relu())
            return found

    model = nn.Sequential(nn.Embedding(32, 8), nn.Sequential(Block(), Block()), nn.Linear(8, 32))

    with pytest.raises(ValueError, match=r"1 has nothing to remove by heads; .* no such channels"):
        prune_decoder(model, [tokens()], heads=0.5, blocks="1")


def test_no_batches_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one batch of tokens, got none"):
        prune_decoder(llama(), [], heads=0.5)
