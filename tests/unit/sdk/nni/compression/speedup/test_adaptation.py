"""Modules whose own code holds sizes: attributes first, then the sizes in calls."""

import pickle

import torch
from torch import Tensor, nn

from nni.compression.speedup.pruning import prune
from tests.unit.sdk.nni.compression.attention_model import encoder, tokens
from tests.unit.sdk.nni.compression.models import build, randomised


def test_attributes_that_equal_an_old_size_get_the_new_one() -> None:
    model, tokens = build("attention")

    smaller, report = prune(model, tokens, 0.5)

    attention = smaller.attention
    assert (attention.num_heads, attention.head_dim, attention.all_heads) == (2, 3, 6)
    assert not attention._forward_pre_hooks
    assert report.error <= 1e-4


def test_sizes_that_are_computed_are_replaced_in_calls() -> None:
    model, tokens = build("windows")

    smaller, report = prune(model, tokens, 0.5)
    copied = pickle.loads(pickle.dumps(smaller))

    assert smaller.attention.qkv.out_features == 18
    assert smaller.attention.table.shape == (9, 2)
    assert smaller.attention.num_heads == 4
    assert report.error <= 1e-4
    assert torch.equal(copied(tokens.repeat(3, 1)), smaller(tokens.repeat(3, 1)))


def test_calls_of_a_module_that_runs_twice_are_replaced_in_both_runs() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(6, 24), nn.Linear(24, 5)
            self.inner = Halves()

        def forward(self, features: Tensor) -> Tensor:
            return self.last(self.inner(self.inner(self.first(features))))

    class Halves(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            first, second, third = torch.split(features, [8, 8, 8], dim=1)
            return torch.cat([third, first.relu(), second], dim=1)

    model = randomised(Twice())

    smaller, report = prune(model, torch.randn(2, 6), 0.5)

    assert smaller.first.out_features == 12
    assert report.error <= 1e-4


def test_only_the_parts_of_a_split_that_shrink_get_new_sizes() -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(6, 20), nn.Linear(8, 5)

        def forward(self, features: Tensor) -> Tensor:
            fixed, free = torch.split(self.first(features), [12, 8], dim=1)
            return self.last(free) + fixed.softmax(1).sum(1, keepdim=True)

    model = randomised(Parts())

    smaller, report = prune(model, torch.randn(2, 6), 0.5)

    assert (smaller.first.out_features, smaller.last.in_features) == (16, 4)
    assert report.error <= 1e-4


def test_a_module_that_runs_with_a_wrong_number_of_heads_is_adapted() -> None:
    # Two of four heads of two features fill `unflatten(-1, (4, -1))` as well, as four of one.
    model = randomised(encoder(layers=1, heads=4, head_dim=2))

    smaller, report = prune(model, tokens(), sparsity=0.5)

    assert smaller.attention[0].heads == 2
    assert smaller.attention[0].query.out_features == 4
    assert report.error < 1e-4
