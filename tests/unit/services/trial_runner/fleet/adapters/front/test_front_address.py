"""Tests of address and port of the TLS front."""

import socket
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.front import front_address
from svc_trial_runner.fleet.adapters.front.front_address import (
    FIRST_PORT,
    bracketed,
    check_host,
    listen,
    reachable_host,
    with_host,
)
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError
from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("configured", "host"),
    [("gate.example.org", "gate.example.org"), ("[2001:db8::7]", "2001:db8::7"), ("::1", "::1")],
)
def test_configured_host_is_taken(configured: str, host: str) -> None:
    assert reachable_host(configured) == host


def test_port_that_cannot_be_written_down_is_free_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    port = free_port()
    with pytest.raises(PlatformError, match="cannot write the port"):
        listen("127.0.0.1", port, tmp_path / "file")

    with socket.create_server(("127.0.0.1", port)) as again:
        assert again.getsockname()[1] == port


def test_port_is_used_again_after_a_restart(tmp_path: Path) -> None:
    port = free_port()
    listen("127.0.0.1", port, tmp_path).close()

    with listen("127.0.0.1", 0, tmp_path) as again:
        assert again.getsockname()[:2] == ("127.0.0.1", port)


def test_next_free_port_is_used_and_remembered(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "port").write_text(f"{port}\n")
    with (
        socket.create_server(("127.0.0.1", port)),
        listen("127.0.0.1", 0, tmp_path) as listening,
    ):
        other = listening.getsockname()[1]

    assert other > port
    assert (tmp_path / "port").read_text() == f"{other}\n"


def test_configured_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    port = free_port()
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(PlatformError, match=f"cannot use port {port}") as caught,
    ):
        listen("127.0.0.1", port, tmp_path)

    assert caught.value.remedy == "set NNI_FRONT_PORT"


def test_damaged_port_file_counts_as_none(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "port").write_text("many\n")

    listen("127.0.0.1", port, tmp_path).close()

    assert (tmp_path / "port").read_text() == f"{port}\n"


def test_front_for_other_machines_listens_on_all_addresses(tmp_path: Path) -> None:
    with listen("gate.example.org", free_port(), tmp_path) as listening:
        assert listening.getsockname()[0] in {"::", "0.0.0.0"}
        # Those of IPv4, too: most machines have no others.
        socket.create_connection(("127.0.0.1", listening.getsockname()[1]), 30).close()


def test_front_listens_on_a_machine_without_ipv6(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)

    with listen("gate.example.org", free_port(), tmp_path) as listening:
        assert listening.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize("host", ["", "gate.example.org", "10.0.0.7", "::1", "[2001:db8::7]"])
def test_name_or_address_is_a_host(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize("host", ["gate:8081", "[::1]:8081", "a b", "gate/"])
def test_host_with_a_port_or_more_is_refused(host: str) -> None:
    with pytest.raises(PlatformError, match="without a port") as caught:
        check_host(host)

    assert caught.value.permanent


def test_front_on_loopback_has_no_host_that_others_reach() -> None:
    endpoint = FrontEndpoint("127.0.0.1:8081", "authority")

    with pytest.raises(PlatformError, match="only, not for nniManagerIp nni") as caught:
        with_host(endpoint, "nni.example.org")

    assert "NNI_FRONT_HOST" in caught.value.remedy


@pytest.mark.parametrize(
    ("host", "address"),
    [("nni.example.org", "nni.example.org:8081"), ("2001:db8::7", "[2001:db8::7]:8081")],
)
def test_host_of_a_pool_replaces_that_of_the_front(host: str, address: str) -> None:
    endpoint = FrontEndpoint("10.0.0.7:8081", "authority")

    assert with_host(endpoint, host) == FrontEndpoint(address, "authority")


def test_published_front_on_loopback_has_the_host_of_a_pool() -> None:
    endpoint = FrontEndpoint("127.0.0.1:8081", "authority")

    for host, published in (("nni.example.org", True), ("localhost", False)):
        assert with_host(endpoint, host, published=published).address == f"{host}:8081"


@pytest.mark.parametrize(
    ("written", "first"), [(65_435, 65_435), (65_436, FIRST_PORT), (0, FIRST_PORT)]
)
def test_port_with_none_behind_it_is_not_where_the_search_begins(
    tmp_path: Path, written: int, first: int
) -> None:
    (tmp_path / "port").write_text(f"{written}\n")

    with listen("127.0.0.1", 0, tmp_path) as listening:
        assert first <= listening.getsockname()[1] < first + 100


def test_machine_without_a_default_route_has_the_host_of_a_pool_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The system refuses to connect to the address of all machines.
    monkeypatch.setattr(front_address, "_OTHER_NETWORK", ("255.255.255.255", 9))

    assert reachable_host("", "[2001:db8::7]") == "2001:db8::7"
    with pytest.raises(PlatformError, match="no address that others reach") as caught:
        reachable_host("")
    assert "NNI_FRONT_HOST" in caught.value.remedy


@pytest.mark.parametrize(
    ("host", "written"), [("::1", "[::1]"), ("[::1]", "[::1]"), ("10.0.0.7", "10.0.0.7")]
)
def test_address_of_ipv6_is_in_brackets(host: str, written: str) -> None:
    assert bracketed(host) == written


@pytest.mark.parametrize("host", ["a_b", "a.b-c", "127.0.0.1", "[::1]"])
def test_host_may_have_dots_dashes_and_brackets(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize("host", ["a\n", "[g]", "[::1", "é", "a:b:g"])
def test_host_of_other_characters_is_refused(host: str) -> None:
    with pytest.raises(PlatformError, match="must be a name or address without a port"):
        check_host(host)


def test_long_host_is_shown_by_its_first_80_characters() -> None:
    with pytest.raises(PlatformError) as caught:
        check_host("/" * 100)

    assert caught.value.message.endswith(f"got '{'/' * 80}'")


def test_front_that_others_reach_has_any_host() -> None:
    endpoint = FrontEndpoint("gate.example.org:8081", "authority")

    assert with_host(endpoint, "localhost").address == "localhost:8081"


@pytest.mark.parametrize("address", ["127.0.0.1:8081", "[::1]:8081", "localhost:8081"])
def test_front_on_loopback_is_for_this_machine_only(address: str) -> None:
    endpoint = FrontEndpoint(address, "authority")

    assert with_host(endpoint, "[::1]").address == "[::1]:8081"
    with pytest.raises(PlatformError, match="listens at") as caught:
        with_host(endpoint, "10.0.0.7")
    assert caught.value.permanent


def test_port_that_is_used_again_is_not_written_again(tmp_path: Path) -> None:
    port = free_port()
    listen("127.0.0.1", port, tmp_path).close()
    before = (tmp_path / "port").stat()

    listen("127.0.0.1", port, tmp_path).close()

    assert (tmp_path / "port").stat().st_ino == before.st_ino


def test_interface_that_this_machine_does_not_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="cannot use any port from 8081 on") as caught:
        listen("::1%no-such-interface", 0, tmp_path)

    assert caught.value.remedy == "set NNI_FRONT_PORT"
