"""Cells of searched operators and connections."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.nas.nn.pytorch import Cell, ChosenInputs, LayerChoice
from nni.nas.space import model_context


def operators() -> list[nn.Module]:
    return [nn.Linear(4, 4), nn.Identity(), nn.Tanh()]


class Scaled(nn.Module):
    """Operator that shows the indices that it was built for."""

    def __init__(self, node: int, operator: int, read: int | None) -> None:
        super().__init__()
        self.indices = (node, operator, read)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * (1 if self.indices[2] is None else self.indices[2] + 1)


@pytest.mark.claim("nas", 32)
def test_labels_count_nodes_from_the_number_of_predecessors() -> None:
    cell = Cell(operators(), 4, 2, 2, label="cell")

    labels = set(cell.simplify())

    assert labels == {
        f"cell/{kind}_{node}_{index}"
        for kind in ("op", "input")
        for node in range(2, 6)
        for index in range(2)
    }


def test_names_of_listed_operators_are_strings() -> None:
    sample = Cell(operators(), 1, label="cell").default_sample()

    assert sample == {"cell/op_1_0": "0", "cell/input_1_0": [0]}


def test_output_is_the_concatenation_of_all_nodes() -> None:
    cell = Cell([nn.Identity()], 3, label="cell")

    assert torch.equal(cell(torch.ones(2, 4)), torch.ones(2, 12))


def test_node_is_the_sum_of_its_operators() -> None:
    cell = Cell({"same": nn.Identity()}, 1, 3, label="cell")

    assert torch.equal(cell(torch.ones(2, 4)), torch.full((2, 4), 3.0))


def test_frozen_cell_reads_the_chosen_tensors() -> None:
    cell = Cell([nn.Identity()], 2, num_predecessors=2, label="cell")
    sample = {**cell.default_sample(), "cell/input_2_0": [1], "cell/input_3_0": [2]}

    frozen = cell.freeze(sample)

    assert frozen.simplify() == {}
    assert torch.equal(frozen(torch.zeros(1, 1), torch.ones(1, 1)), torch.ones(1, 2))


def test_inputs_may_be_a_list_which_stays_as_it_is() -> None:
    cell = Cell([nn.Identity()], 1, num_predecessors=2, label="cell")
    inputs = [torch.zeros(1, 1), torch.ones(1, 1)]

    assert torch.equal(cell(inputs), cell(*inputs))
    assert len(inputs) == 2


def test_wrong_number_of_inputs_is_refused() -> None:
    cell = Cell([nn.Identity()], 1, num_predecessors=2, label="cell")

    with pytest.raises(ValueError, match="inputs of cell 'cell' must be 2 tensors, got 1"):
        cell(torch.zeros(1))


def test_loose_ends_are_the_nodes_that_no_other_reads() -> None:
    cell = Cell([nn.Identity()], 3, merge_op="loose_end", label="cell")
    sample = {**cell.default_sample(), "cell/input_2_0": [1], "cell/input_3_0": [1]}

    frozen = cell.freeze(sample)

    assert frozen.output_node_indices == [2, 3]
    assert cell.output_node_indices == [1, 2, 3]


def test_processors_surround_the_cell() -> None:
    class Double(nn.Module):
        def forward(self, inputs: list[Tensor]) -> list[Tensor]:
            return [2 * one for one in inputs]

    class Add(nn.Module):
        def forward(self, merged: Tensor, processed: list[Tensor]) -> Tensor:
            return merged + 10 * processed[0]

    cell = Cell([nn.Identity()], 1, preprocessor=Double(), postprocessor=Add(), label="cell")

    assert cell(torch.ones(1, 1)).item() == 22


def test_dimension_of_the_concatenation_can_be_chosen() -> None:
    cell = Cell([nn.Identity()], 2, concat_dim=0, label="cell")

    assert cell(torch.ones(1, 3)).shape == (2, 3)


def test_each_operator_has_weights_of_its_own() -> None:
    cell = Cell(operators(), 2, label="cell")

    assert cell.ops[0][0][str(0)].weight is not cell.ops[1][0][str(0)].weight


def test_candidates_may_be_a_function_that_makes_them() -> None:
    cell = Cell(lambda: {"same": nn.Identity()}, 1, label="cell")

    assert cell.freeze(cell.default_sample()).ops[0][0].__class__ is nn.Identity


def test_candidates_may_be_built_for_their_place() -> None:
    cell: Any = Cell([Scaled], 2, 2, label="cell")

    indices = [choice["0"].indices for choices in cell.ops for choice in choices]

    assert indices == [(1, 0, None), (1, 1, None), (2, 0, None), (2, 1, None)]


def test_operators_of_a_frozen_cell_know_their_input() -> None:
    cell = Cell({"scaled": Scaled}, 2, label="cell")
    sample = {**cell.default_sample(), "cell/input_2_0": [1]}

    frozen = cell.freeze(sample)

    assert [operators[0].indices for operators in frozen.ops] == [(1, 0, 0), (2, 0, 1)]
    assert frozen(torch.ones(1, 1)).tolist() == [[1.0, 2.0]]
    assert frozen.freeze({}) is frozen


def test_context_builds_the_chosen_operators_only() -> None:
    built: list[str] = []

    def candidate(name: str) -> Any:
        def build(node: int, operator: int, read: int | None) -> nn.Module:
            del node, operator, read
            built.append(name)
            return nn.Identity()

        return build

    with model_context({"cell/op_1_0": "b", "cell/input_1_0": [0]}):
        cell = Cell({"a": candidate("a"), "b": candidate("b")}, 1, label="cell")

    assert built == ["b"]
    assert isinstance(cell.inputs[0][0], ChosenInputs)
    assert cell.simplify() == {}


def test_operators_may_contain_choices() -> None:
    choice = LayerChoice([nn.ReLU(), nn.Tanh()], label="act")

    cell = Cell([choice], 1, label="cell")

    assert list(cell.simplify()) == ["cell/op_1_0", "act", "cell/input_1_0"]


@pytest.mark.parametrize("name", ["num_nodes", "num_ops_per_node", "num_predecessors"])
def test_numbers_must_be_positive(name: str) -> None:
    arguments = {"num_nodes": 1, name: 0}

    with pytest.raises(ValueError, match=f"{name} must be >= 1, got 0"):
        Cell([nn.Identity()], **arguments, label="cell")  # type: ignore[arg-type]


def test_unknown_merge_is_refused() -> None:
    with pytest.raises(ValueError, match="merge_op must be one of all, loose_end, got 'some'"):
        Cell([nn.Identity()], 1, merge_op="some", label="cell")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [([], ValueError, "must not be empty"), ([3], TypeError, "must be modules, or functions")],
)
def test_bad_candidates_are_refused(candidates: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Cell(candidates, 1, label="cell")


def test_cell_of_functions_is_frozen_in_its_mode_and_dtype() -> None:
    cell = Cell([lambda *_: nn.Linear(4, 4)], num_nodes=1, label="cell").eval().double()

    frozen = cell.freeze({"cell/op_1_0": "0", "cell/input_1_0": [0]})

    assert not any(module.training for module in frozen.modules())
    assert {one.dtype for one in frozen.parameters()} == {torch.float64}
