"""SMAC."""

import inspect
import json
import logging
from collections.abc import Callable
from statistics import median

import numpy as np
import pytest

from nni.errors import NoMoreTrialError
from nni.hpo import RandomTuner, SMACTuner, Tuner
from nni.hpo.arrays import Floats
from nni.hpo.base import generate
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import canonical_json

TWELVE = {
    "a": {"_type": "choice", "_value": ["p", None, [1]]},
    "b": {"_type": "quniform", "_value": [0, 3, 1]},
}
MIXED = {
    "c": {"_type": "choice", "_value": ["a", "b", "c", "d", "e", "f"]},
    "d": {"_type": "choice", "_value": ["u", "v", "w"]},
    "i": {"_type": "randint", "_value": [0, 50]},
    "l": {"_type": "loguniform", "_value": [1e-4, 1]},
}


def loss(point: dict[str, JsonValue]) -> float:
    total = {"a": 3, "b": 1, "c": 4, "d": 0, "e": 5, "f": 2}[str(point["c"])]
    return float(total + 2 * (point["d"] != "v") + abs(point["i"] - 30) / 10 + abs(point["l"] - 1))


def best_of(tuner: Tuner, trials: int) -> float:
    tuner.update_search_space(MIXED)
    losses = []
    for number in range(trials):
        point = tuner.generate_parameters(number)
        losses.append(loss(point))
        tuner.receive_trial_result(number, point, losses[-1])
    return min(losses)


def test_first_point_is_the_middle_and_the_first_options() -> None:
    tuner = SMACTuner(seed=0)
    tuner.update_search_space(MIXED)

    first = tuner.generate_parameters(0)

    assert (first["c"], first["d"], first["i"]) == ("a", "u", 24)
    assert first["l"] == pytest.approx(1e-2)


@pytest.mark.claim("hpo", 36)
def test_twelve_points_are_handed_out_once() -> None:
    tuner = SMACTuner(config_dedup=True, seed=0)
    tuner.update_search_space(TWELVE)

    points = []
    for number in range(12):
        points.append(tuner.generate_parameters(number))
        tuner.receive_trial_result(number, points[-1], float(number % 5))

    assert len({canonical_json(point) for point in points}) == 12
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(12)


@pytest.mark.claim("hpo", 36)
def test_failed_points_are_not_handed_out_again_after_a_restart() -> None:
    tuner, other = (SMACTuner(config_dedup=True, seed=0) for _ in range(2))
    for one in (tuner, other):
        one.update_search_space(TWELVE)
    first = generate(tuner, range(7)).parameters
    for number, _ in first:
        tuner.trial_end(number, False)

    other.load_state(json.loads(json.dumps(tuner.state())))
    rest = generate(other, range(7, 20))

    assert rest.exhausted
    assert len({canonical_json(point) for _, point in (*first, *rest.parameters)}) == 12


def test_state_of_an_older_version_opens_without_its_keys() -> None:
    tuner, other = (SMACTuner(config_dedup=True, seed=0) for _ in range(2))
    for one in (tuner, other):
        one.update_search_space(TWELVE)
    first = tuner.generate_parameters(0)
    state = {**tuner.state(), "handed_out": [[0.0, 0.5]]}

    other.load_state(json.loads(json.dumps(state)))

    rest = generate(other, range(1, 20))
    assert rest.exhausted
    assert len({canonical_json(point) for point in (first, *(p for _, p in rest.parameters))}) == 12


def test_batch_holds_distinct_points() -> None:
    tuner = SMACTuner("minimize", seed=0)
    best_of(tuner, 10)

    points = [point for _, point in generate(tuner, range(20, 36)).parameters]

    assert len({canonical_json(point) for point in points}) == 16


def test_without_dedup_a_small_space_never_ends() -> None:
    tuner = SMACTuner(seed=0)
    tuner.update_search_space(TWELVE)

    assert len(generate(tuner, range(30)).parameters) == 30


def test_later_space_is_refused_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    tuner = SMACTuner(seed=0)
    tuner.update_search_space(TWELVE)

    with caplog.at_level(logging.WARNING):
        tuner.update_search_space(MIXED)

    assert set(tuner.generate_parameters(0)) == {"a", "b"}
    assert "keeps its first search space" in caplog.text


def test_better_than_random_search() -> None:
    smac = median(best_of(SMACTuner("minimize", seed=seed), 40) for seed in range(9))
    rival = median(best_of(RandomTuner(seed=seed), 40) for seed in range(9))

    assert smac < rival / 2


def test_user_prior_is_refused() -> None:
    entry = {"_type": "randint", "_value": [0, 9], "_prior": 5}

    with pytest.raises(ValueError, match="_prior"):
        SMACTuner().update_search_space({"x": entry})


def test_nested_choice_is_refused() -> None:
    space = {"m": {"_type": "choice", "_value": [{"_name": "a"}]}}

    with pytest.raises(ValueError, match="nested choice is not supported by SMAC"):
        SMACTuner().update_search_space(space)


def test_proposals_repeat_by_default_and_mode_is_maximize() -> None:
    default, given = SMACTuner(seed=0), SMACTuner("maximize", config_dedup=False, seed=0)

    assert best_of(default, 12) == best_of(given, 12)
    assert len(generate(default, range(20, 40)).parameters) == 20


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("config_dedup", False),
        ("seed", None),
    ],
)
def test_default_arguments_are_the_documented_ones(argument: str, default: object) -> None:
    assert inspect.signature(SMACTuner).parameters[argument].default == default


def test_first_point_is_another_one_if_the_middle_is_known() -> None:
    tuner = SMACTuner(seed=0)
    tuner.update_search_space(TWELVE)
    middle = SMACTuner(seed=0)
    middle.update_search_space(TWELVE)
    known = middle.generate_parameters(0)

    tuner.import_data([{"parameter": known, "value": 1.0}])

    assert tuner.generate_parameters(0) != known


@pytest.mark.parametrize(("count", "grown_on"), [(20, 20), (21, 20), (22, 22)])
def test_forest_of_ten_trees_is_grown_anew_after_a_twentieth_of_new_results(
    count: int, grown_on: int
) -> None:
    tuner = SMACTuner("minimize", seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    for number in range(count):
        tuner.receive_trial_result(number, {"x": number / 30}, float(number % 7))
        if number == 19:
            tuner._current_forest()

    forest, targets = tuner._current_forest()

    assert tuner.state()["model"][0] == grown_on
    assert len(forest.trees) == 10
    assert len(targets) == count


def test_every_second_proposal_after_three_results_is_of_the_model() -> None:
    tuner = SMACTuner("minimize", seed=0)
    tuner.update_search_space(MIXED)
    grown = []
    for number in range(6):
        before = tuner.state()["model"]
        point = tuner.generate_parameters(number)
        grown.append(tuner.state()["model"] != before)
        tuner.receive_trial_result(number, point, loss(point))

    assert grown == [False, False, False, True, False, True]


def test_neighbours_differ_from_their_start_in_one_coordinate() -> None:
    tuner = SMACTuner("minimize", seed=0)
    tuner.update_search_space(MIXED)
    starts = tuner._space.sample(np.random.default_rng(0), 3)

    neighbours, owners = tuner._neighbours(starts)

    listed = [len(tuner._space.neighbours(start)) for start in starts]
    ordered = 2  # the integer and the logarithm, four steps each
    assert np.bincount(owners).tolist() == [count + 4 * ordered for count in listed]
    assert ((neighbours != starts[owners]).sum(axis=1) <= 1).all()


def with_space(search_space: JsonValue) -> SMACTuner:
    tuner = SMACTuner("minimize", seed=0)
    tuner.update_search_space(search_space)
    return tuner


def test_steps_to_neighbours_have_a_standard_deviation_of_a_fifth() -> None:
    starts = np.full((250, 1), 0.5)

    neighbours, _ = with_space({"x": {"_type": "uniform", "_value": [0, 1]}})._neighbours(starts)

    # Those beyond the bounds, 2.5 deviations away, are moved to them: 0.198. Four deviations of
    # that of 1000 steps are 0.018.
    assert len(neighbours) == 1000
    assert (neighbours - 0.5).std() == pytest.approx(0.198, abs=0.018)


@pytest.mark.parametrize(("rise", "rounds"), [(1.0, 10), (0.0, 1)])
def test_local_search_goes_on_for_ten_rounds_while_neighbours_are_better(
    rise: float, rounds: int
) -> None:
    tuner = with_space({"x": {"_type": "randint", "_value": [0, 10**6]}})
    sizes: list[int] = []

    def value_of(vectors: Floats) -> Floats:
        sizes.append(len(vectors))
        return np.full(len(vectors), rise * len(sizes))

    visited, values = tuner._local_search(np.array([[5e-7]]), value_of)

    assert len(sizes) == 1 + rounds
    assert len(visited) == len(values) == sum(sizes)
    assert values.max() == rise * (1 + rounds)


class RecordingSMAC(SMACTuner):
    """Records the starts of its local searches."""

    starts: Floats

    def _local_search(
        self, starts: Floats, value_of: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats]:
        self.starts = starts
        return super()._local_search(starts, value_of)


def test_local_search_starts_from_the_twenty_best_results_and_as_many_draws() -> None:
    tuner = RecordingSMAC("minimize", seed=0)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    places = [(7 * number % 30 + 0.5) / 30 for number in range(30)]
    for number, place in enumerate(places):
        tuner.receive_trial_result(number, {"x": place}, abs(place - 0.31))

    for number in range(2):  # one of the two is a random draw
        tuner.generate_parameters(100 + number)

    best = sorted(places, key=lambda place: abs(place - 0.31))[:20]
    assert tuner.starts[:20, 0] == pytest.approx(best)
    assert len(tuner.starts) == 40
    assert not set(tuner.starts[20:, 0].tolist()) & set(places)
