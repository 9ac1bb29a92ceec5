"""Pruning of cells."""

from __future__ import annotations

from typing import Any

import pytest

from nni.nas.benchmark.nasbench101.pruning import is_valid, pruned


def test_vertices_off_the_ways_are_left_out_and_the_others_numbered_anew() -> None:
    sample: dict[str, Any] = {
        "num_nodes": 5,
        "op1": "dead end",
        "op2": "kept",
        "op3": "unreached",
        "op4": "unused",
        "input1": [0],
        "input2": [0],
        "input3": [],
        "input4": [3, 2],
        "input5": [0],
    }

    assert pruned(sample) == {"op1": "kept", "input1": [0], "input2": [1]}


def test_cell_without_a_way_is_refused() -> None:
    with pytest.raises(ValueError, match="must have a way from input to output"):
        pruned({"num_nodes": 3, "op1": "a", "input1": [], "input2": [1]})


def test_edges_are_limited_and_those_of_missing_vertices_do_not_count() -> None:
    full = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]]

    assert not is_valid(5, *full)
    assert is_valid(4, *full)
    assert not is_valid(3, [0], [], [1])
