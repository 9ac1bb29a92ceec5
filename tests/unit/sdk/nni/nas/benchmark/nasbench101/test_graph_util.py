"""Graphs of NAS-Bench-101."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nni.nas.benchmark.nasbench101.graph_util import (
    hash_module,
    infer_num_vertices,
    nasbench_format_to_architecture_repr,
)

ARCH: dict[str, Any] = {
    "op1": "conv3x3-bn-relu",
    "op2": "maxpool3x3",
    "op3": "conv3x3-bn-relu",
    "op4": "conv3x3-bn-relu",
    "op5": "conv1x1-bn-relu",
    "input1": [0],
    "input2": [1],
    "input3": [2],
    "input4": [0],
    "input5": [0, 3, 4],
    "input6": [2, 5],
}


def relabelled(order: tuple[int, ...]) -> dict[str, Any] | None:
    """Return the cell with its inner vertices in another order; None if edges would lead back."""
    place = {old: new for new, old in enumerate((0, *order, 6))}
    arch: dict[str, Any] = {}
    for old, new in place.items():
        if 0 < old < 6:
            arch[f"op{new}"] = ARCH[f"op{old}"]
        if old:
            arch[f"input{new}"] = sorted(place[source] for source in ARCH[f"input{old}"])
            if max(arch[f"input{new}"]) >= new:
                return None
    return arch


@pytest.mark.claim("nas", 79)
def test_hash_is_that_of_the_published_data() -> None:
    assert hash_module(ARCH, 7) == "00005c142e6f48ac74fdcf73e3439874"


@pytest.mark.claim("nas", 79)
def test_hash_does_not_depend_on_the_order_of_the_vertices() -> None:
    archs = [arch for order in itertools.permutations(range(1, 6)) if (arch := relabelled(order))]

    assert len(archs) > 3
    assert {hash_module(arch, 7) for arch in archs} == {hash_module(ARCH, 7)}


def test_hash_depends_on_operations_and_edges() -> None:
    other_operation = ARCH | {"op1": "conv1x1-bn-relu"}
    other_edge = ARCH | {"input4": [1]}

    assert len({hash_module(arch, 7) for arch in (ARCH, other_operation, other_edge)}) == 3


def test_matrix_is_converted_to_an_architecture() -> None:
    matrix = np.zeros((7, 7), int)
    for vertex in range(1, 7):
        matrix[ARCH[f"input{vertex}"], vertex] = 1
    names = ["input", *(ARCH[f"op{vertex}"] for vertex in range(1, 6)), "output"]

    assert nasbench_format_to_architecture_repr(matrix, names) == (7, ARCH)


def test_matrix_must_fit_its_names() -> None:
    with pytest.raises(ValueError, match="must be square with a row for each name of labeling"):
        nasbench_format_to_architecture_repr([[0, 1], [0, 0]], ["input"])


def test_vertices_are_counted_by_their_inputs() -> None:
    assert infer_num_vertices(ARCH) == 7
    assert infer_num_vertices({"input1": [0]}) == 2


def test_architecture_without_inputs_is_refused() -> None:
    with pytest.raises(ValueError, match="must have keys input1, input2"):
        infer_num_vertices({"op1": "maxpool3x3"})


@pytest.mark.parametrize(
    ("arch", "message"),
    [
        ({"op1": "conv5x5", "input1": [0], "input2": [1]}, "op1 must be one of input, "),
        ({"op1": "maxpool3x3", "input1": [1], "input2": [1]}, "input1 must list vertices from 0"),
    ],
)
def test_invalid_cell_is_refused(arch: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hash_module(arch, 3)
