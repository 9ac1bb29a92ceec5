"""Observations ordered by loss."""

from random import Random

import numpy as np

from nni.hpo.space import parse_space
from nni.hpo.tuners._columns import Row, levels_of
from nni.hpo.tuners._observations import Observations

LEVEL = levels_of(
    parse_space(
        {
            "x": {"_type": "uniform", "_value": [0, 1]},
            "c": {"_type": "choice", "_value": ["a", "b"]},
        }
    )
)[0]


def row(x: float, option: int = 0) -> Row:
    return Row(0, (x,), (option,))


def test_ranks_follow_the_loss_and_equal_losses_their_arrival() -> None:
    observations = Observations(LEVEL)
    losses = [3.0, 1.0, 2.0, 1.0]
    for index, loss in enumerate(losses):
        observations.add(row(index / 10, index % 2), loss)

    points, options = observations.rows(observations.ranked(0, 3))

    assert observations.ranked(0, 10) == [1, 3, 2, 0]
    assert points.tolist() == [[0.1], [0.3], [0.2]]
    assert options.tolist() == [[1], [1], [0]]


def test_growth_and_removal_keep_the_order() -> None:
    rng = Random(0)
    observations = Observations(LEVEL)
    losses = [rng.choice([0.1, 0.5, 0.9]) for _ in range(500)]
    for index, loss in enumerate(losses):
        observations.add(row(index / 1000), loss)
    for index in range(50):
        observations.add(row(0.9, 1), 0.5 if index % 2 else 0.05)
    for index in reversed(range(50)):
        observations.remove_newest(row(0.9, 1), 0.5 if index % 2 else 0.05)

    assert len(observations) == 500
    assert observations.ranked(0, 500) == sorted(range(500), key=lambda i: (losses[i], i))
    assert not observations.has((0.9,), (1,))
    assert np.array_equal(observations.rows([499])[0], [[0.499]])


def test_has_tells_rows_up_to_rounding() -> None:
    observations = Observations(LEVEL)
    observations.add(row(0.1 + 0.2, 1), 1.0)

    assert observations.has((0.3,), (1,))
    assert not observations.has((0.3,), (0,))
    assert not observations.has((0.31,), (1,))
