import io
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import nni
from nni.common.serializer import Translatable
from nni.common.serializer.arguments import call_arguments, recorded_arguments
from nni.mutable import frozen_context


class Choice(Translatable):
    def _unwrap_parameter(self) -> int:
        return 7


def function(one: int, two: int = 2, *, three: int = 3) -> None: ...


def many(one: int, *rest: int) -> None: ...


def unnamed(one: int, /, two: int) -> None: ...


def test_names_come_from_the_signature() -> None:
    assert recorded_arguments(function, (1, 5), {"three": 4}, kw_only=True) == (
        [],
        {"one": 1, "two": 5, "three": 4},
    )


def test_the_instance_of_a_constructor_is_not_among_its_arguments() -> None:
    def constructor(self: object, width: int, *, deep: bool = False) -> None: ...

    recorded = recorded_arguments(constructor, (8,), {"deep": True}, kw_only=True, is_method=True)

    assert recorded == ([], {"width": 8, "deep": True})
    with pytest.raises(ValueError, match="constructor takes at most 1 positional arguments, got 2"):
        recorded_arguments(constructor, (8, 9), {}, kw_only=True, is_method=True)


def test_a_function_of_many_arguments_keeps_them_in_order_if_they_reach_the_rest() -> None:
    assert recorded_arguments(many, (1, 2), {}, kw_only=True) == ([1, 2], {})
    assert recorded_arguments(many, (1,), {}, kw_only=True) == ([], {"one": 1})


def test_arguments_without_names_stay_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="1 arguments of unnamed have no name"):
        recorded = recorded_arguments(unnamed, (1, 2), {}, kw_only=True)

    assert recorded == ([1], {"two": 2})


def test_too_many_arguments_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="function takes at most 2 positional arguments, got 3"):
        recorded_arguments(function, (1, 2, 3), {}, kw_only=True)


def test_an_argument_given_twice_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="two values of argument 'one'"):
        recorded_arguments(function, (1,), {"one": 2}, kw_only=True)


def test_callables_without_a_signature_keep_positions() -> None:
    unknown: Callable[..., Any] = type("Unknown", (), {"__signature__": 3, "__call__": print})()

    assert recorded_arguments(unknown, (1,), {}, kw_only=True) == ([1], {})


@pytest.mark.parametrize("iterator", [iter([1, 2]), (n for n in (1, 2)), map(int, "12")])
def test_iterators_become_lists(iterator: object) -> None:
    assert recorded_arguments(function, (iterator,), {}, kw_only=True)[1] == {"one": [1, 2]}


@pytest.mark.parametrize("kept", [count(), io.StringIO("a\nb"), "text", {1: 2}])
def test_files_and_endless_iterators_stay(kept: object) -> None:
    assert recorded_arguments(function, (kept,), {}, kw_only=True)[1]["one"] is kept


def test_the_callee_gets_values_in_place_of_what_represents_them() -> None:
    choice, plain = Choice(), object()

    args, kwargs = call_arguments(([choice], {"a": [choice, plain], "b": {"c": (choice,)}}))

    assert args == [7]
    assert kwargs == {"a": [7, plain], "b": {"c": (7,)}}


def test_a_mutable_is_passed_as_its_value() -> None:
    rate = nni.choice("rate", [0.1, 0.2])

    assert call_arguments(([rate], {})) == ([0.1], {})
    with frozen_context({"rate": 0.2}):
        assert call_arguments(([], {"all": [rate]})) == ([], {"all": [0.2]})


def test_lists_and_dicts_are_copied_for_the_callee() -> None:
    given: dict[str, Any] = {"a": [1], "b": {"c": 1}}

    _, kwargs = call_arguments(([], given))

    assert kwargs == given
    assert kwargs["a"] is not given["a"]
    assert kwargs["b"] is not given["b"]
