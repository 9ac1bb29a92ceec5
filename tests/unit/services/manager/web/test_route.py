"""Query parameters of routes."""

from __future__ import annotations

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.web.route import QueryParameter

LIMIT = QueryParameter("limit", "", int, 1, 100)
FOLLOW = QueryParameter("follow", "", bool)
ORDER = QueryParameter("order", "", choices=("up", "down"))


def test_each_kind_is_parsed_as_its_type() -> None:
    assert LIMIT.parse("007") == 7
    assert [FOLLOW.parse(text) for text in ("", "1", "TRUE", "0", "false")] == [
        *(True, True, True),
        *(False, False),
    ]
    assert ORDER.parse("down") == "down"


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        *((LIMIT, text) for text in ("0", "101", "-1", "1.5", "", "x", "\u0663", "9" * 30)),
        (FOLLOW, "maybe"),
        (ORDER, "sideways"),
        (QueryParameter("cursor", ""), "x" * 10_001),
    ],
)
def test_invalid_values_are_refused_by_name(parameter: QueryParameter, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parameter.parse(text)

    assert caught.value.field == parameter.name
