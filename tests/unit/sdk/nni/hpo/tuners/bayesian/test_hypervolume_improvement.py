"""Expected hypervolume improvement against sampling and finite differences."""

import numpy as np
import pytest

from nni.hpo.arrays import Bools, Floats
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.hypervolume_improvement import (
    hypervolume_improvement_derivatives,
    log_hypervolume_improvement,
    non_dominated_boxes,
)


def front_of(count: int, losses: int) -> Floats:
    return np.random.default_rng(losses).random((count, losses))


def undominated(points: Floats, front: Floats) -> Bools:
    beaten: Bools = np.any(np.all(front[None] <= points[:, None], axis=-1), axis=1)
    return ~beaten


def sampled(mean: Floats, deviation: Floats, front: Floats, reference: Floats) -> float:
    """Return the mean new volume over draws, each measured with points spread over a block."""
    rng = np.random.default_rng(0)
    low = reference - 2.0
    block = rng.uniform(low, reference, (10_000, len(mean)))
    free = block[undominated(block, front)]
    draws = mean + deviation * rng.standard_normal((2_000, len(mean)))
    shares = [float((draw <= free).all(axis=1).sum()) / len(block) for draw in draws]
    return float(np.mean(shares)) * 2.0 ** len(mean)


@pytest.mark.parametrize(("losses", "count"), [(1, 5), (2, 12), (3, 8), (4, 5)])
def test_volume_is_that_of_many_draws(losses: int, count: int) -> None:
    front, reference = front_of(count, losses), np.full(losses, 1.1)
    mean, deviation = np.full(losses, 0.4), np.full(losses, 0.25)

    logs = log_hypervolume_improvement(
        mean[None], deviation[None], non_dominated_boxes(front, reference)
    )

    # Two thousand draws of a volume whose deviation is about twice its mean: 5 % of the mean, and
    # the block adds as much.
    assert np.exp(logs[0]) == pytest.approx(sampled(mean, deviation, front, reference), rel=0.2)


def test_of_one_loss_it_is_the_expected_improvement() -> None:
    front = np.array([[0.3], [0.7]])
    means, deviations = np.array([[0.2], [0.5], [9.0]]), np.array([[0.1], [0.3], [0.2]])

    logs = log_hypervolume_improvement(means, deviations, non_dominated_boxes(front, np.ones(1)))

    plain, *_ = expected_improvement(0.0)(means[:, 0], deviations[:, 0], 0.3)
    assert logs == pytest.approx(plain)


@pytest.mark.parametrize("losses", [1, 2, 3])
def test_derivatives_are_those_of_differences(losses: int) -> None:
    boxes = non_dominated_boxes(front_of(6, losses), np.full(losses, 1.1))
    mean, deviation, step = np.full(losses, 0.5), np.full(losses, 0.2), 1e-6

    value, by_mean, by_deviation = hypervolume_improvement_derivatives(mean, deviation, boxes)

    def at(mean: Floats, deviation: Floats) -> float:
        return float(log_hypervolume_improvement(mean[None], deviation[None], boxes)[0])

    assert value == pytest.approx(at(mean, deviation))
    for axis in range(losses):
        away = step * np.eye(losses)[axis]
        rise = (at(mean + away, deviation) - at(mean - away, deviation)) / (2 * step)
        spread = (at(mean, deviation + away) - at(mean, deviation - away)) / (2 * step)
        assert by_mean[axis] == pytest.approx(rise, rel=1e-4)
        assert by_deviation[axis] == pytest.approx(spread, rel=1e-4)


def test_hopeless_predictions_are_still_ordered() -> None:
    boxes = non_dominated_boxes(np.array([[0.0, 0.0]]), np.ones(2))

    logs = log_hypervolume_improvement(
        np.array([[40.0, 40.0], [50.0, 50.0]]), np.full((2, 2), 0.1), boxes
    )

    assert np.isfinite(logs).all()
    assert logs[0] > logs[1]


def test_rounding_of_many_losses_counts_no_volume_twice() -> None:
    front = front_of(60, 3)
    mean, deviation = np.full((1, 3), 0.2), np.full((1, 3), 1e-3)

    rounded = np.exp(
        log_hypervolume_improvement(mean, deviation, non_dominated_boxes(front, np.ones(3)))
    )[0]

    # What (0.2, 0.2, 0.2) adds to what is dominated, by a fine grid of the block up to (1, 1, 1).
    grid = (np.indices((40, 40, 40)).reshape(3, -1).T + 0.5) / 40
    added = float((undominated(grid, front) & np.all(grid > 0.2, axis=1)).mean())
    assert 0.5 * added < rounded <= 1.05 * added


def test_without_results_all_up_to_the_reference_is_not_dominated() -> None:
    boxes = non_dominated_boxes(np.empty((0, 2)), np.array([1.0, 2.0]))

    logs = log_hypervolume_improvement(np.zeros((1, 2)), np.full((1, 2), 1e-6), boxes)

    assert np.exp(logs[0]) == pytest.approx(2.0)


@pytest.mark.parametrize(("losses", "cuts"), [(2, 40), (3, 16), (4, 6), (5, 3), (6, 3)])
def test_the_last_loss_is_rounded_to_fewer_values_the_more_losses_there_are(
    losses: int, cuts: int
) -> None:
    boxes = non_dominated_boxes(front_of(40, losses), np.full(losses, 1.1))

    # Intervals from minus infinity to the reference, which is 1.1.
    assert len(boxes.edges[-1]) == cuts + 2
    assert (boxes.edges[-1][0], boxes.edges[-1][-1]) == (-np.inf, 1.1)


def test_results_beyond_the_reference_take_no_part() -> None:
    front = np.array([[0.2, 0.6], [0.6, 0.2], [1.0, 0.1], [0.1, 1.5]])

    found = non_dominated_boxes(front, np.ones(2))

    assert [edges.tolist() for edges in found.edges] == [
        edges.tolist() for edges in non_dominated_boxes(front[:2], np.ones(2)).edges
    ]
