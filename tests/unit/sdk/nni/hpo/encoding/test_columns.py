"""A search space as columns of numbers."""

from random import Random

import pytest

from nni.hpo.encoding.columns import configuration_of, levels_of, rows_of
from nni.hpo.space.parser import parse_space, place
from tests.support.search_spaces import DEEP, NONE

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "model": {"_type": "choice", "_value": [NONE, "plain", DEEP]},
    "batch": {"_type": "quniform", "_value": [16, 128, 16]},
    "noise": {"_type": "qlognormal", "_value": [0, 1, 0.5]},
    "shift": {"_type": "qnormal", "_value": [3, 2, 0.5]},
    "size": {"_type": "qloguniform", "_value": [0.4, 100, 1]},
    "constant": {"_type": "uniform", "_value": [2, 2]},
}


def coordinate_of(kind: str, values: list[float], value: float) -> float:
    space = parse_space({"x": {"_type": kind, "_value": values}})
    (row,) = rows_of(levels_of(space), place(space, {"x": value}))
    return row.coordinates[0]


def test_rows_and_configuration_are_inverse() -> None:
    space = parse_space(SPACE)
    levels = levels_of(space)
    rng = Random(0)

    for _ in range(300):
        configuration = space.draw(rng)
        rows = rows_of(levels, place(space, configuration))
        again = configuration_of(levels, {row.level: row for row in rows})
        assert again["model"].keys() if isinstance(again["model"], dict) else True
        assert place(space, again) == pytest.approx(place(space, configuration))
        assert list(again) == list(configuration)


def test_every_level_holds_what_is_active_together() -> None:
    levels = levels_of(parse_space(SPACE))

    names = [[parameter.path for parameter in level.parameters] for level in levels]
    assert names == [
        ["lr", "model", "batch", "noise", "shift", "size", "constant"],
        [],
        ["model/deep/layers", "model/deep/act"],
        [],
        ["model/deep/act/leaky/slope"],
    ]


def test_only_active_levels_have_rows() -> None:
    space = parse_space(SPACE)
    configuration = space.draw(Random(1)) | {"model": {"_name": "none"}}

    rows = rows_of(levels_of(space), place(space, configuration))

    assert [row.level for row in rows] == [0, 1]


@pytest.mark.parametrize(
    ("kind", "values", "value", "coordinate"),
    [
        ("uniform", [-5, 10], 2.5, 0.5),
        ("loguniform", [0.01, 1], 0.1, 0.5),
        ("quniform", [0, 10, 2.5], 7.5, 0.75),
        ("randint", [0, 4], 0, 0.125),
        ("randint", [0, 4], 3, 0.875),
        ("normal", [3, 2], 3, 0.5),
        ("normal", [3, 2], 7, 1.0),  # two standard deviations above
        ("uniform", [2, 2], 2, 0.5),
    ],
)
def test_coordinate_of_a_value(
    kind: str, values: list[float], value: float, coordinate: float
) -> None:
    assert coordinate_of(kind, values, value) == pytest.approx(coordinate)


def test_zero_of_a_quantised_bell_of_logarithms_has_a_coordinate() -> None:
    zero = coordinate_of("qlognormal", [0, 1, 0.5], 0)

    assert zero < coordinate_of("qlognormal", [0, 1, 0.5], 0.5)


@pytest.mark.parametrize(
    ("kind", "values", "count"),
    [("randint", [-3, 9], 12), ("quniform", [1, 10, 3], 4), ("quniform", [2, 10, 5], 3)],
)
def test_grid_points_of_stepped_columns_are_their_values(
    kind: str, values: list[float], count: int
) -> None:
    space = parse_space({"x": {"_type": kind, "_value": values}})
    (column,) = levels_of(space)[0].numeric
    drawn = {space.draw(Random(seed))["x"] for seed in range(300)}

    assert len(drawn) == count
    for value in drawn:
        place_on_grid = (column.coordinate(value) - column.grid_offset()) / column.step
        inside = values[0] < value < values[1]
        assert not inside or place_on_grid == pytest.approx(round(place_on_grid))
        assert column.value(column.coordinate(value)) == value


@pytest.mark.parametrize(
    ("kind", "values", "offset"),
    [
        ("uniform", [1, 3], 0.0),
        ("qloguniform", [0.4, 100, 1], 0.0),
        ("randint", [3, 4], 0.5),
        ("randint", [3, 5], 0.25),
        ("quniform", [1, 10, 3], -1 / 9),
        ("qnormal", [0, 2, 0.5], 0.5),
    ],
)
def test_grid_of_a_column_is_found_by_its_steps(
    kind: str, values: list[float], offset: float
) -> None:
    (column,) = levels_of(parse_space({"x": {"_type": kind, "_value": values}}))[0].numeric

    assert column.grid_offset() == pytest.approx(offset)


@pytest.mark.parametrize(
    ("kind", "values", "ends"),
    [
        ("uniform", [0, 1], [0.0, 1.0]),
        ("loguniform", [0.01, 1], [0.01, 1.0]),
        ("randint", [-3, 9], [-3, 8]),
        ("quniform", [2, 10, 5], [2.0, 10.0]),
    ],
)
def test_values_of_coordinates_outside_are_the_ends(
    kind: str, values: list[float], ends: list[float]
) -> None:
    (column,) = levels_of(parse_space({"x": {"_type": kind, "_value": values}}))[0].numeric

    assert [column.value(-0.6), column.value(1.6)] == ends


def test_coordinate_in_the_unit_interval_is_the_value() -> None:
    assert [coordinate_of("uniform", [0, 1], value) for value in (0.0, 0.2, 1.0)] == [0, 0.2, 1]
    assert coordinate_of("quniform", [0, 1, 0.25], 0.25) == 0.25
