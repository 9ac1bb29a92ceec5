"""Population based training."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nni.algorithms.hpo.pbt_tuner import PBTTuner
from nni.hpo.base import generate
from nni.hpo.checkpoint_folders import default_root
from nni.hpo.space.parser import parse_space, place
from nni.hpo.tuners.pbt import perturbed

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
    "act": {"_type": "choice", "_value": ["relu", "tanh", "gelu"]},
}
ROOT = Path("/checkpoints")
FOLDERS = frozenset({"load_checkpoint_dir", "save_checkpoint_dir"})


class Later:
    """Takes what was deferred."""

    def __init__(self) -> None:
        self.started: dict[int, Any] = {}

    def __call__(self, parameter_id: int, parameters: Any) -> None:
        self.started[parameter_id] = parameters


def ready(size: int = 10, seed: int = 0, **arguments: Any) -> PBTTuner:
    tuner = PBTTuner("maximize", str(ROOT), size, seed=seed, **arguments)
    tuner.update_search_space(SPACE)
    return tuner


def asked(tuner: PBTTuner, ids: range, later: Later | None = None) -> list[dict[str, Any]]:
    return [parameters for _, parameters in generate(tuner, list(ids), later).parameters]


def finish(tuner: PBTTuner, parameter_id: int, value: float | None) -> None:
    if value is not None:
        tuner.receive_trial_result(parameter_id, {}, value)
    tuner.trial_end(parameter_id, value is not None)


def values(parameters: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parameters.items() if key not in FOLDERS}


def folder(member: int, step: int) -> str:
    return str(ROOT / str(member) / str(step))


@pytest.mark.parametrize("seed", range(4))
def test_factor_of_nni_3_stands_for_the_factors_above_and_below_one(seed: int) -> None:
    one = ready(seed=seed, factor=0.2)
    other = ready(seed=seed, factors=(1.2, 0.8), factor=None)

    for tuner in (one, other):
        for number, _ in enumerate(asked(tuner, range(10))):
            finish(tuner, number, number)

    assert asked(one, range(10, 20)) == asked(other, range(10, 20))


@pytest.mark.claim("hpo", 37)
def test_after_step_zero_two_members_load_from_others() -> None:
    tuner = ready()
    first = asked(tuner, range(10))
    for number in range(10):
        finish(tuner, number, float(number))

    second = asked(tuner, range(10, 20))

    for member in range(10):
        zero = folder(member, 0)
        assert first[member]["load_checkpoint_dir"] == zero
        assert first[member]["save_checkpoint_dir"] == zero
        assert second[member]["save_checkpoint_dir"] == folder(member, 1)
    assert [p["load_checkpoint_dir"] for p in second[2:]] == [folder(m, 0) for m in range(2, 10)]
    assert {p["load_checkpoint_dir"] for p in second[:2]} <= {folder(8, 0), folder(9, 0)}
    assert [values(p) for p in second[2:]] == [values(p) for p in first[2:]]


@pytest.mark.claim("hpo", 37)
def test_a_step_begins_only_after_the_last_result_of_the_one_before() -> None:
    tuner, later = ready(), Later()
    asked(tuner, range(13), later)

    for number in range(9):
        finish(tuner, number, 0.5)
    assert later.started == {}
    finish(tuner, 9, 0.5)

    assert list(later.started) == [10, 11, 12]


@pytest.mark.claim("hpo", 37)
def test_failed_member_does_not_hold_the_step_and_copies_another() -> None:
    tuner, later = ready(), Later()
    asked(tuner, range(20), later)

    finish(tuner, 7, None)
    for number in [*range(7), 8, 9]:
        finish(tuner, number, float(number))

    assert len(later.started) == 10
    assert later.started[17]["load_checkpoint_dir"] in {folder(8, 0), folder(9, 0)}


def test_every_failed_member_copies_however_many_there_are() -> None:
    tuner = ready()
    asked(tuner, range(10))
    for number in range(10):
        finish(tuner, number, 1.0 if number == 3 else None)

    second = asked(tuner, range(10, 20))

    assert {p["load_checkpoint_dir"] for p in second} == {folder(3, 0)}


def test_where_all_fail_the_next_step_loads_the_last_checkpoints_again() -> None:
    tuner = ready()
    for step in range(3):
        asked(tuner, range(10 * step, 10 * step + 10))
        for number in range(10):
            finish(tuner, 10 * step + number, float(number) if step == 0 else None)

    fourth = asked(tuner, range(30, 40))

    assert [p["load_checkpoint_dir"] for p in fourth[2:]] == [folder(m, 0) for m in range(2, 10)]
    assert [p["save_checkpoint_dir"] for p in fourth] == [folder(m, 3) for m in range(10)]


@pytest.mark.claim("hpo", 38)
def test_numbers_are_multiplied_by_a_factor_or_drawn_anew_within_bounds() -> None:
    space = {"x": {"_type": "uniform", "_value": [0.09, 0.5]}}
    seen: set[float] = set()
    for seed in range(40):
        tuner = PBTTuner("maximize", str(ROOT), 2, fraction=0.5, seed=seed)
        tuner.update_search_space(space)
        (_, best) = asked(tuner, range(2))
        finish(tuner, 0, 0.0)
        finish(tuner, 1, 1.0)
        explored = asked(tuner, range(2, 4))[0]["x"]
        assert 0.09 <= explored <= 0.5
        seen.add(round(explored / best["x"], 9))

    assert {1.2, 0.8} <= seen
    assert len(seen) > 2


@pytest.mark.claim("hpo", 38)
def test_a_tenth_becomes_twelve_or_eight_hundredths() -> None:
    (parameter,) = parse_space({"x": {"_type": "uniform", "_value": [0, 1]}}).parameters

    assert perturbed(parameter.domain, 0.1, 1.2) == pytest.approx(0.12)
    assert perturbed(parameter.domain, 0.1, 0.8) == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("entry", "value", "factor", "expected"),
    [
        ({"_type": "randint", "_value": [0, 10]}, 9, 1.2, 9),
        ({"_type": "randint", "_value": [0, 10]}, 5, 0.8, 4),
        ({"_type": "quniform", "_value": [0, 10, 2.5]}, 5.0, 1.4, 7.5),
        ({"_type": "qnormal", "_value": [0, 1, 0.5]}, -1.0, 1.6, -1.5),
        ({"_type": "normal", "_value": [0, 1]}, 3.0, 2.0, 6.0),
        ({"_type": "loguniform", "_value": [0.1, 1]}, 0.1, 0.8, 0.1),
    ],
)
def test_perturbed_value_is_one_of_the_domain(
    entry: Any, value: float, factor: float, expected: float
) -> None:
    (parameter,) = parse_space({"x": entry}).parameters

    moved = perturbed(parameter.domain, value, factor)

    assert moved == expected
    assert type(moved) is type(value)


def test_choice_moves_to_a_neighbour_where_it_is_not_drawn_anew() -> None:
    space = {"c": {"_type": "choice", "_value": [1, 2, 3, 4, 5]}}
    for seed in range(30):
        tuner = PBTTuner(
            "maximize", str(ROOT), 2, fraction=0.5, resample_probability=0.0, seed=seed
        )
        tuner.update_search_space(space)
        (_, best) = asked(tuner, range(2))
        finish(tuner, 0, 0.0)
        finish(tuner, 1, 1.0)
        assert abs(asked(tuner, range(2, 4))[0]["c"] - best["c"]) == 1


def test_smaller_is_better_where_the_mode_says_so() -> None:
    tuner = PBTTuner("minimize", str(ROOT), 10, seed=0)
    tuner.update_search_space(SPACE)
    asked(tuner, range(10))
    for number in range(10):
        finish(tuner, number, float(number))

    second = asked(tuner, range(10, 20))

    assert {p["load_checkpoint_dir"] for p in second[8:]} <= {folder(0, 0), folder(1, 0)}


def test_new_space_draws_members_anew_and_keeps_their_checkpoints() -> None:
    tuner = ready(size=4)
    asked(tuner, range(2))
    other = {"depth": {"_type": "randint", "_value": [1, 5]}}

    tuner.update_search_space(other)

    assert all(values(p).keys() == {"depth"} for p in asked(tuner, range(2, 4)))
    for number in range(4):
        finish(tuner, number, float(number))
    second = asked(tuner, range(4, 8))
    for parameters in second:
        place(parse_space(other), parameters, ignore=FOLDERS)
    assert [p["load_checkpoint_dir"] for p in second[1:]] == [folder(m, 0) for m in (1, 2, 3)]


def test_deferred_requests_survive_being_put_aside() -> None:
    tuner, later = ready(size=2), Later()
    asked(tuner, range(3), later)
    other = ready(size=2, seed=9)
    other.load_state(json.loads(json.dumps(tuner.state())))

    finish(other, 0, 1.0)
    finish(other, 1, 2.0)
    generate(other, [3], later)

    assert list(later.started) == [2]


def test_checkpoints_of_an_experiment_have_a_folder_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNI_LOG_DIRECTORY", "/somewhere/nni-experiments/Ab12Cd34/log")
    assert default_root() == Path("~/nni/checkpoint/Ab12Cd34")
    monkeypatch.delenv("NNI_LOG_DIRECTORY")
    assert default_root() == Path("~/nni/checkpoint/standalone")


def test_home_directory_is_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    tuner = PBTTuner(seed=0)
    tuner.update_search_space(SPACE)

    (first,) = asked(tuner, range(1))

    assert first["save_checkpoint_dir"].startswith("/home/user/nni/checkpoint/")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"optimize_mode": "max"}, "optimize_mode must be"),
        ({"population_size": 0}, r"population_size must be an int in \[1, 99999\]"),
        ({"factors": []}, "factors must be a non-empty list"),
        ({"factors": [1.2, -1]}, "factors must be a non-empty list"),
        ({"factor": 1}, r"factor must be a number in \(0, 1\), or None"),
        ({"fraction": 1.5}, r"fraction must be a number in \[0, 1\]"),
        ({"resample_probability": -0.1}, "resample_probability must be a number in"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        PBTTuner(**arguments)


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}.*reserved in PBTTuner"):
        ready().update_search_space({name: SPACE["lr"]})


def test_long_run_stays_in_the_space() -> None:
    tuner, rng = ready(size=5), Random(1)
    for step in range(40):
        ids = range(5 * step, 5 * step + 5)
        for parameter_id, parameters in zip(ids, asked(tuner, ids), strict=True):
            assert place(parse_space(SPACE), parameters, ignore=FOLDERS)
            finish(tuner, parameter_id, rng.random() if rng.random() > 0.2 else None)


def test_folders_that_no_trial_will_load_are_released_once() -> None:
    tuner = ready()
    asked(tuner, range(10))
    before = tuner.released_checkpoints()
    for number in range(10):
        finish(tuner, number, float(number))
    second = asked(tuner, range(10, 20))

    released = tuner.released_checkpoints()

    loaded = {parameters["load_checkpoint_dir"] for parameters in second}
    assert before == []
    assert set(released) == {folder(member, 0) for member in range(10)} - loaded
    assert tuner.released_checkpoints() == []


def test_no_configuration_names_a_released_folder_again() -> None:
    tuner = ready()
    released: set[str] = set()
    for step in range(6):
        for parameters in asked(tuner, range(10 * step, 10 * step + 10)):
            assert released.isdisjoint(
                {parameters["load_checkpoint_dir"], parameters["save_checkpoint_dir"]}
            )
        for number in range(10):
            failed = (number + step) % 3 == 0
            finish(tuner, 10 * step + number, None if failed else float(number))
        released.update(tuner.released_checkpoints())

    assert len(released) > 20


def test_released_folders_survive_a_restart() -> None:
    tuner = ready()
    asked(tuner, range(10))
    for number in range(10):
        finish(tuner, number, float(number))
    again = ready()

    again.load_state(tuner.state())

    assert again.released_checkpoints() == tuner.released_checkpoints() != []


def test_user_prior_is_refused() -> None:
    entry = {"_type": "uniform", "_value": [0, 1], "_prior": 0.5}

    with pytest.raises(ValueError, match="_prior"):
        PBTTuner().update_search_space({"x": entry})


def test_defaults_are_the_documented_ones() -> None:
    default = PBTTuner(all_checkpoint_dir=str(ROOT), seed=0)
    default.update_search_space(SPACE)
    given = ready(10, factors=(1.2, 0.8), fraction=0.2, resample_probability=0.25)
    later = Later()

    steps = [[asked(tuner, range(11), later)] for tuner in (default, given)]
    for tuner in (default, given):
        for number in range(10):
            finish(tuner, number, float(number))

    assert [len(step) for (step,) in steps] == [10, 10]
    assert steps[0] == steps[1]
    assert asked(default, range(20, 29)) == asked(given, range(20, 29))


def test_nested_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="nested choice is not supported by PBTTuner"):
        PBTTuner().update_search_space({"m": {"_type": "choice", "_value": [{"_name": "a"}]}})


def test_explored_members_keep_the_constraints() -> None:
    space = {**SPACE, "_constraints": ["layers <= 4", "lr < 0.5"]}
    tuner = PBTTuner("maximize", str(ROOT), 6, resample_probability=0.5, seed=0)
    tuner.update_search_space(space)
    seen = set()
    for step in range(6):
        members = asked(tuner, range(6 * step, 6 * step + 6))
        assert all(place(parse_space(space), values(member)) for member in members)
        seen |= {member["layers"] for member in members}
        for number in range(6 * step, 6 * step + 6):
            finish(tuner, number, float(number % 6))

    assert len(seen) > 1


def finished(losses: list[float | None], **arguments: Any) -> PBTTuner:
    """Return a tuner to be minimised whose first step has ended with these losses."""
    tuner = PBTTuner("minimize", str(ROOT), len(losses), seed=0, **arguments)
    tuner.update_search_space(SPACE)
    for number, loss in enumerate(losses):
        tuner.generate_parameters(number)
        finish(tuner, number, loss)
    return tuner


def sources(tuner: PBTTuner, size: int) -> list[str]:
    return [p["load_checkpoint_dir"] for p in asked(tuner, range(size, 2 * size))]


def test_at_most_half_of_the_members_copy_others() -> None:
    loaded = sources(finished([0.0, 1.0, 2.0, 3.0, 4.0], fraction=1.0), 5)

    assert loaded[:3] == [folder(member, 0) for member in range(3)]
    assert set(loaded[3:]) <= {folder(0, 0), folder(1, 0)}


def test_share_of_members_that_copy_is_rounded_up() -> None:
    loaded = sources(finished([0.0, 1.0, 2.0, 3.0, 4.0], fraction=0.21), 5)

    assert loaded[2] == folder(2, 0)
    assert set(loaded[3:]) <= {folder(0, 0), folder(1, 0)}


def test_failed_members_copy_the_best_one_where_no_others_copy() -> None:
    losses = [3.0, None, 1.0, None, 2.0, None, None, None]

    loaded = sources(finished(losses, fraction=0.0), 8)

    donors = [member if loss is not None else 2 for member, loss in enumerate(losses)]
    assert loaded == [folder(donor, 0) for donor in donors]


def test_only_option_of_a_choice_stays() -> None:
    tuner = PBTTuner("maximize", str(ROOT), 2, fraction=0.5, resample_probability=0.0, seed=0)
    tuner.update_search_space({"c": {"_type": "choice", "_value": ["only"]}})
    for number in range(2):
        tuner.generate_parameters(number)
        finish(tuner, number, float(number))

    assert [p["c"] for p in asked(tuner, range(2, 4))] == ["only", "only"]


def test_request_without_a_way_to_start_later_is_not_remembered() -> None:
    tuner, later = ready(size=2), Later()
    asked(tuner, range(3))

    for number in range(2):
        finish(tuner, number, 0.5)
    asked(tuner, range(3, 4), later)

    assert later.started == {}


def test_second_end_of_a_trial_changes_nothing() -> None:
    tuner = ready(size=3)
    asked(tuner, range(3))
    finish(tuner, 0, 1.0)
    before = tuner.state()

    tuner.receive_trial_result(0, {}, 5.0)
    tuner.trial_end(0, success=False)

    assert tuner.state() == before


def test_state_from_before_folders_were_released_is_taken() -> None:
    tuner, again = ready(), ready()
    state = tuner.state()
    del state["released"]

    again.load_state(state)

    assert again.state() == tuner.state()


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 1},
        {"population_size": 99999},
        {"fraction": 0},
        {"fraction": 1},
        {"resample_probability": 0},
        {"resample_probability": 1},
        {"factor": 1e-09},
        {"factor": 0.999},
        {"factor": None},
    ],
)
def test_least_and_greatest_arguments_are_accepted(arguments: dict[str, Any]) -> None:
    assert isinstance(PBTTuner(**arguments), PBTTuner)


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 100000},
        {"fraction": -0.01},
        {"fraction": 1.01},
        {"resample_probability": 1.01},
        {"factor": 0},
    ],
)
def test_arguments_beyond_their_limits_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        PBTTuner(**arguments)
