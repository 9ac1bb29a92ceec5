"""Tests of the limits of connections to the TLS front."""

import pytest

from svc_common.rpc.server import GrpcConnectionLimits
from svc_trial_runner.fleet.adapters.front.connection_limits import (
    MOST_CONNECTIONS,
    ConnectionCounts,
    ConnectionLimits,
)

LIMITS = ConnectionLimits(connections=3, of_address=2, handshakes=2, handshakes_of_address=1)


def test_one_address_has_a_limit_of_handshakes() -> None:
    counts = ConnectionCounts(LIMITS)

    assert counts.begin("a")
    assert not counts.begin("a")
    counts.shake("a")
    assert counts.begin("a")


def test_one_address_has_a_limit_of_connections() -> None:
    counts = ConnectionCounts(LIMITS)
    for _ in range(2):
        assert counts.begin("a")
        counts.shake("a")

    assert not counts.begin("a")
    counts.end("a")
    assert counts.begin("a")


def test_addresses_of_one_ipv6_network_share_a_limit() -> None:
    counts = ConnectionCounts(LIMITS)

    assert counts.begin("2001:db8::7")
    assert not counts.begin("2001:db8::8")
    counts.shake("2001:db8::7")
    counts.end("2001:db8::7")
    assert counts.begin("2001:db8::8")


def test_all_addresses_together_have_limits() -> None:
    counts = ConnectionCounts(LIMITS)

    assert counts.begin("a")
    assert counts.begin("b")
    assert not counts.begin("c")  # two handshakes
    counts.shake("a")
    assert counts.begin("c")
    counts.shake("b")
    assert not counts.begin("d")  # three connections


def test_few_descriptors_allow_few_connections() -> None:
    assert ConnectionLimits.of_descriptors(1_024).connections == 192
    assert ConnectionLimits.of_descriptors(1_000_000).connections == MOST_CONNECTIONS
    assert ConnectionLimits.of_descriptors(256).connections == 28


@pytest.mark.parametrize("limit", [1_024, 4_096, 1_000_000])
def test_front_cannot_take_all_connections_of_the_manager(limit: int) -> None:
    of_manager = GrpcConnectionLimits.of_descriptors(limit).connections

    assert ConnectionLimits.of_descriptors(limit).connections <= of_manager * 3 / 4


def test_front_takes_twenty_connections_with_the_fewest_descriptors() -> None:
    for limit in (0, 100, 240):
        found = ConnectionLimits.of_descriptors(limit)
        assert (found.connections, found.of_address) == (20, 10)


def test_one_address_has_half_of_the_connections_and_a_thousand_at_most() -> None:
    assert ConnectionLimits.of_descriptors(1_024).of_address == 96
    assert ConnectionLimits.of_descriptors(1_000_000).of_address == 1_000


def test_handshakes_at_once_are_forty_of_an_address_and_two_hundred_in_all() -> None:
    counts = ConnectionCounts(ConnectionLimits())

    admitted = [counts.begin(f"10.0.{network}.1") for network in range(6) for _ in range(41)]

    assert admitted[:41] == [True] * 40 + [False]
    assert sum(admitted) == 200


def test_limits_of_one_client_are_counted_apart_from_those_of_others() -> None:
    counts = ConnectionCounts(ConnectionLimits(4, 1, 4, 4))

    assert [counts.begin(address) for address in ("a", "b", "a")] == [True, True, False]
    counts.end("a")
    counts.shake("a")
    assert counts.begin("a")


def test_connection_that_is_refused_is_not_counted() -> None:
    counts = ConnectionCounts(ConnectionLimits(2, 2, 1, 1))

    assert counts.begin("a")
    assert not counts.begin("b")
    counts.shake("a")
    assert counts.begin("b")
    counts.shake("b")
    assert not counts.begin("c")


@pytest.mark.parametrize(("limit", "most"), [(16_000, 3_000), (15_984, 2_997), (16_016, 3_000)])
def test_connections_are_three_sixteenths_of_the_descriptors_up_to_three_thousand(
    limit: int, most: int
) -> None:
    assert ConnectionLimits.of_descriptors(limit).connections == most
