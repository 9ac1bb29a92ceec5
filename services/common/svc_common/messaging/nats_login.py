"""Where the servers of the bus are, and what they are shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from svc_common.errors import InvalidArgumentError

DEFAULT_PORT: Final = 4222
_SCHEMES: Final = frozenset({"nats", "tls"})


@dataclass(frozen=True, slots=True)
class Login:
    """What the server is shown: a user with its password, or a token, or nothing."""

    token: str = field(default="", repr=False)
    user: str = ""
    """One token of a subject: answers to this user's requests go below it."""
    password: str = field(default="", repr=False)


ANYBODY: Final = Login()


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the bus."""

    host: str
    port: int
    credentials: Mapping[str, str] = field(repr=False)
    """Fields of the first message that it is sent."""


def servers_of(url: str, login: Login) -> list[Server]:
    """Return the servers that an address names.

    Args:
        url: `nats://host:port` or `tls://host:port`, or several of them, separated by commas; user
            information is a token (`nats://token@host`) or user and password.
        login: used if the address holds no user information.

    Raises:
        InvalidArgumentError: it is no such address.
    """
    return [_server(part.strip(), login) for part in url.split(",")]


def _server(url: str, login: Login) -> Server:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise InvalidArgumentError(
            "address of the bus", "must be nats://HOST:PORT", url.rpartition("@")[2]
        )
    credentials: dict[str, str] = {}
    if parts.username and parts.password:
        credentials = {"user": unquote(parts.username), "pass": unquote(parts.password)}
    elif parts.username:
        credentials = {"auth_token": unquote(parts.username)}
    elif login.user:
        credentials = {"user": login.user, "pass": login.password}
    elif login.token:
        credentials = {"auth_token": login.token}
    return Server(parts.hostname, parts.port or DEFAULT_PORT, credentials)
