import pytest

from svc_common.access.transport import host_of, is_loopback, names_loopback


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "::1", "[::1]", "::ffff:127.0.0.1"]
)
def test_loopback_is_recognised(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", "0x7f.1"],
)
def test_possible_other_machines_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_hosts_are_read_without_port_and_brackets() -> None:
    assert host_of("box:7501") == "box"
    assert host_of("[::1]:7501") == "::1"


def test_one_address_off_loopback_is_enough() -> None:
    assert names_loopback("nats://127.0.0.1:1,nats://localhost:2")
    assert not names_loopback("nats://127.0.0.1:1,nats://bus:2")
    assert not names_loopback("")
