"""Tests of the addresses of connections that came through the TLS front."""

import pytest

from svc_common.access.front_addresses import came_through_front, counted_address, front_source


def test_address_of_a_client_is_known_as_one_of_the_front() -> None:
    assert came_through_front(front_source("203.0.113.7"))
    assert came_through_front(front_source("2001:db8::7"))


def test_each_client_has_an_address_of_its_own() -> None:
    assert front_source("203.0.113.7") == front_source("203.0.113.7")
    assert front_source("203.0.113.7") != front_source("203.0.113.8")


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    assert counted_address("2001:db8::7") == counted_address("2001:db8::1:8")
    assert counted_address("2001:db8::7") != counted_address("2001:db8:0:1::7")
    assert front_source("2001:db8::7") == front_source("2001:db8::8")


@pytest.mark.parametrize("address", ["203.0.113.7", "::ffff:203.0.113.7", "unix", ""])
def test_other_addresses_count_as_they_are(address: str) -> None:
    assert counted_address(address) == address


def test_address_of_the_front_is_known_on_a_socket_for_both_families() -> None:
    assert came_through_front(f"::ffff:{front_source('203.0.113.7')}")
    assert not came_through_front("::ffff:127.0.0.1")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.63.255.255", "10.64.0.1", "::1", "unix", ""])
def test_other_addresses_are_none_of_the_front(address: str) -> None:
    assert not came_through_front(address)
