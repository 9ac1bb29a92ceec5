"""Tests of the addresses of connections that came through the TLS front."""

import pytest

from svc_common.access.front_addresses import came_through_front, front_source


def test_address_of_a_client_is_known_as_one_of_the_front() -> None:
    assert came_through_front(front_source("203.0.113.7"))
    assert came_through_front(front_source("2001:db8::7"))


def test_each_client_has_an_address_of_its_own() -> None:
    assert front_source("203.0.113.7") == front_source("203.0.113.7")
    assert front_source("203.0.113.7") != front_source("203.0.113.8")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.63.255.255", "10.64.0.1", "::1", "unix", ""])
def test_other_addresses_are_none_of_the_front(address: str) -> None:
    assert not came_through_front(address)
