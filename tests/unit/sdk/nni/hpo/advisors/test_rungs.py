"""Rungs of asynchronous successive halving."""

import math

import pytest

from nni.hpo.advisors._rungs import Rung, best_first, budgets_of, front_first


@pytest.mark.parametrize(
    ("least", "greatest", "eta", "skipped", "expected"),
    [
        (1, 81, 3, 0, (1, 3, 9, 27, 81)),
        (1, 81, 3, 2, (9, 27, 81)),
        (1, 100, 3, 0, (1, 3, 9, 27, 81, 100)),
        (1, 81, 3, 5, (81,)),
        (5, 5, 3, 0, (5,)),
        (2, 243, 11, 0, (2, 22, 242, 243)),
    ],
)
def test_budgets_grow_by_eta_up_to_the_greatest(
    least: int, greatest: int, eta: int, skipped: int, expected: tuple[int, ...]
) -> None:
    assert budgets_of(least, greatest, eta, skipped) == expected


def test_one_of_eta_is_promoted_each_once() -> None:
    rung = Rung(3, best_first)
    promoted = []
    for name, loss in enumerate([5.0, 3.0, 4.0, 1.0, 2.0, 6.0]):
        rung.add(name, (loss,))
        promoted.append(rung.promote())

    assert promoted == [None, None, 1, 3, None, 4]


def test_a_configuration_without_a_result_is_never_promoted() -> None:
    rung = Rung(2, best_first)
    for name in range(4):
        rung.add(name, (math.inf,))

    assert rung.promote() is None


def test_nothing_stops_before_there_is_enough_to_compare_with() -> None:
    rung = Rung(3, best_first)
    answers = []
    for name, loss in enumerate([9.0, 8.0, 7.0, 10.0, 6.0]):
        rung.add(name, (loss,))
        answers.append(rung.goes_on(name))

    assert answers == [True, True, True, False, True]


def test_fronts_come_first_and_lonely_results_within_them() -> None:
    results = [(2.0, 2.0), (0.0, 4.0), (3.9, 0.1), (4.0, 0.0), (math.inf, 0.0), (1.0, 2.5)]

    order = front_first(results)

    assert set(order[:2]) == {1, 3}
    assert order[-1] == 4
    assert order.index(0) < order.index(2)


def test_first_loss_decides_and_equal_ones_keep_their_order() -> None:
    assert best_first([(2.0, 0.0), (1.0, 5.0), (2.0, -1.0), (1.0, 4.0)]) == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("results", "order"),
    [
        ([], []),
        ([(math.inf, 0.0), (0.0, math.inf)], [0, 1]),
        ([(math.inf, 0.0), (1.0, 1.0)], [1, 0]),
    ],
)
def test_infinite_results_come_last_in_their_order(
    results: list[tuple[float, ...]], order: list[int]
) -> None:
    assert front_first(results) == order


def test_the_worst_stops_as_soon_as_there_are_eta_results() -> None:
    rung = Rung(3, best_first)
    for name, loss in enumerate([1.0, 2.0, 3.0]):
        rung.add(name, (loss,))

    assert [rung.goes_on(name) for name in range(3)] == [True, False, False]


def test_rounding_errors_take_no_place_away() -> None:
    rung = Rung(2.2, best_first)  # 33 / 2.2 is a little below 15 in floating point
    for name in range(33):
        rung.add(name, (float(name),))

    promoted = [rung.promote() for _ in range(16)]

    assert promoted == [*range(15), None]
    assert [rung.goes_on(14), rung.goes_on(15)] == [True, False]
