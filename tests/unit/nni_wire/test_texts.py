"""Texts that have no form in UTF-8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni_wire.texts import broken_text


@pytest.mark.parametrize(
    ("data", "place", "character"),
    [
        ("a\ud800b", "", "\ud800"),
        ("\udfff", "", "\udfff"),
        ({"x": ["ok", ("\ud800",)]}, "x[1][0]", "\ud800"),
        ({"x": {"\ud800": 1}}, "x.\\ud800", "\ud800"),
        ([Path("a\udcff")], "[0]", "\udcff"),
    ],
)
def test_half_of_a_pair_is_found_with_its_place(data: Any, place: str, character: str) -> None:
    found = broken_text(data)

    assert found is not None
    assert (found.place, found.character) == (place, character)


def test_first_of_several_is_named_below_the_given_place() -> None:
    found = broken_text({"a": [1, "\ud800"], "b": "\ud801"}, "searchSpace")

    assert found is not None
    assert (found.place, found.character) == ("searchSpace.a[1]", "\ud800")


def test_whole_pairs_and_other_values_are_passed_over() -> None:
    circle: list[Any] = ["\U0001f600", "ü", 1, None, b"\xff", {1: "x"}]
    circle.append(circle)

    assert broken_text(circle) is None
