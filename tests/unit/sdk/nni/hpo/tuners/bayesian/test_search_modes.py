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
