"""The model of one level."""

from typing import Any

import numpy as np
import pytest

from nni.hpo.encoding.columns import Row, levels_of
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.density.level_model import (
    REST_LIMIT,
    DensitySettings,
    LevelModel,
    Pending,
    age_weights,
)
from nni.hpo.tuners.density.rankings import Outcome


def model_of(space: dict[str, Any], objectives: int = 1) -> LevelModel:
    return LevelModel(levels_of(parse_space(space))[0], objectives)


def loss(value: float) -> Outcome:
    return Outcome((value,))


LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}
PAIR = {
    "c": {"_type": "choice", "_value": ["a", "b", "c", "d"]},
    "i": {"_type": "randint", "_value": [0, 3]},
}


def test_proposals_gather_where_results_are_good() -> None:
    model = model_of(LINE)
    rng = np.random.default_rng(0)
    for x in rng.random(100).tolist():
        model.observations.add(Row(0, (x,), ()), loss(abs(x - 0.7)))

    proposals = [model.propose(rng).coordinates[0] for _ in range(50)]

    # Good kernels lie within a few hundredths of 0.7; the prior may still propose elsewhere.
    assert sum(abs(x - 0.7) < 0.1 for x in proposals) >= 45


def test_without_observations_it_draws_from_the_prior() -> None:
    model = model_of({**LINE, **PAIR})
    rng = np.random.default_rng(0)
    proposals = [model.propose(rng) for _ in range(300)]

    # Uniform on [0, 1]: the mean of 300 has the standard deviation 0.017; five of them.
    assert abs(np.mean([p.coordinates[0] for p in proposals]) - 0.5) < 0.085
    assert {p.options[0] for p in proposals} == {0, 1, 2, 3}


def test_stepped_proposals_lie_on_the_grid() -> None:
    model = model_of(
        {
            "i": {"_type": "randint", "_value": [0, 4]},
            "q": {"_type": "quniform", "_value": [1, 10, 3]},
        }
    )
    rng = np.random.default_rng(0)
    for index in range(20):
        model.observations.add(Row(0, (0.125 + 0.25 * (index % 4), 0.0), ()), loss(float(index)))

    for _ in range(50):
        integer, quantised = model.propose(rng).coordinates
        assert integer in {0.125, 0.375, 0.625, 0.875}
        assert min(abs(quantised - c) for c in (0, 2 / 9, 5 / 9, 8 / 9, 1)) < 1e-12


def test_finite_level_proposes_what_has_not_been_tried() -> None:
    model = model_of(PAIR)
    rng = np.random.default_rng(0)
    tried: set[tuple[Any, ...]] = set()
    for index in range(10):
        row = model.propose(rng)
        tried.add((row.coordinates, row.options))
        model.observations.add(row, loss(float(index)))

    assert len(tried) == 10


def test_finite_level_goes_on_when_everything_has_been_tried() -> None:
    model = model_of(PAIR)
    for option in range(4):
        for i in range(3):
            model.observations.add(Row(0, ((i + 0.5) / 3,), (option,)), loss(float(option + i)))

    assert len(model.propose(np.random.default_rng(0)).options) == 1


def test_running_trials_have_kernels_however_bad_their_lie_is() -> None:
    model = model_of(LINE)
    count = 2 * REST_LIMIT
    for x in np.random.default_rng(0).random(count).tolist():
        model.observations.add(Row(0, (x,), ()), loss(x))

    _, rest = model._densities(Pending([Row(0, (0.123456,), ())], loss(5.0)))

    assert 0.123456 in rest.centres


def test_running_trials_widen_the_search() -> None:
    model = model_of(LINE)
    for x in np.random.default_rng(0).random(100).tolist():
        model.observations.add(Row(0, (x,), ()), loss(x))

    alone, _ = model._densities()
    crowded, _ = model._densities(Pending([Row(0, (0.5,), ())] * 90, loss(5.0)))

    assert crowded.widths.min() == pytest.approx(2 * alone.widths.min())  # sqrt(1 + 90 / 30)


def test_running_trial_that_is_taken_for_nothing_repels_less_than_a_bad_result() -> None:
    model = model_of(LINE)
    for x in np.random.default_rng(0).random(100).tolist():
        model.observations.add(Row(0, (x,), ()), loss(x))
    row = Row(0, (0.123456,), ())

    def density_there(pending: Pending | None) -> float:
        _, rest = model._densities(pending)
        there = rest.log_density(np.array([row.coordinates]), np.empty((1, 0), dtype=np.int64))
        return float(there[0])

    alone, running, bad = map(
        density_there, (None, Pending([row], None), Pending([row], loss(5.0)))
    )
    assert alone < running < bad


@pytest.mark.parametrize(("columns", "mixed"), [(3, False), (4, True)])
def test_beside_other_trials_proposals_mix_good_rows_of_several_columns(
    columns: int, mixed: bool
) -> None:
    names = [f"x{index}" for index in range(columns)]
    model = model_of({name: {"_type": "uniform", "_value": [0, 1]} for name in names})
    rng = np.random.default_rng(0)
    for point in rng.random((100, columns)).tolist():
        model.observations.add(Row(0, tuple(point), ()), loss(sum(point)))

    crowded = [model.propose(np.random.default_rng(seed), crowded=True) for seed in range(20)]
    alone = [model.propose(np.random.default_rng(seed)) for seed in range(20)]

    assert (crowded != alone) == mixed


def test_irrelevant_bell_does_not_drift() -> None:
    model = model_of({**LINE, "n": {"_type": "normal", "_value": [0, 1]}})
    rng = np.random.default_rng(0)
    for _ in range(200):
        row = model.propose(rng)
        model.observations.add(row, loss(abs(row.coordinates[0] - 0.2)))
        # The coordinate is 0.5 + z / 4: six standard deviations.
        assert abs(row.coordinates[1] - 0.5) < 1.5


@pytest.mark.parametrize("count", [REST_LIMIT, 5 * REST_LIMIT])
def test_rest_has_a_bounded_number_of_kernels(count: int) -> None:
    model = model_of(LINE)
    rng = np.random.default_rng(0)
    for x in rng.random(count).tolist():
        model.observations.add(Row(0, (x,), ()), loss(x))

    _, rest = model._densities()

    assert len(rest.centres) <= REST_LIMIT
    assert rest.weights.sum() + rest.prior_weight == pytest.approx(count - 9 + 1, abs=12)


def test_level_without_parameters_has_one_row() -> None:
    model = model_of({})

    assert model.propose(np.random.default_rng(0)) == Row(0, (), ())


@pytest.mark.parametrize(("lie", "among"), [(0.0, "good"), (5.0, "rest")])
def test_running_trial_counts_as_its_lie_ranks(lie: float, among: str) -> None:
    model = model_of(LINE)
    for x in np.random.default_rng(0).random(100).tolist():
        model.observations.add(Row(0, (x,), ()), loss(x))

    good, rest = model._densities(Pending([Row(0, (0.123456,), ())], loss(lie)))

    assert (0.123456 in good.centres) == (among == "good")
    assert (0.123456 in rest.centres) == (among == "rest")


def test_lies_among_the_good_displace_none_and_weigh_as_much_as_one() -> None:
    model = model_of(LINE)
    for x in np.random.default_rng(0).random(100).tolist():
        model.observations.add(Row(0, (x,), ()), loss(x))
    alone, _ = model._densities()

    good, _ = model._densities(Pending([Row(0, (0.9,), ())] * 10, loss(0.0)))

    assert good.centres[:-10].tolist() == alone.centres.tolist()
    assert good.weights[-10:].sum() == pytest.approx(good.weights[:-10].mean())


def test_running_row_of_a_finite_level_counts_as_tried() -> None:
    model = model_of(PAIR)
    rows = [Row(0, ((i + 0.5) / 3,), (option,)) for option in range(4) for i in range(3)]
    for index, row in enumerate(rows[:10]):
        model.observations.add(row, loss(float(index)))

    proposal = model.propose(np.random.default_rng(0), Pending(rows[10:11], loss(9.0)))

    assert proposal.options == rows[11].options
    assert proposal.coordinates == pytest.approx(rows[11].coordinates)


def test_proposals_of_two_objectives_lie_between_their_optima() -> None:
    model = model_of(LINE, objectives=2)
    rng = np.random.default_rng(0)
    for x in rng.random(100).tolist():
        model.observations.add(Row(0, (x,), ()), Outcome((abs(x - 0.3), abs(x - 0.5))))

    proposals = [model.propose(rng).coordinates[0] for _ in range(50)]

    # Everything from 0.3 to 0.5 is on the front, a fifth of the range.
    assert sum(0.28 < x < 0.52 for x in proposals) >= 45


def test_old_results_fade_linearly_with_their_order() -> None:
    assert age_weights([0, 3, 4, 9], 10, 6).tolist() == pytest.approx([0.1, 1.0, 1.0, 1.0])
    assert age_weights([1], 10, 6).tolist() == pytest.approx([0.4])


def test_few_results_do_not_fade() -> None:
    assert age_weights([0, 2], 3, 3).tolist() == [1.0, 1.0]
    assert age_weights([], 9, 3).tolist() == []


def test_user_prior_guides_the_first_proposals_and_fades_with_the_results() -> None:
    prior = {"value": 0.2, "confidence": "high"}
    shares = []
    for count in (2, 200):
        model = model_of({"x": {**LINE["x"], "_prior": prior}})
        rng = np.random.default_rng(0)
        for x in rng.random(count).tolist():
            model.observations.add(Row(0, (x,), ()), loss(abs(x - 0.7)))
        proposals = [model.propose(rng).coordinates[0] for _ in range(50)]
        shares.append(sum(abs(x - 0.2) < 0.15 for x in proposals) / 50)

    assert shares[0] > 0.5
    assert shares[1] < 0.1


def test_failures_lower_the_probability_of_success_near_them() -> None:
    model = model_of(LINE)
    for x in (0.1, 0.15, 0.2, 0.8, 0.85):
        model.add(Row(0, (x,), ()), loss(1.0))
    assert model.log_success(Row(0, (0.9,), ())) == 0.0

    for x in (0.9, 0.95, 0.98):
        model.add_failure(Row(0, (x,), ()))

    assert model.log_success(Row(0, (0.95,), ())) < model.log_success(Row(0, (0.12,), ())) < 0.0
    assert len(model.observations) == 5


def filled(
    space: dict[str, Any], count: int, settings: DensitySettings | None = None
) -> LevelModel:
    """Return a model of results at the middle of each number, each worse than the one before."""
    level = levels_of(parse_space(space))[0]
    model = LevelModel(level, settings=settings)
    row = Row(0, (0.5,) * len(level.numeric), (0,) * len(level.choices))
    for index in range(count):
        model.observations.add(row, loss(float(index)))
    return model


def test_settings_are_the_documented_ones() -> None:
    assert DensitySettings() == DensitySettings(
        good_factor=0.45, good_limit=25, candidates=32, prior_weight=1.0, newest=None
    )


@pytest.mark.parametrize(("count", "good"), [(1, 1), (4, 1), (5, 2), (100, 5), (400, 9)])
def test_good_rows_grow_with_the_root_of_all(count: int, good: int) -> None:
    found, rest = filled(LINE, count)._densities()

    assert len(found.centres) == good
    assert len(rest.centres) == count - good


def test_good_rows_are_limited() -> None:
    found, rest = filled(LINE, 100, DensitySettings(good_limit=3))._densities()

    assert (len(found.centres), len(rest.centres)) == (3, 97)


@pytest.mark.parametrize(
    ("count", "good", "rest"),
    [
        (3, 0.3, 0.1),  # the only good one
        (6, 0.25, 0.1),
        (10, 0.2, 0.1),
        (100, 0.02, 0.06),
        (400, 0.01, 0.03),
    ],
)
def test_kernels_at_one_place_are_as_wide_as_the_number_of_results_allows(
    count: int, good: float, rest: float
) -> None:
    found = filled(LINE, count)._densities()

    assert found[0].widths == pytest.approx(np.full((len(found[0].centres), 1), good))
    assert found[1].widths.tolist() == pytest.approx([rest])


def test_kernels_of_the_rest_are_the_narrower_the_more_columns_there_are() -> None:
    _, rest = filled({"x": LINE["x"], "y": LINE["x"]}, 200)._densities()

    assert rest.widths.tolist() == pytest.approx([0.03 / 2**0.7] * 2)


def test_kernels_of_stepped_columns_reach_the_next_value() -> None:
    good, rest = filled({"i": {"_type": "randint", "_value": [0, 4]}}, 400)._densities()

    assert good.widths == pytest.approx(np.full((9, 1), 0.5 * 0.25))
    assert rest.widths.tolist() == pytest.approx([0.4 * 0.25])


def test_kernels_slip_to_another_option_the_less_the_more_there_are() -> None:
    branch = {"_type": "choice", "_value": [{"_name": "a"}, {"_name": "b"}]}

    good, rest = filled({"c": PAIR["c"], "b": branch}, 100)._densities()

    # f c / (k + 1 + f c): half of four options, six times two for one that opens branches.
    assert good.slip == pytest.approx([2 / (6 + 2), 12 / (6 + 12)])
    assert rest.slip == pytest.approx([2 / (96 + 2), 12 / (96 + 12)])


@pytest.mark.parametrize(("lie", "weight"), [(None, 0.3), (5e9, 1.0)])
def test_running_trial_weighs_less_than_a_result_unless_it_has_a_lie(
    lie: float | None, weight: float
) -> None:
    model = filled(LINE, 100)

    _, rest = model._densities(Pending([Row(0, (0.1,), ())], None if lie is None else loss(lie)))

    assert rest.weights.tolist() == [1.0] * 95 + [weight]


@pytest.mark.parametrize(("lie", "joins"), [(3.5, True), (4.0, False)])
def test_lie_joins_the_good_rows_if_fewer_results_are_as_good(lie: float, joins: bool) -> None:
    good, _ = filled(LINE, 100)._densities(Pending([Row(0, (0.1,), ())], loss(lie)))

    assert len(good.centres) == (6 if joins else 5)


def test_four_hundred_others_have_kernels_and_the_prior_stands_for_the_rest() -> None:
    _, rest = filled(LINE, 420)._densities()

    assert len(rest.centres) == 400
    assert rest.prior_weight == 1.0 + 10


@pytest.mark.parametrize(
    ("space", "running", "crowded", "failing", "candidates"),
    [
        (LINE, None, False, False, 32),
        (LINE, loss(1.0), True, False, 16),
        (LINE, None, False, True, 96),
        (PAIR, loss(1.0), True, False, 32),
    ],
)
def test_candidates_compete_in_numbers_that_depend_on_the_other_trials(
    space: dict[str, Any], running: Outcome | None, crowded: bool, failing: bool, candidates: int
) -> None:
    model = model_of(space)
    for index in range(20):
        row = Row(0, (index / 20,), (0,) if space is PAIR else ())
        model.add(row, loss(float(index)))
        if failing:
            model.add_failure(Row(0, (0.9 + index / 200,), ()))
    pending = None if running is None else Pending([row], running)
    seen: list[Row] = []

    def never(candidate: Row) -> bool:
        seen.append(candidate)
        return False

    found = model.propose(np.random.default_rng(0), pending, never, crowded=crowded)

    assert len(seen) == candidates
    assert found in seen


def test_only_candidate_that_is_allowed_is_proposed() -> None:
    model, seen = filled(LINE, 20), list[float]()

    def fifth(candidate: Row) -> bool:
        seen.append(candidate.coordinates[0])
        return len(seen) == 5

    found = model.propose(np.random.default_rng(0), None, fifth)

    assert found.coordinates == (seen[4],)
    assert len(seen) == 5


def test_newer_results_weigh_more_where_old_ones_fade() -> None:
    good, rest = filled(LINE, 100, DensitySettings(newest=50))._densities()
    whole, _ = filled(LINE, 100)._densities()

    fading = age_weights(range(100), 100, 50)
    assert good.weights == pytest.approx(whole.weights * fading[:5])
    assert rest.weights == pytest.approx(fading[5:])


@pytest.mark.parametrize(
    ("candidates", "lie", "expected"), [(32, None, 32), (32, 1.0, 16), (64, None, 64), (1, 1.0, 1)]
)
def test_candidates_that_mix_good_rows_are_among_the_others(
    candidates: int, lie: float | None, expected: int
) -> None:
    space = dict.fromkeys("abcd", LINE["x"])
    model = filled(space, 20, DensitySettings(candidates=candidates))
    pending = Pending([Row(0, (0.5,) * 4, ())], None if lie is None else loss(lie))
    seen: list[Row] = []

    def never(candidate: Row) -> bool:
        seen.append(candidate)
        return False

    model.propose(np.random.default_rng(0), pending, never, crowded=True)

    assert len(seen) == expected


@pytest.mark.parametrize("column", ["uniform", "normal"])
def test_candidate_of_the_greatest_ratio_of_the_densities_is_proposed(column: str) -> None:
    model = model_of({"x": {"_type": column, "_value": [0, 1]}})
    for x in np.random.default_rng(1).random(100).tolist():
        model.observations.add(Row(0, (x,), ()), loss(abs(x - 0.7)))
    good, rest = model._densities()

    for seed in range(20):
        points, options = good.draw(32, np.random.default_rng(seed))
        ratio = good.log_density(points, options) - rest.log_density(points, options)
        if column == "normal":  # with the density of the prior: 0.5 + z / 4
            ratio -= 0.5 * (4 * (points[:, 0] - 0.5)) ** 2
        found = model.propose(np.random.default_rng(seed))
        assert found.coordinates == pytest.approx((points[ratio.argmax(), 0],))
