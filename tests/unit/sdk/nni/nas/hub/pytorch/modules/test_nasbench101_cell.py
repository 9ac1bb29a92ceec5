"""A cell of NAS-Bench-101 obeys the rules of the benchmark."""

import random
from typing import Any

import pytest
import torch
from torch import nn

from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ConstraintViolation,
    Mutable,
    MutableList,
    Sample,
    SampleMissingError,
)
from nni.nas.benchmark.nasbench101.graph_util import hash_module, infer_num_vertices
from nni.nas.hub.pytorch.modules import NasBench101Cell
from nni.nas.hub.pytorch.modules.nasbench101_cell import (
    NasBench101CellConstraint,
    NasBench101FixedCell,
)
from nni.nas.hub.pytorch.nasbench101 import OPERATORS
from nni.nas.space import model_context
from nni.testing import MutableConformance


def conv(features: int) -> nn.Module:
    return nn.Conv2d(features, features, 1)


def pool(features: int) -> nn.Module:
    del features
    return nn.Identity()


def projection(in_channels: int, out_channels: int) -> nn.Module:
    return nn.Conv2d(in_channels, out_channels, 1, bias=False)


def cell(**arguments: Any) -> NasBench101Cell:
    return NasBench101Cell({"conv": conv, "pool": pool}, 3, 8, projection, label="c", **arguments)


def full(vertices: int, edges: int) -> Sample:
    """Return a sample of this many vertices and edges, in which every vertex reads the first."""
    sample: Sample = {"c/num_nodes": vertices}
    for at in range(1, vertices):
        more = min(at, max(1, edges - (vertices - 1 - at)))
        sample[f"c/input{at}"] = list(range(at))[-more:]
        edges -= more
    unread = {f"c/input{at}": [0] for at in range(vertices, 7)}
    return sample | unread | {f"c/op{at}": "conv" for at in range(1, 6)}


@pytest.mark.claim("nas", 33)
def test_ten_edges_are_refused() -> None:
    sample = full(7, 10)
    assert sum(len(sample[f"c/input{at}"]) for at in range(1, 7)) == 10

    with pytest.raises(ConstraintViolation, match="at most 9 edges, got 10"):
        cell().freeze(sample)


def test_nine_edges_are_accepted() -> None:
    assert cell().contains(full(7, 9))


def test_graph_without_a_path_is_refused() -> None:
    sample = {"c/num_nodes": 3, "c/op1": "conv", "c/input1": [0], "c/input2": []}

    with pytest.raises(ConstraintViolation, match="less than 2 vertices"):
        cell(max_num_nodes=3).freeze(sample)


def test_missing_label_is_named() -> None:
    with pytest.raises(SampleMissingError, match="'c/input2'"):
        cell(max_num_nodes=3).freeze({"c/num_nodes": 3, "c/op1": "conv", "c/input1": [0]})


def test_dimensions_and_weights() -> None:
    leaves = cell().simplify()

    assert list(leaves) == [
        "c/num_nodes",
        *(f"c/op{at}" for at in range(1, 6)),
        *(f"c/input{at}" for at in range(1, 7)),
        "c/final",
    ]
    numbers = leaves["c/num_nodes"]
    assert isinstance(numbers, Categorical)
    assert numbers.values == [2, 3, 4, 5, 6, 7]
    assert numbers.weights == [2**one / 252 for one in range(2, 8)]


def test_samples_have_the_pruned_architecture_that_queries_take() -> None:
    names = NasBench101Cell(OPERATORS, 3, 8, projection, label="c")
    state = random.Random(0)
    found = 0
    while found < 5:
        try:
            sample = names.random_sample(random_state=state)
        except ConstraintViolation:
            continue
        architecture = sample["c/final"]
        assert len(hash_module(architecture, infer_num_vertices(architecture))) == 32
        found += 1


def test_grid_has_the_pruned_architecture() -> None:
    samples = list(cell(max_num_nodes=3).grid_samples())

    assert all("c/final" in sample for sample in samples)
    assert {"input1": [0]} in [sample["c/final"] for sample in samples]
    # 2 operations: 5 pairs of inputs of 3 vertices have a path, and 4 of 2 vertices.
    assert len(samples) == 2 * (5 + 4)


def test_output_is_the_concatenation_and_the_projected_input() -> None:
    sample = {"c/num_nodes": 4, "c/op1": "pool", "c/op2": "pool", "c/input1": [0]}
    sample |= {"c/input2": [0], "c/input3": [0, 1, 2]}
    x = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))

    fixed = cell(max_num_nodes=4).freeze(sample)

    assert isinstance(fixed, NasBench101FixedCell)
    assert fixed.channels == [3, 4, 4, 8]
    parts = [fixed.projections["1"](x), fixed.projections["2"](x)]
    expected = torch.cat(parts, 1) + fixed.projections["3"](x)
    assert torch.allclose(fixed(x), expected)


def test_wider_vertex_is_truncated() -> None:
    sample = {"c/num_nodes": 5, "c/op1": "pool", "c/op2": "pool", "c/op3": "pool"}
    sample |= {"c/input1": [0], "c/input2": [1], "c/input3": [1], "c/input4": [2, 3]}
    uneven = NasBench101Cell({"pool": pool}, 3, 7, projection, 5, label="c")

    fixed = uneven.freeze(sample)

    assert fixed.channels == [3, 4, 4, 3, 7]
    assert fixed(torch.zeros(1, 3, 2, 2)).shape == (1, 7, 2, 2)


def test_context_gives_the_same_cell() -> None:
    sample = full(5, 6)
    with model_context(sample):
        built: Any = cell()

    assert isinstance(built, NasBench101FixedCell)
    frozen = cell().freeze(sample)
    assert built.graph == frozen.graph
    assert [tuple(one.shape) for one in built.parameters()] == [
        tuple(one.shape) for one in frozen.parameters()
    ]


def test_list_of_operations_has_positions() -> None:
    made = NasBench101Cell([conv, pool], 3, 8, projection, 3, label="c")

    fixed = made.freeze({"c/num_nodes": 3, "c/op1": 1, "c/input1": [0], "c/input2": [1]})

    assert isinstance(fixed, NasBench101FixedCell)
    assert isinstance(fixed.operations[0], nn.Identity)


def test_unfrozen_cell_computes_nothing() -> None:
    with pytest.raises(RuntimeError, match="cell 'c' must be frozen"):
        cell()(torch.zeros(1, 3, 2, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_num_nodes": 1}, "max_num_nodes must be >= 2"),
        ({"max_num_edges": 0}, "max_num_edges >= 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cell(**arguments)


def test_no_candidate_is_refused() -> None:
    with pytest.raises(ValueError, match="op_candidates must not be empty"):
        NasBench101Cell({}, 3, 8, projection, label="c")


def test_wrong_number_of_vertices_is_found_by_the_constraint() -> None:
    rule = NasBench101CellConstraint(3, 9, label="final")

    assert isinstance(rule.check_contains({"num_nodes": 4}), ConstraintViolation)
    assert isinstance(rule.check_contains({}), SampleMissingError)


class TestConstraint(MutableConformance):
    def make(self) -> Mutable:
        return MutableList(
            [
                Categorical([2, 3], label="num_nodes"),
                Categorical(["conv", "pool"], label="op1"),
                CategoricalMultiple([0], label="input1"),
                CategoricalMultiple([0, 1], label="input2"),
                NasBench101CellConstraint(3, 2, label="final"),
            ]
        )

    def test_missing_labels_are_found(self) -> None:
        rule = self.make()

        assert not rule.contains({"num_nodes": 3, "op1": "conv", "input1": [0]})

    def test_wrong_values_are_found_and_not_raised(self) -> None:
        sample = {"num_nodes": 7, "op1": "conv", "input1": [0], "input2": [1]}

        assert not self.make().contains(sample)
