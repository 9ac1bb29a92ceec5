from __future__ import annotations

from typing import Any

import pytest

from nni.cli.replay import value_at


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ({"x": 1}, "", {"x": 1}),
        ({"x": 1}, "x", 1),
        ({"model": {"C": 2.5}}, "model.C", 2.5),
        ({"layers": [1, [2, 3]]}, "layers[1][0]", 2),
        ({"layers": [1]}, "layers[1]", None),
        ({"x": 1}, "y", None),
        ({"x": 1}, "x.y", None),
        ([4, 5], "[1]", 5),
        (None, "x", None),
    ],
)
def test_value_stands_at_its_path(value: Any, path: str, found: Any) -> None:
    assert value_at(value, path) == found
