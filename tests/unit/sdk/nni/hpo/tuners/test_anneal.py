"""Annealing."""

from statistics import fmean, median, pstdev

import pytest

from nni.hpo import AnnealTuner, RandomTuner, Tuner
from nni.hpo.json_value import JsonValue

LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}
PLANE = {
    "x": {"_type": "uniform", "_value": [-5, 5]},
    "y": {"_type": "loguniform", "_value": [1e-3, 1e3]},
}
BRANCHES = {
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "good", "w": {"_type": "uniform", "_value": [0, 1]}},
            {"_name": "bad", "v": {"_type": "randint", "_value": [0, 100]}},
        ],
    }
}


def taught(space: JsonValue, results: list[tuple[JsonValue, float]], seed: int = 0) -> AnnealTuner:
    tuner = AnnealTuner("minimize", seed=seed)
    tuner.update_search_space(space)
    for number, (parameters, value) in enumerate(results):
        tuner.receive_trial_result(number, parameters, value)
    return tuner


def drawn(tuner: AnnealTuner, key: str, count: int = 400) -> list[float]:
    return [tuner.generate_parameters(number)[key] for number in range(count)]


def best_of(tuner: Tuner, trials: int) -> float:
    tuner.update_search_space(PLANE)
    losses: list[float] = []
    for number in range(trials):
        parameters = tuner.generate_parameters(number)
        loss = (parameters["x"] - 1) ** 2 + abs(parameters["y"] - 1)
        tuner.receive_trial_result(number, parameters, loss)
        losses.append(loss)
    return min(losses)


def test_first_draws_are_of_the_prior() -> None:
    anneal = taught(PLANE, [], seed=4)
    rival = RandomTuner(seed=4)
    rival.update_search_space(PLANE)

    assert anneal.generate_parameters(0) == rival.generate_parameters(0)


def test_draws_shrink_around_a_good_result() -> None:
    tuner = taught(LINE, [({"x": 0.5}, 0.0)] * 90)

    values = drawn(tuner, "x")

    # 90 results shrink the range to a tenth: uniform on [0.45, 0.55].
    assert 0.45 <= min(values) < 0.46
    assert 0.54 < max(values) <= 0.55
    assert pstdev(values) == pytest.approx(0.1 / 12**0.5, rel=0.1)


def test_draws_near_a_bound_stay_inside_at_full_width() -> None:
    values = drawn(taught(LINE, [({"x": 1.0}, 0.0)] * 90), "x")

    assert 0.9 <= min(values) < 0.91
    assert 0.99 < max(values) <= 1.0


def test_better_results_are_taken_more_often() -> None:
    results = [({"x": rank / 10 + 0.05}, float(rank)) for rank in range(10)] * 100
    values = drawn(taught(LINE, results), "x")

    # Equal results share a rank's place: the hundred best are all at 0.05.
    assert fmean(value < 0.1 for value in values) > 0.95


def test_ranks_are_taken_with_halving_chances() -> None:
    # A thousand results shrink the range to 0.01, so a draw tells which result it is near.
    results = [({"x": 0.1}, 0.0), ({"x": 0.3}, 1.0)] + [({"x": 0.9}, 2.0)] * 998
    values = drawn(taught(LINE, results), "x", 2000)
    shares = [fmean(abs(value - place) < 0.01 for value in values) for place in (0.1, 0.3, 0.9)]

    # Four standard deviations of a share of 2,000 draws are 0.045.
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.045)


def test_unordered_values_are_kept_or_drawn_anew() -> None:
    space = {"n": {"_type": "randint", "_value": [0, 1000]}}
    tuner = taught(space, [({"n": 500}, 0.0)] * 90)

    values = drawn(tuner, "n", 1000)

    assert 0.85 < fmean(value == 500 for value in values) < 0.95
    assert any(abs(value - 500) > 250 for value in values)


def test_a_branch_that_the_result_did_not_take_uses_results_of_its_own() -> None:
    results: list[tuple[JsonValue, float]] = [({"model": {"_name": "good", "w": 0.5}}, 0.0)] * 4
    results += [({"model": {"_name": "bad", "v": 7}}, 9.0)] * 400
    tuner = taught(BRANCHES, results)

    models = [tuner.generate_parameters(number)["model"] for number in range(400)]

    bad = [model["v"] for model in models if model["_name"] == "bad"]
    assert len(models) > len(bad) > 0
    assert fmean(value == 7 for value in bad) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_better_than_random_search_on_a_bowl(seed: int) -> None:
    anneal = median(best_of(AnnealTuner("minimize", 100 * seed + s), 60) for s in range(7))
    rival = median(best_of(RandomTuner(seed=100 * seed + s), 60) for s in range(7))

    assert anneal < rival / 3


def test_new_space_keeps_the_results_that_fit() -> None:
    tuner = taught(LINE, [({"x": 0.25}, 0.0)] * 100 + [({"x": 0.75}, -1.0)] * 100)

    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 0.5]}})

    assert fmean(drawn(tuner, "x")) == pytest.approx(0.25, abs=0.01)


def test_result_outside_the_space_is_dropped() -> None:
    tuner = taught(LINE, [({"x": 7.0}, -9.0), ({"y": 0.1}, -9.0)])

    assert tuner.state()["observed"] == []


def test_zero_of_a_quantised_logarithm_is_a_place_to_draw_near() -> None:
    space = {"x": {"_type": "qlognormal", "_value": [0, 1, 1]}}

    values = drawn(taught(space, [({"x": 0.0}, 0.0)] * 1000), "x", 50)

    assert set(values) <= {0.0, 1.0}


def test_user_prior_is_refused() -> None:
    entry = {"_type": "uniform", "_value": [0, 1], "_prior": 0.5}

    with pytest.raises(ValueError, match="_prior"):
        AnnealTuner().update_search_space({"x": entry})


def test_imported_results_count_as_received_ones_and_others_are_skipped() -> None:
    results: list[tuple[JsonValue, float]] = [({"x": 0.2}, 1.0), ({"x": 0.7}, 0.5)]
    received, imported = taught(LINE, results), taught(LINE, [])

    imported.import_data(
        [
            *({"parameter": parameters, "value": value} for parameters, value in results),
            {"parameter": {"x": 0.1}, "value": None},
            {"parameter": {"x": 7.0}, "value": 1.0},
        ]
    )

    assert imported.state() == received.state()
    assert drawn(imported, "x", 5) == drawn(received, "x", 5)


def test_result_without_a_number_is_ignored() -> None:
    tuner = taught(LINE, [({"x": 0.5}, 1.0)])

    tuner.receive_trial_result(1, {"x": 0.1}, None)

    assert tuner.state()["observed"] == [[{"x": 0.5}, 1.0]]


def test_prior_is_drawn_from_on_request_whatever_the_results_are() -> None:
    tuner, rival = taught(LINE, [({"x": 0.5}, 0.0)] * 90, seed=4), RandomTuner(seed=4)
    rival.update_search_space(LINE)

    assert tuner.suggest(from_prior=True) == rival.generate_parameters(0)


def test_state_replaces_what_was_learnt() -> None:
    tuner = taught(LINE, [({"x": 0.1}, -5.0)] * 9, seed=1)
    other = taught(LINE, [({"x": 0.5}, 0.0)] * 90)

    tuner.load_state(other.state())

    assert tuner.state() == other.state()
    assert drawn(tuner, "x", 20) == drawn(other, "x", 20)


def test_configurations_near_a_result_keep_the_constraints() -> None:
    space = {**LINE, "n": {"_type": "randint", "_value": [0, 9]}, "_constraints": ["x < 0.5"]}
    tuner = taught(space, [({"x": 0.499, "n": 3}, 0.0)] * 9)

    values = drawn(tuner, "x", 60)

    assert max(values) < 0.5
    assert min(values) < 0.45


def test_place_beyond_all_numbers_counts_as_the_middle() -> None:
    least = 1e-308  # a result at 1e10 is more deviations away than a float can tell
    tuner = taught({"x": {"_type": "normal", "_value": [0, least]}}, [({"x": 1e10}, 1.0)])

    values = sorted(drawn(tuner, "x", 100))

    assert abs(values[50]) < least
