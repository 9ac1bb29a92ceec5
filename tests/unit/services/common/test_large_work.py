import asyncio
import json
import math
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from nni_proto.common.v1 import value_pb2
from nni_wire.values import to_value
from svc_common.large_work import (
    AT_ONCE_BYTES,
    ON_LOOP_BYTES,
    copy_of,
    encoded,
    off_loop,
    parse_json,
    write_json,
)

LARGE = ON_LOOP_BYTES + 1


def large(value: object) -> bytes:
    """Return a text with a value that is parsed in steps."""
    return json.dumps({"value": value, "rest": "x" * AT_ONCE_BYTES}).encode()


async def test_small_values_are_handled_on_the_loop_and_large_ones_in_a_thread() -> None:
    assert await off_loop(ON_LOOP_BYTES, threading.current_thread) is threading.current_thread()

    assert (await off_loop(LARGE, threading.current_thread)).name.startswith("large-work")


async def test_errors_reach_the_caller() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await off_loop(LARGE, int, "no number")


async def test_few_large_values_are_handled_at_once() -> None:
    entered: list[int] = []
    go_on = threading.Event()

    def work(number: int) -> int:
        entered.append(number)
        assert go_on.wait(30)
        return number

    calls = [asyncio.create_task(off_loop(LARGE, work, number)) for number in range(5)]
    barrier = asyncio.create_task(asyncio.to_thread(_until_two, entered))
    await barrier

    assert len(entered) == 2
    go_on.set()
    assert await asyncio.gather(*calls) == [0, 1, 2, 3, 4]


def _until_two(entered: list[int]) -> None:
    while len(entered) < 2:
        threading.Event().wait(0.001)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, -2.5, 1e300, 10**40, True, False],
        {"a": {"b": [[], {}, [None]]}, "": 'ä\u2028\ud83d\ude00\\"\n'},
        ["plain"] * 1000,
    ],
)
def test_large_texts_are_parsed_and_written_as_by_json(value: object) -> None:
    text = large(value)

    assert parse_json(text) == json.loads(text)
    assert write_json(value, AT_ONCE_BYTES + 1) == json.dumps(value).encode()
    assert write_json(value, 1) == json.dumps(value).encode()


def test_nan_and_infinities_survive() -> None:
    nan, infinity = parse_json(large([math.nan, -math.inf]))["value"]

    assert math.isnan(nan)
    assert infinity == -math.inf


@pytest.mark.parametrize("tail", [b"", b"]", b", 1]", b'"'])
def test_text_that_is_no_json_is_refused(tail: bytes) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse_json(b"[" + b"1," * AT_ONCE_BYTES + tail)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RecursionError):
        parse_json(b"[" * AT_ONCE_BYTES * 2)


def lines_run(function: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs: between two of them other threads can run."""
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    earlier = sys.gettrace()
    sys.settrace(count)
    try:
        function()
    finally:
        sys.settrace(earlier)
    return lines


def test_other_threads_can_run_between_the_items_of_a_large_text() -> None:
    items = AT_ONCE_BYTES // 4 + 1
    text = b"[" + b'"x",' * items + b"1]"

    assert lines_run(lambda: json.loads(text)) < 100  # the parser in one call
    assert lines_run(lambda: parse_json(text)) > items
    assert lines_run(lambda: write_json(["x"] * items, len(text))) > items


@pytest.mark.parametrize("work", [copy_of, encoded])
async def test_large_messages_have_a_turn_of_the_loop_of_their_own(
    work: Callable[[value_pb2.Value], Any],
) -> None:
    value = to_value([1, "two"])
    turns = 0

    async def other_task() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(other_task())
    made = await work(value)
    other.cancel()

    assert made in (value, value.SerializeToString())
    assert turns == 2  # one before, one behind
