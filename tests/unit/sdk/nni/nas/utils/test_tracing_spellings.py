"""Spellings of `nni.trace` in NNI 2.x."""

from fractions import Fraction

import pytest

from nni.common.serializer import is_traceable, is_wrapped_with_trace
from nni.nas.utils import serialize, serialize_cls


def test_serialize_constructs_a_traced_object() -> None:
    with pytest.warns(DeprecationWarning, match=r"write nni.trace\(cls\)\(...\)"):
        half = serialize(Fraction, 1, denominator=2)

    assert half == Fraction(1, 2)
    assert is_traceable(half)


def test_serialize_cls_traces_a_class() -> None:
    with pytest.warns(DeprecationWarning, match=r"write nni.trace\(cls\)"):
        traced = serialize_cls(Fraction)

    assert is_wrapped_with_trace(traced)
