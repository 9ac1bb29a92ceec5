"""JSON encoding that every browser can parse: NaN and the infinities are strings.

Python writes them as bare words, which `JSON.parse` rejects; NNI's clients expect the strings
`"NaN"`, `"Infinity"` and `"-Infinity"`.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from nni_wire.texts import REMEDY, RULE, broken_text
from svc_common.errors import InvalidArgumentError
from svc_common.large_work import AT_ONCE_BYTES, parse_json

VALUES_LIMIT: Final = 200_000
"""Most values of a request body: as many as a gRPC message may have entries of maps."""
MARKS_LIMIT: Final = 500_000
"""Most commas and brackets of a request body, those in texts included: as many values are parsed
before they are counted, and freed within 30 ms."""


def to_json(data: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return ``data`` as compact ASCII JSON; NaN and infinities are written as text."""
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError:  # rare: the usual data needs no second walk
        return json.dumps(_finite(data), allow_nan=False, separators=(",", ":"))


def to_json_bytes(data: Any, size_bytes: int = 0) -> bytes:  # noqa: ANN401 - any JSON value
    """Return ``data`` as compact ASCII JSON; above a size encoded piecewise, so that threads go on.

    Args:
        data: the value.
        size_bytes: about its size; a large one is written in steps, for a thread.
    """
    if size_bytes <= AT_ONCE_BYTES:
        return to_json(data).encode("ascii")
    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
    return "".join(encoder.iterencode(_finite(data))).encode("ascii")


def from_json(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a request body as JSON; raise InvalidArgumentError if it is malformed.

    Bare `NaN` and `Infinity` are accepted, since Python clients write them.

    Raises:
        InvalidArgumentError: the body is not JSON in UTF-8, nested too deeply, or too many values;
            or a text in it has half of a surrogate pair.
    """
    # Each value but the first of a list or object follows a comma; texts may have some, too.
    marks = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    if marks > MARKS_LIMIT:
        raise _too_many(f"{MARKS_LIMIT:,} commas and brackets", f"{marks:,}")
    try:
        data = parse_json(text)
    except RecursionError:
        raise InvalidArgumentError("body", "must not be nested so deeply") from None
    except ValueError as error:
        raise InvalidArgumentError("body", f"must be JSON ({error})") from None
    if marks >= VALUES_LIMIT and _has_more_values(data, VALUES_LIMIT):
        raise _too_many(f"{VALUES_LIMIT:,} values", f"more in {len(text):,} bytes")
    # Only an escape, or bytes that are not ASCII, can be half of a pair: most bodies have neither.
    if b"\\u" in text or not text.isascii():
        check_texts(data)
    return data


def check_texts(data: Any, field: str = "") -> None:  # noqa: ANN401 - any JSON value
    """Raise InvalidArgumentError if a text in the data has half of a surrogate pair.

    Raises:
        InvalidArgumentError: it names the field of the text.
    """
    broken = broken_text(data, field)
    if broken is not None:
        raise InvalidArgumentError(broken.place or "body", RULE, broken.character, REMEDY)


def _too_many(most: str, found: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "body",
        f"must have at most {most}",
        found,
        "send samples in several requests; write long choices of a search space as ranges",
    )


def _has_more_values(data: Any, limit: int) -> bool:  # noqa: ANN401 - any JSON value
    """Return whether data has more than so many values, lists and objects included."""
    count, waiting = 0, [data]
    while waiting and count <= limit:
        value = waiting.pop()
        count += 1
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return count > limit


def _finite(data: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(data, float):
        if math.isfinite(data):
            return data
        if math.isnan(data):
            return "NaN"
        return "Infinity" if data > 0 else "-Infinity"
    if isinstance(data, dict):
        return {key: _finite(item) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(item) for item in data]
    return data
