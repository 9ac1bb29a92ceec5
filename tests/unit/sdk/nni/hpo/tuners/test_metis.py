"""Metis."""

import inspect
from statistics import median

import numpy as np
import pytest

from nni.hpo import MetisTuner, RandomTuner, Tuner
from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import vector_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import FittedGP
from nni.hpo.models.gp_regression import Kernel, gp_posterior, initial_hyperparameters
from nni.hpo.models.matern import Matern
from nni.hpo.models.targets import standardised
from nni.hpo.tuners.metis import _outlier

LINE = {"x": {"_type": "uniform", "_value": [0, 1]}}
PLANE = {
    "x": {"_type": "uniform", "_value": [-5, 5]},
    "y": {"_type": "quniform", "_value": [0, 100, 1]},
    "z": {"_type": "choice", "_value": [1, 2, 4, 8]},
}


def taught(tuner: MetisTuner, results: list[tuple[float, float]]) -> MetisTuner:
    tuner.update_search_space(LINE)
    for number, (x, value) in enumerate(results):
        tuner.receive_trial_result(number, {"x": x}, value)
    return tuner


def hollow(count: int) -> list[tuple[float, float]]:
    places = [(number + 0.5) / count for number in range(count)]
    return [(x, (x - 0.42) ** 2) for x in places]


def best_of(tuner: Tuner, trials: int) -> float:
    tuner.update_search_space(PLANE)
    losses: list[float] = []
    for number in range(trials):
        point = tuner.generate_parameters(number)
        losses.append((point["x"] - 1) ** 2 + abs(point["y"] - 60) / 10 + abs(point["z"] - 4))
        tuner.receive_trial_result(number, point, losses[-1])
    return min(losses)


def test_first_points_are_random_and_imported_ones_count() -> None:
    tuner, rival = MetisTuner(seed=3), RandomTuner(seed=3)
    tuner.update_search_space(LINE)
    rival.update_search_space(LINE)
    assert tuner.generate_parameters(0) == rival.generate_parameters(0)

    tuner.import_data([{"parameter": {"x": x}, "value": -v} for x, v in hollow(12)])

    rival.generate_parameters(1)
    assert tuner.generate_parameters(1) != rival.generate_parameters(2)


def test_proposes_the_predicted_optimum_without_candidates() -> None:
    tuner = taught(MetisTuner("minimize", no_candidates=True, seed=0), hollow(15))

    assert tuner.generate_parameters(99)["x"] == pytest.approx(0.42, abs=0.01)


def test_best_prediction_of_a_short_list_is_proposed_whatever_the_seed() -> None:
    found = set()
    for seed in range(4):
        tuner = MetisTuner("minimize", no_candidates=True, seed=seed)
        tuner.update_search_space({"n": {"_type": "randint", "_value": [0, 30]}})
        for number in range(0, 30, 2):
            tuner.receive_trial_result(number, {"n": number}, (number - 11) ** 2)
        found.add(tuner.generate_parameters(99)["n"])

    assert found == {11}


def test_predicted_optimum_may_lie_where_nothing_was_measured() -> None:
    results = [(x, value) for x, value in hollow(30) if abs(x - 0.42) > 0.25]
    tuner = taught(MetisTuner("minimize", no_candidates=True, seed=0), results)

    assert tuner.generate_parameters(99)["x"] == pytest.approx(0.42, abs=0.05)


def test_explores_where_least_is_known() -> None:
    # Loss falls towards the gap, so that the gap's lower confidence bound is the lowest.
    results = [(x / 40, 1 - x / 40) for x in range(20)] + [(0.96, 0.6), (0.98, 0.6), (1.0, 0.6)]
    tuner = taught(MetisTuner("minimize", exploration_probability=1, seed=0), results)

    assert 0.5 < tuner.generate_parameters(99)["x"] < 0.95


@pytest.mark.parametrize(("probability", "low", "high"), [(1, 0.5, 0.95), (0, 0.0, 0.2)])
def test_probability_decides_between_a_gap_and_the_good_results(
    probability: float, low: float, high: float
) -> None:
    results = [(x / 40, (x / 40 - 0.1) ** 2) for x in range(16)] + [(0.97, 0.75), (1.0, 0.8)]
    tuner = taught(MetisTuner("minimize", exploration_probability=probability, seed=0), results)

    assert low < tuner.generate_parameters(99)["x"] < high


def test_exploiting_candidate_is_near_good_results() -> None:
    tuner = taught(MetisTuner("minimize", exploration_probability=0, seed=0), hollow(30))

    for number in range(5):
        assert tuner.generate_parameters(100 + number)["x"] == pytest.approx(0.42, abs=0.2)


@pytest.mark.parametrize("no_resampling", [True, False])
def test_incredible_result_is_measured_again_only_if_asked(no_resampling: bool) -> None:
    results = [(x, -5.0 if x == 0.5 else v) for x, v in [*hollow(21), (0.5, 0.0)]]
    results = [(x, v) for x, v in results if x != 0.5 or v == -5.0]
    tuner = taught(MetisTuner("minimize", no_resampling, seed=0), results)

    repeated = [tuner.generate_parameters(100 + number)["x"] == 0.5 for number in range(4)]

    assert any(repeated) is not no_resampling


def test_point_with_several_results_counts_with_their_mean() -> None:
    noisy = [(x, value + change) for x, value in hollow(15) for change in (-0.05, 0.05)]
    tuner = taught(MetisTuner("minimize", no_candidates=True, seed=0), noisy)

    assert tuner.generate_parameters(99)["x"] == pytest.approx(0.42, abs=0.01)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("exploration_probability", 1.5),
        ("cold_start_num", 0),
        ("selection_num_starting_points", 0),
        ("ask_time_limit", -1),
        ("optimize_mode", "max"),
    ],
)
def test_arguments_are_checked(argument: str, value: JsonValue) -> None:
    with pytest.raises(ValueError, match=argument):
        MetisTuner(**{argument: value})


def test_better_than_random_search() -> None:
    metis = median(best_of(MetisTuner("minimize", seed=seed), 30) for seed in range(3))
    rival = median(best_of(RandomTuner(seed=seed), 30) for seed in range(3))

    assert metis < rival / 2


def test_prepares_proposals() -> None:
    assert MetisTuner.prepares


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ({"no_candidates": False}, {"no_candidates": True}),
        ({"exploration_probability": 0.9}, {"exploration_probability": 0.0}),
        ({"cold_start_num": 10}, {"cold_start_num": 30}),
        ({"optimize_mode": "maximize"}, {"optimize_mode": "minimize"}),
    ],
)
def test_defaults_are_the_documented_ones(
    given: dict[str, JsonValue], other: dict[str, JsonValue]
) -> None:
    default, same, different = (
        taught(MetisTuner(seed=1, **arguments), hollow(15)) for arguments in ({}, given, other)
    )

    proposed = [
        [tuner.generate_parameters(100 + number)["x"] for number in range(6)]
        for tuner in (default, same, different)
    ]

    assert proposed[0] == proposed[1]
    assert proposed[0] != proposed[2]


def test_random_points_come_until_enough_results_are_known() -> None:
    tuners = [taught(MetisTuner(cold_start_num=4, seed=3), hollow(count)) for count in (3, 4)]
    rival = RandomTuner(seed=3)
    rival.update_search_space(LINE)

    drawn = rival.generate_parameters(0)

    assert [tuner.generate_parameters(9) == drawn for tuner in tuners] == [True, False]


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("no_resampling", True),
        ("selection_num_starting_points", 600),
        ("ask_time_limit", 0.1),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(MetisTuner).parameters[argument].default == default


def fitted_wave(outlier: float) -> tuple[FittedGP, Floats]:
    """Return a model of a wave with one result off by some deviations, and its vectors."""
    vectors = np.linspace(0, 1, 12)[:, None]
    losses = np.sin(6 * vectors[:, 0]) + 0.02 * np.random.default_rng(0).standard_normal(12)
    losses[5] += outlier
    targets = standardised(losses)
    kernel = Kernel(np.arange(1), Matern.of(2.5), 1e-2)
    posterior = gp_posterior(vectors, targets, kernel, initial_hyperparameters(1))
    return FittedGP(posterior, vectors, targets, np.arange(12)), vectors


@pytest.mark.parametrize("outlier", [-3.0, 3.0])
def test_outlier_has_the_lower_bound_of_its_result_or_of_its_prediction(outlier: float) -> None:
    fitted, vectors = fitted_wave(outlier)
    means, deviations = fitted.posterior.gaussian.leave_one_out(fitted.targets)

    found = _outlier(vectors, fitted, set())

    lower = min(fitted.targets[5], means[5])
    assert found is not None
    assert found.vector.tolist() == vectors[5].tolist()
    assert found.bound == pytest.approx(lower - 1.96 * deviations[5])


def test_trusted_result_is_no_outlier_nor_one_within_its_bounds() -> None:
    fitted, vectors = fitted_wave(3.0)
    means, deviations = fitted.posterior.gaussian.leave_one_out(fitted.targets)
    beyond = np.flatnonzero(np.abs(fitted.targets - means) > 1.96 * deviations)
    trusted = {vector_key(vectors[place]) for place in beyond}

    assert 5 in beyond
    assert _outlier(vectors, fitted, trusted) is None


def test_result_measured_three_times_or_running_is_trusted() -> None:
    tuner = taught(MetisTuner("minimize", seed=0), [(0.5, 1.0)] * 3 + [(0.2, 1.0)] * 2)
    running = tuner.generate_parameters(9)["x"]

    found = tuner._trusted_keys()

    assert found == {vector_key(np.array([x])) for x in (0.5, running)}


def test_several_measurements_are_one_result_of_their_mean() -> None:
    tuner = taught(MetisTuner("minimize", seed=0), [(0.5, 1.0), (0.2, 4.0), (0.5, 3.0)])

    vectors, losses = tuner._measured()

    assert vectors.tolist() == [[0.5], [0.2]]
    assert losses.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(("count", "found"), [(1, False), (2, True)])
def test_exploiting_candidate_needs_a_good_and_a_bad_result(count: int, found: bool) -> None:
    tuner = taught(MetisTuner("minimize", seed=0), [])

    candidate = tuner._exploiting_candidate(np.linspace(0, 1, count)[:, None], set())

    assert (candidate is not None) is found


@pytest.mark.parametrize(
    "arguments",
    [
        {"exploration_probability": 0},
        {"exploration_probability": 1},
        {"cold_start_num": 1},
        {"selection_num_starting_points": 1},
        {"ask_time_limit": 0},
        {"ask_time_limit": float("inf")},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(MetisTuner(**arguments), MetisTuner)


@pytest.mark.parametrize(
    "arguments",
    [
        {"exploration_probability": -0.1},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        MetisTuner(**arguments)
