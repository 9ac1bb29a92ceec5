"""Moves of elements: every move keeps the labels on the elements."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.layer_rules import RULES
from nni.compression.speedup.propagation import Propagation, propagate
from nni.compression.speedup.recording import capture


class Moved(nn.Module):
    """A parameter that is moved."""

    def __init__(self, shape: tuple[int, ...], move: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape))
        self.move = move

    def forward(self, offset: Tensor) -> Tensor:
        return self.move(self.weight)


def labels(
    shape: tuple[int, ...], move: Callable[[Tensor], Tensor]
) -> tuple[Propagation, list[tuple[int, Any]]]:
    """Return the state and, for each axis of the result that can shrink, its slots."""
    state = propagate(capture(Moved(shape, move), torch.zeros(1)), RULES)
    [output] = state.graph.outputs
    return state, [(one.axis, np.squeeze(one.ids).tolist()) for one in state.of(output)]


@pytest.mark.parametrize(
    ("shape", "move", "expected"),
    [
        ((4,), lambda one: one[1:3], [(0, [1, 2])]),
        ((4,), lambda one: one[::2], [(0, [0, 2])]),
        ((4,), lambda one: one.narrow(0, 1, 2), [(0, [1, 2])]),
        ((1, 3), lambda one: one.t(), [(0, [0, 1, 2])]),
        ((1, 3, 1), lambda one: one.permute(2, 0, 1), [(2, [0, 1, 2])]),
        ((3,), lambda one: one[None, :, None], [(1, [0, 1, 2])]),
        ((1, 3), lambda one: one.expand(4, 2, 3), [(2, [0, 1, 2])]),
        ((2,), lambda one: one.repeat(2), [(0, [0, 1, 0, 1])]),
        ((4,), lambda one: one.split(2)[1], [(0, [2, 3])]),
        ((2,), lambda one: torch.cat([one, one]), [(0, [0, 1, 0, 1])]),
        ((2,), lambda one: torch.stack([one, one], 1), [(0, [0, 1])]),
        ((2, 1), lambda one: one.expand(2, 3).reshape(6), [(0, [0, 0, 0, 1, 1, 1])]),
        ((1, 2, 1, 1), lambda one: nn.functional.unfold(one.expand(1, 2, 2, 2), 2),
         [(1, [0, 0, 0, 0, 1, 1, 1, 1])]),
        ((2, 1, 1), lambda one: nn.functional.unfold(one.expand(2, 2, 2), 2),
         [(0, [0, 0, 0, 0, 1, 1, 1, 1])]),
        ((1, 8, 1), lambda one: nn.functional.fold(one, 2, 2), [(1, [0, 4])]),
        ((8, 1), lambda one: nn.functional.fold(one, 2, 2), [(0, [0, 4])]),
    ],
)  # fmt: skip
def test_labels_follow_their_elements(
    shape: tuple[int, ...], move: Callable[[Tensor], Tensor], expected: object
) -> None:
    _, found = labels(shape, move)

    assert found == expected


def test_padding_adds_frozen_channels() -> None:
    state, [(axis, ids)] = labels((2,), lambda one: nn.functional.pad(one, (1, 2)))

    frozen = {int(one) for each in state.freezes for one in each.ids if each.node >= 0}
    assert axis == 0
    assert [one in frozen for one in ids] == [True, False, False, True, True]


def test_pixel_shuffle_unites_the_channels_of_a_pixel() -> None:
    state, [(axis, ids)] = labels(
        (1, 8, 1, 1), lambda one: nn.functional.pixel_shuffle(one.expand(1, 8, 2, 2), 2)
    )

    assert (axis, len(ids)) == (1, 2)
    assert len(set(state.slots.find(np.arange(8)).tolist())) == 2


def test_the_sum_of_patches_unites_the_features_of_a_channel() -> None:
    state, _ = labels((1, 12, 1), lambda one: nn.functional.fold(one, 2, 2))

    assert len(set(state.slots.find(np.arange(12)).tolist())) == 3


def test_places_of_patches_stay() -> None:
    state, found = labels((1, 4, 4), lambda one: nn.functional.fold(one, 4, 2, stride=2))

    frozen = {int(one) for each in state.freezes for one in each.ids if each.node >= 0}
    assert found == []
    assert set(range(4, 8)) <= frozen


@pytest.mark.parametrize(
    "move",
    [
        lambda one: one.flip(0),
        lambda one: one.roll(1, 0),
        lambda one: one[0],
        lambda one: one[2:3],
        lambda one: one[torch.tensor([1, 0])],
        lambda one: one.index_select(0, torch.tensor([1])),
        lambda one: one.unbind(0)[1],
        lambda one: one.softmax(0),
        lambda one: one.sum(0),
        lambda one: one.cumsum(0),
    ],
)
def test_moves_that_depend_on_places_freeze(move: Callable[[Tensor], Tensor]) -> None:
    state, _ = labels((4,), move)

    assert {int(one) for each in state.freezes for one in each.ids if each.node >= 0} == {
        0,
        1,
        2,
        3,
    }


def test_equal_parts_stay_equal() -> None:
    state, _ = labels((6,), lambda one: one.chunk(3)[0])

    assert [rows.tolist() for rows in state.balances] == [[[0, 1], [2, 3], [4, 5]]]


def test_interleaved_rows_are_frozen() -> None:
    state, _ = labels((6,), lambda one: one.view(2, 3).t().reshape(6))

    assert any("interleaved" in one.reason for one in state.freezes)


def test_a_single_index_that_is_split_off_stays() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 5), nn.Linear(4, 2)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            gate, rest = self.first(tokens).split([1, 4], dim=-1)
            return self.last(gate.view(-1, 1, 1) * rest)

    [group] = find_dependencies(Gated(), torch.zeros(5, 1, 3)).groups()

    assert len(group.units) == 4
