from collections import OrderedDict
from enum import IntEnum
from typing import Any, Self

import pytest
import torch

import nni
from nni.common.serializer import PayloadTooLarge
from nni.common.serializer.decoding import object_of
from nni.common.serializer.encoding import Encoder, joined


class Level(IntEnum):
    LOW = 1


class Custom:
    def __init__(self, one: int) -> None:
        self.one = one

    def _dump(self) -> dict[str, int]:
        return {"one": self.one}

    @classmethod
    def _load(cls, one: int) -> Self:
        return cls(one)


class Holder:
    def __init__(self, content: object) -> None:
        self.content = content


def test_containers_become_those_of_json() -> None:
    value = OrderedDict(a=(1, torch.Size([2])), b=Level.LOW)

    assert Encoder().encode(value) == {"a": [1, [2]], "b": 1}


def test_an_object_with_hooks_is_written_by_them() -> None:
    form = Encoder().encode(Custom(3))

    assert form == {"__instance_type__": f"path:{__name__}.Custom", "one": 3}
    assert object_of(form).one == 3


def test_traced_objects_come_before_all_others() -> None:
    form = Encoder().encode(nni.trace(Custom)(3))

    assert form == {"__symbol__": f"path:{__name__}.Custom", "__kwargs__": {"one": 3}}


def test_traced_values_of_builtin_types_keep_their_call() -> None:
    made = nni.trace(Holder)(nni.trace(sorted_numbers)([2, 1]))

    form = Encoder().encode(made)["__kwargs__"]["content"]

    assert form["__kwargs__"] == {"numbers": [2, 1]}


def sorted_numbers(numbers: list[int]) -> list[int]:
    return sorted(numbers)


def test_calls_are_pickled_on_request() -> None:
    form = Encoder(use_trace=False).encode(nni.trace(Holder)(3))

    assert list(form) == ["__nni_obj__"]
    assert object_of(form).content == 3


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (bytearray(5000), ""),
        ({"a": [1, bytearray(5000)]}, "a[1]"),
        (nni.trace(Holder)(nni.trace(Holder)({"b": bytearray(5000)})), "content.content.b"),
        ([bytearray(5000)], "[0]"),
    ],
)
def test_a_large_object_is_refused_by_its_path(value: object, path: str) -> None:
    with pytest.raises(PayloadTooLarge) as raised:
        Encoder().encode(value)

    assert (raised.value.path, raised.value.type_name) == (path, "bytearray")


def test_a_large_local_class_is_refused_by_its_name() -> None:
    class Local:
        table = bytearray(5000)

    with pytest.raises(PayloadTooLarge, match=r"Local\) takes"):
        Encoder().encode(nni.trace(Local)())
    with pytest.raises(PayloadTooLarge, match=r"Local\) takes"):
        Encoder().encode(Local)


def test_classes_that_must_be_traced_are_refused_if_they_are_not() -> None:
    encoder = Encoder(never_pickled=(Holder,))

    with pytest.raises(ValueError, match=r"a\[0\] is an untraced Holder: .*nni.trace\(Holder\)"):
        encoder.encode({"a": [Holder(1)]})
    assert encoder.encode(nni.trace(Holder)(1))["__kwargs__"] == {"content": 1}


def test_an_object_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["a"] = [value]

    with pytest.raises(ValueError, match=r"a\[0\] contains itself"):
        Encoder().encode(value)


def test_an_object_that_occurs_twice_is_written_twice() -> None:
    part = [1]

    assert Encoder().encode([part, part]) == [[1], [1]]


def test_keys_that_json_lacks_are_refused() -> None:
    with pytest.raises(TypeError, match=r"keys of a must be strings.*got \(1, 2\)"):
        Encoder().encode({"a": {(1, 2): 3}})


def test_paths_join_by_points() -> None:
    assert (joined("", "a"), joined("a", "b")) == ("a", "a.b")


def test_keys_of_one_text_are_refused_since_the_document_would_lose_a_value() -> None:
    with pytest.raises(ValueError, match=r"keys of a must have distinct texts, .* got 1 and '1'"):
        Encoder().encode({"a": {1: "one", "1": "two"}})

    with pytest.raises(ValueError, match="got None and 'null'"):
        Encoder().encode({None: 1, "null": 2})


def test_keys_of_distinct_texts_stay() -> None:
    assert Encoder().encode({1: "a", 1.5: "b", "c": "c"}) == {1: "a", 1.5: "b", "c": "c"}
