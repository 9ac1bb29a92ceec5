"""Densities of user priors."""

import numpy as np
import pytest

from nni.hpo.models.prior_density import NumberDensity, OptionDensity, prior_exponent
from nni.hpo.space.user_priors import SPACE_SHARE, NumberPrior, option_prior

GRID = np.linspace(0.0, 1.0, 20_001)
PRIORS = [NumberPrior(0.0, 0.3), NumberPrior(0.37, 0.15), NumberPrior(0.9, 0.05)]


@pytest.mark.parametrize("prior", PRIORS)
def test_density_of_a_number_has_the_integral_1(prior: NumberPrior) -> None:
    density = np.exp(NumberDensity(prior).log_ratio(GRID))

    assert np.trapezoid(density, GRID) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("prior", PRIORS)
def test_density_is_greatest_at_the_expected_value_and_never_zero(prior: NumberPrior) -> None:
    logs = NumberDensity(prior).log_ratio(GRID)

    assert GRID[logs.argmax()] == pytest.approx(prior.centre, abs=1e-4)
    assert logs.min() >= np.log(SPACE_SHARE)


@pytest.mark.parametrize("prior", PRIORS)
def test_slope_is_the_derivative(prior: NumberPrior) -> None:
    density, step = NumberDensity(prior), 1e-6
    places = np.linspace(0.05, 0.95, 19)

    differences = density.log_ratio(places + step) - density.log_ratio(places - step)

    assert density.slope(places) == pytest.approx(differences / (2 * step), abs=1e-4)


@pytest.mark.parametrize("prior", PRIORS)
def test_quantiles_invert_the_distribution_function(prior: NumberPrior) -> None:
    density = NumberDensity(prior)
    shares = np.array([0.0, 0.1, 0.5, 0.9, 1.0])

    places = density.quantiles(shares)

    masses = np.exp(density.log_ratio(GRID)) / len(GRID)
    below = [float(masses[place >= GRID].sum()) for place in places]
    # The grid of the inverse is linear over a 512th; the density is at most 8.
    assert below == pytest.approx(shares.tolist(), abs=2e-3)
    assert (places >= 0).all()
    assert (places <= 1).all()


def test_ratios_of_options_are_to_equal_probabilities() -> None:
    density = OptionDensity.of(option_prior([1, 1, 1, 1]))

    assert density.log_ratios == pytest.approx([0.0] * 4)


def test_options_lie_at_their_shares() -> None:
    prior = option_prior([3, 1, 0])
    density = OptionDensity.of(prior)
    first, second, _ = prior.probabilities

    found = density.quantiles(
        np.array([0.0, first - 1e-9, first + 1e-9, first + second, 1 - 1e-12])
    )

    assert found.tolist() == [0, 0, 1, 2, 2]
    assert density.mode == 0


def test_exponent_falls_with_the_results() -> None:
    assert [prior_exponent(count, 10.0) for count in (0, 1, 10, 100)] == [10.0, 10.0, 1.0, 0.1]
