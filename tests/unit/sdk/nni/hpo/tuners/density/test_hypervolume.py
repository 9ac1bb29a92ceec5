"""Volumes that results dominate."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.tuners.density.hypervolume import contributions, reaches, spread_choice


def staircase(count: int) -> Floats:
    x = np.linspace(0, 1, count)
    return np.stack([x, 1 - x], axis=1)


def area(losses: Floats) -> float:
    """Return what pairs with ranges of 1 dominate, up to 0.1 beyond the worst."""
    total, height = 0.0, 1.1
    for first, second in sorted(losses.tolist()):
        total += (1.1 - first) * max(height - second, 0.0)
        height = min(height, second)
    return total


def test_mean_reach_is_proportional_to_the_area() -> None:
    few, many = staircase(2), staircase(20)
    ratio = reaches(many).max(axis=0).mean() / reaches(few).max(axis=0).mean()

    # 128 rays over a quarter circle; the integrand has corners, so the error is of order 1/128.
    assert ratio == pytest.approx(area(many) / area(few), rel=0.02)


def test_contributions_are_what_the_area_loses() -> None:
    losses = np.array([[0.0, 1.0], [0.2, 0.3], [0.25, 0.25], [1.0, 0.0], [0.9, 0.9]])
    lost = [area(losses) - area(np.delete(losses, place, axis=0)) for place in range(5)]

    found = contributions(reaches(losses))

    # Proportional, within the width of a ray; the largest of these areas is 0.1 of the whole.
    assert found / found.sum() == pytest.approx(np.array(lost) / sum(lost), abs=0.05)
    assert found[4] == 0


def test_only_result_contributes_everything() -> None:
    volumes = reaches(np.array([[3.0, 4.0]]))

    assert contributions(volumes) == pytest.approx(volumes.sum(axis=1))


def test_few_chosen_results_dominate_nearly_as_much_as_the_best_few() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(10))
    losses = np.stack([(x - x[0]) / (x[-1] - x[0]), 1 - np.sqrt((x - x[0]) / (x[-1] - x[0]))], 1)
    subsets = [[i, j, k] for i in range(10) for j in range(i) for k in range(j)]
    best = max(area(losses[subset]) for subset in subsets)

    chosen = spread_choice(reaches(losses), 3)

    # Greedy is promised 63 %; on smooth fronts it is far above. Checked here: no gross mistake.
    assert area(losses[chosen]) > 0.85 * best


def test_choice_takes_each_result_once_even_without_gain() -> None:
    losses = np.array([[0.0, 0.0]] * 4)

    assert sorted(spread_choice(reaches(losses), 4).tolist()) == [0, 1, 2, 3]


def test_three_objectives_are_measured_alike() -> None:
    corners = np.eye(3)  # each is best in two objectives and worst in the third
    middle = np.full((1, 3), 0.4)

    found = contributions(reaches(np.concatenate([corners, middle])))

    # By symmetry the corners add the same, up to the random rays.
    assert found[:3] == pytest.approx(found[:3].mean(), rel=0.5)
    assert found[3] > found[:3].max()


@pytest.mark.parametrize("factors", [(10.0, 0.01), (0.5, 3.0)])
def test_reaches_do_not_depend_on_the_units_of_the_losses(factors: tuple[float, float]) -> None:
    losses = np.random.default_rng(0).random((6, 2))

    assert reaches(losses * factors + (5.0, -7.0)) == pytest.approx(reaches(losses))


def test_equal_results_reach_to_the_reference_a_tenth_beyond_them() -> None:
    for objectives in (2, 3):
        found = reaches(np.full((2, objectives), 4.0))

        # A ray leaves a cube of side 0.1 at 0.1 at least, and along the diagonal at last.
        lengths = found ** (1 / objectives)
        assert found[0].tolist() == found[1].tolist()
        assert lengths.min() > 0.1 - 1e-12
        assert lengths.max() <= 0.1 * objectives**0.5 + 1e-12


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_next_choice_adds_most_to_those_before(count: int) -> None:
    volumes = np.array([[3.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 1.5, 1.0], [0.0, 0.0, 1.2]])

    assert spread_choice(volumes, count).tolist() == [1, 3, 0][:count]


def test_contribution_is_what_no_other_result_reaches() -> None:
    volumes = np.array([[3.0, 1.0, 2.0], [2.0, 4.0, 2.0], [0.5, 1.0, 1.0]])

    assert contributions(volumes).tolist() == [1.0, 3.0, 0.0]


@pytest.mark.parametrize("count", [2, 3, 60])
def test_contributions_of_many_results_are_gaps_to_the_second_best(count: int) -> None:
    volumes = np.random.default_rng(count).random((count, 20))
    expected = np.zeros(count)
    for column in volumes.T:
        second, first = sorted(column)[-2:]
        expected[column.argmax()] += first - second

    assert contributions(volumes) == pytest.approx(expected)
