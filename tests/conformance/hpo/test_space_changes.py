"""Built-in algorithms follow changes of the search space while trials run."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

import pytest

from nni.hpo.base import Tuner, generate
from nni.hpo.json_value import JsonValue
from nni.hpo.registry import factory
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.entries import Kind
from nni.hpo.space.parser import contains, parse_space
from nni.testing.advisors import AdvisorDriver
from nni.testing.tuners import ask, tell, value_of

# Points between 0.5 and 0.8 are good in both spaces; names come, go and change their type.
FIRST: dict[str, Any] = {
    "x": {"_type": "quniform", "_value": [0, 0.8, 0.1]},
    "units": {"_type": "randint", "_value": [1, 9]},
    "gone": {"_type": "choice", "_value": [1, 2, 3]},
}
NARROW: dict[str, Any] = FIRST | {"x": {"_type": "quniform", "_value": [0.5, 0.8, 0.1]}}
OTHER: dict[str, Any] = {
    "x": {"_type": "quniform", "_value": [0.5, 2, 0.1]},
    "units": {"_type": "choice", "_value": [16, 32]},
    "new": {"_type": "randint", "_value": [0, 4]},
}
BATCHES: dict[str, dict[str, Any]] = {
    name: {
        "combine_params": {"_type": "choice", "_value": [{"point": [name, n]} for n in range(40)]}
    }
    for name in ("FIRST", "NARROW", "OTHER")
}
RESERVED = {"TRIAL_BUDGET", "load_checkpoint_dir", "save_checkpoint_dir"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "DNGOTuner": {"trials_per_update": 4, "num_epochs_per_training": 10},
    "GPTuner": {"cold_start_num": 4},
    "MetisTuner": {"cold_start_num": 4},
    "Evolution": {"population_size": 6},
    "PBTTuner": {"population_size": 4},
    "NSGA2": {"population_size": 6},
    "Hyperband": {"R": 9},
    "BOHB": {"max_budget": 9},
    "ASHA": {"max_budget": 9},
    "MOASHA": {"max_budget": 9},
}
OF_IMAGES = {"NetworkMorphism"}
"""Has no search space."""
KEEPS_ITS_FIRST = {"SMAC"}
"""Documented: it leaves a later space aside, with a warning."""
BEFORE, AFTER = 14, 20

TUNERS = [e.name for e in BUILT_IN if e.kind == "tuner" and e.name not in OF_IMAGES]
ADVISORS = [e.name for e in BUILT_IN if e.kind == "advisor"]


def made(kind: Kind, name: str) -> Any:
    return factory.create(kind, name, ARGUMENTS.get(name), seed=1, optimize_mode="minimize")


def fits(space: JsonValue, configuration: JsonValue) -> bool:
    return contains(parse_space(space), own(configuration))


@pytest.mark.parametrize("changed", ["NARROW", "OTHER"])
@pytest.mark.parametrize("name", TUNERS)
def test_tuner_proposes_from_the_space_given_last(name: str, changed: str) -> None:
    tuner: Tuner = made("tuner", name)
    first, last = FIRST, {"NARROW": NARROW, "OTHER": OTHER}[changed]
    expected = FIRST if name in KEEPS_ITS_FIRST else last
    if name == "BatchTuner":
        first, last = BATCHES["FIRST"], BATCHES[changed]
    ids = count()
    tuner.update_search_space(first)
    for _ in range(BEFORE):
        number = next(ids)
        for configuration in ask(tuner, number):
            tell(tuner, number, configuration)
    running = {number: answer for number in (next(ids), next(ids)) for answer in ask(tuner, number)}

    tuner.update_search_space(last)
    late: list[JsonValue] = []
    for number, configuration in running.items():  # of the space before
        tell(tuner, number, configuration)
    for number in (next(ids) for _ in range(AFTER)):
        answer = generate(tuner, [number], start_later=lambda _id, point: late.append(point))
        for _, configuration in answer.parameters:
            late.append(configuration)
            tell(tuner, number, configuration)

    if name == "BatchTuner":
        assert late == [{"point": [changed, n]} for n in range(AFTER)]
    else:
        assert len(late) >= AFTER // 2
        assert [point for point in late if not fits(expected, point)] == []


@pytest.mark.parametrize("changed", ["NARROW", "OTHER"])
@pytest.mark.parametrize("name", ADVISORS)
def test_advisor_draws_from_the_space_given_last(name: str, changed: str) -> None:
    last = {"NARROW": NARROW, "OTHER": OTHER}[changed]
    driver = AdvisorDriver(made("advisor", name), FIRST)
    running: deque[dict[str, JsonValue]] = deque(driver.request(3))
    before = played(driver, running, BEFORE)

    driver.update_search_space(last)
    after = played(driver, running, 2 * AFTER)

    # What was drawn before the change may still be promoted.
    assert [point for point in after if point not in before and not fits(last, point)] == []
    assert any(fits(last, point) for point in after)


def played(
    driver: AdvisorDriver, running: deque[dict[str, JsonValue]], trials: int
) -> list[JsonValue]:
    """Run trials, leave others running, and give the configurations of all of them."""
    points = [own(job["parameters"]) for job in running]
    for _ in range(trials):
        job = running.popleft()  # an advisor that waits with nothing running is stuck
        driver.report(job, value_of(job["parameters"]))
        driver.end(job)
        started = driver.request()
        running += started
        points += [own(job["parameters"]) for job in started]
    return points


def own(configuration: JsonValue) -> JsonValue:
    """Leave out what advisors and PBT add."""
    return {key: value for key, value in configuration.items() if key not in RESERVED}
