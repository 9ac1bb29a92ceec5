"""`Views` in Redis: one string each, sequence first."""

from collections.abc import Collection
from typing import Final

from svc_manager.adapters.redis_connection import VIEW_KEY, RedisConnection, raw

_SEQUENCE_BYTES: Final = 8
_PAGE: Final = 500
"""Views of one command."""


class RedisViews:
    """Adapter of experiments' `Views` as Redis keys: sequence, then bytes.

    Args:
        connection: open.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def put(self, experiment_id: str, sequence: int, view: bytes) -> None:
        """Set the Redis key of an experiment's view to its log sequence and encoded view."""
        data = sequence.to_bytes(_SEQUENCE_BYTES, "big") + view
        with self._connection.errors():
            await self._connection.commands.set(VIEW_KEY + experiment_id, data)

    async def get(self, experiment_ids: Collection[str]) -> dict[str, tuple[int, bytes]]:
        """Read views from Redis in pages; return {id: (log sequence, view)} of those that exist."""
        found: dict[str, tuple[int, bytes]] = {}
        wanted = list(experiment_ids)
        for start in range(0, len(wanted), _PAGE):
            page = wanted[start : start + _PAGE]
            with self._connection.errors():
                answers = await self._connection.commands.mget([VIEW_KEY + key for key in page])
            for key, answer in zip(page, answers, strict=True):
                if answer is not None:
                    data = raw(answer)
                    sequence = int.from_bytes(data[:_SEQUENCE_BYTES], "big")
                    found[key] = sequence, data[_SEQUENCE_BYTES:]
        return found

    async def delete(self, experiment_id: str) -> None:
        """Delete a view; do nothing if there is none."""
        with self._connection.errors():
            await self._connection.commands.delete(VIEW_KEY + experiment_id)
