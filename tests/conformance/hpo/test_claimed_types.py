"""Every built-in on each type of search space that it claims: many trials, or until no more come.

Each runs 250 times of ask and tell; those in `FEWER` would be slow, and run fewer. The variable
`NNI_CONFORMANCE_TRIALS` gives a number for all of them; `./dev bench hpo --full` sets it to 500.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from nni.hpo import MsgDispatcherBase, Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.entries import AlgorithmEntry
from nni.hpo.registry.factory import algorithms, create
from nni.hpo.space.parser import contains, parse_space
from nni.testing import AdvisorDriver
from nni.testing.tuners import played
from tests.support.search_spaces import BATCH, EACH_TYPE, GRID_NESTED, NESTED, NUMBERS

MANY = 250
FEWER = {
    "auto": 60,  # asks a Gaussian process as well
    "DNGOTuner": 60,
    "GPTuner": 60,
    "MetisTuner": 60,
    "MOASHA": 150,  # draws from the prior; all five rungs are reached by then
    "NetworkMorphism": 30,  # has no types: every proposal is a network
    "SMAC": 150,  # from the fourth on, every other proposal is the forest's
}
"""Trials of algorithms whose time grows faster than the number of trials."""
SLOW = FEWER.keys() - {"MOASHA"}
OF_NUMBERS = frozenset({"MetisTuner", "GPTuner", "DNGOTuner"})
"""Those whose choices must be numbers."""
BUDGET = "TRIAL_BUDGET"
DIRECTORIES = ("load_checkpoint_dir", "save_checkpoint_dir")


def trials_of(name: str) -> int:
    """Return how many trials an algorithm is put through."""
    wanted = os.environ.get("NNI_CONFORMANCE_TRIALS")
    return int(wanted) if wanted else FEWER.get(name, MANY)


def spaces_of(entry: AlgorithmEntry) -> dict[str, JsonValue]:
    """Return a search space for each type that an algorithm claims."""
    if entry.name == "BatchTuner":
        return {"choice": BATCH}
    if entry.name == "NetworkMorphism":
        return {"none": {}}
    entries = NUMBERS if entry.name in OF_NUMBERS else EACH_TYPE
    found: dict[str, JsonValue] = {kind: {"x": entries[kind]} for kind in entry.types}
    if entry.nested:
        found["nested"] = GRID_NESTED if entry.name == "GridSearch" else NESTED
    return found


CLAIMS = [
    pytest.param(
        entry,
        kind,
        space,
        id=f"{entry.name}-{kind}",
        marks=[pytest.mark.slow] if entry.name in SLOW else [],
    )
    for entry in (*algorithms("tuner"), *algorithms("advisor"))
    if entry.source == "nni"
    for kind, space in spaces_of(entry).items()
]


def configurations(entry: AlgorithmEntry, space: JsonValue) -> list[dict[str, Any]]:
    """Return the proposals of an algorithm that gets a result for each of them."""
    algorithm = create(entry.kind, entry.name, seed=3)
    if isinstance(algorithm, MsgDispatcherBase):
        jobs = AdvisorDriver(algorithm, space).play(trials_of(entry.name), concurrency=4)
        return [job["parameters"] for job in jobs]
    assert isinstance(algorithm, Tuner)
    algorithm.update_search_space(space)
    return played(algorithm, trials_of(entry.name))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("entry", "kind", "space"), CLAIMS)
def test_goes_through_many_trials_of_a_claimed_type(
    entry: AlgorithmEntry, kind: str, space: JsonValue
) -> None:
    proposed = configurations(entry, space)

    assert len(proposed) == trials_of(entry.name) or entry.name in {"GridSearch", "BatchTuner"}
    if kind == "none" or entry.name == "BatchTuner":
        return
    parsed = parse_space(space)
    for one in proposed:
        own = {key: value for key, value in one.items() if key not in {BUDGET, *DIRECTORIES}}
        assert contains(parsed, own), one
