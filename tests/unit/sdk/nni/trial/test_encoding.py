from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from nni.trial.encoding import MAX_METRIC_BYTES, encode_metric


class OnlyItem:
    """Like a scalar of a library that we do not know."""

    def item(self) -> float:
        return 2.5


class OnlyNumpy:
    """Like a tensor of TensorFlow."""

    def numpy(self) -> Any:
        return np.float32(0.5)


@pytest.mark.parametrize(
    "value", [0, -3, 0.1, True, None, "text ä", [1, [2]], {"default": 1.5, "k": {"a": []}}]
)
def test_json_values_survive(value: object) -> None:
    assert json.loads(encode_metric(value)) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        ({"default": np.float32(0.25), "all": (np.int8(1),)}, {"default": 0.25, "all": [1]}),
        (OnlyItem(), 2.5),
        (OnlyNumpy(), 0.5),
    ],
)
def test_numbers_of_libraries_become_plain(value: object, expected: object) -> None:
    assert json.loads(encode_metric(value)) == expected


def test_scalar_tensor_of_torch_becomes_a_number() -> None:
    torch = pytest.importorskip("torch")

    assert json.loads(encode_metric(torch.tensor(1.5, requires_grad=True))) == 1.5


def test_numbers_that_are_not_finite_are_bare_tokens() -> None:
    assert encode_metric([math.nan, math.inf, -math.inf]) == "[NaN, Infinity, -Infinity]"


def test_line_breaks_are_escaped() -> None:
    assert "\n" not in encode_metric("a\nb\r\u2028")


@pytest.mark.parametrize("value", [{1, 2}, {"default": object()}, {(1, 2): 3}, b"bytes"])
def test_value_without_a_form_in_json_is_named(value: object) -> None:
    with pytest.raises(TypeError, match=r"a metric must be a JSON value, got .*report a number"):
        encode_metric(value)


def test_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)

    with pytest.raises(ValueError, match="a metric must be a JSON value"):
        encode_metric(value)


def test_longest_metric_is_exactly_the_limit() -> None:
    encode_metric("x" * (MAX_METRIC_BYTES - 2))

    with pytest.raises(ValueError, match="at most 1000000 bytes as JSON, got 1000001"):
        encode_metric("x" * (MAX_METRIC_BYTES - 1))


def test_limit_counts_bytes_not_escapes() -> None:
    text = "ä" * 499_999

    assert json.loads(encode_metric(text)) == text


def test_long_text_that_has_no_utf8_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1000000 bytes"):
        encode_metric("\ud800" * 400_000)


def test_object_whose_repr_fails_is_still_refused_with_a_reason() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(TypeError, match="Broken"):
        encode_metric(Broken())
