"""Limits of HTTP connections."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from functools import partial

import pytest

from svc_common.errors import ResourceExhaustedError
from svc_manager.web.listeners.connection_limits import (
    ConnectionLimits,
    ConnectionQuota,
    raise_descriptor_limit,
)

QUOTA = ConnectionQuota(connections=8, crowded=6, anonymous=4, anonymous_per_address=2)


@pytest.mark.parametrize("descriptors", [256, 1_024, 4_096, 1_048_576])
def test_quota_leaves_descriptors_and_a_reserve(descriptors: int) -> None:
    quota = ConnectionQuota.of_descriptors(descriptors)

    assert quota.connections <= descriptors // 2
    assert quota.anonymous_per_address < quota.anonymous <= quota.crowded < quota.connections


def test_requests_of_one_address_are_limited() -> None:
    limits = ConnectionLimits(QUOTA)

    with ExitStack() as served:
        for _ in range(2):
            served.enter_context(limits.anonymous_request("10.0.0.1"))
        with (
            pytest.raises(ResourceExhaustedError, match="2 requests without a token") as refused,
            limits.anonymous_request("10.0.0.1"),
        ):
            pass
        served.enter_context(limits.anonymous_request("10.0.0.2"))

    assert refused.value.facts["retry_after_s"] == "1"
    with limits.anonymous_request("10.0.0.1"):
        pass


def test_requests_of_all_addresses_are_limited() -> None:
    limits = ConnectionLimits(QUOTA)

    with ExitStack() as served:
        for number in range(4):
            served.enter_context(limits.anonymous_request(f"10.0.0.{number}"))
        with (
            pytest.raises(ResourceExhaustedError, match="4 requests without a token"),
            limits.anonymous_request("10.0.0.9"),
        ):
            pass


def test_reserve_is_for_callers_with_credentials() -> None:
    limits = ConnectionLimits(QUOTA)
    for _ in range(QUOTA.crowded):
        limits.opened()

    with pytest.raises(ResourceExhaustedError), limits.anonymous_request("10.0.0.1"):
        pass
    assert (limits.crowded, limits.full) == (True, False)
    limits.closed()
    with limits.anonymous_request("10.0.0.1"):
        pass


def test_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = min(256, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        raised = raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert raised == before[1]


def test_connection_idle_for_longest_is_evicted_first() -> None:
    limits = ConnectionLimits(QUOTA)
    closed: list[str] = []
    for name in ("a", "b", "c"):
        limits.idle(name, partial(closed.append, name))
    limits.busy("b")
    limits.idle("a", partial(closed.append, "a again"))

    assert [limits.evict() for _ in range(3)] == [True, True, False]
    assert closed == ["c", "a again"]


def test_oldest_handshake_is_reset_when_there_are_too_many_connections() -> None:
    limits = ConnectionLimits(QUOTA)
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(11)]
        for end in (end for pair in pairs for end in pair):
            stack.enter_context(end)
            end.setblocking(False)
        for accepted, _ in pairs[:8]:
            limits.accepted(accepted)
        limits.opened(pairs[0][0].fileno())
        pairs[1][0].close()

        limits.accepted(pairs[8][0])  # in place of the closed one
        with pytest.raises(BlockingIOError):
            pairs[2][1].recv(1)
        limits.accepted(pairs[9][0])
        limits.accepted(pairs[10][0])

        assert [pairs[number][1].recv(1) for number in (2, 3)] == [b"", b""]
        for number in (0, 4, 10):
            with pytest.raises(BlockingIOError):
                pairs[number][1].recv(1)


def test_idle_connection_is_closed_for_a_handshake() -> None:
    limits = ConnectionLimits(QUOTA)
    closed: list[str] = []
    for _ in range(8):
        limits.opened()
    limits.idle("a", partial(closed.append, "a"))

    accepted, client = socket.socketpair()
    with accepted, client:
        limits.accepted(accepted)

        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)
    assert closed == ["a"]
