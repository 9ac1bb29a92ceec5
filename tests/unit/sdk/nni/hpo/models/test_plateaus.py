"""Plateaus learnt from equal results."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.plateaus import Familiar, Plateaus, plateau_widths

NUMBERS = np.array([True, True])


def spread(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).random((count, 2))


def in_cells(points: Floats) -> Floats:
    """Return a loss that is constant in cells 0.2 wide, and different in each."""
    cells = np.floor(points * 5)
    losses: Floats = (cells[:, 0] - 2.2) ** 2 + 1.7 * (cells[:, 1] - 1.4) ** 2
    return losses


def test_results_that_all_differ_have_no_plateaus() -> None:
    points = spread(60)

    assert plateau_widths(points, points.sum(axis=1), NUMBERS) is None


def test_widths_of_cells_are_found() -> None:
    points = spread(100)

    widths = plateau_widths(points, in_cells(points), NUMBERS)

    # Next to 0.2 are 0.17 and 0.25 among the widths that are tried.
    assert widths is not None
    assert set(widths) <= {0.12, 0.17, 0.25}


def test_an_axis_on_which_nothing_depends_is_endless() -> None:
    points = spread(60)

    widths = plateau_widths(points, np.floor(points[:, 0] * 10), NUMBERS)

    assert widths is not None
    assert widths[1] == np.inf
    assert 0 < widths[0] < 0.2


def test_a_failing_half_of_the_space_is_no_plateau() -> None:
    points = spread(80)
    losses = np.where(points[:, 0] < 0.55, 9.0, points.sum(axis=1))

    assert plateau_widths(points, losses, NUMBERS) is None


def test_results_of_few_levels_are_equal_by_chance() -> None:
    points = spread(60)
    losses = np.random.default_rng(1).integers(8, size=60).astype(float)

    assert plateau_widths(points, losses, NUMBERS) is None


def test_options_do_not_share_plateaus() -> None:
    points = spread(100)
    points[:, 1] = np.arange(100) % 2
    losses = np.floor(points[:, 0] * 5) + 0.5 * points[:, 1]

    widths = plateau_widths(points, losses, np.array([True, False]))

    assert widths is not None
    assert widths[1] == 0
    assert widths[0] > 0.1


def test_a_point_is_the_less_new_the_closer_and_the_more_are_known() -> None:
    one = Familiar(np.array([0.2, np.inf]), np.array([[0.5, 0.5]]))
    two = Familiar(one.widths, np.array([[0.5, 0.5], [0.6, 0.1]]))

    assert one.novelty(np.array([[0.5, 0.9], [0.55, 0.5], [0.8, 0.5]])) == pytest.approx(
        [0.0, 0.25, 1.0]
    )
    assert two.novelty(np.array([[0.55, 0.5]])) == pytest.approx([0.25 * 0.25])


def test_many_points_are_as_new_as_each_alone() -> None:
    familiar = Familiar(np.array([0.3, 0.5]), spread(20))
    points = spread(300, seed=1)

    alone = [familiar.novelty(point[None, :])[0] for point in points]

    assert familiar.novelty(points) == pytest.approx(alone)


def test_what_is_familiar_follows_from_the_results_alone() -> None:
    points = list(spread(60))
    losses = in_cells(np.array(points)).tolist()
    kept = Plateaus(NUMBERS)
    for count in range(61):
        along = kept.familiar(points[:count], losses[:count], [])

    afresh = Plateaus(NUMBERS).familiar(points, losses, [])

    assert along is not None
    assert afresh is not None
    assert along.widths.tolist() == afresh.widths.tolist()
    assert afresh.points.tolist() == np.array(points).tolist()


def test_running_points_are_familiar_too() -> None:
    points = list(spread(60))
    losses = in_cells(np.array(points)).tolist()

    familiar = Plateaus(NUMBERS).familiar(points, losses, [np.array([0.25, 0.75])])

    assert familiar is not None
    assert familiar.novelty(np.array([[0.25, 0.75]])) == pytest.approx([0.0])


def test_nothing_is_familiar_after_forgetting() -> None:
    plateaus = Plateaus(NUMBERS)
    points = list(spread(60))
    plateaus.familiar(points, in_cells(np.array(points)).tolist(), [])

    found = plateaus.found
    plateaus.forget()

    assert found
    assert not plateaus.found
    assert plateaus.familiar([], [], []) is None


def test_a_plateau_reaches_nowhere_where_one_cannot_leave_it() -> None:
    familiar = Familiar(np.array([0.25, np.inf]), spread(1))

    assert familiar.reach().tolist() == [0.25, 0.0]
