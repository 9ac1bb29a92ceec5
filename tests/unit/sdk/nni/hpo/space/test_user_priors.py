"""User priors: draws and probabilities."""

from collections import Counter
from random import Random
from statistics import NormalDist

import pytest

from nni.hpo.registry.factory import algorithms
from nni.hpo.space.parser import parse_space
from nni.hpo.space.user_priors import SPACE_SHARE, TUNERS_WITH_PRIORS, NumberPrior, option_prior

DRAWS = 4000


def test_draws_of_a_number_lie_in_the_range_and_around_the_centre() -> None:
    prior, rng = NumberPrior(0.2, 0.05), Random(0)

    shares = [prior.draw(rng) for _ in range(DRAWS)]

    assert 0.0 <= min(shares) <= max(shares) <= 1.0
    # 95.4 % of the normal part within two deviations, and a fifth of the even part; the standard
    # deviation of the share of 4000 draws is 0.005, five of them.
    near = sum(0.1 <= share <= 0.3 for share in shares) / DRAWS
    assert abs(near - (0.954 * (1 - SPACE_SHARE) + 0.2 * SPACE_SHARE)) < 0.025


@pytest.mark.parametrize(("centre", "mass"), [(0.0, 0.5), (0.5, 1.0), (1.0, 0.5)])
def test_mass_is_the_part_within_the_range(centre: float, mass: float) -> None:
    assert NumberPrior(centre, 0.05).mass == pytest.approx(mass)


def test_probability_of_an_option_follows_its_weight_but_is_never_zero() -> None:
    prior = option_prior([3, 1, 0])

    assert prior.probabilities == pytest.approx(
        [
            0.75 * (1 - SPACE_SHARE) + SPACE_SHARE / 3,
            0.25 * (1 - SPACE_SHARE) + SPACE_SHARE / 3,
            SPACE_SHARE / 3,
        ]
    )


def test_options_are_drawn_by_their_probabilities() -> None:
    prior, rng = option_prior([3, 1]), Random(0)

    counts = Counter(prior.draw(rng) for _ in range(DRAWS))

    # Five standard deviations of a share of 4000 draws are 0.034.
    assert abs(counts[0] / DRAWS - prior.probabilities[0]) < 0.034


def test_errors_name_the_tuners_that_declare_priors() -> None:
    declared = {entry.name for entry in algorithms("tuner") if entry.priors}

    assert declared == set(TUNERS_WITH_PRIORS)


@pytest.mark.parametrize(
    ("confidence", "deviation", "odds"), [("low", 0.3, 2), ("medium", 0.15, 5), ("high", 0.05, 20)]
)
def test_confidence_is_a_deviation_of_numbers_and_the_odds_of_an_option(
    confidence: str, deviation: float, odds: float
) -> None:
    space = parse_space(
        {
            "x": {
                "_type": "uniform",
                "_value": [0, 10],
                "_prior": {"value": 2, "confidence": confidence},
            },
            "c": {
                "_type": "choice",
                "_value": ["a", "b"],
                "_prior": {"value": "b", "confidence": confidence},
            },
        }
    )

    number, option = (parameter.prior for parameter in space.parameters)

    assert number == NumberPrior(0.2, deviation)
    assert option == option_prior([1, odds])


def test_a_twentieth_of_the_draws_ignores_the_prior() -> None:
    prior, rng = NumberPrior(0.0, 1e-3), Random(0)

    away = sum(prior.draw(rng) > 0.01 for _ in range(DRAWS)) / DRAWS

    # Standard deviation of the share of 4000 draws: 0.0034; four of them.
    assert abs(away - 0.99 * 0.05) < 0.014


def test_mass_of_a_wide_prior_is_that_of_the_normal_distribution_in_the_range() -> None:
    normal = NormalDist(0.2, 0.3)

    assert NumberPrior(0.2, 0.3).mass == pytest.approx(normal.cdf(1) - normal.cdf(0))
