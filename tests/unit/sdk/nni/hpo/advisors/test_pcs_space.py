"""Spaces with conditions and forbidden combinations."""

import math
from collections import Counter
from random import Random
from typing import Any

import pytest

from nni.hpo.advisors._pcs import PcsError, parse_pcs
from nni.hpo.advisors._pcs_space import PcsProposals, check_value, coordinate_of, value_at
from nni.hpo.encoding.columns import Row

TEXT = """\
kernel categorical {rbf, poly, linear} [rbf]
size ordinal {small, medium, large} [small]
degree integer [2, 5] [3]
gamma real [0.01, 100] [1] log
shift real [-1, 1] [0]
degree | kernel == poly
gamma | kernel in {rbf, poly}
gamma | size != small
shift | degree > 3
{kernel=linear, size=large}
{degree=5}
"""


def space(text: str = TEXT) -> PcsProposals:
    return PcsProposals(parse_pcs(text))


def expected_keys(configuration: dict[str, Any]) -> set[str]:
    keys = {"kernel", "size"}
    if configuration["kernel"] == "poly":
        keys.add("degree")
        if configuration["degree"] > 3:
            keys.add("shift")
    if configuration["kernel"] != "linear" and configuration["size"] != "small":
        keys.add("gamma")
    return keys


def test_draws_keep_conditions_and_forbidden_combinations() -> None:
    rng, drawn = Random(0), space()
    for _ in range(500):
        configuration = drawn.draw(rng)
        assert configuration.keys() == expected_keys(configuration)
        assert (configuration["kernel"], configuration["size"]) != ("linear", "large")
        assert configuration.get("degree") != 5


def test_rows_lead_back_to_their_configurations() -> None:
    rng, drawn = Random(1), space()
    for _ in range(200):
        configuration = drawn.draw(rng)
        back = drawn.configuration(drawn.row(configuration))
        assert back is not None
        assert {k: v for k, v in back.items() if not isinstance(v, float)} == {
            k: v for k, v in configuration.items() if not isinstance(v, float)
        }
        for name in ("gamma", "shift"):
            if name in configuration:
                assert back[name] == pytest.approx(configuration[name])


def test_inactive_parameters_stand_at_their_default() -> None:
    drawn = space()

    row = drawn.row({"kernel": "linear", "size": "small"})

    # size, degree, gamma, shift: each integer or option owns a bin of its own.
    assert row.coordinates == pytest.approx((1 / 6, 1.5 / 4, 0.5, 0.5))
    assert row.options == (2,)


def test_forbidden_row_has_no_configuration() -> None:
    assert space().configuration(Row(0, (0.9, 0.1, 0.5, 0.5), (2,))) is None


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (None, "must be a dict"),
        ({"kernel": "rbf", "size": "small", "extra": 1}, "unknown parameters"),
        ({"kernel": "sigmoid", "size": "small"}, "must be one of rbf, poly, linear"),
        ({"kernel": "poly", "size": "small", "degree": 2.5}, "must be an integer in"),
        ({"kernel": "poly", "size": "small", "degree": 9}, "must be an integer in"),
        ({"kernel": "poly", "size": "small", "degree": True}, "must be an integer in"),
        ({"kernel": "rbf", "size": "large", "gamma": "1"}, "must be a number in"),
        ({"kernel": "rbf", "size": "large", "gamma": True}, "must be a number in"),
        ({"kernel": "linear", "size": "small", "degree": 2}, "do not allow"),
        ({"kernel": "poly", "size": "small"}, "do not allow"),
        ({"kernel": "linear", "size": "large"}, "do not allow"),
    ],
)
def test_configurations_outside_the_space_are_refused(configuration: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        space().row(configuration)


def test_integers_are_equally_likely_up_to_both_ends() -> None:
    (parameter,) = parse_pcs("n integer [1, 4] [1]").parameters
    counts = Counter(value_at(parameter, (i + 0.5) / 400) for i in range(400))

    assert counts == {1: 100, 2: 100, 3: 100, 4: 100}


def test_logarithmic_values_are_even_in_their_logarithm() -> None:
    (parameter,) = parse_pcs("x real [0.01, 100] [1] log").parameters

    assert value_at(parameter, 0.25) == pytest.approx(0.1)
    assert coordinate_of(parameter, 10.0) == pytest.approx(0.75)
    assert math.isclose(float(value_at(parameter, 1.0)), 100)


def test_range_of_one_value_lies_in_the_middle() -> None:
    (parameter,) = parse_pcs("x real [2, 2] [2]").parameters

    assert coordinate_of(parameter, 2.0) == 0.5
    assert value_at(parameter, 0.9) == 2.0


def test_space_that_forbids_everything_is_refused() -> None:
    with pytest.raises(PcsError, match="none of 10000 draws is allowed"):
        space("a categorical {x} [x]\n{a=x}\n")


def test_name_of_the_budget_is_reserved() -> None:
    with pytest.raises(PcsError, match="'TRIAL_BUDGET' is reserved"):
        space("TRIAL_BUDGET real [0, 1] [0]\n")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("o ordinal {a, b} [a]", ["a", "b"]),
        ("o ordinal {a, b, c} [a]", ["a", "c"]),
        ("n integer [1, 4] [1]", [1, 4]),
        ("x real [2, 3] [2]", [2.0, 3.0]),
    ],
)
def test_values_of_coordinates_at_the_ends_and_outside_are_the_ends(
    text: str, ends: list[str | float]
) -> None:
    (parameter,) = parse_pcs(text).parameters

    assert [value_at(parameter, 0.0), value_at(parameter, 1.0)] == ends
    assert [value_at(parameter, -0.3), value_at(parameter, 1.3)] == ends


@pytest.mark.parametrize("value", [2.0, 5.0])
def test_bounds_of_a_range_are_values(value: float) -> None:
    (parameter,) = parse_pcs("n integer [2, 5] [3]").parameters

    check_value(parameter, value)
    for outside in (value - 4, value + 4):
        with pytest.raises(ValueError, match=r"must be an integer in \[2"):
            check_value(parameter, outside)
