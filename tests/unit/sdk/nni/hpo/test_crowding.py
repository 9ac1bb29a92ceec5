"""Room around results with several losses."""

import math

from nni.hpo.crowding import crowding_distances


def test_ends_have_all_room_and_others_that_to_their_neighbours() -> None:
    front = [(0.0, 4.0), (1.0, 2.0), (3.0, 1.0), (4.0, 0.0)]

    assert crowding_distances(front) == [math.inf, 3 / 4 + 3 / 4, 3 / 4 + 2 / 4, math.inf]


def test_equal_results_have_no_room() -> None:
    assert crowding_distances([(1.0, 1.0)] * 3)[1] == 0


def test_an_empty_front_has_no_distances() -> None:
    assert crowding_distances([]) == []
