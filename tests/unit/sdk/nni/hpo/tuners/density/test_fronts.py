"""Fronts that grow by one result at a time."""

from collections.abc import Sequence

import numpy as np
import pytest

from nni.hpo.pareto import ranks
from nni.hpo.tuners.density.fronts import FrontRanking
from nni.hpo.tuners.density.rankings import Outcome


def ranking(losses: Sequence[tuple[float, ...]], excess: float = 0.0) -> FrontRanking:
    made = FrontRanking(len(losses[0]))
    for position, one in enumerate(losses):
        made.add(position, Outcome(one, excess))
    return made


def drawn(count: int, objectives: int, seed: int = 0) -> list[tuple[float, ...]]:
    grid = np.random.default_rng(seed).integers(0, 12, size=(count, objectives))
    return [tuple(map(float, row)) for row in grid.tolist()]


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_fronts_are_those_of_sorting_everything(objectives: int, seed: int) -> None:
    losses = drawn(150, objectives, seed)

    known = ranking(losses)

    assert known._fronts[:150].tolist() == ranks(losses)


def test_whole_fronts_come_before_parts_of_the_next() -> None:
    losses = drawn(100, 2)
    fronts = ranks(losses)

    best, weights = ranking(losses).best(30)

    assert sorted(fronts[i] for i in best) == sorted(fronts)[:30]
    assert [fronts[i] for i in best] == sorted(fronts[i] for i in best)
    assert weights.mean() == pytest.approx(1.0)


def test_part_of_a_front_spreads_over_it() -> None:
    crowd = [(0.5 + i / 1000, 0.5 - i / 1000) for i in range(20)]

    best, _ = ranking([*crowd, (0.0, 1.0), (1.0, 0.0)]).best(3)

    assert {20, 21} <= set(best)


def test_others_are_the_rest_with_better_fronts_first() -> None:
    losses = drawn(60, 2)
    known = ranking(losses)
    known.add(60, Outcome((0.0, 0.0), 3.0))
    known.add(61, Outcome((0.0, 0.0), 1.0))

    best, _ = known.best(10)
    others = known.others(best, 100)

    assert sorted(best + others) == list(range(62))
    assert others[-2:] == [61, 60]
    fronts = ranks(losses)
    assert [fronts[i] for i in others[:-2]] == sorted(fronts[i] for i in others[:-2])


def test_broken_limits_are_good_only_while_little_else_is_there() -> None:
    known = ranking([(1.0, 2.0), (2.0, 1.0)], excess=2.0)
    known.add(2, Outcome((9.0, 9.0), 1.0))
    assert known.best(2)[0] == [2, 0]

    known.add(3, Outcome((9.0, 9.0)))

    assert known.best(2)[0] == [3, 2]


def test_answer_is_renewed_when_a_result_joins_the_good_ones() -> None:
    known = ranking([(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)])
    first, _ = known.best(2)
    known.add(3, Outcome((4.0, 4.0)))
    unchanged, _ = known.best(2)

    known.add(4, Outcome((0.0, 0.0)))

    assert sorted(first) == sorted(unchanged) == [0, 1]
    assert known.best(2)[0][0] == 4


def test_place_of_a_lie_is_behind_the_fronts_that_beat_it() -> None:
    known = ranking([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)])
    known.add(3, Outcome((0.0, 0.0), 1.0))

    assert known.place(Outcome((0.0, 0.0))) == 0
    assert known.place(Outcome((1.5, 1.5))) == 2
    assert known.place(Outcome((9.0, 9.0))) == 3
    assert known.place(Outcome((), 5.0)) == 4


def test_many_results_keep_the_best_and_forget_some_of_the_others() -> None:
    rng = np.random.default_rng(0)
    losses = [tuple(row) for row in rng.random((3000, 2)).tolist()]

    known = ranking(losses)

    first = {i for i, rank in enumerate(ranks(losses)) if rank == 0}
    assert first <= set(known.best(30)[0])
    assert len(known.others([], 5000)) <= 1000
    assert known.place(Outcome((), 5.0)) == 3000


def test_front_that_is_too_large_keeps_its_ends() -> None:
    x = np.random.default_rng(0).random(2500)
    losses = list(zip(x.tolist(), (1 - x).tolist(), strict=True))

    kept = ranking(losses).others([], 5000)

    assert {int(x.argmin()), int(x.argmax())} <= set(kept)
    assert len(kept) <= 1000


@pytest.mark.parametrize(("count", "left"), [(1000, 1000), (1001, 501)])
def test_five_hundred_results_remain_where_twice_as_many_are_exceeded(
    count: int, left: int
) -> None:
    places = np.random.default_rng(0).random(count)

    known = ranking(list(zip(places.tolist(), (1 - places).tolist(), strict=True)))

    assert len(known.others([], 5000)) == left


def test_result_beyond_a_limit_weighs_as_one_that_adds_no_volume() -> None:
    known = ranking([(1.0, 2.0)])
    known.add(1, Outcome((0.0, 0.0), 1.0))

    best, weights = known.best(2)

    # A quarter, and 1 for the mean of the volumes, scaled to the mean 1.
    assert best == [0, 1]
    assert weights == pytest.approx([1.25 / 0.75, 0.25 / 0.75])


def test_dominated_copy_of_a_good_result_adds_no_volume() -> None:
    known = ranking([(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)])

    best, weights = known.best(3)

    assert best[2] == 2
    assert weights == pytest.approx([1.75 / 1.25, 1.75 / 1.25, 0.25 / 1.25])
