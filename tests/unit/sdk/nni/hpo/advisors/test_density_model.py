"""BOHB's model of one budget."""

import math
from random import Random

import numpy as np
import pytest

from nni.hpo.advisors._density_model import (
    ModelSettings,
    Results,
    density,
    least_results,
    propose,
    widened,
)
from nni.hpo.advisors._proposals import FlatProposals
from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.columns import Row
from nni.hpo.models.feasible_rows import RowFeasibility

SPACE = FlatProposals(
    {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "c": {"_type": "choice", "_value": ["a", "b", "c"]},
    }
)


def settings(**changes: float) -> ModelSettings:
    values: dict[str, float | None] = {
        "min_points_in_model": None,
        "top_n_percent": 15,
        "num_samples": 64,
        "bandwidth_factor": 3.0,
        "min_bandwidth": 0.001,
        **changes,
    }
    return ModelSettings(**values)  # type: ignore[arg-type] # ints are meant as ints


def row(x: float, option: int) -> Row:
    return Row(0, (x,), (option,))


def arrays(rows: list[Row]) -> tuple[Floats, Ints]:
    return np.array([r.coordinates for r in rows]), np.array([r.options for r in rows])


def test_budget_needs_one_more_result_than_there_are_parameters() -> None:
    assert least_results(SPACE, settings()) == 3
    assert least_results(SPACE, settings(min_points_in_model=2)) == 3
    assert least_results(SPACE, settings(min_points_in_model=9)) == 9


def test_results_without_a_number_are_among_the_worst_only() -> None:
    results = Results(SPACE.frame)
    for number, loss in enumerate([math.inf, 2.0, math.inf, 1.0]):
        results.add(row(number / 10, 0), loss)

    assert results.best(3)[0].tolist() == [[0.3], [0.1]]
    assert results.worst(3)[0].tolist() == [[0.1], [0.0], [0.2]]


def test_results_keep_their_rows_however_many_there_are() -> None:
    results = Results(SPACE.frame)
    for number in range(100):
        results.add(row(number / 100, number % 3), -float(number))

    points, options = results.best(100)

    assert points[:, 0].tolist() == [number / 100 for number in reversed(range(100))]
    assert options[:, 0].tolist() == [number % 3 for number in reversed(range(100))]


def test_model_needs_two_numbers_and_enough_results() -> None:
    results = Results(SPACE.frame)
    for loss in (math.inf, math.inf, 1.0):
        results.add(row(0.5, 0), loss)
    assert not results.can_model(3)

    results.add(row(0.6, 0), 2.0)

    assert results.can_model(3)
    assert results.can_model(4)
    assert not results.can_model(5)


def test_density_is_the_sum_of_kernels_written_out() -> None:
    rows = [row(0.2, 0), row(0.4, 0), row(0.9, 2)]
    mixture = density(SPACE.frame, *arrays(rows), 0.001, prior_share=0.25)
    spread = float(np.std([0.2, 0.4, 0.9]))
    width = 1.06 * spread * 3 ** (-1 / 6)
    slip = (1 - (2 / 3) ** 2 - (1 / 3) ** 2) * 3 ** (-1 / 6)

    def kernel(centre: float, option: int, x: float, chosen: int) -> float:
        inside = 0.5 * (
            math.erf((1 - centre) / width / 2**0.5) - math.erf(-centre / width / 2**0.5)
        )
        bell = math.exp(-0.5 * ((x - centre) / width) ** 2) / width / math.sqrt(2 * math.pi)
        return bell / inside * (slip / 3 + (1 - slip) * (option == chosen))

    for x, chosen in [(0.1, 0), (0.5, 1), (0.95, 2)]:
        kernels = sum(kernel(r.coordinates[0], r.options[0], x, chosen) for r in rows)
        expected = math.log(0.75 * kernels / 3 + 0.25 / 3)
        got = mixture.log_density(np.array([[x]]), np.array([[chosen]]))
        # The cumulative normal in use is right to 1.5e-7, divided by a mass above 0.5.
        assert got == pytest.approx([expected], abs=1e-6)


def test_kernels_of_equal_rows_get_narrower_with_their_number() -> None:
    mixture = density(SPACE.frame, *arrays([row(0.5, 1)] * 64), 0.001, 0.1)

    assert mixture.widths == pytest.approx([0.035])  # 0.07 / 64 ** (1 / 6)
    assert mixture.slip == pytest.approx([0.035])


def test_kernels_are_never_narrower_than_the_limit() -> None:
    mixture = density(SPACE.frame, *arrays([row(0.5, 1)] * 4), 0.2, 0.1)

    assert mixture.widths.tolist() == [0.2]
    assert mixture.slip.tolist() == [0.2]
    assert widened(mixture, 3.0).widths == pytest.approx([0.6])
    assert widened(mixture, 100.0).slip[0] < 1


def test_proposal_is_where_good_results_are_and_bad_ones_are_not() -> None:
    results = Results(SPACE.frame)
    for number in range(40):
        good = number % 4 == 0
        results.add(row(0.2 + number / 1000 if good else 0.8, 0 if good else 1), float(not good))
    rng = np.random.default_rng(0)

    proposals = [propose(SPACE, results, settings(), rng) for _ in range(20)]

    for proposal in proposals:
        assert proposal is not None
        assert proposal["x"] < 0.5
        assert proposal["c"] != "b"


def test_candidates_that_are_not_allowed_are_passed_over() -> None:
    class Picky(FlatProposals):
        def configuration(self, row: Row) -> dict[str, object] | None:
            found = super().configuration(row)
            return found if found is not None and found["c"] == "c" else None

    space = Picky(
        {
            "x": {"_type": "uniform", "_value": [0, 1]},
            "c": {"_type": "choice", "_value": ["a", "b", "c"]},
        }
    )
    results = Results(SPACE.frame)
    for number in range(12):
        results.add(row(number / 12, number % 3), number / 12)
    rng = np.random.default_rng(0)

    proposals = [propose(space, results, settings(), rng) for _ in range(20)]

    assert {proposal["c"] for proposal in proposals if proposal is not None} == {"c"}


def test_proposals_of_normal_types_do_not_run_off() -> None:
    """Chance results that lie far out once made wider kernels, and these farther proposals."""
    space = FlatProposals({name: {"_type": "normal", "_value": [0, 1]} for name in "abcdef"})
    draws = Random(0)
    farthest = 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        results = Results(space.frame)
        for number in range(60):
            drawn = number < least_results(space, settings())
            proposal = space.draw(draws) if drawn else propose(space, results, settings(), rng)
            assert proposal is not None
            farthest = max([farthest, *(abs(float(value)) for value in proposal.values())])
            results.add(space.row(proposal), draws.random())

    assert farthest < 12


def test_the_prior_weighs_as_much_as_one_good_result() -> None:
    results = Results(SPACE.frame)
    for number in range(12):
        results.add(row(number / 12, number % 3), float(number))
    one = settings(num_samples=1)
    good = density(SPACE.frame, *results.best(3), one.min_bandwidth, 1 / 4)

    for seed in range(20):
        points, options = widened(good, one.bandwidth_factor).draw(1, np.random.default_rng(seed))
        drawn = Row(0, tuple(points[0].tolist()), tuple(options[0].tolist()))
        proposed = propose(SPACE, results, one, np.random.default_rng(seed))
        assert proposed == SPACE.configuration(drawn)


def test_best_share_makes_the_good_density_and_the_rest_the_bad_one() -> None:
    results, rng = Results(SPACE.frame), np.random.default_rng(5)
    for loss in range(40):
        results.add(row(float(rng.random()), int(rng.integers(3))), float(loss))
    ours = settings(num_samples=64)
    # 15 % of 40 are 6, 85 % are 34; the prior weighs as much as one good result.
    good, bad = (
        density(SPACE.frame, *rows, ours.min_bandwidth, 1 / 7)
        for rows in (results.best(6), results.worst(34))
    )

    for seed in range(40):
        drawn = widened(good, ours.bandwidth_factor).draw(64, np.random.default_rng(seed))
        ratio = good.log_density(*drawn) - bad.log_density(*drawn)
        best = int(ratio.argmax())
        expected = Row(0, tuple(drawn[0][best].tolist()), tuple(drawn[1][best].tolist()))
        proposed = propose(SPACE, results, ours, np.random.default_rng(seed))
        assert proposed == SPACE.configuration(expected)


def test_rows_that_are_likely_to_fail_are_proposed_less_often() -> None:
    results, success = Results(SPACE.frame), RowFeasibility(1, SPACE.frame.counts, 0.5)
    for number in range(40):
        one = row((number + 0.5) / 40, number % 3)
        results.add(one, abs(one.coordinates[0] - 0.5))
        success.add(one.coordinates, one.options, succeeded=one.coordinates[0] < 0.5)

    def proposed(seed: int, known: RowFeasibility | None) -> float:
        rng = np.random.default_rng(seed)
        return float((propose(SPACE, results, settings(), rng, known) or {})["x"])

    beyond = [sum(proposed(seed, known) > 0.5 for seed in range(20)) for known in (None, success)]

    assert beyond[1] < beyond[0]
