"""Operators of a cell, built anew for one place in it."""

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from nni.nas.nn.pytorch import Cell
from nni.nas.oneshot.pytorch.cell_operators import built_operators, is_built_by_input
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Scaled


def by_place(node: int, index: int, read: int | None) -> nn.Module:
    return Scaled(100.0 * node + 10 * index + (read or 0))


@pytest.mark.parametrize(
    ("candidates", "names"),
    [
        ([nn.ReLU(), nn.Tanh()], ["0", "1"]),
        ({"relu": nn.ReLU()}, ["relu"]),
        (lambda: {"tanh": nn.Tanh()}, ["tanh"]),
    ],
)
def test_modules_are_copied_under_their_names(candidates: Any, names: list[str]) -> None:
    cell = Cell(candidates, 1, label="cell")

    first, second = (built_operators(cell, 1, 0, 0) for _ in range(2))

    assert list(first) == names
    assert not is_built_by_input(cell)
    assert all(first[name] is not second[name] for name in names)


@pytest.mark.parametrize("candidates", [[by_place], lambda: [by_place]])
def test_functions_get_the_place(candidates: list[Any] | Callable[[], list[Any]]) -> None:
    cell = Cell(candidates, 2, label="cell")

    operators = built_operators(cell, 2, 0, 1)

    assert is_built_by_input(cell)
    assert float(operators["0"].get_parameter("factor").detach()) == 201
