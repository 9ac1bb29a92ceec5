"""Losses as targets."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.targets import SCALES, Scale, damped, scaled, standardised, warped


def test_targets_have_mean_zero_and_deviation_one() -> None:
    losses = np.random.default_rng(0).lognormal(0, 5, 80)

    for targets in (standardised(losses), damped(losses), warped(losses)):
        assert targets.mean() == pytest.approx(0, abs=1e-9)
        assert targets.std() == pytest.approx(1)


def test_warping_keeps_the_order_and_ties() -> None:
    losses = np.array([5.0, 1e9, 2.0, 3.0, 1e9, 7.0, 4.0, 1e12])

    targets = warped(losses)

    assert np.argsort(targets, kind="stable").tolist() == np.argsort(losses, kind="stable").tolist()
    assert targets[1] == targets[4]


def test_better_half_keeps_its_proportions() -> None:
    losses = np.array([0.0, 1.0, 3.0, 4.0, 1e6, 1e7, 1e8])

    targets = warped(losses)

    assert (targets[1] - targets[0]) / (targets[2] - targets[1]) == pytest.approx(1 / 2)


def test_how_bad_the_worst_is_does_not_matter() -> None:
    losses = np.arange(10.0)
    worse = np.append(losses[:-1], 1e300)

    assert warped(losses) == pytest.approx(warped(worse), rel=1e-6)


@pytest.mark.parametrize("losses", [[3.0], [2.0] * 7, [1e308, -1e308], [0.0] * 5 + [1.0]])
def test_odd_losses_give_finite_targets(losses: list[float]) -> None:
    assert np.isfinite(warped(np.array(losses))).all()
    assert np.isfinite(standardised(np.array(losses))).all()
    for scale in SCALES:
        targets = scaled(np.array(losses), scale)
        assert np.isfinite(targets.values).all()
        assert not np.isnan(targets.log_slope).any()


def test_taming_draws_in_only_what_is_far_above_the_median() -> None:
    losses = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1e9])

    targets = damped(losses)

    steps = np.diff(targets)
    assert steps[:4] == pytest.approx(np.full(4, steps[0]))
    assert 0 < steps[5] < 60 * steps[0]


@pytest.mark.parametrize(
    "losses", [[3.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 5.0], [1e308, -1e308], [1e-9, 0.0, 1e308]]
)
def test_damped_losses_are_finite_whatever_they_were(losses: list[float]) -> None:
    assert np.isfinite(damped(np.array(losses))).all()


@pytest.mark.parametrize("scale", SCALES)
def test_log_slope_is_how_fast_good_values_rise(scale: Scale) -> None:
    losses = np.random.default_rng(0).random(60)
    plain, targets = scaled(losses, 0.0), scaled(losses, scale)
    good = np.argsort(losses)[: int(targets.better.sum())]

    def rise(values: Floats) -> Floats:
        steps: Floats = np.log(np.diff(values[good]) / np.diff(losses[good]))
        return steps

    log_slope = targets.log_slope[np.argsort(losses[targets.better])]
    beside_plain = rise(targets.values) - rise(plain.values) + plain.log_slope[0]
    # Ever less steep: between two losses the rise is between those at them.
    assert (beside_plain <= log_slope[:-1] + 1e-9).all()
    assert (beside_plain >= log_slope[1:] - 1e-9).all()


def test_bad_losses_that_hide_the_good_ones_make_a_straight_scale_improbable() -> None:
    losses = np.array([1.0, 2.0, 3.0, 4.0, 1e300, 1e301])

    assert np.isneginf(scaled(losses, None).log_slope).all()


def test_worse_half_is_replaced_by_normal_quantiles_of_its_ranks() -> None:
    targets = warped(np.array([0.0, 50.0, 1.0, 60.0, 2.0, 3.0]))

    first, second, third = (NormalDist().inv_cdf(0.5 + part / 12) for part in (1, 3, 5))
    spread = math.sqrt(5 / 3)  # of 0, 1 and 2 from 2
    expected = [0.0, 2 + spread * second, 1.0, 2 + spread * third, 2.0, 2 + spread * first]
    assert targets == pytest.approx(standardised(np.array(expected)))


def test_losses_beyond_two_deviations_of_the_better_half_grow_by_logarithms() -> None:
    good = -math.sqrt(1.5)  # two of them and a median of 0 deviate from it by 1

    targets = damped(np.array([good, 2.0, good, 0.0, 1 + math.e]))

    assert targets == pytest.approx(standardised(np.array([good, 2.0, good, 0.0, 3.0])))


@pytest.mark.parametrize(("count", "ranked"), [(3, False), (4, True)])
def test_tail_of_four_losses_is_transformed(count: int, ranked: bool) -> None:
    losses = np.append(np.arange(count - 1.0), 1e6)

    assert (warped(losses).tolist() != standardised(losses).tolist()) is ranked
