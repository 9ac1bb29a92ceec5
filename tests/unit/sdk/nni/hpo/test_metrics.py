"""The number that algorithms optimise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from nni.hpo.metrics import is_numeric, loss_of, scalar_metric


@pytest.mark.claim("hpo", 7)
@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (0.5, 0.5),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        ({"default": 0.9, "loss": 1.2}, 0.9),
    ],
)
def test_numbers_and_defaults_are_taken(value: object, number: float) -> None:
    assert scalar_metric(value) == number


@pytest.mark.claim("hpo", 8)
@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        {"default": math.nan},
        {"default": None},
        {"loss": 1},
        None,
        "1",
        True,
        [1.0],
        10**400,
        np.array([1.0, 2.0]),
    ],
)
def test_what_is_no_finite_number_enters_no_model(value: object) -> None:
    assert scalar_metric(value) is None


@pytest.mark.parametrize("value", [1, math.nan, np.float32("nan"), {"default": math.inf}])
def test_numbers_are_numeric_whether_finite_or_not(value: object) -> None:
    assert is_numeric(value)


@pytest.mark.parametrize("value", [None, "1", True, [1], {"loss": 1}, {"default": "1"}])
def test_what_is_no_number_is_not_numeric(value: object) -> None:
    assert not is_numeric(value)


def test_loss_is_negated_for_maximize() -> None:
    assert loss_of(2, "maximize") == -2
    assert loss_of({"default": 2}, "minimize") == 2
    assert loss_of(math.nan, "maximize") is None
