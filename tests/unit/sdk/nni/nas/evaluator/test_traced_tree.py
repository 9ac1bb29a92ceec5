from typing import Any, NamedTuple

import pytest

import nni
from nni.mutable import SampleMissingError
from nni.nas.evaluator.traced_tree import frozen_call, mutables_in


class Part:
    def __init__(self, value: object = None, *, others: object = ()) -> None:
        self.value = value
        self.others = others


def traced(*args: object, **kwargs: object) -> Any:
    return nni.trace(Part)(*args, **kwargs)


def test_mutables_are_found_at_every_depth_with_their_paths() -> None:
    one, two, three = (nni.choice(label, [1, 2]) for label in ("one", "two", "three"))
    call = traced(traced(one), others=[3, {"key": two}, (traced(three),)])

    assert list(mutables_in(call)) == [
        ("value.value", one),
        ("others[1].key", two),
        ("others[2][0].value", three),
    ]


def test_positional_arguments_count_too() -> None:
    one = nni.choice("one", [1, 2])
    call: Any = nni.trace(Part, kw_only=False)(one)

    assert list(mutables_in(call)) == [("[0]", one)]


def test_untraced_objects_are_not_searched() -> None:
    assert list(mutables_in(traced(Part(nni.choice("one", [1, 2]))))) == []


def test_a_frozen_call_has_values_in_place_of_mutables() -> None:
    fixed = traced(3)
    call = traced(
        traced(nni.choice("one", [1, 2])),
        others=[fixed, {"key": nni.choice("two", "ab")}, (nni.choice("one", [1, 2]), 5)],
    )

    frozen = frozen_call(call, {"one": 2, "two": "b"})

    assert frozen.trace_kwargs["value"].trace_kwargs == {"value": 2}
    assert frozen.trace_kwargs["others"] == [fixed, {"key": "b"}, (2, 5)]
    assert frozen.trace_kwargs["others"][0] is fixed
    assert frozen.get().value.value == 2
    assert len(list(mutables_in(call))) == 3


def test_a_missing_label_is_an_error_that_names_it() -> None:
    with pytest.raises(SampleMissingError, match="'one'"):
        frozen_call(traced(nni.choice("one", [1, 2])), {})


class Rates(NamedTuple):
    first: object
    last: object


def test_named_tuple_keeps_its_names_when_frozen() -> None:
    call = traced(Rates(nni.choice("rate", [1, 2]), 3))

    assert frozen_call(call, {"rate": 2}).trace_kwargs["value"] == Rates(2, 3)
    assert type(frozen_call(call, {"rate": 2}).trace_kwargs["value"]) is Rates
