"""Numbers of cells and channels follow from depth, width and loose ends."""

import pytest

from nni.mutable import Categorical, MutableExpression
from nni.nas.hub.pytorch.nds_channels import (
    cell_channels,
    channels_of,
    count_loose_ends,
    stage_length,
    stage_lengths,
)


@pytest.mark.parametrize("cells", range(3, 21))
def test_stages_share_the_cells(cells: int) -> None:
    lengths = stage_lengths(cells)

    assert sum(lengths) == cells
    assert max(lengths) - min(lengths) <= 1
    assert [stage_length(cells, stage) for stage in range(3)] == lengths


def test_length_of_a_mutable_number_is_an_expression() -> None:
    depth = Categorical([4, 8], label="depth")

    assert [stage_length(depth, stage).freeze({"depth": 8}) for stage in range(3)] == [2, 3, 3]


@pytest.mark.parametrize("cells", [3, 4, 5, 8])
def test_channels_follow_the_sequence_of_cells(cells: int) -> None:
    kinds = []
    for stage, length in enumerate(stage_lengths(cells)):
        for index in range(length):
            reduces = stage > 0 and index == 0
            kinds.append(16 * 2**stage * (2 if reduces else 4))
    outputs = [48, 48, *kinds]
    position = 0
    for stage, length in enumerate(stage_lengths(cells)):
        for index in range(length):
            before, last = (
                cell_channels(stage, index - back, cells, 16, 48, 4, 2) for back in (2, 1)
            )
            assert [before, last] == outputs[position : position + 2]
            position += 1
    assert cell_channels(3, -1, cells, 16, 48, 4, 2) == outputs[-1]


def test_loose_ends_are_nodes_that_are_not_read() -> None:
    assert count_loose_ends(2, 3, [0], [1], [0], [0], [0], [0]) == 3
    assert count_loose_ends(2, 3, [0], [1], [2], [0], [3], [2]) == 1


def test_channels_of_mutables_are_an_expression() -> None:
    width = Categorical([8, 16], label="width")

    found = channels_of(0, 0, 3, width, 3 * width, 4, 4)

    assert isinstance(found, MutableExpression)
    assert found.freeze({"width": 16}) == 64
    assert channels_of(0, 0, 3, 8, 24, 4, 4) == 32
