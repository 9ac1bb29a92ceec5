"""Modes of a search, its trust region and its progress."""

from collections import Counter

import numpy as np
import pytest

from nni.hpo.tuners.bayesian.search_modes import RecentGains, TrustRegion, next_mode, option_weights


def test_region_grows_with_success_and_shrinks_without() -> None:
    region = TrustRegion(axes=6)
    first = region.size

    for _ in range(3):
        region.record(region.size, improved=True)
    grown = region.size
    for _ in range(3):
        region.record(region.size, improved=False)

    assert grown == 2 * first
    assert region.size == first


def test_region_that_has_vanished_begins_again() -> None:
    region = TrustRegion(axes=2)
    first, sizes = region.size, set()

    for _ in range(40):
        region.record(region.size, improved=False)
        sizes.add(region.size)

    assert min(sizes) < 0.02
    assert first in sizes


def test_failures_that_were_proposed_before_it_shrank_do_not_shrink_it_further() -> None:
    region = TrustRegion(axes=2)
    first = region.size

    for _ in range(10):  # ten at a time, all proposed from the first size
        region.record(first, improved=False)

    assert region.size == 0.5 * first


def test_running_proposals_count_as_failures_for_the_next_one() -> None:
    region = TrustRegion(axes=6)
    first = region.size

    sizes: list[float] = []
    for _ in range(7):  # three failures halve it
        sizes.append(region.size_with_pending(sizes))

    assert sizes == [first] * 3 + [first / 2] * 3 + [first / 4]
    assert region.size == first


def test_failures_of_running_proposals_shrink_it_once_they_have_results() -> None:
    region = TrustRegion(axes=6)
    sizes: list[float] = []
    for _ in range(6):
        sizes.append(region.size_with_pending(sizes))

    for size in reversed(sizes):  # those from the smaller region end first
        region.record(size, improved=False)

    assert region.size == sizes[0] / 4


def test_region_that_has_begun_again_shrinks_as_before() -> None:
    region = TrustRegion(axes=2)
    sizes = []
    for _ in range(40):
        sizes.append(region.size_with_pending([]))
        region.record(sizes[-1], improved=False)

    again = sizes.index(sizes[0], 2)

    assert sizes[again:] == sizes[: len(sizes) - again]


def test_region_goes_on_from_its_state() -> None:
    region, other = TrustRegion(axes=2), TrustRegion(axes=2)
    for improved in (True, True, False, True):
        region.record(region.size, improved=improved)

    other.load_state(region.state())

    assert other == region


def test_progress_is_stale_after_eight_proposals_that_gained_next_to_nothing() -> None:
    progress = RecentGains()
    progress.gains.extend([5.0] + [0.0] * 7)
    assert not progress.stale(gained=5.0)

    progress.gains.append(0.0)

    assert progress.stale(gained=5.0)


@pytest.mark.parametrize(
    ("stale", "has_options", "expected"),
    [
        (False, True, {"density", "local", "global"}),
        (True, False, {"density", "local", "global", "explore"}),
        (True, True, {"density", "local", "global", "explore", "option"}),
    ],
)
def test_modes_that_explore_are_for_when_nothing_is_found(
    stale: bool, has_options: bool, expected: set[str]
) -> None:
    rng = np.random.default_rng(0)

    drawn = Counter(
        next_mode(rng, density_share=0.2, local_share=0.6, stale=stale, has_options=has_options)
        for _ in range(2000)
    )

    assert set(drawn) == expected
    assert drawn["density"] == pytest.approx(400, abs=60)


def test_good_and_seldom_tried_options_are_explored_most() -> None:
    losses = np.array([1.0, 2.0, 2.5, 3.0])
    masks = [
        np.array([True, False, False, False]),
        np.array([False, True, True, False]),
        np.array([False, False, False, True]),
        np.zeros(4, dtype=bool),
    ]

    good, middle, bad, untried = option_weights(losses, masks)

    assert good + middle + bad + untried == pytest.approx(1)
    assert untried > good > middle
    assert good > bad


def record(region: TrustRegion, *improved: bool) -> float:
    for one in improved:
        region.record(region.size, improved=one)
    return region.size


@pytest.mark.parametrize(
    ("axes", "improved", "factor"),
    [
        (1, (False,), 1),
        (1, (False, False), 0.5),
        (5, (False, False), 0.5),
        (6, (False, False), 1),
        (6, (False, False, False), 0.5),
        (2, (False, True, False), 1),
        (2, (True, True), 1),
        (2, (True, True, True), 2),
        (2, (True, True, False, True), 1),
        (2, (True, True, True, True, True), 2),
        (2, (True,) * 6, 2),
        (2, (True, True, True, False, False, False, False), 0.5),
        (1, (False,) * 4 + (True,) * 5, 0.5),
        (1, (False,) * 4 + (True,) * 6, 1),
    ],
)
def test_region_doubles_after_three_successes_in_a_row_and_halves_after_enough_failures(
    axes: int, improved: tuple[bool, ...], factor: float
) -> None:
    assert record(TrustRegion(axes=axes), *improved) == 0.8 * factor


def test_region_starts_again_below_its_least_size() -> None:
    region = TrustRegion(axes=1)

    sizes = [record(region, False, False) for _ in range(7)]

    assert sizes == [0.8 / 2**n for n in range(1, 7)] + [0.8]


@pytest.mark.parametrize(
    ("gains", "gained", "stale"),
    [
        ([0.0] * 7, 1.0, False),
        ([0.0] * 8, 1.0, True),
        ([0.0] * 8, 0.0, True),
        ([0.0] * 7 + [1.0], 1000.0, True),
        ([0.0] * 7 + [1.0], 999.0, False),
        ([9.0] + [0.0] * 8, 1.0, True),
    ],
)
def test_search_is_stale_if_eight_proposals_gained_a_thousandth_at_most(
    gains: list[float], gained: float, stale: bool
) -> None:
    progress = RecentGains()
    progress.gains.extend(gains)

    assert progress.stale(gained) is stale


def test_shares_of_the_modes_of_a_stale_search() -> None:
    rng, count = np.random.default_rng(1), 4000

    drawn = Counter(
        next_mode(rng, density_share=0.2, local_share=0.75, stale=True, has_options=True)
        for _ in range(count)
    )

    # Standard deviation of a share of 4000 draws: at most 0.008; four of them.
    expected = {
        "density": 0.2,
        "option": 0.8 * 0.45,
        "explore": 0.8 * 0.35,
        "local": 0.8 * 0.2 * 0.75,
        "global": 0.8 * 0.2 * 0.25,
    }
    assert {mode: share / count for mode, share in drawn.items()} == pytest.approx(
        expected, abs=0.032
    )


def test_an_option_is_weighted_by_the_rank_of_its_best_result_and_its_number() -> None:
    losses = np.array([1.0, 2.0, 2.0, 4.0])
    masks = [
        np.array([True, False, False, True]),
        np.array([False, True, True, False]),
        np.zeros(4, dtype=bool),
    ]

    found = option_weights(losses, masks)

    # Rank among the three distinct losses: 0, 1 / 3; an untried option counts as the best.
    weights = np.array([1 / 3**0.5, np.exp(-4 / 3) / 3**0.5, 1.0])
    assert found == pytest.approx(weights / weights.sum())
