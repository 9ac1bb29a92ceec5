"""Leases of experiments: which of them this manager owns, and the owners of the others.

A lease keeps managers from working against each other; safety comes from the log, which refuses
the append of a writer that has not read it to its end. So while the lease store is away every
manager keeps its experiments, and an experiment without a known owner may be taken.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import ServiceError, UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Signal, Signals
from svc_common.tasks import wait_first
from svc_manager.domain.lease import (
    PRESENCE_PREFIX,
    Lease,
    ManagerId,
    TakeoverSchedule,
    living_managers,
)
from svc_manager.ports import Leases

TTL_S: Final = 3.0
"""Time until the experiments of a dead manager may be taken over."""
LOOK_EVERY_S: Final = 0.5
"""Interval at which leases are renewed and read. With `TTL_S` and `lease.TURN_S` a dead manager's
experiments have another owner within 4.5 s."""
CALM_S: Final = 2.0
"""Time without takeovers after the store has lost leases: the owners acquire them again first."""


class OwnedElsewhereError(UnavailableError):
    """Error that another manager owns the experiment; the servers forward the call to it.

    Args:
        experiment_id: the experiment.
        manager: its owner.
    """

    def __init__(self, experiment_id: str, manager: ManagerId) -> None:
        super().__init__(
            f"experiment {experiment_id!r} is changing hands between managers; try again",
            {"experiment": experiment_id},
        )
        self.experiment_id = experiment_id
        self.manager = manager


class Ownership:
    """Leases by which one manager owns experiments: acquires, renews, releases and watches them.

    Call order: where other managers share the leases `set_addresses`, then `join`, before
    experiments are taken; `keep` in a task; `leave` once, at the end.

    Args:
        leases: the lease store.
        me: identity of this manager.
        clock: source of time.
        signals: messages between managers that trigger a refresh.
        shared: whether there may be other managers. If not, nothing is ever renewed.
    """

    def __init__(
        self, leases: Leases, me: ManagerId, clock: Clock, signals: Signals, *, shared: bool
    ) -> None:
        self._leases = leases
        self._me = me
        self._clock = clock
        self._signals = signals
        self.shared = shared
        """True if there may be other managers."""
        self._held: dict[str, Lease] = {}
        self._holders: dict[str, Lease] = {}
        """All leases, as of the last refresh."""
        self._change = asyncio.Event()
        """Set when the holders of leases change; then replaced by a new event."""
        self._presence = Lease(me.presence_name, str(me), 0)
        self._takeovers = TakeoverSchedule(me.boot_id)
        self._looked_s = clock.monotonic_s()
        self._calm_until_s = 0.0
        self._away = False

    def set_addresses(self, grpc_address: str, http_address: str) -> None:
        """Set the addresses at which other managers reach this one, both `host:port`."""
        self._me = replace(self._me, grpc_address=grpc_address, http_address=http_address)
        self._presence = Lease(self._me.presence_name, str(self._me), 0)

    @property
    def others(self) -> list[ManagerId]:
        """Return the other live managers, from the presence leases of the last refresh."""
        mine = self._me.presence_name
        return [
            ManagerId.of(self._holders[name].owner)
            for name in self._holders
            if name.startswith(PRESENCE_PREFIX) and name != mine
        ]

    async def join(self) -> None:
        """If managers share leases, acquire this manager's presence lease and read all leases."""
        if self.shared:
            await self.refresh()

    async def take(self, experiment_id: str, above: int) -> int:
        """Acquire a lease (assume it without the store); return its epoch; raise if it is taken.

        Args:
            experiment_id: the experiment.
            above: largest epoch in its log.

        Raises:
            OwnedElsewhereError: another manager owns it.
        """
        if self.shared and not self._me.grpc_address:
            raise UnavailableError("this manager is starting; try again")
        if self.owned_elsewhere(experiment_id):
            # Even if the lease is free: its owner may be about to acquire it again, see `CALM_S`.
            owner = self._holders[experiment_id].owner
            raise OwnedElsewhereError(experiment_id, ManagerId.of(owner))
        try:
            lease = await self._acquire(experiment_id, above)
        except OwnedElsewhereError:
            raise
        except ServiceError as error:
            get_logger().warning("lease not taken", experiment=experiment_id, error=error.message)
            # No owner is known, and the log refuses one of two writers; `refresh` corrects it.
            lease = Lease(experiment_id, str(self._me), above + 1)
        self._held[experiment_id] = lease
        self._takeovers.drop(experiment_id)
        return lease.epoch

    async def _acquire(self, experiment_id: str, above: int) -> Lease:
        lease = await self._leases.acquire(experiment_id, str(self._me), TTL_S, above)
        if lease is not None:
            return lease
        holder = await self._leases.holder(experiment_id)
        manager = ManagerId("") if holder is None else ManagerId.of(holder.owner)
        if holder is not None and not self._is_other(manager):
            await self._leases.release(holder)
            lease = await self._leases.acquire(experiment_id, str(self._me), TTL_S, above)
        if lease is None:
            if holder is not None:
                self._holders[experiment_id] = holder
            raise OwnedElsewhereError(experiment_id, manager)
        return lease

    def _is_other(self, manager: ManagerId) -> bool:
        """Return whether a manager's address differs from this one's (else: an earlier process).

        Two live managers cannot share an address.
        """
        return manager.grpc_address != self._me.grpc_address

    async def release(self, experiment_id: str) -> None:
        """Release the lease of an experiment; do nothing if it is not held."""
        lease = self._held.pop(experiment_id, None)
        if lease is not None:
            await self._release(lease)

    def owned_elsewhere(self, experiment_id: str) -> bool:
        """Return whether another manager owned an experiment at the last refresh."""
        known = self._holders.get(experiment_id)
        return known is not None and self._is_other(ManagerId.of(known.owner))

    async def until_moved(self, elsewhere: OwnedElsewhereError) -> None:
        """Wait until an experiment's lease has another owner than the one ``elsewhere`` names."""
        owner = str(elsewhere.manager)
        while True:
            change = self._change
            known = self._holders.get(elsewhere.experiment_id)
            if known is not None and known.owner != owner:
                return
            await change.wait()

    def add_ownerless(self, experiment_id: str) -> None:
        """Schedule a takeover of an experiment that may have no owner, unless it is owned here."""
        if experiment_id not in self._held:
            self._takeovers.add(experiment_id, self._clock.monotonic_s())

    async def keep(
        self,
        on_lost: Callable[[str], None],
        on_ownerless: Callable[[str], None],
        on_doubt: Callable[[], None],
    ) -> None:
        """Renew leases until cancelled, periodically or on signals; call back for changes.

        Args:
            on_lost: called with each experiment that another manager has taken.
            on_ownerless: called with each experiment that this manager is to take over.
            on_doubt: called when leases may have changed unseen, so that experiments without an
                owner may be unknown here.
        """
        calls = await self._signals.subscribe(subjects.ALL_MANAGERS)
        called = asyncio.Event()
        listening = asyncio.create_task(self._listen(calls, called), name="calls of managers")
        try:
            while True:
                called.clear()
                lost, ownerless, doubt = await self.refresh()
                for experiment_id in lost:
                    on_lost(experiment_id)
                for experiment_id in ownerless:
                    on_ownerless(experiment_id)
                if doubt:
                    on_doubt()
                await self._pause(called)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def refresh(self) -> tuple[list[str], list[str], bool]:
        """Renew leases, read all; return ids lost, ids to take over, whether some may be missed.

        Returns:
            Experiments that are lost, experiments to take over, and whether managers may have come
            and gone unseen.
        """
        now_s = self._clock.monotonic_s()
        doubt = now_s - self._looked_s > TTL_S
        try:
            lost, forgotten = await self._renew()
            holders = await self._leases.holders()
        except ServiceError as error:
            if not self._away:
                get_logger().warning("leases not renewed", error=error.message)
            self._away = True
            return [], [], False
        self._away = False
        self._looked_s = now_s
        # Leases that a manager acquired after the last refresh, before it died, were never seen.
        doubt |= not living_managers(self._holders) <= living_managers(holders)
        if forgotten:
            doubt = True
            self._calm_until_s = now_s + CALM_S
        if now_s < self._calm_until_s:
            self._holders |= holders
            return lost, [], doubt
        if holders != self._holders:
            self._holders = holders
            change, self._change = self._change, asyncio.Event()
            change.set()
        return lost, self._takeovers.due(self._holders, now_s), doubt

    async def _renew(self) -> tuple[list[str], bool]:
        """Extend held leases, reacquire expired ones; return ids lost, and if the store lost any.

        Return those that another owner has, and whether the store has lost leases.
        """
        renewed = await self._leases.renew([self._presence, *self._held.values()], TTL_S)
        lost: list[str] = []
        forgotten = False
        for lease in renewed:
            again = await self._leases.acquire(lease.name, str(self._me), TTL_S, lease.epoch)
            if lease.name == self._me.presence_name:
                forgotten = self._presence.epoch > 0
                self._presence = again or self._presence
            elif again is not None:
                if lease.name in self._held:
                    self._held[lease.name] = again
            elif self._held.pop(lease.name, None) is not None:
                lost.append(lease.name)
        return lost, forgotten

    async def leave(self) -> None:
        """Release all leases and publish the released ids, so that other managers take over."""
        held, self._held = self._held, {}
        if not self.shared:
            return
        for lease in (*held.values(), self._presence):
            await self._release(lease)
        released = " ".join(held).encode()
        self._signals.publish(subjects.manager_subject(self._me.boot_id), released)

    async def _release(self, lease: Lease) -> None:
        try:
            await self._leases.release(lease)
        except ServiceError as error:  # the lease expires by itself
            get_logger().warning("lease not released", name=lease.name, error=error.message)

    async def _listen(self, calls: AsyncGenerator[Signal, None], called: asyncio.Event) -> None:
        """Read the ids that ending managers publish; schedule the takeover of those experiments."""
        async with aclosing(calls):
            async for call in calls:
                for experiment_id in call.payload.decode("ascii", "replace").split():
                    self.add_ownerless(experiment_id)
                called.set()

    async def _pause(self, called: asyncio.Event) -> None:
        """Wait until the next refresh is due, or another manager signals."""
        await wait_first(self._clock.sleep(LOOK_EVERY_S), called.wait())
