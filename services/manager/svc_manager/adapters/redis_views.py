"""`ports.Views` in Redis: one string each, sequence first."""

from svc_manager.adapters.redis_connection import VIEW_KEY, RedisConnection, raw

_SEQUENCE_BYTES = 8


class RedisViews:
    """`ports.Views` in Redis.

    Args:
        connection: open.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def put(self, experiment_id: str, sequence: int, view: bytes) -> None:
        """See `ports.Views.put`."""
        data = sequence.to_bytes(_SEQUENCE_BYTES, "big") + view
        with self._connection.errors():
            await self._connection.commands.set(VIEW_KEY + experiment_id, data)

    async def get(self, experiment_id: str) -> tuple[int, bytes] | None:
        """See `ports.Views.get`."""
        with self._connection.errors():
            answer = await self._connection.commands.get(VIEW_KEY + experiment_id)
        if answer is None:
            return None
        data = raw(answer)
        return int.from_bytes(data[:_SEQUENCE_BYTES], "big"), data[_SEQUENCE_BYTES:]

    async def delete(self, experiment_id: str) -> None:
        """See `ports.Views.delete`."""
        with self._connection.errors():
            await self._connection.commands.delete(VIEW_KEY + experiment_id)
