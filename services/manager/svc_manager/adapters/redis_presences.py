"""`Presences` in Redis: one string per agent, with an expiry."""

from collections.abc import Mapping
from typing import Final

from svc_manager.adapters.redis_connection import PRESENCE_KEY, RedisConnection, raw

_PAGE: Final = 1000
"""Keys of one command."""


class RedisPresences:
    """`Presences` in Redis: each agent's presence message under a key that expires.

    Args:
        connection: open.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def keep(self, presences: Mapping[str, bytes], ttl_s: float) -> None:
        """Set each agent's presence message in Redis by one pipeline, to expire after ``ttl_s``."""
        ttl_ms = max(1, round(ttl_s * 1000))
        with self._connection.errors():
            async with self._connection.commands.pipeline(transaction=False) as pipeline:
                for runner_id, presence in presences.items():
                    pipeline.set(PRESENCE_KEY + runner_id, presence, px=ttl_ms)
                await pipeline.execute()

    async def forget(self, runner_id: str) -> None:
        """Delete the presence message of an agent; do nothing if there is none."""
        with self._connection.errors():
            await self._connection.commands.delete(PRESENCE_KEY + runner_id)

    async def all(self) -> dict[str, bytes]:
        """Scan Redis for all unexpired presence messages; return {agent id: encoded message}."""
        found: dict[str, bytes] = {}
        cursor = 0
        with self._connection.errors():
            while True:
                cursor, keys = await self._connection.commands.scan(
                    cursor, match=f"{PRESENCE_KEY}*", count=_PAGE
                )
                values = await self._connection.commands.mget(keys) if keys else []
                for key, value in zip(keys, values, strict=True):
                    if value is not None:  # it expired since the scan
                        found[raw(key).decode().removeprefix(PRESENCE_KEY)] = raw(value)
                if cursor == 0:
                    return found
