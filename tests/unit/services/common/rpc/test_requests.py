from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from nni_proto.trial.v1 import trial_service_pb2 as pb
from svc_common.errors import InvalidArgumentError
from svc_common.rpc.requests import (
    MAX_DRAINED_MESSAGES,
    MalformedRequest,
    capture_malformed,
    checked_requests,
    read_to_end,
)


def test_a_valid_message_is_passed_on() -> None:
    read = capture_malformed(pb.GetTrialRequest.FromString)
    assert read is not None
    message = pb.GetTrialRequest(trial_id="t")

    assert checked_requests(read(message.SerializeToString())) == message


def test_malformed_message_is_refused_when_it_is_used() -> None:
    read = capture_malformed(pb.GetTrialRequest.FromString)
    assert read is not None
    sent = read(b"\xff")

    assert isinstance(sent, MalformedRequest)
    with pytest.raises(InvalidArgumentError, match="request must be a message of this method"):
        checked_requests(sent)


def test_a_method_without_deserializer_stays_without_one() -> None:
    assert capture_malformed(None) is None


async def test_a_stream_is_refused_at_its_first_malformed_message() -> None:
    async def sent() -> AsyncIterator[object]:
        yield pb.GetTrialRequest()
        yield MalformedRequest("wire format was corrupt")

    messages = checked_requests(sent())

    assert await anext(messages) == pb.GetTrialRequest()
    with pytest.raises(InvalidArgumentError, match="wire format was corrupt"):
        await anext(messages)


async def counted(count: int, seen: list[int]) -> AsyncIterator[int]:
    for number in range(count):
        seen.append(number)
        yield number


async def test_remaining_messages_are_read() -> None:
    seen: list[int] = []

    await read_to_end(counted(3, seen))

    assert seen == [0, 1, 2]


async def test_endless_stream_is_read_up_to_the_limit() -> None:
    seen: list[int] = []

    await read_to_end(counted(10 * MAX_DRAINED_MESSAGES, seen))

    assert len(seen) == MAX_DRAINED_MESSAGES


async def test_a_broken_stream_is_at_its_end() -> None:
    seen: list[int] = []

    async def broken() -> AsyncIterator[int]:
        async for number in counted(3, seen):
            yield number
        raise ConnectionResetError

    await asyncio.wait_for(read_to_end(broken()), 10)

    assert seen == [0, 1, 2]
