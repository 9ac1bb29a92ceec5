"""Channel of credentials between two ends of a pair of sockets."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest

from svc_common.credential_channel import (
    CredentialChannel,
    CredentialRequest,
    CredentialServer,
    IssuedCredentials,
)
from svc_common.errors import InvalidArgumentError, ServiceError, UnavailableError


class Handler:
    """Handler that notes batches, and makes credentials of names."""

    def __init__(self) -> None:
        self.batches: list[list[CredentialRequest]] = []
        self.called = asyncio.Event()
        self.free = asyncio.Event()
        self.free.set()

    async def handle(
        self, requests: Sequence[CredentialRequest]
    ) -> Sequence[IssuedCredentials | ServiceError | None]:
        self.batches.append(list(requests))
        self.called.set()
        await self.free.wait()
        return [self._result(request) for request in requests]

    def _result(self, request: CredentialRequest) -> IssuedCredentials | ServiceError | None:
        if request.issue is None:
            return None
        name, pool = request.issue
        if pool == "bad":
            return InvalidArgumentError("name", "must be another one")
        return IssuedCredentials(name, f"password of {name}", f"token of {name}")


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
async def server(handler: Handler) -> AsyncIterator[CredentialServer]:
    server = CredentialServer()
    serving = asyncio.create_task(server.serve(handler.handle))
    try:
        async with asyncio.timeout(20):
            yield server
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        server.close()


@pytest.fixture
async def channel(server: CredentialServer) -> AsyncIterator[CredentialChannel]:
    channel = CredentialChannel.inherited(os.dup(server.child_end.fileno()))
    yield channel
    channel.close()


async def test_credentials_come_for_the_name_that_was_asked_for(channel: CredentialChannel) -> None:
    found = await channel.issue("nni-1", "p")

    assert found == IssuedCredentials("nni-1", "password of nni-1", "token of nni-1")


async def test_requests_that_overlap_are_handled_together(
    channel: CredentialChannel, handler: Handler
) -> None:
    handler.free.clear()
    first = asyncio.create_task(channel.issue("a", "p"))
    await handler.called.wait()
    others = [asyncio.create_task(channel.issue(name, "p")) for name in "bcd"]
    await asyncio.sleep(0)
    handler.free.set()

    found = await asyncio.gather(first, *others)

    assert [one.user for one in found] == ["a", "b", "c", "d"]
    assert [len(batch) for batch in handler.batches] == [1, 3]


async def test_more_requests_than_the_socket_holds_are_all_answered(
    channel: CredentialChannel,
) -> None:
    names = [f"nni-{number}" for number in range(1_500)]

    found = await asyncio.gather(*(channel.issue(name, "p") for name in names))

    assert [one.user for one in found] == names


async def test_refusal_is_raised_with_its_reason(channel: CredentialChannel) -> None:
    with pytest.raises(UnavailableError, match="name must be another one"):
        await channel.issue("nni-1", "bad")


async def test_many_names_are_revoked_in_several_messages(
    channel: CredentialChannel, handler: Handler
) -> None:
    names = [f"{'n' * 120}-{number}" for number in range(600)]

    await channel.revoke(names)

    requests = [request for batch in handler.batches for request in batch]
    assert [name for request in requests for name in request.revoke] == names
    assert len(requests) == 3


async def test_nothing_is_asked_to_revoke_no_name(
    channel: CredentialChannel, handler: Handler
) -> None:
    await channel.revoke([])

    assert handler.batches == []


async def test_answer_to_an_earlier_run_of_the_fleet_is_ignored(
    server: CredentialServer, handler: Handler
) -> None:
    earlier = CredentialChannel.inherited(os.dup(server.child_end.fileno()))
    handler.free.clear()
    lost = asyncio.create_task(earlier.issue("old", "p"))
    await handler.called.wait()
    earlier.close()
    with pytest.raises(UnavailableError, match="closed"):
        await lost
    handler.free.set()

    later = CredentialChannel.inherited(os.dup(server.child_end.fileno()))
    try:
        assert (await later.issue("new", "p")).user == "new"
    finally:
        later.close()


async def test_channel_without_a_supervisor_says_so() -> None:
    parent, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = CredentialChannel(child)
    waiting = asyncio.create_task(channel.issue("a", "p"))
    await asyncio.sleep(0)
    parent.close()

    with pytest.raises(UnavailableError, match="supervisor"):
        await waiting

    channel.close()
    channel.close()


@pytest.mark.parametrize(
    "message", [b"no json", b"[]", b'{"id": "1"}', b'{"id": 1, "issue": ["a", "p"]}', b"\xff"]
)
async def test_message_that_is_no_request_is_ignored(
    server: CredentialServer, handler: Handler, message: bytes
) -> None:
    server.child_end.send(message)
    channel = CredentialChannel.inherited(os.dup(server.child_end.fileno()))
    try:
        assert (await channel.issue("a", "p")).user == "a"
    finally:
        channel.close()

    assert len(handler.batches) == 1


def test_secrets_are_not_in_the_text_of_credentials() -> None:
    assert "hush" not in repr(IssuedCredentials("user", "hush", "hush"))
