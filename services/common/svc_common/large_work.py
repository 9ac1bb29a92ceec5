"""Work on large values away from the event loop: bounded threads, and JSON in small steps.

A thread leaves the loop its turns only while it runs Python code or waits. The fast parser and
writer of `json` are one long call, so large texts are handled by its Python versions.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from json.decoder import JSONArray, JSONDecoder  # type: ignore[attr-defined] # not in the stubs
from json.scanner import py_make_scanner  # type: ignore[attr-defined] # not in the stubs
from typing import Any, Final, ParamSpec, TypeVar

from google.protobuf.message import Message

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Message)

ON_LOOP_BYTES: Final = 64 * 1024
"""Largest value that is handled on the loop: a few milliseconds of Python code."""
AT_ONCE_BYTES: Final = 512 * 1024
"""Largest text that `json` handles in one call: a few milliseconds."""
FOREIGN_VALUES_LIMIT: Final = 200_000
"""Most values of a JSON text of user code: in a map, 800,000 parts of a message, its limit."""
_THREADS: Final = 2
"""Values that are handled at the same time; others wait."""

_pool: Final = ThreadPoolExecutor(_THREADS, thread_name_prefix="large-work")


async def off_loop(
    size_bytes: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return a function's result; call it in one of two threads if `size_bytes` exceeds 64 KiB.

    Args:
        size_bytes: size of the value that the function handles.
        function: called once; it must not use what the loop changes meanwhile.
        *args: its arguments.
        **kwargs: its keyword arguments.
    """
    if size_bytes <= ON_LOOP_BYTES:
        return function(*args, **kwargs)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool, lambda: function(*args, **kwargs))


async def copy_of(message: M) -> M:
    """Copy a message on the event loop between two yields to other tasks; may take 40 ms."""
    await asyncio.sleep(0)
    copy = type(message)()
    copy.CopyFrom(message)
    await asyncio.sleep(0)
    return copy


async def encoded(message: Message, *, deterministic: bool = False) -> bytes:
    """Encode a message on the event loop between two yields to other tasks; may take 30 ms.

    Args:
        message: the message.
        deterministic: whether maps are written in one order.
    """
    await asyncio.sleep(0)
    payload = message.SerializeToString(deterministic=deterministic)
    await asyncio.sleep(0)
    return payload


class _SteppingDecoder(JSONDecoder):
    """JSON decoder in Python code, which other threads can interrupt."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_array = JSONArray
        self.scan_once = py_make_scanner(self)


def parse_json(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON bytes; over 512 KiB by a slower parser, during which other threads can run.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it is nested too deeply.
    """
    if len(text) <= AT_ONCE_BYTES:
        return json.loads(text)
    return json.loads(text, cls=_SteppingDecoder)


def parse_foreign_json(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON bytes of user code, as `parse_json` does; raise for too many values.

    Raises:
        ValueError: the text is not JSON, or has more than 200,000 commas.
        RecursionError: it is nested too deeply.
    """
    commas = sum(
        text.count(b",", start, start + AT_ONCE_BYTES)
        for start in range(0, len(text), AT_ONCE_BYTES)
    )
    if commas > FOREIGN_VALUES_LIMIT:
        raise ValueError(f"must have at most {FOREIGN_VALUES_LIMIT:,} values, got {commas:,}")
    return parse_json(text)


def write_json(data: Any, size_bytes: int) -> bytes:  # noqa: ANN401 - any JSON value
    """Return data as ASCII JSON bytes; large data in steps between which other threads run.

    Args:
        data: the value.
        size_bytes: size of the value in another encoding.
    """
    if size_bytes <= AT_ONCE_BYTES:
        return json.dumps(data).encode()
    return "".join(json.JSONEncoder().iterencode(data)).encode()
