"""DNGO."""

import inspect
from statistics import median

import numpy as np
import pytest

from nni.hpo import DNGOTuner, RandomTuner, Tuner
from nni.hpo.json_value import JsonValue

PLANE = {
    "x": {"_type": "uniform", "_value": [-5, 5]},
    "y": {"_type": "loguniform", "_value": [1e-3, 1e3]},
    "n": {"_type": "randint", "_value": [0, 20]},
}


def loss(point: dict[str, float]) -> float:
    return float((point["x"] - 1) ** 2 + abs(point["y"] - 1) ** 0.5 + abs(point["n"] - 12) / 4)


def best_of(tuner: Tuner, trials: int) -> float:
    tuner.update_search_space(PLANE)
    losses = []
    for number in range(trials):
        point = tuner.generate_parameters(number)
        losses.append(loss(point))
        tuner.receive_trial_result(number, point, losses[-1])
    return min(losses)


def test_points_are_random_until_the_first_update() -> None:
    tuner, rival = DNGOTuner(trials_per_update=8, seed=2), RandomTuner(seed=2)
    tuner.update_search_space(PLANE)
    rival.update_search_space(PLANE)

    for number in range(8):
        point = tuner.generate_parameters(number)
        assert point == pytest.approx(rival.generate_parameters(number))
        tuner.receive_trial_result(number, point, -loss(point))
    assert tuner.generate_parameters(8) != pytest.approx(rival.generate_parameters(8))


def test_network_is_trained_anew_after_as_many_results() -> None:
    tuner = DNGOTuner("minimize", 50, trials_per_update=5, num_epochs_per_training=3, seed=0)
    tuner.update_search_space(PLANE)

    trained_on = []
    for number in range(18):
        point = tuner.generate_parameters(number)
        trained_on.append(tuner.state()["model"][0])
        tuner.receive_trial_result(number, point, loss(point))

    assert trained_on == [0] * 5 + [5] * 5 + [10] * 5 + [15] * 3


@pytest.mark.parametrize(
    "argument", ["sample_size", "trials_per_update", "num_epochs_per_training"]
)
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
def test_counts_are_checked(argument: str, value: JsonValue) -> None:
    with pytest.raises(ValueError, match=argument):
        DNGOTuner(**{argument: value})


@pytest.mark.timeout(300)  # trains 250 networks
def test_better_than_random_search() -> None:
    ours = median(
        best_of(DNGOTuner("minimize", num_epochs_per_training=100, seed=seed), 60)
        for seed in range(5)
    )
    rival = median(best_of(RandomTuner(seed=seed), 60) for seed in range(5))

    assert ours < rival


def test_networks_of_different_seeds_start_differently() -> None:
    seeds = set()
    for seed in (1, 2):
        tuner = DNGOTuner("minimize", 50, trials_per_update=2, num_epochs_per_training=1, seed=seed)
        tuner.update_search_space(PLANE)
        for number in range(2):
            point = tuner.generate_parameters(number)
            tuner.receive_trial_result(number, point, loss(point))
        tuner.generate_parameters(2)
        seeds.add(tuner.state()["model"][1])

    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("sample_size", 1000),
        ("trials_per_update", 20),
        ("num_epochs_per_training", 500),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(DNGOTuner).parameters[argument].default == default


def test_fifth_of_the_candidates_lies_near_good_results() -> None:
    tuner = DNGOTuner("minimize", seed=0)
    tuner.update_search_space(dict.fromkeys("abcd", PLANE["x"]))

    candidates = tuner._sampled(np.full((1, 4), 0.5))

    assert candidates.shape == (1000, 4)
    # The standard deviation of 800 numbers is known to 0.0013; four of them.
    assert (candidates[800:] - 0.5).std() == pytest.approx(0.05, abs=0.005)
    assert (candidates[:800] - 0.5).std() == pytest.approx(12**-0.5, abs=0.01)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sample_size": 1},
        {"trials_per_update": 1},
        {"num_epochs_per_training": 1},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(DNGOTuner(**arguments), DNGOTuner)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sample_size": 0},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        DNGOTuner(**arguments)
