"""Numbering the combinations of a finite space."""

import pytest

from nni.hpo.space.domains import canonical_json
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners._grid import Grid

SPACE = {
    "a": {"_type": "choice", "_value": ["x", "x", 2, True, 2.0, [1], None]},
    "b": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            "plain",
            {
                "_name": "deep",
                "k": {"_type": "randint", "_value": [-2, 1]},
                "q": {"_type": "quniform", "_value": [2, 10, 5]},
            },
        ],
    },
}


def test_decode_gives_every_combination_once_and_encode_finds_it_again() -> None:
    grid = Grid(parse_space(SPACE))

    combinations = [grid.decode(number) for number in range(grid.size)]

    assert grid.size == 5 * (1 + 1 + 3 * 3)  # "x" and 2 are listed twice
    assert len({canonical_json(combination) for combination in combinations}) == grid.size
    assert [grid.encode(combination) for combination in combinations] == list(range(grid.size))


def test_space_without_parameters_has_one_combination() -> None:
    grid = Grid(parse_space({}))

    assert (grid.size, grid.decode(0), grid.encode({})) == (1, {}, 0)


def test_huge_grids_cost_nothing() -> None:
    grid = Grid(
        parse_space({f"x{i}": {"_type": "randint", "_value": [0, 1000]} for i in range(20)})
    )

    assert grid.size == 1000**20
    assert grid.encode(grid.decode(123456789)) == 123456789


@pytest.mark.parametrize(
    "configuration",
    [None, {}, {"a": "x"}, {"a": "y", "b": "plain"}, {"a": "x", "b": {"_name": "deep", "k": 0}}],
)
def test_what_is_no_combination_is_refused(configuration: object) -> None:
    with pytest.raises(ValueError, match="must"):
        Grid(parse_space(SPACE)).encode(configuration)


def test_infinite_parameters_have_no_grid() -> None:
    with pytest.raises(ValueError, match="no finite grid"):
        Grid(parse_space({"x": {"_type": "uniform", "_value": [0, 1]}}))
