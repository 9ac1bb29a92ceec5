"""The estimate of learnability and its gradient."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nni.feature_engineering._learnability import elementary_polynomials, learnability_gradient
from nni.feature_engineering._power_sums import RowBatch, column_statistics


@pytest.mark.parametrize("n_terms", [1, 2, 5])
def test_polynomials_are_the_sums_over_subsets(n_terms: int) -> None:
    terms = np.random.default_rng(0).normal(size=n_terms)
    sums = [torch.tensor((terms**k).sum()) for k in range(1, n_terms + 1)]

    found = elementary_polynomials(sums)

    expected = [
        sum(prod(chosen) for chosen in combinations(terms, size)) for size in range(1, n_terms + 1)
    ]
    assert [float(one) for one in found] == pytest.approx(expected)


def gradients(order: int, interaction: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    random = np.random.default_rng(3)
    table = random.normal(size=(400, 12))
    target = np.sign(table[:, 0] * table[:, 1] if interaction else table[:, 0])
    found = learnability_gradient(
        RowBatch(table, *column_statistics(table, unit_variance=True), torch.device("cpu")),
        torch.from_numpy(target - target.mean())[:, None],
        torch.full((12,), 0.5, dtype=torch.double),
        order,
        torch.from_numpy(random.permutation(400)),
    )
    return found.signal.numpy(), found.noise.numpy()


@pytest.mark.parametrize(
    ("order", "interaction", "relevant"), [(1, False, {0}), (2, True, {0, 1}), (4, True, {0, 1})]
)
def test_gradient_is_largest_for_the_columns_of_the_target(
    order: int, interaction: bool, relevant: set[int]
) -> None:
    signal, _ = gradients(order, interaction)

    assert set(np.argsort(-signal)[: len(relevant)].tolist()) == relevant


def test_an_interaction_is_noise_for_the_order_one() -> None:
    signal, noise = gradients(1, interaction=True)

    # A column without an effect has the level of the noise; an effect of 0.8 has 20 times that.
    assert np.abs(signal).max() < 8 * np.sqrt((noise**2).mean())


def test_noise_is_far_below_the_signal() -> None:
    signal, noise = gradients(2, interaction=False)

    assert signal[0] > 5 * np.abs(noise).max()
