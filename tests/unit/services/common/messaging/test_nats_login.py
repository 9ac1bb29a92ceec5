"""Addresses of the bus, and what its servers are shown."""

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.messaging.nats_login import ANYBODY, Login, servers_of

USER = Login("a token", "manager", "a password")


@pytest.mark.parametrize(
    ("url", "login", "credentials"),
    [
        ("nats://one", ANYBODY, {}),
        ("nats://one", Login("a token"), {"auth_token": "a token"}),
        ("nats://one", USER, {"user": "manager", "pass": "a password"}),
        ("nats://other%20token@one", USER, {"auth_token": "other token"}),
        ("tls://u:p%40@one", USER, {"user": "u", "pass": "p@"}),
    ],
)
def test_what_stands_in_the_address_wins(
    url: str, login: Login, credentials: dict[str, str]
) -> None:
    (server,) = servers_of(url, login)

    assert (server.host, server.port) == ("one", 4222)
    assert server.credentials == credentials


def test_several_servers_are_separated_by_commas() -> None:
    servers = servers_of("nats://one:1, tls://[::1]:2", ANYBODY)

    assert [(one.host, one.port) for one in servers] == [("one", 1), ("::1", 2)]


@pytest.mark.parametrize("url", ["one:4222", "http://one", "nats://", "", "nats://one,two"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be nats://HOST:PORT"):
        servers_of(url, ANYBODY)


def test_secrets_are_in_no_message_and_no_repr() -> None:
    with pytest.raises(InvalidArgumentError) as error:
        servers_of("ftp://hunter2@one", ANYBODY)

    assert "hunter2" not in str(error.value)
    assert "hunter2" not in repr(servers_of("nats://hunter2@one", ANYBODY))
