"""The order of results with one loss."""

import math
from random import Random

import pytest

from nni.hpo.tuners.density.rankings import LossRanking, Outcome, rank_weights


def ranking(*outcomes: Outcome) -> LossRanking:
    made = LossRanking()
    for position, outcome in enumerate(outcomes):
        made.add(position, outcome)
    return made


def losses(*values: float) -> tuple[Outcome, ...]:
    return tuple(Outcome((value,)) for value in values)


def test_ranks_follow_the_loss() -> None:
    known = ranking(*losses(3.0, 1.0, 2.0, 4.0))

    best, _ = known.best(2)

    assert best == [1, 2]
    assert known.others(best, 5) == [0, 3]


def test_order_is_that_of_sorting_everything() -> None:
    rng = Random(0)
    values = [rng.choice([0.1, 0.5, 0.9]) for _ in range(500)]

    order = ranking(*losses(*values)).others([], 500)

    assert order == sorted(range(500), key=lambda i: (values[i], i))


def test_newest_of_equal_results_stands_for_them() -> None:
    known = ranking(*losses(1.0, 1.0, 2.0, 1.0, 3.0, *range(10, 30)))

    best, weights = known.best(3)

    assert best == [3, 2, 4]
    assert weights == pytest.approx(rank_weights(3))
    assert known.others(best, 3) == [0, 1, 5]


def test_equal_results_fill_up_where_nothing_else_is_good() -> None:
    known = ranking(*losses(*[0.0, 1.0] * 20))

    best, weights = known.best(3)

    assert best == [38, 36, 34]
    assert weights.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("values", "count", "best"),
    [
        ((0, 0, 0, 1, 1, 1, 2, 2), 4, [2, 1, 0, 5]),
        ((0, 0, 0, 1, 2, 3, 4, 5), 3, [2, 1, 0]),
        ((0, 0, 0), 5, [2, 1, 0]),
    ],
)
def test_equal_results_fill_up_to_the_count_and_no_further(
    values: tuple[float, ...], count: int, best: list[int]
) -> None:
    assert ranking(*losses(*values)).best(count)[0] == best


def test_broken_limits_come_last_by_how_far_they_are_broken() -> None:
    known = ranking(Outcome((0.0,), 2.0), Outcome((9.0,)), Outcome((-5.0,), 1.0), Outcome((8.0,)))

    assert known.best(4)[0] == [3, 1, 2, 0]


def test_place_is_behind_what_is_as_good() -> None:
    known = ranking(*losses(1.0, 2.0, 2.0, 3.0), Outcome((0.0,), 1.0))

    assert [known.place(Outcome((loss,))) for loss in (0.5, 2.0, 9.0)] == [0, 3, 4]
    assert known.place(Outcome((), 5.0)) == 5


def test_better_ranks_weigh_more() -> None:
    weights = rank_weights(4)

    assert weights.tolist() == sorted(weights.tolist(), reverse=True)
    assert weights.mean() == pytest.approx(1.0)
    assert rank_weights(0).tolist() == []


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_weights_fall_with_the_logarithm_of_the_rank(count: int) -> None:
    raw = [math.log((count + 1) / (rank + 1)) for rank in range(count)]

    assert rank_weights(count) == pytest.approx([one * count / sum(raw) for one in raw])
