"""Objectives, limits on outcomes, and metrics of reports."""

import math
from fractions import Fraction

import numpy as np
import pytest

from nni.hpo.objectives import (
    checked_optimize_mode,
    is_numeric,
    loss_of,
    objectives_of,
    require_numbers,
    scalar_metric,
)


def test_a_mode_alone_is_about_the_default_metric() -> None:
    one = objectives_of("maximize")

    assert not one.several
    assert one.losses(3) == (-3.0,)
    assert one.losses({"default": 3, "cost": 9}) == (-3.0,)
    assert one.losses({"cost": 9}) is None


def test_several_metrics_have_a_mode_each() -> None:
    two = objectives_of({"accuracy": "maximize", "cost": "minimize"})

    assert two.several
    assert two.losses({"accuracy": 0.9, "cost": 5}) == (-0.9, 5.0)
    assert two.numbers({"accuracy": 0.9, "cost": 5, "x": 1}) == {"accuracy": 0.9, "cost": 5.0}
    assert two.losses({"accuracy": 0.9}) is None
    assert two.losses({"accuracy": math.nan, "cost": 1}) is None
    assert two.losses(3.0) is None


def test_excess_sums_up_what_is_beyond_the_limits() -> None:
    limited = objectives_of(
        "minimize", [{"metric": "cost", "max": 5}, {"metric": "latency", "max": 0.5}]
    )

    assert limited.excess({"default": 1, "cost": 5, "latency": 0.1}) == 0.0
    assert limited.excess({"default": 1, "cost": 7, "latency": 1.5}) == 3.0
    assert limited.excess({"default": 1, "cost": 1}) == math.inf
    assert limited.excess(1.0) == math.inf


@pytest.mark.parametrize(
    ("mode", "limits", "reason"),
    [
        ("max", None, "optimize_mode must be 'maximize' or 'minimize'"),
        ({}, None, "or a dict of metric"),
        (["maximize"], None, "or a dict of metric"),
        ({"a": "up"}, None, "got 'up'"),
        ({"": "maximize"}, None, "not empty"),
        ({1: "maximize"}, None, "must be a string"),
        ("minimize", [{"metric": "a"}], "'metric' and 'max'"),
        ("minimize", [{"metric": "a", "max": "1"}], "must be a number"),
        ("minimize", [{"metric": "a", "max": math.nan}], "must be a number"),
    ],
)
def test_what_is_no_objective_is_refused(mode: object, limits: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        objectives_of(mode, limits)  # type: ignore[arg-type] # what a user may write


@pytest.mark.parametrize("mode", ["maximize", "minimize"])
def test_either_word_is_returned(mode: str) -> None:
    assert checked_optimize_mode(mode) == mode


@pytest.mark.parametrize("mode", ["maximise", "", "Minimize"])
def test_any_other_word_is_refused_with_what_it_is(mode: str) -> None:
    with pytest.raises(ValueError, match=f"must be 'maximize' or 'minimize', got '{mode}'"):
        checked_optimize_mode(mode)


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


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("minimize", "value must be a number or a dict with 'default', got {'b': 'text'}"),
        ({"b": "minimize"}, "value must be a dict with a number for 'b', got {'b': 'text'}"),
    ],
)
def test_report_without_a_number_for_an_objective_is_refused(mode: object, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        require_numbers("value must be", {"b": "text"}, objectives_of(mode))

    assert str(caught.value) == words


def test_report_with_a_number_for_every_objective_passes() -> None:
    two = objectives_of({"a": "minimize", "b": "maximize"})

    require_numbers("value must be", {"a": 1, "b": math.nan}, two)
    with pytest.raises(TypeError, match="number for 'b'"):
        require_numbers("value must be", {"a": 1}, two)
