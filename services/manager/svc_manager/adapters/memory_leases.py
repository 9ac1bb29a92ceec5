"""`Leases` in memory: for a single manager, tests and the simulator."""

from collections.abc import Collection

from svc_common.clock import Clock
from svc_manager.domain.lease import Lease


class InMemoryLeases:
    """Adapter of `Leases` in a dictionary with expiry by a clock, for managers of one process.

    Args:
        clock: source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, tuple[float, Lease]] = {}
        self._epochs: dict[str, int] = {}

    async def acquire(self, name: str, owner: str, ttl_s: float, above: int = 0) -> Lease | None:
        """Acquire or extend a lease; return it with its epoch; None if another owner holds it."""
        lease = await self.holder(name)
        if lease is not None and lease.owner != owner:
            return None
        if lease is None or lease.epoch <= above:
            epoch = max(self._epochs.get(name, 0), above) + 1
            self._epochs[name] = epoch
            lease = Lease(name, owner, epoch)
        self._held[name] = (self._clock.monotonic_s() + ttl_s, lease)
        return lease

    async def renew(self, leases: Collection[Lease], ttl_s: float) -> list[Lease]:
        """Extend these leases by ``ttl_s``; return those that expired or have another owner."""
        until_s = self._clock.monotonic_s() + ttl_s
        lost = []
        for lease in leases:
            if await self.holder(lease.name) == lease:
                self._held[lease.name] = (until_s, lease)
            else:
                lost.append(lease)
        return lost

    async def release(self, lease: Lease) -> None:
        """Release a lease; do nothing if it is not held any more."""
        if await self.holder(lease.name) == lease:
            del self._held[lease.name]

    async def holder(self, name: str) -> Lease | None:
        """Return the unexpired lease of this name; None: no owner holds it."""
        until_s, lease = self._held.get(name, (0.0, None))
        return lease if until_s > self._clock.monotonic_s() else None

    async def holders(self) -> dict[str, Lease]:
        """Return all unexpired leases as {name: lease}."""
        now_s = self._clock.monotonic_s()
        return {name: lease for name, (until_s, lease) in self._held.items() if until_s > now_s}
