"""Construction of algorithms with the plan of an experiment."""

import random
from typing import Any

import numpy as np
import pytest

from nni.hpo.base import AssessResult, Resumable, Tuner, generate
from nni.hpo.host.construction import (
    learned_metrics,
    metric_of,
    planned_advisor,
    planned_assessor,
    planned_tuner,
    seed_global_generators,
)
from nni.hpo.search.managed_tuner import ManagedTuner
from nni.hpo.tuners.random_search import RandomTuner

SPACE = {"x": {"_type": "randint", "_value": [0, 50]}}


def tuner_of(name: str, plan: Any, **class_args: Any) -> Tuner:
    tuner = planned_tuner({"name": name, "class_args": class_args}, plan, 1)
    tuner.update_search_space(SPACE)
    return tuner


def play(tuner: Tuner, value: Any, count: int) -> list[int]:
    seen = []
    for parameter_id in range(count):
        for _, parameters in generate(tuner, [parameter_id]).parameters:
            seen.append(parameters["x"])
            tuner.receive_trial_result(parameter_id, parameters, value(parameters["x"]))
            tuner.trial_end(parameter_id, True)
    return seen


def test_without_a_plan_there_is_nothing_but_the_tuner() -> None:
    assert isinstance(tuner_of("Random", None), RandomTuner)


@pytest.mark.parametrize("name", ["TPE", "Anneal"])
@pytest.mark.parametrize(("mode", "better"), [("minimize", min), ("maximize", max)])
def test_objectives_decide_the_mode(name: str, mode: str, better: Any) -> None:
    plan = {"objectives": [{"metric": "cost", "mode": mode}]}
    opposite = "minimize" if mode == "maximize" else "maximize"
    tuner = tuner_of(name, plan, optimize_mode=opposite)
    tuner.update_search_space({"x": {"_type": "randint", "_value": [0, 1000]}})

    seen = play(tuner, lambda x: {"cost": x}, 60)

    # The last ten proposals are near the good end; without a model they would be anywhere, and a
    # model of the opposite would have them at the other end.
    assert sum(abs(x - better(0, 1000)) for x in seen[-10:]) / 10 < 250


def test_the_target_is_in_the_direction_of_the_tuner() -> None:
    tuner = tuner_of("Random", {"stop": {"target": 40}}, optimize_mode="maximize")

    seen = play(tuner, lambda x: x, 200)

    assert seen[-1] >= 40
    assert all(x < 40 for x in seen[:-1])


def test_every_part_of_a_plan_arrives() -> None:
    plan = {
        "constraints": [{"metric": "cost", "max": 5}],
        "duplicates": "reuse",
        "enqueue": [{"x": 7}],
        "known": [{"parameter": {"x": 3}, "value": {"default": 1, "cost": 1}}],
        "stop": {"no_improvement": 4, "regret_bound": 1e-9},
    }
    tuner = tuner_of("GPTuner", plan)
    assert isinstance(tuner, ManagedTuner)

    seen = play(tuner, lambda x: {"default": -x, "cost": 1}, 20)

    assert seen[0] == 7
    assert 3 not in seen
    assert len(seen) < 20
    assert tuner.ended_because.startswith("no improvement over 4")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ({"no_improvement": 4}, "no improvement over 4"),
        ({"target": 1e9}, ""),
        ({"target": -1e9}, "target"),
        ({"regret_bound": 1e9}, "can still be gained"),
        ({}, ""),
    ],
)
def test_every_stopping_rule_of_a_plan_ends_the_search(stop: Any, reason: str) -> None:
    tuner = tuner_of("GPTuner", {"stop": stop, "duplicates": "reuse"}, optimize_mode="maximize")
    assert isinstance(tuner, ManagedTuner)

    play(tuner, lambda x: x % 7, 30)

    assert reason in tuner.ended_because
    assert bool(tuner.ended_because) == bool(reason)


def test_earlier_searches_of_a_plan_enter_by_rank() -> None:
    samples = [{"parameter": {"x": x}, "value": 1e9 * abs(x - 40)} for x in range(0, 50, 5)]
    tuner = tuner_of("Random", {"earlier": [samples]}, optimize_mode="minimize")

    seen = play(tuner, lambda x: abs(x - 40), 10)

    assert sum(abs(x - 40) <= 5 for x in seen[3:]) >= 3


def test_custom_classes_have_plans_too() -> None:
    config = {"class_name": "nni.hpo.tuners.random_search.RandomTuner", "class_args": {}}

    tuner = planned_tuner(config, {"enqueue": [{"x": 7}]}, 1)
    tuner.update_search_space(SPACE)

    assert play(tuner, lambda x: x, 1) == [7]


def test_an_assessor_judges_by_the_first_objective() -> None:
    plan = {"objectives": [{"metric": "loss", "mode": "minimize"}]}
    assessor = planned_assessor({"name": "Medianstop", "class_args": {}}, plan, 1)
    assessor.assess_trial("good", [{"loss": 1.0, "default": 0}])
    assessor.trial_end("good", True)

    assert assessor.assess_trial("worse", [{"loss": 5.0, "default": 9}]) is AssessResult.Bad
    assert assessor.assess_trial("better", [{"loss": 0.5, "default": -9}]) is AssessResult.Good


def test_an_assessor_can_be_put_aside_if_it_could_before() -> None:
    plan = {"objectives": [{"metric": "loss", "mode": "minimize"}]}
    config = {"name": "Medianstop", "class_args": {}}

    plain, planned = planned_assessor(config, None, 1), planned_assessor(config, plan, 1)

    assert isinstance(planned, Resumable) == isinstance(plain, Resumable)


def test_an_assessor_of_one_metric_continues_from_its_saved_state() -> None:
    plan = {"objectives": [{"metric": "loss", "mode": "minimize"}]}
    config = {"name": "Medianstop", "class_args": {}}
    first, second = (planned_assessor(config, plan, 1) for _ in range(2))
    first.assess_trial("good", [{"loss": 1.0}])
    first.trial_end("good", True)
    assert isinstance(first, Resumable)
    assert isinstance(second, Resumable)

    second.load_state(first.state())

    assert second.assess_trial("worse", [{"loss": 5.0}]) is AssessResult.Bad


@pytest.mark.parametrize(("mode", "opposite"), [("minimize", "maximize"), ("maximize", "minimize")])
def test_an_advisor_has_the_mode_of_the_only_objective(mode: str, opposite: str) -> None:
    plan = {"objectives": [{"metric": "loss", "mode": mode}]}
    config = {"name": "Hyperband", "class_args": {"R": 3, "optimize_mode": opposite}}

    assert planned_advisor(config, plan, 1)._mode == mode


def test_an_advisor_of_one_objective_refuses_several() -> None:
    plan = {"objectives": [{"metric": metric, "mode": "minimize"} for metric in ("loss", "size")]}

    with pytest.raises(ValueError, match="optimize_mode must be"):
        planned_advisor({"name": "Hyperband", "class_args": {"R": 3}}, plan, 1)


@pytest.mark.parametrize(
    ("config", "metrics", "expected"),
    [
        ({"name": "TPE"}, ["loss"], "loss"),
        ({"name": "TPE"}, ["loss", "size"], None),
        ({"name": "TPE"}, [], None),
        ({"class_name": "own.Tuner"}, ["loss"], None),
    ],
)
def test_a_named_algorithm_gets_the_metric_of_its_only_objective(
    config: dict[str, Any], metrics: list[str], expected: str | None
) -> None:
    plan = {"objectives": [{"metric": metric, "mode": "minimize"} for metric in metrics]}

    assert metric_of(config, plan) == expected
    assert metric_of(config, None) is None


@pytest.mark.parametrize(
    ("config", "metrics", "learned"),
    [
        ({"name": "TPE"}, ["loss", "size"], ("loss", "size")),
        ({"name": "TPE"}, [], ("default",)),
        ({"name": "NSGA2", "class_args": {"optimize_mode": {"a": "minimize"}}}, [], ("a",)),
        ({"name": "TPE", "class_args": {"optimize_mode": "minimize"}}, [], ("default",)),
        ({"class_name": "own.Tuner"}, ["loss"], ("loss",)),
        ({"class_name": "own.Tuner"}, [], ()),
    ],
)
def test_metrics_to_learn_from_are_those_of_the_objectives(
    config: dict[str, Any], metrics: list[str], learned: tuple[str, ...]
) -> None:
    plan = {"objectives": [{"metric": metric, "mode": "minimize"} for metric in metrics]}

    assert learned_metrics(config, plan) == learned
    if not metrics:
        assert learned_metrics(config, None) == learned


@pytest.mark.parametrize("seed", [7, 2**32 + 7, -(2**32) + 7])
def test_seed_of_a_custom_class_is_that_of_both_global_generators(seed: int) -> None:
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global generator is seeded
    try:
        seed_global_generators(seed, custom=True)
        drawn = random.random(), np.random.random()  # noqa: NPY002 - the global generator is seeded
        seed_global_generators(seed, custom=False)
        untouched = np.random.random()  # noqa: NPY002 - the global generator is seeded
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002 - the global generator is seeded

    legacy = np.random.RandomState(7)
    assert drawn == (random.Random(seed).random(), legacy.random())
    assert untouched == legacy.random()


@pytest.mark.parametrize(
    ("class_args", "mode"),
    [({"R": 3}, "maximize"), ({"R": 3, "optimize_mode": "maximize"}, "minimize")],
)
def test_advisor_of_a_custom_class_gets_a_mode_only_if_it_has_one(
    class_args: dict[str, Any], mode: str
) -> None:
    plan = {"objectives": [{"metric": "loss", "mode": "minimize"}]}
    config = {"class_name": "nni.hpo.advisors.hyperband.Hyperband", "class_args": class_args}

    assert planned_advisor(config, plan, 1)._mode == mode


def test_mode_of_an_assessor_that_the_user_gave_stays() -> None:
    plan = {"objectives": [{"metric": "loss", "mode": "minimize"}]}
    config = {"name": "Medianstop", "class_args": {"optimize_mode": "maximize"}}
    assessor = planned_assessor(config, plan, 1)
    assessor.assess_trial("done", [{"loss": 1.0}])
    assessor.trial_end("done", True)

    assert assessor.assess_trial("above", [{"loss": 5.0}]) is AssessResult.Good
    assert assessor.assess_trial("below", [{"loss": 0.5}]) is AssessResult.Bad


def test_an_assessor_judges_by_the_first_of_several_objectives() -> None:
    plan = {
        "objectives": [
            {"metric": "loss", "mode": "minimize"},
            {"metric": "size", "mode": "maximize"},
        ]
    }
    assessor = planned_assessor({"name": "Medianstop", "class_args": {}}, plan, 1)
    assessor.assess_trial("done", [{"loss": 1.0, "size": 1.0}])
    assessor.trial_end("done", True)

    assert assessor.assess_trial("above", [{"loss": 5.0, "size": 5.0}]) is AssessResult.Bad
    assert assessor.assess_trial("below", [{"loss": 0.5, "size": 0.5}]) is AssessResult.Good


@pytest.mark.parametrize(("cost", "count"), [(5, 1), (6, 4)])
def test_results_beyond_a_limit_of_a_plan_do_not_reach_the_target(cost: int, count: int) -> None:
    plan = {"constraints": [{"metric": "cost", "max": 5}], "stop": {"target": 0}}
    tuner = tuner_of("Random", plan, optimize_mode="maximize")

    assert len(play(tuner, lambda x: {"default": x, "cost": cost}, 4)) == count
