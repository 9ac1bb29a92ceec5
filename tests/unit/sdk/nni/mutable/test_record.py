"""Text, equality and the record of a call follow from the constructor's arguments."""

from collections.abc import Callable

import numpy as np
import pytest

import nni
from nni.mutable import (
    Categorical,
    CategoricalMultiple,
    ExpressionConstraint,
    Label,
    Mutable,
    MutableDict,
    MutableList,
    Numerical,
)
from nni.mutable.record import ConstructorRecord, equal_values

MAKERS: list[Callable[[], Mutable]] = [
    lambda: Categorical([1, 2], weights=[0.25, 0.75], default=2, label=Label("m/a")),
    lambda: CategoricalMultiple([1, 2, 3], n_chosen=2, default=[2, 3], label="a"),
    lambda: Numerical(0, 1, quantize=0.25, default=0.5, label="a"),
    lambda: Numerical(mu=0, sigma=1, label="a"),
    lambda: ExpressionConstraint(Categorical([1, 2], label="a") > 1, label="c"),
    lambda: MutableList([Categorical([1, 2], label="a")]),
    lambda: MutableDict({"x": Categorical([1, 2], label="a")}),
]


@pytest.mark.parametrize("make", MAKERS)
def test_record_makes_an_equal_mutable(make: Callable[[], Mutable]) -> None:
    one = make()
    assert isinstance(one, ConstructorRecord)

    other = one.trace_symbol(*one.trace_args, **one.trace_kwargs)

    assert one.equals(other)
    assert repr(one) == repr(other)


def test_classes_and_arguments_tell_mutables_apart() -> None:
    made = [make() for make in MAKERS]

    assert [[one.equals(other) for other in made] for one in made] == [
        [one is other for other in made] for one in made
    ]


def test_text_has_no_arguments_at_their_defaults() -> None:
    assert repr(Categorical([1, 2], label="a")) == "Categorical([1, 2], label='a')"
    assert repr(MutableList([])) == "MutableList([])"
    assert repr(Numerical(0, 1, label="a")) == "Numerical(low=0.0, high=1.0, label='a')"


@pytest.mark.parametrize("make", MAKERS)
def test_dumped_mutable_is_equal_and_no_pickle(make: Callable[[], Mutable]) -> None:
    text = nni.dump(make())

    assert "__nni_obj__" not in text
    assert nni.load(text).equals(make())


def test_values_survive_a_dump_with_their_types() -> None:
    values = [
        (3, 3),
        [3],
        {"kernel": (5, 5)},
        {1: "one"},
        {"__tuple__": [1]},
        {"__nni_tuple__": [1]},
        None,
        True,
        2.5,
    ]

    loaded = nni.load(nni.dump(Categorical(values, label="a")))

    assert equal_values(loaded.values, values)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        ((1, [2]), (1, [2]), True),
        ((1, 2), [1, 2], False),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ("a", Label("a"), True),
        (np.zeros(2), np.zeros(2), False),
        ([Categorical([1], label="a")], [Categorical([1], label="a")], True),
        ([Categorical([1], label="a")], [1], False),
        (1, Categorical([1], label="a"), False),
    ],
)
def test_values_are_compared_by_content(one: object, other: object, expected: bool) -> None:
    assert equal_values(one, other) is expected


def test_a_value_equals_itself_whatever_it_is() -> None:
    array = np.zeros(2)

    assert equal_values(array, array)
