"""The spaces of papers have their operators, nodes and merging."""

import pytest

from nni.mutable import Categorical
from nni.nas.hub.pytorch import DARTS, ENAS, PNAS, AmoebaNet, NASNet
from nni.nas.hub.pytorch.cell_spaces import CellSpaceOfPaper
from nni.nas.nn.pytorch import Cell


@pytest.mark.parametrize(
    ("space", "operators", "nodes", "merge"),
    [
        (NASNet, 13, 5, "loose_end"),
        (ENAS, 5, 5, "loose_end"),
        (AmoebaNet, 8, 5, "loose_end"),
        (PNAS, 8, 5, "all"),
        (DARTS, 7, 4, "all"),
    ],
)
def test_space_is_that_of_its_paper(
    space: type[CellSpaceOfPaper], operators: int, nodes: int, merge: str
) -> None:
    made = space(width=4, num_cells=3)
    prefix = space.__name__.lower()

    leaves = made.simplify()
    cells = {one.label: one for one in made.modules() if isinstance(one, Cell)}

    operator = leaves[f"{prefix}/normal/op_2_0"]
    assert isinstance(operator, Categorical)
    assert len(operator) == operators
    assert len(leaves) == 2 * nodes * 2 * 2
    assert set(cells) == {f"{prefix}/normal", f"{prefix}/reduce"}
    assert {one.merge_op for one in cells.values()} == {merge}


def test_network_of_darts_has_the_published_size() -> None:
    network = DARTS.load_searched_model("darts-v2")

    # As published for CIFAR-10: 3.3 million, without the auxiliary head.
    size = sum(one.numel() for one in network.parameters()) / 1e6
    assert size == pytest.approx(3.35, abs=0.05)
