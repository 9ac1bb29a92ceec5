"""Numbering the combinations of a finite space."""

import json

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


@pytest.mark.parametrize(
    ("entry", "first", "second"),
    [
        (("uniform", [0, 1]), [0.0, 0.5, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0]),
        (("loguniform", [1, 16]), [1.0, 4.0, 16.0], [1.0, 2.0, 4.0, 8.0, 16.0]),
        (("uniform", [3, 3]), [3.0], [3.0]),
        # Quartiles of a normal lie 0.67 deviations from its mean, eighths 0.32 and 1.15.
        (("qnormal", [0, 1, 1]), [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]),
        (("qnormal", [0, 4, 1]), [-3.0, 0.0, 3.0], [-5.0, -3.0, -1.0, 0.0, 1.0, 3.0, 5.0]),
    ],
)
def test_infinite_types_have_quantiles_that_each_level_refines(
    entry: tuple[str, list[float]], first: list[float], second: list[float]
) -> None:
    space = parse_space({"x": {"_type": entry[0], "_value": entry[1]}})

    levels = [Grid(space, level) for level in range(2)]

    values = [[grid.decode(number)["x"] for number in range(grid.size)] for grid in levels]
    assert values == [pytest.approx(first), pytest.approx(second)]


def test_values_of_an_infinite_type_are_found_after_a_round_trip() -> None:
    grid = Grid(parse_space({"x": {"_type": "lognormal", "_value": [0, 1]}}), level=3)

    texts = [json.dumps(grid.decode(number)) for number in range(grid.size)]

    assert [grid.encode(json.loads(text)) for text in texts] == list(range(grid.size))
    with pytest.raises(ValueError, match="value of the grid"):
        grid.encode({"x": 1.2345})


def test_only_infinite_types_can_be_refined() -> None:
    branch = {"_name": "deep", "x": {"_type": "normal", "_value": [0, 1]}}

    assert not Grid(parse_space(SPACE)).refinable
    assert Grid(parse_space({"b": {"_type": "choice", "_value": ["plain", branch]}})).refinable


def test_parameters_of_a_branch_are_refined_with_the_level() -> None:
    branch = {"_name": "deep", "x": {"_type": "uniform", "_value": [0, 1]}}
    space = parse_space({"b": {"_type": "choice", "_value": ["plain", branch]}})

    grids = [Grid(space, level) for level in range(2)]

    assert [grid.size for grid in grids] == [1 + 3, 1 + 5]
    assert grids[1].decode(2) == {"b": {"_name": "deep", "x": pytest.approx(0.25)}}


@pytest.mark.parametrize(
    ("rule", "number", "following"),
    [
        ("a != 1", 0, 0),
        ("a != 1", 9, 18),
        ("a != 1", 14, 18),
        ("b != 1", 3, 6),
        ("b != 1", 14, 15),
        ("c != 1", 4, 5),
        ("a < 2", 18, 27),
        ("a < c or b > 1", 0, 1),
    ],
)
def test_block_of_combinations_that_break_a_rule_is_passed_over(
    rule: str, number: int, following: int
) -> None:
    entry = {"_type": "randint", "_value": [0, 3]}
    grid = Grid(parse_space({"a": entry, "b": entry, "c": entry, "_constraints": [rule]}))

    assert grid.next_allowed(number) == following


@pytest.mark.parametrize("value", [1e-9, 1e9])
def test_value_beyond_the_quantiles_is_not_in_the_grid(value: float) -> None:
    grid = Grid(parse_space({"x": {"_type": "lognormal", "_value": [0, 1]}}))

    with pytest.raises(ValueError, match="value of the grid"):
        grid.encode({"x": value})


@pytest.mark.parametrize("place", [0, -1])
def test_value_that_rounding_has_changed_is_found(place: int) -> None:
    grid = Grid(parse_space({"x": {"_type": "lognormal", "_value": [0, 1]}}), level=2)
    value = grid.decode(place % grid.size)["x"]

    found = [grid.encode({"x": value * factor}) for factor in (1 - 1e-12, 1 + 1e-12)]

    assert found == [place % grid.size] * 2
