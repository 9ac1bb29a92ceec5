"""Densities, compared with slow and obvious ones."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from nni.hpo.models.parzen import Frame, Mixture, kernel_mass, neighbour_gaps

FRAME = Frame(np.array([True, False]), 0.25, np.array([3]))


def mixture(*, shared: bool, kernels: int = 5, seed: int = 0) -> Mixture:
    rng = np.random.default_rng(seed)
    return Mixture(
        frame=FRAME,
        centres=rng.random((kernels, 2)),
        widths=rng.uniform(0.05, 0.5, 2 if shared else (kernels, 2)),
        options=rng.integers(0, 3, (kernels, 1)),
        slip=np.array([0.3]),
        weights=rng.random(kernels),
        prior_weight=0.7,
    )


def slow_density(density: Mixture, point: list[float], option: int) -> float:
    widths = np.broadcast_to(density.widths, density.centres.shape)
    total = density.weights.sum() + density.prior_weight
    value = density.prior_weight * NormalDist(0.5, 0.25).pdf(point[1]) / 3
    for k, weight in enumerate(density.weights):
        bounded = NormalDist(density.centres[k, 0], widths[k, 0])
        inside = bounded.cdf(1) - bounded.cdf(0)
        kernel = bounded.pdf(point[0]) / inside
        kernel *= NormalDist(density.centres[k, 1], widths[k, 1]).pdf(point[1])
        kernel *= 0.3 / 3 + (0.7 if density.options[k, 0] == option else 0)
        value += weight * kernel
    return float(value / total)


@pytest.mark.parametrize("shared", [True, False])
def test_log_density_equals_the_slow_one(shared: bool) -> None:
    density = mixture(shared=shared)
    rng = np.random.default_rng(1)
    points, options = rng.random((20, 2)), rng.integers(0, 3, (20, 1))

    logs = density.log_density(points, options)

    expected = [
        slow_density(density, p.tolist(), int(o[0])) for p, o in zip(points, options, strict=True)
    ]
    # The distribution function is within 1.5e-7, and a kernel's mass is at least 0.3.
    assert np.exp(logs) == pytest.approx(expected, rel=1e-6)


def test_density_integrates_to_one() -> None:
    frame = Frame(np.array([True]), 0.25, np.array([], dtype=np.int64))
    density = Mixture(
        frame=frame,
        centres=np.array([[0.02], [0.6]]),
        widths=np.array([[0.1], [0.3]]),
        options=np.empty((2, 0), dtype=np.int64),
        slip=np.empty(0),
        weights=np.array([2.0, 1.0]),
        prior_weight=1.0,
    )
    grid = (np.arange(10_000) + 0.5)[:, None] / 10_000

    mass = np.exp(density.log_density(grid, np.empty((10_000, 0), dtype=np.int64))).mean()

    assert mass == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_crossed_draws_take_every_column_from_a_kernel_of_its_own(shared: bool) -> None:
    frame = Frame(np.array([True, True]), 0.25, np.array([2]))
    widths = np.full(2, 0.01) if shared else np.full((2, 2), 0.01)
    density = Mixture(
        frame=frame,
        centres=np.array([[0.2, 0.2], [0.8, 0.8]]),
        widths=widths,
        options=np.array([[0], [1]]),
        slip=np.array([1e-9]),
        weights=np.array([1.0, 1.0]),
        prior_weight=1.0,
    )

    points, options = density.draw_crossed(400, np.random.default_rng(0), 0.5)

    near = np.where(points < 0.5, 0.2, 0.8)
    assert np.abs(points - near).max() < 0.03  # six halved widths
    corners = {(*row, option) for row, (option,) in zip(near.tolist(), options, strict=True)}
    assert len(corners) == 8


def test_crossed_draws_without_kernels_are_of_the_prior() -> None:
    points, options = mixture(shared=True, kernels=0).draw_crossed(
        300, np.random.default_rng(0), 0.5
    )

    assert points[:, 0].mean() == pytest.approx(0.5, abs=0.06)
    assert set(options[:, 0].tolist()) == {0, 1, 2}


def test_density_without_kernels_is_the_prior() -> None:
    density = mixture(shared=True, kernels=0)
    points, options = np.array([[0.3, 0.5]]), np.array([[1]])

    expected = math.log(NormalDist(0.5, 0.25).pdf(0.5) / 3)
    assert density.log_density(points, options)[0] == pytest.approx(expected)


def test_far_points_have_a_finite_density() -> None:
    density = mixture(shared=True)

    logs = density.log_density(np.array([[0.5, 1e3]]), np.array([[0]]))

    assert np.isfinite(logs).all()


@pytest.mark.parametrize("shared", [True, False])
def test_draws_follow_the_density(shared: bool) -> None:
    density = mixture(shared=shared)
    points, options = density.draw(20_000, np.random.default_rng(2))

    assert points[:, 0].min() >= 0
    assert points[:, 0].max() <= 1
    edges = np.linspace(0, 1, 6)
    grid = (np.arange(100) + 0.5) / 100
    bells = np.linspace(-3, 4, 701)
    for option in range(3):
        inside = np.histogram(points[options[:, 0] == option, 0], edges)[0] / len(points)
        for index in range(5):
            x = grid[(grid > edges[index]) & (grid < edges[index + 1])]
            mesh = np.stack(np.meshgrid(x, bells), axis=-1).reshape(-1, 2)
            logs = density.log_density(mesh, np.full((len(mesh), 1), option))
            mass = np.exp(logs).sum() * (1 / 100) * (bells[1] - bells[0])
            # Standard deviation of a frequency at n = 20,000 is at most 0.0036; four of them.
            assert inside[index] == pytest.approx(mass, abs=0.0145)


def test_kernel_mass_is_what_lies_inside() -> None:
    assert kernel_mass(np.array([0.0, 0.5]), np.array([0.1, 0.1])) == pytest.approx([0.5, 1.0])


def test_neighbour_gaps_are_per_column() -> None:
    gaps = neighbour_gaps(np.array([[0.1, 0.9], [0.4, 0.8], [0.5, 0.2]]))

    assert gaps == pytest.approx(np.array([[0.3, 0.1], [0.3, 0.6], [0.1, 0.6]]))


def test_kernels_are_at_most_as_wide_as_the_bell_of_an_unbounded_column() -> None:
    found = FRAME.narrowed(np.array([[0.9, 0.9], [0.1, 0.1]]))

    assert found.tolist() == [[0.9, 0.25], [0.1, 0.1]]


def test_draws_of_the_prior_are_even_in_bounds_and_a_bell_around_the_middle() -> None:
    points, options = FRAME.draw_prior(4000, np.random.default_rng(0))

    # Standard errors: 0.289 / 63 and 0.25 / 63 of the means; five of them.
    assert points.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.023)
    assert points.std(axis=0) == pytest.approx([12**-0.5, 0.25], abs=0.016)
    assert points[:, 0].min() >= 0.0
    assert points[:, 1].max() > 1.0
    assert np.bincount(options[:, 0]) / 4000 == pytest.approx([1 / 3] * 3, abs=0.038)


def test_draws_that_cannot_be_inside_are_clipped() -> None:
    frame = Frame(np.array([True]), 0.25, np.array([], dtype=np.int64))
    density = Mixture(
        frame=frame,
        centres=np.array([[50.0]]),
        widths=np.array([0.1]),
        options=np.empty((1, 0), dtype=np.int64),
        slip=np.empty(0),
        weights=np.array([1.0]),
        prior_weight=1e-12,
    )

    points, _ = density.draw(5, np.random.default_rng(0))

    assert points.tolist() == [[1.0]] * 5
