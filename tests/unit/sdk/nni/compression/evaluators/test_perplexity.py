import math

import pytest
import torch
from torch import Tensor, nn

from nni.compression.evaluators.perplexity import logits_of, perplexity


class Bigrams(nn.Module):
    """Language model that predicts the next token by the last one."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(5, 5, generator=generator))
        self.dropout = nn.Dropout(0.5)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> dict[str, Tensor]:
        return {"logits": self.dropout(self.table[input_ids])}


def test_it_is_the_geometric_mean_of_inverse_probabilities() -> None:
    model, tokens = Bigrams(), torch.tensor([[0, 1, 2], [3, 3, 4]])
    probabilities = model.table.detach().softmax(-1)
    pairs = [(0, 1), (1, 2), (3, 3), (3, 4)]
    expected = math.prod(1 / float(probabilities[pair]) for pair in pairs) ** 0.25

    # Two batches of different length weigh by their tokens; float32 sums differ in the last digits.
    assert perplexity(model, [tokens]) == pytest.approx(expected, rel=1e-5)
    assert perplexity(model, [tokens[:1], tokens[1:, :2], tokens[1:, 1:]]) == pytest.approx(
        expected, rel=1e-5
    )
    assert model.training


def test_padding_is_not_predicted() -> None:
    model = Bigrams()
    batch = {
        "input_ids": torch.tensor([[0, 1, 2, 2]]),
        "attention_mask": torch.tensor([[1, 1, 1, 0]]),
    }

    assert perplexity(model, [batch]) == perplexity(model, [torch.tensor([[0, 1, 2]])])


def test_a_loss_that_overflows_is_infinite() -> None:
    model = Bigrams()
    model.table.data.zero_()[:, 0] = 1e6

    assert perplexity(model, [torch.tensor([[1, 2]])]) == math.inf


def test_batches_without_a_next_token_are_refused() -> None:
    with pytest.raises(ValueError, match=r"length >= 2\) token ids, got \(1, 1\)"):
        perplexity(Bigrams(), [torch.tensor([[1]])])
    with pytest.raises(ValueError, match="must hold tokens to predict"):
        perplexity(Bigrams(), [])


def test_an_output_without_logits_is_refused() -> None:
    with pytest.raises(TypeError, match="must return logits, got str"):
        logits_of("text")
