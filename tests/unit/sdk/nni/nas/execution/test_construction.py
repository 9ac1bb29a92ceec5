"""Strategies and middleware travel as the calls that constructed them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import nni
from nni.common.serializer.submission import dump_submission
from nni.nas.execution.construction import Reconstructible, construction_of
from nni.nas.strategy import Chain, GridSearch, Random, RegularizedEvolution
from nni.nas.strategy.middleware import Deduplication, FailureHandler


class Base(Reconstructible):
    def __init__(self, width: int, *more: int, seed: int | None = None) -> None:
        self.width = width


class Derived(Base):
    def __init__(self, depth: int, seed: int | None = None) -> None:
        super().__init__(2 * depth, seed=seed)


def travelled(value: object) -> Any:
    """Return what another process constructs."""
    return nni.load(dump_submission(construction_of(value)))


def test_arguments_are_those_of_the_outermost_constructor() -> None:
    call = construction_of(Derived(3, seed=1))

    assert (call.trace_symbol, call.trace_kwargs) == (Derived, {"depth": 3, "seed": 1})


def test_arguments_without_a_name_stay_in_their_places() -> None:
    call = construction_of(Base(1, 2, 3, seed=4))

    assert (call.trace_args, call.trace_kwargs) == ([1, 2, 3], {"seed": 4})


def test_missing_seed_is_drawn_so_that_each_construction_makes_the_same_choices() -> None:
    text = dump_submission(construction_of(Random()))

    first, second = (nni.load(text)._random.random() for _ in range(2))

    assert first == second


def test_given_seed_is_kept() -> None:
    assert construction_of(RegularizedEvolution(seed=7)).trace_kwargs == {"seed": 7}


def test_signature_is_that_of_the_constructor() -> None:
    assert list(inspect.signature(Random).parameters) == ["dedup", "seed", "old_keywords"]


@pytest.mark.parametrize(
    "strategy", [Random(seed=0), GridSearch(), nni.trace(RegularizedEvolution)(seed=0)]
)
def test_strategy_travels_although_it_holds_locks(strategy: Any) -> None:
    assert travelled(strategy).status == "empty"


def test_parts_of_a_chain_travel_with_it() -> None:
    chain = travelled(Chain(Random(seed=1), FailureHandler(metric=0.5), Deduplication("invalid")))

    kinds = [type(chain[index]).__mro__[1:] for index in range(3)]
    assert [kind[0].__name__ for kind in kinds] == ["Random", "FailureHandler", "Deduplication"]


def test_other_objects_stay_as_they_are() -> None:
    assert construction_of({"a": 1}) == {"a": 1}
