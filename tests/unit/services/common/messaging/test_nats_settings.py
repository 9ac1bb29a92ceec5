"""Addresses of the bus, and the credentials for its servers."""

from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.messaging.nats_settings import NatsSettings, Server


@pytest.mark.parametrize(
    ("settings", "credentials"),
    [
        (NatsSettings("nats://one"), {}),
        (NatsSettings("nats://one", "a token"), {"token": "a token"}),
        (
            NatsSettings("nats://one", "a token", user="manager", password="a password"),
            {"user": "manager", "password": "a password"},
        ),
        (
            NatsSettings("nats://other%20token@one", "a token", user="manager", password="p"),
            {"token": "other token"},
        ),
        (
            NatsSettings("tls://u:p%40@one", "a token", user="manager", password="p"),
            {"user": "u", "password": "p@"},
        ),
    ],
)
def test_credentials_in_the_address_win(
    settings: NatsSettings, credentials: dict[str, str]
) -> None:
    assert settings.servers() == [Server("one", 4222, **credentials)]


def test_several_servers_are_separated_by_commas() -> None:
    servers = NatsSettings("nats://one:1, tls://[::1]:2").servers()

    assert [(one.host, one.port) for one in servers] == [("one", 1), ("::1", 2)]


@pytest.mark.parametrize("url", ["one:4222", "http://one", "nats://", "", "nats://one,two"])
def test_text_that_is_not_an_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be nats://HOST:PORT"):
        NatsSettings(url).servers()


def test_secrets_are_in_no_message_and_no_repr() -> None:
    with pytest.raises(InvalidArgumentError) as error:
        NatsSettings("ftp://hunter2@one").servers()

    assert "hunter2" not in str(error.value)
    assert "hunter2" not in repr(NatsSettings("nats://hunter2@one").servers())


def test_socket_needs_no_encryption_and_makes_no_streams() -> None:
    settings = NatsSettings.over_socket(
        lambda: Path("/run/bus.sock"), user="agent", password="secret", name="one"
    )

    assert [one.host for one in settings.servers()] == ["bus.socket.invalid"]
    assert (settings.tls, settings.owns_streams, settings.user) == (None, False, "agent")
