"""Network and Bayesian regression."""

from itertools import pairwise

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.network import (
    LinearPosterior,
    Network,
    _batch,
    linear_posterior,
    trained_network,
)


def test_gradients_are_those_of_the_error() -> None:
    rng = np.random.default_rng(0)
    points, targets = rng.random((9, 2)), rng.standard_normal(9)
    network = trained_network(points, targets, 1, rng)

    def error() -> float:
        top = network.features(points) @ network.weights[-1][:, 0]
        return float(0.5 * ((top - targets) ** 2).mean())

    gradients = network.gradients(points, targets)

    for weights, gradient in zip(network.weights, gradients, strict=True):
        for place in [(0, 0), (1, 0), (-1, weights.shape[1] - 1)]:
            kept = weights[place]
            weights[place] = kept + 1e-6
            up = error()
            weights[place] = kept - 1e-6
            slope = (up - error()) / 2e-6
            weights[place] = kept
            assert gradient[place] == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_inputs_are_centred_on_zero() -> None:
    network = Network((np.array([[1.0], [0.0]]), np.zeros((2, 1))))

    features = network.features(np.array([[0.0], [0.5], [1.0]]))

    assert features == pytest.approx(np.array([[np.tanh(n), 1.0] for n in (-1.0, 0.0, 1.0)]))


def test_learns_a_wave() -> None:
    points = np.random.default_rng(1).random((80, 1))
    targets = np.sin(6 * points[:, 0])
    network = trained_network(points, targets, 300, np.random.default_rng(0))
    posterior = linear_posterior(network.features(points), targets)
    at = np.linspace(0.05, 0.95, 20)[:, None]

    means, deviations = posterior.predict(network.features(at))

    assert means == pytest.approx(np.sin(6 * at[:, 0]), abs=0.1)
    assert deviations.max() < 0.1


@pytest.mark.parametrize(("count", "used"), [(3, 3), (100, 100), (130, 100)])
def test_an_epoch_uses_an_observation_at_most_once(count: int, used: int) -> None:
    positions = _batch(count, np.random.default_rng(0))

    assert len(positions) == len(set(positions.tolist())) == used
    assert set(positions.tolist()) <= set(range(count))


def test_same_draws_give_the_same_network() -> None:
    points = np.random.default_rng(1).random((130, 2))
    first, second = (
        trained_network(points, points[:, 0], 5, np.random.default_rng(4)) for _ in range(2)
    )

    assert all(map(np.array_equal, first.weights, second.weights))


def test_regression_finds_weights_and_noise() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((500, 3))
    targets = features @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(500)

    posterior = linear_posterior(features, targets)

    # Standard error of a weight: 0.3 / sqrt(500) = 0.013; of the noise 0.09 * sqrt(2 / 500).
    assert posterior.mean == pytest.approx([1.0, -2.0, 0.5], abs=0.054)
    assert posterior.noise == pytest.approx(0.09, abs=0.023)
    assert np.sqrt(np.diag(posterior.covariance)) == pytest.approx(0.3 / np.sqrt(500), rel=0.3)


@pytest.mark.parametrize("count", [1, 2, 60])
def test_constant_targets_give_finite_predictions(count: int) -> None:
    features = np.random.default_rng(0).random((count, 51))

    assert np.isfinite(linear_posterior(features, np.zeros(count)).predict(features)).all()


def initial_weights(sizes: list[int], rng: np.random.Generator) -> list[Floats]:
    """Return weights that keep the scale of their inputs, and biases of 0."""
    return [
        np.vstack([rng.standard_normal((size, units)) / np.sqrt(size), np.zeros((1, units))])
        for size, units in pairwise(sizes)
    ]


def test_network_is_trained_by_adam_with_a_rate_that_falls_to_zero() -> None:
    points = np.random.default_rng(1).random((9, 2))
    targets = points[:, 0] - points[:, 1]
    network = Network(tuple(initial_weights([2, 50, 50, 50, 1], np.random.default_rng(3))))
    moments = [(np.zeros_like(layer), np.zeros_like(layer)) for layer in network.weights]
    for epoch in (1, 2, 3):
        for layer, gradient in enumerate(network.gradients(points, targets)):
            slope = gradient + 1e-4 * network.weights[layer]
            first, second = moments[layer]
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            moments[layer] = first, second
            # Kingma and Ba, end of section 2: the corrections of both moments, in the rate.
            rate = 0.01 * (4 - epoch) / 3 * np.sqrt(1 - 0.999**epoch) / (1 - 0.9**epoch)
            network.weights[layer][...] -= rate * first / (np.sqrt(second) + 1e-8)

    found = trained_network(points, targets, 3, np.random.default_rng(3))

    for left, right in zip(found.weights, network.weights, strict=True):
        assert left == pytest.approx(right)


def test_regression_has_the_most_plausible_precisions() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 3))
    targets = features @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(60)

    posterior = linear_posterior(features, targets)

    # Bishop, equations 3.91 to 3.95, where they are solved.
    spectrum = np.linalg.eigvalsh(features.T @ features) / posterior.noise
    inverse = np.linalg.inv(posterior.covariance) - features.T @ features / posterior.noise
    prior = float(np.trace(inverse)) / 3
    effective = float((spectrum / (prior + spectrum)).sum())
    residual = targets - features @ posterior.mean
    assert prior * float(posterior.mean @ posterior.mean) == pytest.approx(effective, rel=1e-6)
    assert posterior.noise == pytest.approx(float(residual @ residual) / (60 - effective))


@pytest.mark.parametrize(("scale", "noise"), [(0.0, 1e-6), (1e5, 1e3)])
def test_noise_of_a_measurement_is_bounded(scale: float, noise: float) -> None:
    rng = np.random.default_rng(0)

    posterior = linear_posterior(rng.random((60, 3)), scale * rng.standard_normal(60))

    assert posterior.noise == pytest.approx(noise)


def test_known_function_is_predicted_with_the_least_deviation() -> None:
    posterior = LinearPosterior(np.ones(2), np.zeros((2, 2)), 1.0)

    means, deviations = posterior.predict(np.array([[1.0, 2.0]]))

    assert means == pytest.approx([3.0])
    assert deviations == pytest.approx([1e-6])
