"""A manager's right to decide on something, for a while; and who has the right to take it next."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

PRESENCE_PREFIX: Final = "manager/"
"""Start of the names of leases that only say that a manager lives; no experiment has a slash."""
TURN_S: Final = 1.0
"""How long the first choice is left alone with a vacant experiment; after that anybody takes it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one owner, until it expires or is released."""

    name: str
    """What it is on, e.g. the id of an experiment."""
    owner: str
    """Who has it; differs between two starts of one process."""
    epoch: int
    """Number of this ownership, >= 1. Each new one has a larger number than all before it, so what
    an owner writes after its lease has expired can be told from what its successor writes."""


@dataclass(frozen=True, slots=True)
class ManagerId:
    """Who a manager is, and where the others reach it."""

    boot_id: str
    """Drawn at each start."""
    grpc_address: str = ""
    """`host:port` of its gRPC services; empty: nobody else reaches it."""
    http_address: str = ""
    """`host:port` of its base web server."""

    def __str__(self) -> str:
        """Return it as the owner of leases."""
        return f"{self.boot_id} {self.grpc_address} {self.http_address}"

    @classmethod
    def of(cls, owner: str) -> "ManagerId":
        """Return who the owner of a lease is."""
        boot_id, grpc_address, http_address = (*owner.split(" "), "", "")[:3]
        return cls(boot_id, grpc_address, http_address)

    @property
    def presence_name(self) -> str:
        """Name of the lease that says that it lives."""
        return PRESENCE_PREFIX + self.boot_id


def first_choice(experiment_id: str, boot_ids: Collection[str]) -> str:
    """Return which of several managers is to take a vacant experiment; the same for all who ask.

    Each experiment ranks the managers anew, so those of a dead one spread over the living.
    """
    return max(
        boot_ids,
        key=lambda boot_id: hashlib.blake2b(f"{experiment_id} {boot_id}".encode()).digest(),
    )


@dataclass(slots=True)
class TakeoverSchedule:
    """Sees which experiments lose their owner, and when it is one manager's turn to take them."""

    boot_id: str
    """Of the manager that looks."""
    _owned: set[str] = field(default_factory=set)
    """Experiments that somebody else had at the last look."""
    _vacant_s: dict[str, float] = field(default_factory=dict)
    """Since when nobody has had an experiment, by the monotonic clock."""

    def add(self, experiment_id: str, now_s: float) -> None:
        """Take note of an experiment that may have no owner."""
        self._vacant_s.setdefault(experiment_id, now_s)

    def drop(self, experiment_id: str) -> None:
        """Take note that an experiment has been taken here."""
        self._vacant_s.pop(experiment_id, None)
        self._owned.discard(experiment_id)

    def due(self, holders: Mapping[str, Lease], now_s: float) -> list[str]:
        """Return the experiments that this manager is to take now; each is told once.

        Args:
            holders: all leases that are held.
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
        for name in holders.keys() & self._vacant_s.keys():
            del self._vacant_s[name]
        living = living_managers(holders) | {self.boot_id}
        due = [
            name
            for name, since_s in self._vacant_s.items()
            if now_s - since_s >= TURN_S or first_choice(name, living) == self.boot_id
        ]
        for name in due:
            del self._vacant_s[name]
        return due


def living_managers(holders: Mapping[str, Lease]) -> set[str]:
    """Return the boot ids of the managers that live."""
    return {
        name.removeprefix(PRESENCE_PREFIX) for name in holders if name.startswith(PRESENCE_PREFIX)
    }
