import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from nni.compression.speedup import block_influences, drop_blocks
from nni.compression.speedup.depth import find_blocks
from nni.compression.utils import perplexity


def llama(layers: int = 4) -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )
    model.train(mode=False)
    return model


def tokens() -> Tensor:
    return torch.randint(0, 32, (2, 6), generator=torch.Generator().manual_seed(0))


class Turn(nn.Module):
    """Rotation of pairs by an angle."""

    def __init__(self, angle: float) -> None:
        super().__init__()
        self.angle = nn.Parameter(torch.tensor(angle))

    def forward(self, value: Tensor) -> Tensor:
        cos, sin = self.angle.cos(), self.angle.sin()
        return value @ torch.stack([torch.stack([cos, sin]), torch.stack([-sin, cos])])


def test_the_influence_is_one_minus_the_cosine_to_the_output() -> None:
    angles = [0.5, 0.0, 2.0]
    model = nn.Sequential(*(Turn(angle) for angle in angles))

    found = block_influences(model, [torch.randn(3, 2), torch.randn(4, 2)])

    assert found == pytest.approx([1 - torch.tensor(angle).cos().item() for angle in angles])
    assert not any(block._forward_hooks for block in model)


def test_the_blocks_that_change_least_are_removed() -> None:
    model = nn.Sequential(Turn(0.5), Turn(0.0), Turn(2.0), Turn(0.1))

    smaller, report = drop_blocks(model, [torch.randn(3, 2)], 2)

    assert isinstance(smaller, nn.Sequential)
    assert [round(float(block.angle.detach()), 3) for block in smaller] == [0.5, 2.0]
    assert report.removed == (1, 3)
    assert (report.parameters_before, report.parameters_after) == (4, 2)
    assert len(model) == 4


def test_a_decoder_without_blocks_equals_one_that_skips_them() -> None:
    model, batch = llama(), tokens()

    smaller, report = drop_blocks(model, [batch], 2, score=lambda one: perplexity(one, [batch]))

    assert isinstance(smaller, LlamaForCausalLM)
    assert report.blocks == "model.layers"
    kept = [index for index in range(4) if index not in report.removed]
    reference = llama()
    for index, block in enumerate(list(reference.model.layers)):
        if index not in kept:
            block.register_forward_hook(
                lambda _module, args, kwargs, _output: args[0], with_kwargs=True
            )
    assert torch.equal(smaller(batch).logits, reference(batch).logits)
    assert report.scores is not None
    assert report.scores == (perplexity(model, [batch]), perplexity(smaller, [batch]))


def test_counts_and_indices_follow_so_that_the_cache_and_reloading_work() -> None:
    model = llama()
    model.config.layer_labels = ["a", "b", "c", "d"]

    smaller, report = drop_blocks(model, [tokens()], 1)

    kept = [index for index in range(4) if index not in report.removed]
    assert isinstance(smaller, LlamaForCausalLM)
    assert smaller.config.num_hidden_layers == 3
    assert smaller.config.layer_labels == ["abcd"[index] for index in kept]
    assert [block.self_attn.layer_idx for block in smaller.model.layers] == [0, 1, 2]
    assert model.config.num_hidden_layers == 4
    fresh = llama(3)
    fresh.load_state_dict(smaller.state_dict())
    assert torch.equal(fresh(tokens()).logits, smaller(tokens()).logits)
    first = smaller(tokens()[:, :4], use_cache=True)
    rest = smaller(tokens()[:, 4:], past_key_values=first.past_key_values)
    # A matrix product of two rows may round its sums in another order than one of six.
    assert torch.allclose(rest.logits, smaller(tokens()).logits[:, 4:], atol=1e-6)


def test_counts_under_other_names_follow() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=3, n_head=2, n_embd=8, vocab_size=32))

    smaller, report = drop_blocks(model, [tokens()], 1)

    assert report.blocks == "transformer.h"
    assert isinstance(smaller, GPT2LMHeadModel)
    assert smaller.config.n_layer == smaller.config.num_hidden_layers == 2
    assert smaller(tokens()).logits.shape == (2, 6, 32)


class TwoTowers(nn.Module):
    """Two lists of equal length, each with a count of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 2, enable_nested_tensor=False
        )
        self.right = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 2, enable_nested_tensor=False
        )

    def forward(self, value: Tensor) -> Tensor:
        output: Tensor = self.right(self.left(value))
        return output


def test_only_counts_of_modules_around_the_blocks_change() -> None:
    smaller, _ = drop_blocks(TwoTowers(), [torch.randn(1, 3, 8)], 1, blocks="right.layers")

    assert isinstance(smaller, TwoTowers)
    assert (smaller.left.num_layers, smaller.right.num_layers) == (2, 1)
    assert len(smaller.left.layers) == 2


@pytest.mark.parametrize("count", [0, 4])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="count must be at least 1 and below the 4 blocks"):
        drop_blocks(llama(), [tokens()], count)


def test_models_without_removable_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="has no list of blocks of one class"):
        find_blocks(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    with pytest.raises(ValueError, match="has no input of that shape"):
        drop_blocks(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)), [torch.ones(1, 2)], 1)
    with pytest.raises(ValueError, match="block 0 did not run"):
        drop_blocks(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), [], 1)
