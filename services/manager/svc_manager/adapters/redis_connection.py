"""Connection to Redis: limits, keys and errors.

Redis holds no only copy: lost data is rebuilt from the logs or arrives again from the agents.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,  # noqa: A004 - the name that the driver gives it
    NoPermissionError,
    OutOfMemoryError,
    RedisError,
    TimeoutError,  # noqa: A004 - as above
)

from svc_common.errors import PermissionDeniedError, ResourceExhaustedError, UnavailableError

VIEW_KEY: Final = "nni:view:"
PRESENCE_KEY: Final = "nni:presence:"
EPOCH_KEY: Final = "nni:{lease}:epoch:"
"""Prefixes of keys; an id follows. Installations that share a server need a database each."""
LEASES_KEY: Final = "nni:{lease}s"
"""Key of the hash with all leases."""

_CONNECT_S: Final = 1.0
_ANSWER_S: Final = 1.0
"""Queries must not wait longer for a view than its rebuild takes."""
_REPETITIONS: Final = 1
"""Retries of a command whose connection broke; all commands here are idempotent."""
_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 0.5
_CONNECTIONS: Final = 16
_WAIT_S: Final = 5.0
"""Time to wait for a free connection."""


class RedisConnection:
    """Async Redis client with TLS and time-outs; translates errors; used in `async with`.

    Opening needs no server. While the server is away, every call raises `UnavailableError` after a
    few seconds at most.

    Args:
        url: `redis://[user:password@]host:port/database`, or `rediss://…`.
        ca_file: authority of a server of `rediss://`; None: the system's authorities.
    """

    def __init__(self, url: str, ca_file: Path | None = None) -> None:
        parts = urlsplit(url)
        self._place = f"Redis at {parts.hostname}:{parts.port or 6379}"
        backoff = ExponentialWithJitterBackoff(_LONGEST_WAIT_S, _FIRST_WAIT_S)
        encrypted = parts.scheme == "rediss" and ca_file is not None
        authority = {"ssl_ca_certs": str(ca_file)} if encrypted else {}
        # The non-blocking pool raises when all connections are busy.
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=_WAIT_S,
            socket_connect_timeout=_CONNECT_S,
            socket_timeout=_ANSWER_S,
            retry=Retry(backoff, _REPETITIONS, (ConnectionError, TimeoutError)),
            **authority,
        )
        self.commands: Redis = Redis.from_pool(pool)
        """Driver; call it within `errors`."""

    async def __aenter__(self) -> Self:
        """Return the connection; no server is called yet."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close all connections."""
        await self.commands.aclose()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Translate errors of the Redis driver in the block to `ServiceError`s by their kind.

        Raises:
            PermissionDeniedError: the account lacks a permission.
            ResourceExhaustedError: Redis is out of memory.
            UnavailableError: the server is away or does not respond.
        """
        try:
            with _cancellable():
                yield
        except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
            raise PermissionDeniedError(
                f"{self._place} refuses this account: {error}; check NNI_REDIS_URL"
            ) from error
        except OutOfMemoryError as error:
            raise ResourceExhaustedError(
                f"{self._place} has no memory left; raise its maxmemory"
            ) from error
        except RedisError as error:
            raise UnavailableError(f"{self._place} cannot be used: {error}") from error


@contextmanager
def _cancellable() -> Iterator[None]:
    """Raise CancelledError after the block if the task was cancelled inside of it.

    The driver may hide a cancellation as a time-out. A time-out of the caller around a command is
    not affected.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        yield
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


def raw(value: bytes | str) -> bytes:
    """Return a Redis reply as bytes; a text, which this connection never gives, is encoded."""
    return value.encode() if isinstance(value, str) else value
