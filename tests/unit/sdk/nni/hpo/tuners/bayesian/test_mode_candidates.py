"""Candidates of each mode of a Bayesian search."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.mode_candidates import KnownResults, mode_candidates
from nni.hpo.tuners.bayesian.search_modes import SearchMode

SPACE = EncodedSpace(
    parse_space(
        {
            "x": {"_type": "uniform", "_value": [0, 1]},
            "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
        }
    )
)
VECTORS = np.array([[0.1, 0.0], [0.5, 1.0], [0.9, 0.0]])
LOSSES = np.array([1.0, -1.0, 0.0])


def candidates(mode: SearchMode, size: float = 0.1, least: float = 0.0) -> tuple[Floats, Floats]:
    """Return the candidates of a mode, and the sides of its region."""
    known = KnownResults(VECTORS, LOSSES, np.ones(2), size, np.full(2, least))
    found, region = mode_candidates(SPACE, mode, known, 200, np.random.default_rng(0), None)
    return found, region.high - region.low


def test_local_candidates_lie_around_the_best_result() -> None:
    found, sides = candidates("local")

    assert np.abs(found[:, 0] - 0.5).max() <= 0.05 + 1e-9
    assert sides[0] == pytest.approx(0.1)


def test_region_reaches_beyond_a_plateau() -> None:
    assert candidates("local", least=0.2)[1][0] == pytest.approx(0.4)


@pytest.mark.parametrize("mode", ["global", "explore"])
def test_other_candidates_lie_anywhere(mode: SearchMode) -> None:
    found, sides = candidates(mode)

    assert found[:, 0].min() < 0.1
    assert found[:, 0].max() > 0.9
    assert sides.tolist() == [1.0, 1.0]


def test_candidates_of_an_option_have_the_same_one() -> None:
    found, sides = candidates("option")

    assert len(set(found[:, 1])) == 1
    assert np.ptp(found[:, 0]) > 0.5
    assert sides.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("mode", ["global", "explore"])
def test_candidates_lie_near_the_five_best_results(mode: SearchMode) -> None:
    xs = np.linspace(0.11, 0.89, 9)
    vectors, losses = np.column_stack([xs, np.zeros(9)]), np.abs(np.arange(9) - 6.2)
    known = KnownResults(vectors, losses, np.ones(2), 0.1, np.zeros(2))

    found, _ = mode_candidates(SPACE, mode, known, 400, np.random.default_rng(0), None)

    kept = {place for place, x in enumerate(xs) if (found[:, 0] == x).any()}
    assert kept == {4, 5, 6, 7, 8}


def test_candidates_of_an_option_lie_near_the_best_results_with_it() -> None:
    xs = np.linspace(0.11, 0.89, 16)
    vectors = np.column_stack([xs, np.arange(16) % 2])
    losses = np.abs(np.arange(16) - 9.1)
    known = KnownResults(vectors, losses, np.ones(2), 0.1, np.zeros(2))
    best = {0: {6, 8, 10, 12, 14}, 1: {9, 11, 7, 13, 5}, 2: set()}
    seen = set()
    for seed in range(12):
        found, _ = mode_candidates(SPACE, "option", known, 400, np.random.default_rng(seed), None)

        (option,) = set(found[:, 1].astype(int))
        seen.add(option)
        kept = {place for place, x in enumerate(xs) if (found[:, 0] == x).any()}
        assert kept == best[option]
    assert seen == {0, 1, 2}
