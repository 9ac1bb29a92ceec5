"""Spaces of numbers only."""

import pytest

from nni.hpo.encoding.numeric_space import (
    NUMERIC_TYPES,
    check_dngo_space,
    check_gp_space,
    check_metis_space,
    is_finite_number,
    numeric_space,
)
from nni.hpo.json_value import JsonValue


@pytest.mark.parametrize("option", [0, -1.5, 10**300, 1e-300])
def test_finite_numbers_have_a_place(option: float) -> None:
    assert is_finite_number(option)


@pytest.mark.parametrize("option", [True, None, "1", [1], float("inf"), float("nan"), 10**400])
def test_everything_else_has_none(option: JsonValue) -> None:
    assert is_finite_number(option) is False


def test_metis_has_no_logarithmic_types() -> None:
    space = {"x": {"_type": "loguniform", "_value": [0.1, 1]}}

    check_gp_space(space)
    check_dngo_space(space)
    with pytest.raises(ValueError, match=r"loguniform.*MetisTuner"):
        check_metis_space(space)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"_type": "choice", "_value": [{"_name": "a"}]}, "nested choice is not supported"),
        ({"_type": "choice", "_value": [1, "a"]}, "must be finite numbers in GPTuner, got 'a'"),
        ({"_type": "normal", "_value": [0, 1]}, "normal.*GPTuner"),
    ],
)
def test_space_that_is_not_flat_or_not_of_numbers_is_refused(
    entry: dict[str, JsonValue], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_gp_space({"x": entry})
    with pytest.raises(ValueError, match=message.replace("GPTuner", "DNGOTuner")):
        check_dngo_space({"x": entry})


def test_priors_of_the_user_are_refused_unless_they_are_supported() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1], "_prior": 0.5}}

    assert len(numeric_space(space, "Demo", NUMERIC_TYPES, priors=True).parameters) == 1
    check_gp_space(space)
    with pytest.raises(ValueError, match="Demo"):
        numeric_space(space, "Demo", NUMERIC_TYPES)
    with pytest.raises(ValueError, match="MetisTuner"):
        check_metis_space(space)
