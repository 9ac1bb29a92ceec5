"""Cells by number, and their features."""

import pytest

from nni_benchmark.nas.cells import CELLS, all_features, cell_of, features_of, number_of


def test_numbers_and_cells_correspond_one_to_one() -> None:
    cells = [cell_of(number) for number in range(CELLS)]

    assert [number_of(cell) for cell in cells] == list(range(CELLS))
    assert len({tuple(cell.items()) for cell in cells}) == 15_625


@pytest.mark.parametrize("number", [-1, CELLS])
def test_number_outside_the_space_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="number must be from 0 to 15624"):
        cell_of(number)


def test_incomplete_cell_is_refused_with_the_edge() -> None:
    with pytest.raises(ValueError, match=r"cell\['0_3'\] must be one of none, "):
        number_of({edge: op for edge, op in cell_of(7).items() if edge != "0_3"})


def test_edge_that_leads_nowhere_does_not_count() -> None:
    through = cell_of(0) | {"0_3": "conv_3x3"}
    with_dead_end = through | {"0_1": "conv_3x3", "1_2": "conv_1x1"}

    assert features_of(through).tolist() == features_of(with_dead_end).tolist()
    assert features_of(through).tolist() != features_of(cell_of(0)).tolist()


def test_features_of_all_cells_are_ordered_by_number() -> None:
    assert all_features()[4711].tolist() == features_of(cell_of(4711)).tolist()
