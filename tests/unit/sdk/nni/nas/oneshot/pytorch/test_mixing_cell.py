"""Cell of a differentiable search."""

from typing import Any

import pytest
import torch
from torch import nn

from nni.nas.nn.pytorch import Cell, ModelSpace
from nni.nas.oneshot.pytorch.mixing_cell import MixingCell, edge_label, strongest
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Scaled, as_mixture


class Cells(ModelSpace):
    """Two cells that share their choices."""

    def __init__(self, merge: Any = "all") -> None:
        super().__init__()
        self.cells = torch.nn.ModuleList(
            Cell([Scaled(2.0), Scaled(3.0)], 2, 2, 2, merge, label="cell") for _ in range(2)
        )

    def forward(self, first: Any, second: Any) -> Any:
        return self.cells[0](first, second)


def test_node_adds_all_weighted_operators() -> None:
    space = Cells()
    weights = as_mixture(space)
    with torch.no_grad():
        for label in weights.values:
            weights.logits(label).copy_(torch.tensor([0.5, 0.25, 0.25]).log())
    first, second = torch.full((1, 1), 1.0), torch.full((1, 1), 10.0)

    output = space(first, second)

    node = (0.5 * 2 + 0.25 * 3) * 11
    assert output.tolist() == [[pytest.approx(node), pytest.approx(1.75 * (11 + node))]]


def test_cells_with_one_label_share_logits() -> None:
    weights = as_mixture(Cells())

    edges = [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    assert list(weights.values) == [edge_label("cell", *edge) for edge in edges]


def test_export_never_chooses_none_and_prefers_distinct_inputs() -> None:
    space = Cells()
    weights = as_mixture(space)
    logits = {
        (2, 0): [5.0, 4.0, 9.0],
        (2, 1): [0.0, 1.0, 0.0],
        (3, 0): [0.0, 0.0, 0.0],
        (3, 1): [3.0, 0.0, 0.0],
        (3, 2): [0.0, 4.0, 0.0],
    }
    with torch.no_grad():
        for edge, values in logits.items():
            weights.logits(edge_label("cell", *edge)).copy_(torch.tensor(values))
    cell = space.cells[0]
    assert isinstance(cell, MixingCell)

    sample = cell.best()

    assert sample == {
        "cell/op_2_0": "1",
        "cell/input_2_0": [1],
        "cell/op_2_1": "0",
        "cell/input_2_1": [0],
        "cell/op_3_0": "1",
        "cell/input_3_0": [2],
        "cell/op_3_1": "0",
        "cell/input_3_1": [1],
    }
    assert space.contains(sample)


def test_more_operators_than_inputs_repeat_an_input() -> None:
    assert strongest([(0.5, 0, "a"), (0.4, 0, "b")], 2) == [(0.5, 0, "a"), (0.4, 0, "b")]


def test_frozen_cell_has_the_operators_of_the_edges() -> None:
    space = Cells()
    as_mixture(space)
    cell = space.cells[0]
    assert isinstance(cell, MixingCell)
    sample = cell.best()

    frozen = space.freeze(sample).cells[0]

    assert type(frozen) is Cell
    for node, index in cell.op_labels:
        read = sample[f"cell/input_{node}_{index}"][0]
        name = sample[f"cell/op_{node}_{index}"]
        assert frozen.ops[node - 2][index] is cell.edges[node - 2][read][name]
    assert frozen(torch.ones(1, 1), torch.ones(1, 1)).shape == (1, 2)


def test_loose_ends_cannot_be_mixed() -> None:
    with pytest.raises(TypeError, match="merge_op='all'"):
        as_mixture(Cells("loose_end"))


def test_wrong_number_of_inputs_is_refused() -> None:
    space = Cells()
    as_mixture(space)

    with pytest.raises(ValueError, match="must be 2 tensors, got 1"):
        space.cells[0](torch.ones(1, 1))


def test_cell_keeps_mode_and_dtype_of_the_one_that_it_replaces() -> None:
    space = _space(Cell([lambda *_: nn.Linear(2, 2)], 1, label="cell"))
    space.eval().double()
    as_mixture(space)

    frozen = space.cell.freeze({"cell/op_1_0": "0", "cell/input_1_0": [0]})

    for network in (space, frozen):
        assert not any(module.training for module in network.modules())
        assert {one.dtype for one in network.parameters()} == {torch.float64}


def test_operator_that_changes_its_input_in_place_is_refused() -> None:
    space = _space(Cell([nn.ReLU(inplace=True)], 1, label="cell"))
    as_mixture(space)

    with pytest.raises(RuntimeError, match="'cell' changes its input in place"):
        space.cell(torch.ones(1, 2))


def _space(cell: Cell) -> Any:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

    return Net()
