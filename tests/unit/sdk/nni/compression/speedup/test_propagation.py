"""Propagation: ties, fixed partners, and the axis of a split that shrinks."""

import torch
from torch import Tensor, nn

from nni.compression.speedup.layer_rules import RULES
from nni.compression.speedup.propagation import propagate
from nni.compression.speedup.recording import capture


class Heads(nn.Module):
    """Attention weights from a fused projection of two heads of width three."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 18)
        self.out = nn.Linear(6, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, _ = tokens.shape
        query, key, value = self.qkv(tokens).view(batch, count, 3, 2, 3).permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(-2, -1)).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2))


def test_the_axis_of_heads_is_chosen_when_widths_are_multiplied() -> None:
    graph = capture(Heads(), torch.zeros(2, 5, 4))

    state = propagate(graph, RULES)

    [split] = [one for one in state.splits if one.sizes == (3, 2, 3)]
    assert split.chosen == 1
    frozen = {int(one) for each in state.freezes for one in state.slots.find(each.ids)}
    assert not frozen & set(state.slots.find(split.ids).tolist())
    assert len(set(state.slots.find(split.ids).tolist())) == 2


def test_a_partner_of_fixed_size_freezes() -> None:
    class Offset(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 3)

        def forward(self, features: Tensor) -> Tensor:
            return (self.first(features) + torch.arange(3.0)).sum(1)

    state = propagate(capture(Offset(), torch.zeros(1, 2)), RULES)

    assert any("meets a tensor of fixed size (add" in one.reason for one in state.freezes)


def test_constants_of_equal_elements_may_shrink() -> None:
    class Offset(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 3)
            self.last = nn.Linear(3, 1)

        def forward(self, features: Tensor) -> Tensor:
            found = self.first(features)
            return self.last(found + torch.ones(1, found.shape[1]))

    state = propagate(capture(Offset(), torch.zeros(1, 2)), RULES)

    frozen = {int(one) for each in state.freezes for one in state.slots.find(each.ids)}
    [sink] = [one for one in state.sinks if len(one.ids) == 3]
    assert not frozen & set(state.slots.find(sink.ids).tolist())
