"""What is believed of several outcomes."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.models.matern import Matern
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.outcome_models import (
    OutcomeModels,
    Prospect,
    dominators,
    limit_targets,
)

CUBE = TreeCube(
    parse_space(
        {
            "x": {"_type": "uniform", "_value": [0, 1]},
            "kind": {"_type": "choice", "_value": ["a", "b"]},
        }
    )
)


def grid(count: int = 12) -> Floats:
    xs = np.linspace(0, 1, count)
    return np.array([[x, kind] for kind in (0.0, 1.0) for x in xs])


def models(losses: int, limits: int) -> OutcomeModels:
    return OutcomeModels(losses, losses + limits, Matern.of(2.5), 1e-6, CUBE)


def rated(prospect: Prospect, x: float, kind: float) -> float:
    return float(prospect.rate(np.array([[x, kind]]))[0])


def opposed(points: Floats) -> Floats:
    """Give two losses that have their least values at 0.2 and 0.8, both higher with kind b."""
    x, kind = points[:, 0], points[:, 1]
    return np.stack([(x - 0.2) ** 2 + kind, (x - 0.8) ** 2 + kind], axis=1)


def test_points_between_the_least_values_are_promising() -> None:
    points = grid()

    view = models(2, 0).survey(points, opposed(points), [])

    between = rated(view.prospect, 0.47, 0)
    assert between > rated(view.prospect, 0.02, 0)
    assert between > rated(view.prospect, 0.47, 1)
    assert set(points[view.good, 1]) == {0.0}


def test_gradient_is_that_of_the_rating() -> None:
    points = grid()
    outcomes = np.column_stack([opposed(points), points[:, 0] - 0.6])
    prospect = models(2, 1).survey(points, outcomes, []).prospect
    at, step = np.array([0.33, 0.0]), 1e-6

    value, rise = prospect.slope(CUBE.features(at[None])[0])

    higher, lower = rated(prospect, 0.33 + step, 0), rated(prospect, 0.33 - step, 0)
    assert value == pytest.approx(rated(prospect, 0.33, 0))
    assert rise[0] == pytest.approx((higher - lower) / (2 * step), rel=1e-3)


def test_points_beyond_a_limit_are_not_promising() -> None:
    points = grid()
    outcomes = np.column_stack([(points[:, 0] - 0.2) ** 2, 0.5 - points[:, 0]])

    view = models(1, 1).survey(points, outcomes, [])

    assert rated(view.prospect, 0.52, 0) > rated(view.prospect, 0.2, 0) + 1
    assert (points[view.good, 0] > 0.5).all()


def test_while_nothing_keeps_the_limits_the_chance_to_keep_them_counts() -> None:
    points = grid()[:8]
    outcomes = np.column_stack([points[:, 0], 0.9 - points[:, 0]])

    view = models(1, 1).survey(points, outcomes, [])

    assert view.prospect.boxes is None
    assert rated(view.prospect, 0.95, 0) > rated(view.prospect, 0.1, 0)
    assert points[view.good, 0].tolist() == [points[:, 0].max()]


def test_running_trials_count_as_predicted() -> None:
    points = grid(5)
    outcomes = opposed(points)

    free = models(2, 0).survey(points, outcomes, []).prospect
    waiting = models(2, 0).survey(points, outcomes, [np.array([0.4, 0.0])]).prospect

    assert rated(waiting, 0.4, 0) < rated(free, 0.4, 0) - 1


def test_limits_that_are_only_kept_or_broken_stand_apart() -> None:
    targets, threshold = limit_targets(np.array([0.0, 0.0, 1.0, 3.0]))

    assert threshold is not None
    assert targets[0] == targets[1] < threshold < targets[2] < targets[3]


@pytest.mark.parametrize("excess", [[-1.0, -1.0], [2.0, 2.0]])
def test_limits_from_which_all_are_equally_far_say_nothing(excess: list[float]) -> None:
    targets, threshold = limit_targets(np.array(excess))

    assert threshold is None
    assert targets.tolist() == [0, 0]


def test_missing_outcomes_count_as_the_worst() -> None:
    targets, threshold = limit_targets(np.array([-1.0, 5.0, np.inf]))

    assert threshold is not None
    assert targets[2] == targets[1] > threshold


def test_dominators_are_counted_without_equals() -> None:
    losses = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.5]])

    assert dominators(losses).tolist() == [0, 0, 2, 2, 1]
