"""Strategies for JSON-like values: arbitrary ones, and valid ones with a few changes."""

from __future__ import annotations

import copy
from typing import Any, Final

from hypothesis import strategies as st

_NUMBERS: Final = st.one_of(
    st.sampled_from([0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0]),
    st.integers(-1000, 1000),
    st.floats(),
)
_WORDS: Final = st.one_of(
    st.sampled_from(
        ["", " ", "_type", "_value", "_name", "x", "choice", "uniform", "\x00", "🦆", "1e3", "nan"]
    ),
    st.text(max_size=8),
)
LEAVES: Final = st.one_of(st.none(), st.booleans(), _NUMBERS, _WORDS)


def json_values(most: int = 8) -> st.SearchStrategy[Any]:
    """Draw JSON values, the infinities and NaN among them."""
    return st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
        max_leaves=most,
    )


@st.composite
def changed(draw: st.DrawFn, valid: st.SearchStrategy[Any], most: int = 3) -> Any:
    """Draw a valid value in which up to ``most`` places are replaced, removed or added."""
    value = copy.deepcopy(draw(valid))
    for _ in range(draw(st.integers(0, most))):
        value = _change(draw, value)
    return value


def _change(draw: st.DrawFn, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(json_values())
    if isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        if draw(st.integers(0, 5)) == 0:
            value.insert(place, draw(json_values()))
        else:
            value[place] = _change(draw, value[place])
        return value
    key = draw(st.sampled_from(sorted(value)))
    match draw(st.integers(0, 7)):
        case 0:
            del value[key]
        case 1:
            value[draw(_WORDS)] = draw(json_values())
        case _:
            value[key] = _change(draw, value[key])
    return value
