"""Containers are the product of their members, and change as lists and dictionaries do."""

import copy
from typing import Any

import pytest

from nni.mutable import Categorical, MutableDict, MutableList

A = Categorical([1, 2], label="a")
B = Categorical([3], label="b")


def test_list_is_frozen_to_a_list() -> None:
    assert MutableList([A, MutableList([B])]).freeze({"a": 2, "b": 3}) == [2, [3]]


def test_list_changes() -> None:
    space = MutableList([A])
    space.append(B)
    space.extend([A])
    space.insert(0, B)

    assert [member.label for member in space if isinstance(member, Categorical)] == [*"baba"]
    assert space.pop() is A
    space[0] = A
    del space[1]
    assert len(space) == 2
    assert space[0] is A
    assert space[1] is B


def test_slice_of_a_list_is_a_list() -> None:
    part = MutableList([A, B, A])[1:]

    assert isinstance(part, MutableList)
    assert len(part) == 2


def test_changed_list_has_the_new_leaves() -> None:
    space = MutableList([A])
    assert list(space.simplify()) == ["a"]

    space.append(B)

    assert list(space.simplify()) == ["a", "b"]


def test_members_of_a_list_are_mutable() -> None:
    space = MutableList([A])
    number: Any = 1

    with pytest.raises(TypeError, match="members must be mutable, got 1"):
        space.append(number)
    with pytest.raises(TypeError, match="members must be mutable, got 1"):
        space.extend([number])
    with pytest.raises(TypeError, match="members must be mutable, got 1"):
        space.insert(0, number)
    with pytest.raises(TypeError, match="members must be mutable, got 1"):
        space[0] = number
    assert space[0] is A


def test_dictionary_is_frozen_to_a_dictionary() -> None:
    assert MutableDict({"x": A, "y": B}).freeze({"a": 2, "b": 3}) == {"x": 2, "y": 3}


def test_dictionary_changes() -> None:
    space = MutableDict({"x": A})
    space["y"] = B
    space.update({"z": A})
    del space["x"]

    assert list(space) == list(space.keys()) == ["y", "z"]
    assert [id(member) for member in space.values()] == [id(B), id(A)]
    assert "y" in space
    assert "x" not in space
    assert len(space) == 2
    assert space["z"] is A
    assert dict(space.items())["y"] is B


def test_members_of_a_dictionary_are_mutable() -> None:
    space = MutableDict()

    with pytest.raises(TypeError, match="members must be mutable, got 1"):
        space["x"] = 1  # type: ignore[assignment] # what is tested
    with pytest.raises(TypeError, match="members must be mutable, got 1"):
        space.update({"x": 1})  # type: ignore[dict-item] # what is tested


def test_path_of_an_error_has_the_name() -> None:
    error = MutableDict({"x": A}).check_contains({"a": 9})

    assert error is not None
    assert error.paths == ["a", "x"]


def test_copy_is_independent() -> None:
    space = MutableList([A])
    other = copy.deepcopy(space)
    other.append(B)

    assert len(space) == 1
    assert not other.equals(space)


def test_order_of_names_is_part_of_a_dictionary() -> None:
    assert not MutableDict({"x": A, "y": B}).equals(MutableDict({"y": B, "x": A}))
