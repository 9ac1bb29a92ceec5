"""Repair of proposals that break constraints."""

from random import Random
from typing import Any

import pytest

from nni.hpo.space.parser import contains, parse_space
from nni.hpo.tuners._repair import repaired

SPACE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "y": {"_type": "uniform", "_value": [0, 1]},
    "kind": {
        "_type": "choice",
        "_value": [
            {
                "_name": "a",
                "p": {"_type": "uniform", "_value": [0, 1]},
                "q": {"_type": "uniform", "_value": [0, 1]},
            },
            "b",
        ],
    },
}


def test_what_is_allowed_stays() -> None:
    space = parse_space({**SPACE, "_constraints": ["x + y <= 1"]})
    wanted = {"x": 0.3, "y": 0.3, "kind": "b"}

    assert repaired(space, wanted, Random(0)) is wanted


@pytest.mark.parametrize("seed", range(20))
def test_repaired_is_allowed_and_touches_the_border(seed: int) -> None:
    space = parse_space({**SPACE, "_constraints": ["x + y <= 1"]})
    wanted = {"x": 0.9, "y": 0.8, "kind": "b"}

    found = repaired(space, wanted, Random(seed))

    assert contains(space, found)
    assert found["kind"] == "b"
    # One of the two is taken over whole where the other one can make room, and the other goes as
    # far as eight halvings find: 1 / 256 of the way.
    assert found["x"] + found["y"] > 0.9


@pytest.mark.parametrize("seed", range(10))
def test_values_within_a_branch_are_taken_over_one_by_one(seed: int) -> None:
    space = parse_space({**SPACE, "_constraints": ["kind/p < 0.2", "kind != 'b'"]})
    wanted = {"x": 0.5, "y": 0.5, "kind": {"_name": "a", "p": 0.9, "q": 0.125}}

    found = repaired(space, wanted, Random(seed))

    assert contains(space, found)
    assert (found["x"], found["y"], found["kind"]["q"]) == (0.5, 0.5, 0.125)


def test_a_number_goes_towards_the_wanted_one_by_eight_halvings() -> None:
    number = {"_type": "uniform", "_value": [0, 1]}
    space = parse_space({"x": number, "_constraints": ["x <= 0.6"]})
    left = []
    for seed in range(40):
        start = space.draw(Random(seed))["x"]

        found = repaired(space, {"x": 1.0}, Random(seed))["x"]

        left.append((0.6 - found) / (1.0 - start))

    # What is left of the way is even in [0, 1 / 256): over half of that in one of 40 but for a
    # chance of 2 ** -40.
    assert min(left) >= 0
    assert 1 / 512 < max(left) < 1 / 256


def test_values_of_another_branch_are_not_copied() -> None:
    space = parse_space({**SPACE, "_constraints": ["kind != 'b'", "x <= 0.5"]})
    wanted = {"x": 0.9, "y": 0.25, "kind": "b"}

    found = repaired(space, wanted, Random(0))

    assert contains(space, found)
    assert found["y"] == 0.25
    assert found["kind"]["_name"] == "a"
    assert wanted == {"x": 0.9, "y": 0.25, "kind": "b"}


def test_neither_of_two_values_always_gives_way_to_the_other() -> None:
    space = parse_space({**SPACE, "_constraints": ["x + y <= 1"]})
    kept = set()
    for seed in range(20):
        drawn = space.draw(Random(seed))
        found = repaired(space, {"x": 1.0, "y": 1.0, "kind": "b"}, Random(seed))
        kept |= {name for name in ("x", "y") if found[name] == drawn[name]}

    assert kept == {"x", "y"}
