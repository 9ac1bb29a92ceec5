"""`Presences` in memory, for tests and the simulator."""

from collections.abc import Mapping

from svc_common.clock import Clock


class InMemoryPresences:
    """`Presences` in a dictionary: each agent's presence message with its time of expiry.

    Args:
        clock: source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, bytes]] = {}

    async def keep(self, presences: Mapping[str, bytes], ttl_s: float) -> None:
        """Store presence messages for ``ttl_s``, replacing those of the same agents."""
        until_s = self._clock.monotonic_s() + ttl_s
        self._kept.update({key: (until_s, presence) for key, presence in presences.items()})

    async def forget(self, runner_id: str) -> None:
        """Delete the presence message of an agent; do nothing if there is none."""
        self._kept.pop(runner_id, None)

    async def all(self) -> dict[str, bytes]:
        """Delete expired presence messages; return the others as {agent id: encoded message}."""
        now_s = self._clock.monotonic_s()
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > now_s}
        return {key: presence for key, (_, presence) in self._kept.items()}
