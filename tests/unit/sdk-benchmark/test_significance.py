"""Ranks and statistical tests, against scipy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from nni_benchmark.significance import chi_square_tail, ranking, ranks, wilcoxon


@pytest.mark.claim("hpo", 55)
def test_values_that_tie_share_their_places_evenly() -> None:
    shared = ranks([3.0, 1.0, 2.0, 1.0, 5.0, 6.0, 7.0, 8.0])

    assert shared == [4.0, 1.5, 3.0, 1.5, 5.0, 6.0, 7.0, 8.0]
    assert sum(shared) == 36


def test_infinite_regrets_are_last_and_tie() -> None:
    assert ranks([math.inf, 0.5, math.inf]) == [2.5, 1.0, 2.5]


@pytest.mark.parametrize("count", [5, 10, 20])
def test_p_value_of_pairs_is_the_exact_one(count: int) -> None:
    rng = np.random.default_rng(count)
    left = rng.normal(size=count)
    right = left + rng.normal(0.5, 1, size=count)

    found = wilcoxon(list(left), list(right))

    assert found == pytest.approx(scipy.stats.wilcoxon(left, right, method="exact").pvalue)


def test_many_pairs_are_judged_by_the_normal_approximation() -> None:
    rng = np.random.default_rng(0)
    left = rng.normal(size=80)
    right = left + rng.normal(0.2, 1, size=80)

    expected = scipy.stats.wilcoxon(left, right, method="asymptotic").pvalue

    assert wilcoxon(list(left), list(right)) == pytest.approx(expected)


def test_pairs_that_are_equal_say_nothing() -> None:
    assert wilcoxon([1.0, math.inf], [1.0, math.inf]) == 1.0
    # Six differences of one sign: 2 / 2^6.
    assert wilcoxon([1.0] * 7, [1.0] + [2.0] * 6) == pytest.approx(2 / 64)


@pytest.mark.parametrize("freedom", range(1, 9))
def test_tail_of_chi_square_is_that_of_scipy(freedom: int) -> None:
    assert chi_square_tail(5.3, freedom) == pytest.approx(scipy.stats.chi2.sf(5.3, freedom))


@pytest.mark.parametrize("digits", [8, 0])
def test_friedman_is_that_of_scipy_with_and_without_ties(digits: int) -> None:
    table = np.round(np.random.default_rng(1).normal(size=(10, 5)) + np.arange(5) / 2, digits)

    found = ranking(table.tolist())

    assert found.p_value == pytest.approx(scipy.stats.friedmanchisquare(*table.T).pvalue)
    assert sum(found.means) == pytest.approx(15)


def test_searches_that_always_tie_are_equally_good() -> None:
    found = ranking([[1.0, 1.0], [2.0, 2.0]])

    assert found.means == (1.5, 1.5)
    assert found.p_value == 1.0


def test_critical_difference_is_that_of_demsar() -> None:
    # His section 3.2.2: four classifiers, fourteen data sets.
    found = ranking([[1.0, 2.0, 3.0, 4.0]] * 14)

    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
