"""A numerical is a number of an interval or a distribution."""

import math
import pickle
import random
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

from nni.mutable import LegacyFormatError, Numerical


@pytest.mark.claim("nas", 18)
def test_grid_has_the_quantiles() -> None:
    assert list(Numerical(0, 1, label="x").grid(granularity=2)) == [0.25, 0.5, 0.75]
    assert list(Numerical(0, 1, label="x").grid(granularity=1)) == [0.5]
    assert list(Numerical(0, 1, label="x").grid()) == [0.5]


def test_quantized_grid_has_no_duplicates() -> None:
    number = Numerical(mu=0, sigma=1, quantize=0.5, label="x")

    assert list(number.grid(granularity=3)) == [-1, -0.5, 0, 0.5, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "low and high must be finite"),
        ({"low": 0}, "low and high must be finite"),
        ({"low": 1, "high": 1}, "low must be less than high, got 1.0 and 1.0"),
        ({"low": float("nan"), "high": 1}, "low must be less than high"),
        ({"mu": 0}, "mu and sigma go together"),
        ({"mu": 0, "sigma": 0}, "sigma must be > 0"),
        ({"low": 0, "high": 1, "quantize": 0}, "quantize must be > 0"),
        ({"low": 0, "high": 1, "log_distributed": True}, "low must be > 0 on a logarithmic scale"),
        ({"low": 0, "high": 1, "default": 2}, r"default must be in \[0.0, 1.0\], got 2"),
        ({"distribution": 3}, "distribution must have cdf and ppf"),
        ({"distribution": stats.norm(), "mu": 0, "sigma": 1}, "distribution excludes mu"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Numerical(label="x", **arguments)


@pytest.mark.parametrize(
    ("number", "median"),
    [
        (Numerical(2, 4, label="x"), 3),
        (Numerical(1, 100, log_distributed=True, label="x"), 10),
        (Numerical(mu=5, sigma=2, label="x"), 5),
        (Numerical(mu=1, sigma=2, log_distributed=True, label="x"), math.e),
        (Numerical(distribution=stats.expon(), label="x"), math.log(2)),
        (Numerical(0, 10, quantize=3, label="x"), 6),
        (Numerical(0, 1, default=0.2, label="x"), 0.2),
    ],
)
def test_default_is_the_median(number: Numerical, median: float) -> None:
    assert number.default() == pytest.approx(median)


def test_normal_distribution_is_cut_off_at_the_bounds() -> None:
    number = Numerical(0, 1, mu=0, sigma=1, label="x")
    expected = stats.truncnorm(0, 1)

    assert [number.quantile(p) for p in (0.1, 0.5, 0.9)] == pytest.approx(
        [expected.ppf(p) for p in (0.1, 0.5, 0.9)]
    )


def test_logarithmic_normal_distribution_is_cut_off_at_the_bounds() -> None:
    number = Numerical(0, 2, mu=0, sigma=1, log_distributed=True, label="x")

    assert number.quantile(1 - 1e-12) == pytest.approx(2)
    assert number.contains({"x": number.quantile(0.0)})


def test_given_distribution_is_cut_off_at_the_bounds() -> None:
    number = Numerical(1, 2, distribution=stats.expon(), label="x")
    state = random.Random(0)

    assert all(1 <= number.random(random_state=state) <= 2 for _ in range(100))


def test_quantized_values_are_clipped_to_the_bounds() -> None:
    number = Numerical(1, 11, quantize=4, label="x")
    state = random.Random(0)

    assert {number.random(random_state=state) for _ in range(100)} == {1, 4, 8, 11}
    assert number.contains({"x": 11})
    assert not number.contains({"x": 6})


def test_multiples_are_exact_within_rounding() -> None:
    number = Numerical(0, 1, quantize=0.1, label="x")

    assert number.contains({"x": 0.3})
    assert number.contains({"x": 0.1 + 0.2})
    assert not number.contains({"x": 0.25})


class Zero:
    def random(self) -> float:
        return 0.0


def test_smallest_random_number_is_finite() -> None:
    value = Numerical(mu=0, sigma=1, label="x").random({}, Zero())

    assert math.isfinite(value)
    assert value < -8


def test_uniform_numbers_fill_the_interval() -> None:
    state = random.Random(0)
    drawn = [Numerical(2, 4, label="x").random(random_state=state) for _ in range(1000)]

    assert all(2 <= value <= 4 for value in drawn)
    # Three standard deviations of a mean: 3 * (2 / sqrt(12)) / sqrt(1000) = 0.055.
    assert sum(drawn) / 1000 == pytest.approx(3, abs=0.055)


@pytest.mark.parametrize("value", [True, "0.5", None, 2, float("nan"), [0.5]])
def test_what_is_no_number_in_the_interval_is_found(value: object) -> None:
    assert not Numerical(0, 1, label="x").contains({"x": value})


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1)])
def test_numbers_of_all_types_are_contained(value: object) -> None:
    assert Numerical(0, 1, label="x").contains({"x": value})


def test_there_is_no_legacy_form() -> None:
    with pytest.raises(LegacyFormatError, match="has no legacy form"):
        Numerical(0, 1, label="x").as_legacy_dict()


def test_distributions_are_compared_by_their_parameters() -> None:
    one = Numerical(distribution=stats.norm(0, 1), label="x")

    assert one.equals(Numerical(distribution=stats.norm(0, 1), label="x"))
    assert not one.equals(Numerical(distribution=stats.norm(0, 2), label="x"))
    assert not one.equals(Numerical(distribution=stats.expon(), label="x"))
    assert not one.equals(Numerical(mu=0, sigma=1, label="x"))
    assert not one.equals(3)
    assert pickle.loads(pickle.dumps(one)).equals(one)


class Standard:
    def cdf(self, value: float, /) -> float:
        return NormalDist().cdf(value)

    def ppf(self, probability: float, /) -> float:
        return NormalDist().inv_cdf(probability)


def test_own_distribution_needs_two_methods() -> None:
    assert Numerical(distribution=Standard(), label="x").default() == 0
