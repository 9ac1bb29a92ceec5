"""Caches of tensors that follow from parameters."""

import torch
from torch import Tensor, nn

from nni.compression.speedup.caches import clear_caches, independent_copy
from nni.compression.speedup.pruning import prune
from tests.unit.sdk.nni.compression.models import Transformer, WindowAttention, randomised


class Remembering(WindowAttention):
    """Attention whose position biases are computed once, as in several published models."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered: dict[str, Tensor] = {}

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, _ = tokens.shape
        shape = (batch, count, 3, self.num_heads, self.head_dim)
        query, key, value = self.qkv(tokens).reshape(shape).permute(2, 0, 3, 1, 4)
        if "biases" not in self.remembered:
            self.remembered["biases"] = self.table.t()[:, :count]
        scores = query @ key.transpose(-2, -1) * self.scale + self.remembered["biases"][:, None]
        found = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, count, self.all_heads)
        return self.proj(found)


def test_a_cache_that_an_earlier_run_filled_does_not_keep_the_heads() -> None:
    model = randomised(Transformer(Remembering()))
    tokens = torch.arange(16).reshape(2, 8) % 11
    model(tokens)

    smaller, report = prune(model, tokens, 0.5)

    assert smaller.attention.table.shape == (9, 2)
    assert report.error <= 1e-4
    assert len(model.attention.remembered) == 1


def test_a_dict_without_which_the_model_computes_something_else_stays() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shifts = {"left": torch.ones(3)}

        def forward(self, features: Tensor) -> Tensor:
            return features + self.shifts.get("left", 0)

    model = Shifted()

    assert clear_caches(model, torch.zeros(1, 3)) == 0
    assert len(model.shifts) == 1


def test_a_dict_without_which_the_model_fails_stays() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shifts = {"left": torch.ones(3)}

        def forward(self, features: Tensor) -> Tensor:
            return features + self.shifts["left"]

    model = Shifted()

    assert clear_caches(model, torch.zeros(1, 3)) == 0
    assert len(model.shifts) == 1


def test_a_copy_shares_no_tensor_that_a_run_has_left() -> None:
    model = randomised(Transformer(Remembering()))
    model(torch.arange(8).reshape(1, 8))

    copied = independent_copy(model)

    [left], [right] = model.attention.remembered.values(), copied.attention.remembered.values()
    assert torch.equal(left, right)
    assert left.data_ptr() != right.data_ptr()
    assert left.requires_grad
    assert not right.requires_grad
