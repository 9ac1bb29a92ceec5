"""Spaces of numbers only."""

import pytest

from nni.hpo.encoding.numeric_space import (
    check_dngo_space,
    check_gp_space,
    check_metis_space,
    is_finite_number,
)
from nni.hpo.json_value import JsonValue


@pytest.mark.parametrize("option", [0, -1.5, 10**300, 1e-300])
def test_finite_numbers_have_a_place(option: float) -> None:
    assert is_finite_number(option)


@pytest.mark.parametrize("option", [True, None, "1", [1], float("inf"), float("nan"), 10**400])
def test_everything_else_has_none(option: JsonValue) -> None:
    assert not is_finite_number(option)


def test_metis_has_no_logarithmic_types() -> None:
    space = {"x": {"_type": "loguniform", "_value": [0.1, 1]}}

    check_gp_space(space)
    check_dngo_space(space)
    with pytest.raises(ValueError, match=r"loguniform.*MetisTuner"):
        check_metis_space(space)
