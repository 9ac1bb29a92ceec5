"""How much lies in the byte store, for whom, and whether more may come."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from nni_wire.trial_blobs import output_prefix
from svc_common.errors import NotFoundError, ResourceExhaustedError
from svc_common.storage.ports import CONTENT_KIND, BlobInfo, BlobStore
from svc_manager.blobs.references import References
from svc_manager.domain.garbage import OWNED_KINDS
from svc_manager.domain.quota import Quota, excess


@dataclass(frozen=True, slots=True)
class PendingUpload:
    """Bytes that somebody wants to store."""

    key: str
    size_bytes: int
    experiment_id: str = ""
    """Whose quota they count against; empty: only that of the installation."""


@dataclass(frozen=True, slots=True)
class _Reservation:
    """Room that is kept."""

    wanted: PendingUpload
    until: datetime


@dataclass(frozen=True, slots=True)
class BlobUsage:
    """What somebody keeps in the store."""

    used_bytes: int
    blob_count: int


class UsageCounter:
    """Counts what is stored; a count is made when it is first asked for, and then kept up to date.

    What this process does not see being stored (large values of the dispatcher, what another
    manager took in) is counted when garbage is collected.

    Args:
        blobs: the store.
        references: what experiments name in it.
        quota: how much may be stored.
    """

    def __init__(self, blobs: BlobStore, references: References, quota: Quota) -> None:
        self._blobs = blobs
        self._references = references
        self.quota = quota
        self._total_bytes: int | None = None
        self._by_experiment: dict[str, int] = {}
        self._promised: dict[str, _Reservation] = {}
        self._counting = asyncio.Lock()

    async def admit(self, wanted: PendingUpload, now: datetime, until: datetime) -> None:
        """Make sure that some bytes may come, and keep room for them.

        Args:
            wanted: what is to come; asking again for the same takes no more room.
            now: the time.
            until: how long room is kept if they do not come.

        Raises:
            ResourceExhaustedError: a quota would be exceeded; the message names limit, use and
                remedy.
        """
        async with self._counting:
            await self._count(wanted.experiment_id)
            for key in [key for key, one in self._promised.items() if one.until <= now]:
                del self._promised[key]
            others = [one.wanted for key, one in self._promised.items() if key != wanted.key]
            own = [one for one in others if one.experiment_id == wanted.experiment_id]
            problem = excess(
                self.quota,
                size_bytes=wanted.size_bytes,
                installation_used_bytes=(self._total_bytes or 0)
                + sum(one.size_bytes for one in others),
                experiment_id=wanted.experiment_id,
                experiment_used_bytes=self._by_experiment.get(wanted.experiment_id, 0)
                + sum(one.size_bytes for one in own),
            )
            if problem:
                raise ResourceExhaustedError(problem, {"experiment": wanted.experiment_id})
            self._promised[wanted.key] = _Reservation(wanted, until)

    async def _count(self, experiment_id: str) -> None:
        if self._total_bytes is None and self.quota.installation_bytes:
            self._total_bytes = sum(info.size_bytes for info in await self.all())
        wanted = bool(experiment_id and self.quota.experiment_bytes)
        if wanted and experiment_id not in self._by_experiment:
            self._by_experiment[experiment_id] = (await self.of(experiment_id)).used_bytes

    def stored(self, wanted: PendingUpload) -> None:
        """Take note of what has come."""
        if self._promised.pop(wanted.key, None) is None:
            # Told twice, or promised by another manager: count anew when somebody asks.
            self._total_bytes = None
            self._by_experiment.pop(wanted.experiment_id, None)
            return
        if self._total_bytes is not None:
            self._total_bytes += wanted.size_bytes
        if wanted.experiment_id in self._by_experiment:
            self._by_experiment[wanted.experiment_id] += wanted.size_bytes

    def forget(self) -> None:
        """Count anew when somebody asks: much was deleted."""
        self._total_bytes = None
        self._by_experiment.clear()

    async def all(self) -> list[BlobInfo]:
        """List everything that is known to be somebody's."""
        found: list[BlobInfo] = []
        for kind in (CONTENT_KIND, *OWNED_KINDS):
            found.extend(await self._blobs.listing(f"{kind}/"))
        return found

    async def of(self, experiment_id: str) -> BlobUsage:
        """Count what one experiment refers to; what it shares with others counts in full."""
        sizes = [
            info.size_bytes for info in await self._blobs.listing(output_prefix(experiment_id))
        ]
        for sha256 in await self._references.of(experiment_id):
            try:
                sizes.append((await self._blobs.info(f"{CONTENT_KIND}/{sha256}")).size_bytes)
            except NotFoundError:  # it only looks like a hash, or was collected
                continue
        return BlobUsage(sum(sizes), len(sizes))

    async def by_experiment(self, infos: Iterable[BlobInfo]) -> dict[str, BlobUsage]:
        """Count what each experiment refers to.

        Args:
            infos: what `all` gave.
        """
        sizes = {info.key: info.size_bytes for info in infos}
        uses: dict[str, BlobUsage] = {}
        for experiment_id in await self._references.experiments():
            prefix = output_prefix(experiment_id)
            own = [size for key, size in sizes.items() if key.startswith(prefix)]
            for sha256 in await self._references.of(experiment_id):
                size = sizes.get(f"{CONTENT_KIND}/{sha256}")
                if size is not None:
                    own.append(size)
            uses[experiment_id] = BlobUsage(sum(own), len(own))
        return uses
