"""Plateaus learnt from equal results."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.plateaus import KnownPlateaus, PlateauModel, plateau_widths

NUMBERS = np.array([True, True])


def spread(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).random((count, 2))


def in_cells(vectors: Floats) -> Floats:
    """Return a loss that is constant in cells 0.2 wide, and different in each."""
    cells = np.floor(vectors * 5)
    losses: Floats = (cells[:, 0] - 2.2) ** 2 + 1.7 * (cells[:, 1] - 1.4) ** 2
    return losses


def test_results_that_all_differ_have_no_plateaus() -> None:
    vectors = spread(60)

    assert plateau_widths(vectors, vectors.sum(axis=1), NUMBERS) is None


def test_widths_of_cells_are_found() -> None:
    vectors = spread(100)

    widths = plateau_widths(vectors, in_cells(vectors), NUMBERS)

    # Next to 0.2 are 0.17 and 0.25 among the widths that are tried.
    assert widths is not None
    assert set(widths) <= {0.12, 0.17, 0.25}


def test_width_of_narrow_cells_is_found_exactly_if_it_is_one_of_those_tried() -> None:
    vectors = np.random.default_rng(0).random((200, 1))
    losses = (np.floor(vectors[:, 0] * 20) - 7.3) ** 2

    widths = plateau_widths(vectors, losses, np.array([True]))

    assert widths is not None
    assert widths.tolist() == [0.05]


def test_an_axis_on_which_nothing_depends_is_endless() -> None:
    vectors = spread(60)

    widths = plateau_widths(vectors, np.floor(vectors[:, 0] * 10), NUMBERS)

    assert widths is not None
    assert widths[1] == np.inf
    assert 0 < widths[0] < 0.2


def test_a_failing_half_of_the_space_is_no_plateau() -> None:
    vectors = spread(80)
    losses = np.where(vectors[:, 0] < 0.55, 9.0, vectors.sum(axis=1))

    assert plateau_widths(vectors, losses, NUMBERS) is None


def test_results_of_few_levels_are_equal_by_chance() -> None:
    vectors = spread(60)
    losses = np.random.default_rng(1).integers(8, size=60).astype(float)

    assert plateau_widths(vectors, losses, NUMBERS) is None


def test_options_do_not_share_plateaus() -> None:
    vectors = spread(100)
    vectors[:, 1] = np.arange(100) % 2
    losses = np.floor(vectors[:, 0] * 5) + 0.5 * vectors[:, 1]

    widths = plateau_widths(vectors, losses, np.array([True, False]))

    assert widths is not None
    assert widths[1] == 0
    assert widths[0] > 0.1


def test_a_vector_is_the_less_new_the_closer_and_the_more_are_known() -> None:
    one = KnownPlateaus(np.array([0.2, np.inf]), np.array([[0.5, 0.5]]))
    two = KnownPlateaus(one.widths, np.array([[0.5, 0.5], [0.6, 0.1]]))

    assert one.novelty(np.array([[0.5, 0.9], [0.55, 0.5], [0.8, 0.5]])) == pytest.approx(
        [0.0, 0.25, 1.0]
    )
    assert two.novelty(np.array([[0.55, 0.5]])) == pytest.approx([0.25 * 0.25])


def test_many_vectors_are_as_new_as_each_alone() -> None:
    known = KnownPlateaus(np.array([0.3, 0.5]), spread(20))
    vectors = spread(300, seed=1)

    alone = [known.novelty(vector[None, :])[0] for vector in vectors]

    assert known.novelty(vectors) == pytest.approx(alone)


def test_plateaus_follow_from_the_results_alone() -> None:
    vectors = list(spread(60))
    losses = in_cells(np.array(vectors)).tolist()
    model = PlateauModel(NUMBERS)
    for count in range(61):
        along = model.update(vectors[:count], losses[:count], [])

    afresh = PlateauModel(NUMBERS).update(vectors, losses, [])

    assert along is not None
    assert afresh is not None
    assert along.widths.tolist() == afresh.widths.tolist()
    assert afresh.vectors.tolist() == np.array(vectors).tolist()


def test_running_vectors_are_known_too() -> None:
    vectors = list(spread(60))
    losses = in_cells(np.array(vectors)).tolist()

    known = PlateauModel(NUMBERS).update(vectors, losses, [np.array([0.25, 0.75])])

    assert known is not None
    assert known.novelty(np.array([[0.25, 0.75]])) == pytest.approx([0.0])


def test_nothing_is_known_after_a_reset() -> None:
    plateaus = PlateauModel(NUMBERS)
    vectors = list(spread(60))
    plateaus.update(vectors, in_cells(np.array(vectors)).tolist(), [])

    found = plateaus.found
    plateaus.reset()

    assert found
    assert not plateaus.found
    assert plateaus.update([], [], []) is None


def test_a_plateau_without_end_has_no_reach() -> None:
    known = KnownPlateaus(np.array([0.25, np.inf]), spread(1))

    assert known.reach().tolist() == [0.25, 0.0]


@pytest.mark.parametrize(("levels", "found"), [(3, True), (2, False)])
def test_three_equal_results_are_the_fewest_of_a_plateau(levels: int, found: bool) -> None:
    vectors = np.array([[0.01 * index] for index in range(4)] + [[0.5], [0.7], [0.9], [0.95]])
    losses = np.array([0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0, 8.0])
    if levels == 2:
        losses[3] = 1.0  # two results more than losses

    assert (plateau_widths(vectors, losses, np.array([True])) is not None) is found


def test_newest_four_hundred_results_are_remembered_beside_running_trials() -> None:
    vectors = list(np.random.default_rng(0).random((430, 1)))
    losses = [float((np.floor(vector[0] * 5) - 2.2) ** 2) for vector in vectors]
    running = [np.array([0.25])]

    known = PlateauModel(np.array([True])).update(vectors, losses, running)

    assert known is not None
    assert known.vectors.tolist() == np.array([*vectors[30:], *running]).tolist()


def test_every_step_on_an_axis_of_width_zero_leads_to_something_new() -> None:
    known = KnownPlateaus(np.array([0.0, np.inf]), np.array([[0.5, 0.5]]))

    assert known.novelty(np.array([[0.5, 0.9], [0.5001, 0.5]])).tolist() == [0.0, 1.0]
