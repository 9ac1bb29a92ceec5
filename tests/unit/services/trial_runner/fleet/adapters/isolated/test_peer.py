import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.isolated import peer as peer_module
from svc_trial_runner.fleet.adapters.isolated.peer import (
    LIMIT_BYTES,
    HandleCall,
    Peer,
    PeerGoneError,
)
from svc_trial_runner.fleet.ports import PlatformError


async def echo(method: str, params: Any) -> Any:
    return [method, params]


@asynccontextmanager
async def peers(handle: HandleCall, cancel_s: float = 60.0) -> AsyncIterator[tuple[Peer, Peer]]:
    """Yield two connected peers that run; the second one handles calls."""
    ends = socket.socketpair()
    caller = await Peer.open(ends[0], echo, cancel_s)
    handler = await Peer.open(ends[1], handle)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(peer.run()) for peer in (caller, handler)]
        try:
            yield caller, handler
        finally:
            await handler.aclose()
            await caller.aclose()
            for task in running:
                task.cancel()


async def test_call_has_method_and_parameters() -> None:
    async with peers(echo) as (caller, _):
        assert await caller.call("launch", {"a": [1]}) == ["launch", {"a": [1]}]


async def test_both_ends_call() -> None:
    async with peers(echo) as (caller, handler):
        first, second = await asyncio.gather(caller.call("a", 1), handler.call("b", 2))

    assert (first, second) == (["a", 1], ["b", 2])


async def test_long_message_arrives() -> None:
    text = "a" * 1_000_000

    async with peers(echo) as (caller, _):
        assert await caller.call("a", text) == ["a", text]


async def test_error_keeps_words_remedy_and_permanence() -> None:
    async def refuse(method: str, params: Any) -> Any:
        raise PlatformError("no quota", "ask for more", permanent=True)

    async with peers(refuse) as (caller, _):
        with pytest.raises(PlatformError, match="no quota") as caught:
            await caller.call("launch")

    assert (caught.value.remedy, caught.value.permanent) == ("ask for more", True)


async def test_other_errors_are_words() -> None:
    async def fail(method: str, params: Any) -> Any:
        raise ZeroDivisionError("of the test")

    async with peers(fail) as (caller, _):
        with pytest.raises(PlatformError, match="ZeroDivisionError: of the test"):
            await caller.call("launch")


async def test_result_that_json_does_not_have_fails_its_call() -> None:
    async def measure(method: str, params: Any) -> Any:
        return {1, 2}

    async with peers(measure) as (caller, _):
        with pytest.raises(PlatformError, match="TypeError: Object of type set"):
            await caller.call("capacity")


async def test_result_that_is_too_long_fails_its_call() -> None:
    async def repeat(method: str, params: Any) -> Any:
        return "a" * LIMIT_BYTES

    async with peers(repeat) as (caller, _):
        with pytest.raises(PlatformError, match="too long"):
            await caller.call("agents")


async def test_cancelled_call_is_cancelled_at_the_other_end() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(method: str, params: Any) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with peers(wait) as (caller, _):
        call = asyncio.ensure_future(caller.call("wait_changed"))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert ended.is_set()
        assert not caller.stuck


async def test_call_that_does_not_end_when_cancelled_is_stuck() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def resist(method: str, params: Any) -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with peers(resist, cancel_s=0.01) as (caller, _):
        call = asyncio.ensure_future(caller.call("launch"))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        release.set()

        assert caller.stuck


async def test_end_of_the_other_side_fails_the_calls_in_progress_and_later_ones() -> None:
    started = asyncio.Event()

    async def wait(method: str, params: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    async with peers(wait) as (caller, handler):
        call = asyncio.ensure_future(caller.call("agents"))
        await started.wait()
        await handler.aclose()
        with pytest.raises(PlatformError):
            await call
        with pytest.raises(PeerGoneError):
            await caller.call("agents")


async def test_responses_that_no_call_waits_for_are_ignored() -> None:
    own, other = socket.socketpair()
    caller = await Peer.open(own, echo)
    running = asyncio.create_task(caller.run())
    responses: list[dict[str, Any]] = [{"cancel": 9}, {"id": 9, "result": "unknown"}]
    responses += [{"id": 1, "result": answer} for answer in ("first", "second")]
    with other:
        for response in responses:
            content = json.dumps(response).encode()
            other.sendall(len(content).to_bytes(4) + content)

        assert await caller.call("agents") == "first"
        assert not running.done()

    await running
    await caller.aclose()


async def test_message_that_is_too_long_ends_the_connection() -> None:
    own, other = socket.socketpair()
    caller = await Peer.open(own, echo)
    with other:
        other.sendall((64 * 1024 * 1024 + 1).to_bytes(4))

        await asyncio.wait_for(caller.run(), 30)

    with pytest.raises(PeerGoneError):
        await caller.call("agents")
    await caller.aclose()


async def test_words_of_an_error_are_shortened_to_1000_characters() -> None:
    async def fail(method: str, params: Any) -> Any:
        raise ValueError("a" * 2000)

    async with peers(fail) as (caller, _):
        with pytest.raises(PlatformError) as caught:
            await caller.call("launch")

    assert caught.value.message == "ValueError: " + "a" * 988
    assert not caught.value.permanent


async def test_messages_are_sent_and_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "LIMIT_BYTES", 200)
    rest = len(json.dumps({"id": 1, "method": "launch", "params": ""}))
    longest = "a" * (200 - rest)

    async with peers(echo) as (caller, _):
        assert await caller.call("launch", longest) == ["launch", longest]
        with pytest.raises(PlatformError, match="a message of 201 bytes is too long"):
            await caller.call("launch", longest + "a")
        assert await caller.call("agents") == ["agents", None]


async def test_close_cancels_the_calls_that_are_handled() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(method: str, params: Any) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with peers(wait) as (caller, handler):
        call = asyncio.ensure_future(caller.call("wait_changed"))
        await started.wait()

        await handler.aclose()

        assert ended.is_set()
        with pytest.raises(PlatformError):
            await call


async def test_message_of_64_mebibytes_is_waited_for() -> None:
    own, other = socket.socketpair()
    caller = await Peer.open(own, echo)
    running = asyncio.create_task(caller.run())
    with other:
        other.sendall((64 * 1024 * 1024).to_bytes(4))
        for _ in range(10):
            await asyncio.sleep(0)

        assert not running.done()

    await asyncio.wait_for(running, 30)
    await caller.aclose()


async def test_call_that_is_cancelled_in_one_piece_with_its_request_gets_a_response() -> None:
    """Its task has not begun at that time."""
    ended = asyncio.Event()

    async def wait(method: str, params: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    end, other = socket.socketpair()
    handler = await Peer.open(end, wait)
    reader, writer = await asyncio.open_unix_connection(sock=other)
    requests: list[dict[str, Any]] = [
        {"id": 7, "method": "launch", "params": None},
        {"cancel": 7},
    ]
    contents = [json.dumps(request).encode() for request in requests]
    writer.write(b"".join(len(content).to_bytes(4) + content for content in contents))
    running = asyncio.create_task(handler.run())

    async with asyncio.timeout(30):
        length = int.from_bytes(await reader.readexactly(4))
        response = json.loads(await reader.readexactly(length))

    assert response == {
        "id": 7,
        "error": {"message": "the call was cancelled", "remedy": "", "permanent": False},
    }
    assert ended.is_set()
    await handler.aclose()
    writer.close()
    await running


async def test_calls_are_numbered_from_one_and_each_gets_its_own_response() -> None:
    own, other = socket.socketpair()
    caller = await Peer.open(own, echo)
    running = asyncio.create_task(caller.run())
    reader, writer = await asyncio.open_unix_connection(sock=other)
    calls = [asyncio.create_task(caller.call(name)) for name in ("first", "second")]
    requests = []
    async with asyncio.timeout(30):
        for _ in calls:
            length = int.from_bytes(await reader.readexactly(4))
            requests.append(json.loads(await reader.readexactly(length)))
        for request in reversed(requests):
            content = json.dumps({"id": request["id"], "result": request["method"]}).encode()
            writer.write(len(content).to_bytes(4) + content)

        assert await asyncio.gather(*calls) == ["first", "second"]

    assert [request["id"] for request in requests] == [1, 2]
    writer.close()
    await running
    await caller.aclose()
