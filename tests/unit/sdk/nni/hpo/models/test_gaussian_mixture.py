"""Normal mixtures."""

from statistics import NormalDist

import numpy as np
import pytest

from nni.hpo.models.gaussian_mixture import GaussianMixture, fitted_mixture


def test_density_is_the_weighted_sum_of_normal_densities() -> None:
    mixture = GaussianMixture(
        np.log([0.3, 0.7]), np.array([[0.2], [0.8]]), np.array([[0.01], [0.04]])
    )

    found = np.exp(mixture.log_density(np.array([[0.25], [0.9]])))

    left, right = NormalDist(0.2, 0.1), NormalDist(0.8, 0.2)
    assert found == pytest.approx([0.3 * left.pdf(x) + 0.7 * right.pdf(x) for x in (0.25, 0.9)])


def test_finds_two_clouds() -> None:
    rng = np.random.default_rng(0)
    clouds = [np.full((40, 2), c) + 0.03 * rng.standard_normal((40, 2)) for c in (0.2, 0.8)]

    mixture = fitted_mixture(np.concatenate(clouds), rng)

    inside, between = mixture.log_density(np.array([[0.2, 0.2], [0.5, 0.5]]))
    assert inside > between + 3


def test_draws_follow_the_density() -> None:
    mixture = GaussianMixture(np.log([1.0]), np.array([[0.4]]), np.array([[0.09]]))

    draws = mixture.draw(np.random.default_rng(0), 10_000)

    # Standard errors: 0.3 / 100 of the mean, 0.3 / 141 of the deviation; four of them.
    assert draws.mean() == pytest.approx(0.4, abs=0.012)
    assert draws.std() == pytest.approx(0.3, abs=0.009)


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_few_or_equal_points_give_a_finite_density(count: int) -> None:
    mixture = fitted_mixture(np.full((count, 3), 0.5), np.random.default_rng(0))

    assert np.isfinite(mixture.log_density(np.array([[0.5, 0.5, 0.5], [0.0, 1.0, 0.0]]))).all()


@pytest.mark.parametrize(
    ("count", "components"), [(1, 1), (7, 1), (8, 2), (11, 2), (12, 3), (40, 3)]
)
def test_components_are_one_per_four_points_and_differ(count: int, components: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mixture = fitted_mixture(rng.random((count, 2)), rng)

        assert len(np.unique(mixture.means, axis=0)) == components
        assert np.exp(mixture.log_weights).sum() == pytest.approx(1)


def test_one_component_has_the_mean_and_variance_of_its_points() -> None:
    points = np.random.default_rng(0).random((5, 2))

    mixture = fitted_mixture(points, np.random.default_rng(0))

    assert mixture.means[0] == pytest.approx(points.mean(axis=0))
    assert mixture.variances[0] == pytest.approx(points.var(axis=0))


def test_equal_points_have_the_least_variance() -> None:
    mixture = fitted_mixture(np.full((9, 2), 0.5), np.random.default_rng(0))

    assert mixture.variances == pytest.approx(np.full((2, 2), 1e-3))
    assert mixture.means == pytest.approx(np.full((2, 2), 0.5))


def test_fitted_components_are_the_means_of_the_points_they_explain() -> None:
    points = np.array([[0.1], [0.2], [0.3], [0.42], [0.5], [0.6], [0.7], [0.8]])

    mixture = fitted_mixture(points, np.random.default_rng(0))

    densities = [
        [
            float(np.exp(weight)) * NormalDist(float(mean), float(variance) ** 0.5).pdf(float(x))
            for weight, mean, variance in zip(
                mixture.log_weights, mixture.means[:, 0], mixture.variances[:, 0], strict=True
            )
        ]
        for x in points[:, 0]
    ]
    shares = np.array([[one / sum(row) for one in row] for row in densities])
    # The rounds have brought it near a fixed point of expectation and maximisation.
    assert np.exp(mixture.log_weights) == pytest.approx(shares.mean(axis=0), abs=0.02)
    expected = (shares * points).sum(axis=0) / shares.sum(axis=0)
    assert mixture.means[:, 0] == pytest.approx(expected, abs=0.02)


def test_components_move_to_their_clouds_in_the_course_of_the_rounds() -> None:
    points = np.array([0.1, 0.12, 0.14, 0.16, 0.8, 0.84, 0.88, 0.92])[:, None]

    means = fitted_mixture(points, np.random.default_rng(1)).means[:, 0]

    assert sorted(means) == pytest.approx([0.13, 0.86], abs=0.005)
