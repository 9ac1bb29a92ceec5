"""Leases of managers, and the choice of the manager that takes an ownerless experiment."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

PRESENCE_PREFIX: Final = "manager/"
"""Start of the names of presence leases; experiment ids contain no slash."""
TURN_S: Final = 1.0
"""Time for which an ownerless experiment is reserved for its first choice; then any manager takes
it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Exclusive right of one owner to an object, with an epoch, until expiry or release."""

    name: str
    """Leased object, e.g. the id of an experiment."""
    owner: str
    """The owner; differs between two starts of one process."""
    epoch: int
    """Number of this ownership, >= 1, larger than all before it, so that late writes of an expired
    owner are distinguishable from those of its successor."""


@dataclass(frozen=True, slots=True)
class ManagerId:
    """Boot id and addresses by which managers know each other; the owner text of leases."""

    boot_id: str
    """Drawn at each start."""
    grpc_address: str = ""
    """`host:port` of its gRPC services; empty: not reachable by others."""
    http_address: str = ""
    """`host:port` of its base web server."""

    def __str__(self) -> str:
        """Return `boot_id grpc_address http_address`, the owner text of this manager's leases."""
        return f"{self.boot_id} {self.grpc_address} {self.http_address}"

    @classmethod
    def of(cls, owner: str) -> "ManagerId":
        """Parse the owner text of a lease; addresses that it lacks become empty."""
        boot_id, grpc_address, http_address = (*owner.split(" "), "", "")[:3]
        return cls(boot_id, grpc_address, http_address)

    @property
    def presence_name(self) -> str:
        """Name of the manager's presence lease."""
        return PRESENCE_PREFIX + self.boot_id


def first_choice(experiment_id: str, boot_ids: Collection[str]) -> str:
    """Return the boot id of the manager to take an ownerless experiment: highest hash of both ids.

    Each experiment ranks the managers anew, so the experiments of a dead one spread over the
    others.
    """
    return max(
        boot_ids,
        key=lambda boot_id: hashlib.blake2b(f"{experiment_id} {boot_id}".encode()).digest(),
    )


@dataclass(slots=True)
class TakeoverSchedule:
    """Schedule of takeovers: notes experiments that lose their owner, and when to take them."""

    boot_id: str
    """Of this manager."""
    _owned: set[str] = field(default_factory=set)
    """Experiments of other managers, as of the last call."""
    _ownerless_since_s: dict[str, float] = field(default_factory=dict)
    """Start of each ownerless time, by the monotonic clock."""

    def add(self, experiment_id: str, now_s: float) -> None:
        """Note the time from which an experiment may have no owner; keep an earlier one."""
        self._ownerless_since_s.setdefault(experiment_id, now_s)

    def drop(self, experiment_id: str) -> None:
        """Remove an experiment that this manager has taken."""
        self._ownerless_since_s.pop(experiment_id, None)
        self._owned.discard(experiment_id)

    def due(self, holders: Mapping[str, Lease], now_s: float) -> list[str]:
        """Update from the current leases; return the experiments to take over now, each once.

        Args:
            holders: all current leases.
            now_s: monotonic time.
        """
        owned = {
            name
            for name, lease in holders.items()
            if not name.startswith(PRESENCE_PREFIX)
            and ManagerId.of(lease.owner).boot_id != self.boot_id
        }
        for name in self._owned - holders.keys():
            self.add(name, now_s)
        self._owned = owned
        for name in holders.keys() & self._ownerless_since_s.keys():
            del self._ownerless_since_s[name]
        living = living_managers(holders) | {self.boot_id}
        due = [
            name
            for name, since_s in self._ownerless_since_s.items()
            if now_s - since_s >= TURN_S or first_choice(name, living) == self.boot_id
        ]
        for name in due:
            del self._ownerless_since_s[name]
        return due


def living_managers(holders: Mapping[str, Lease]) -> set[str]:
    """Return the boot ids of the managers that hold a presence lease."""
    return {
        name.removeprefix(PRESENCE_PREFIX) for name in holders if name.startswith(PRESENCE_PREFIX)
    }
