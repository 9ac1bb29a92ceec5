import json
from collections import OrderedDict
from typing import Any

import pytest

import nni
from nni.common.serializer import is_traceable
from nni.common.serializer.decoding import decode, object_of, symbol_of


class Named:
    def __init__(self, *names: str, last: str = "") -> None:
        self.names = (*names, last)


def test_a_call_is_made_again_and_traced() -> None:
    made: Any = object_of(
        {"__symbol__": f"path:{__name__}.Named", "__args__": ["a"], "__kwargs__": {"last": "b"}}
    )

    assert made.names == ("a", "b")
    assert is_traceable(made)
    assert made.trace_args == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, # one\n "b": "#2"}',
        '{"a": 1, // one\n "b": "#2"}',
        '{"a": /* one */ 1, "b": "#2"}',
    ],
)
def test_comments_are_left_out(text: str) -> None:
    assert decode(text) == {"a": 1, "b": "#2"}
    with pytest.raises(json.JSONDecodeError):
        decode(text, ignore_comments=False)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(json.JSONDecodeError):
        decode("{a: 1}")


def test_the_order_is_kept_on_request() -> None:
    made = decode('{"b": {"__set__": [1]}, "a": 1}', preserve_order=True)

    assert type(made) is OrderedDict
    assert made == OrderedDict(b={1}, a=1)
    assert type(decode("{}")) is dict


def test_a_symbol_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with 'path:' or 'bytes:', got 'torch'"):
        symbol_of("torch")


def test_a_symbol_that_cannot_be_imported_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="no_such_module"):
        decode('{"__symbol__": "path:no_such_module.Name"}')


def test_a_class_by_value_is_loaded_as_a_class() -> None:
    class Local:
        pass

    assert nni.load(nni.dump(Local)).__name__ == "Local"
