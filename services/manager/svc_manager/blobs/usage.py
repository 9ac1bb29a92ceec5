"""Usage of the byte store, per installation and experiment, and admission of uploads."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from nni_wire.trial_blobs import output_prefix
from svc_common.errors import NotFoundError, ResourceExhaustedError
from svc_common.storage.ports import CONTENT_KIND, STAGING_KIND, BlobInfo, BlobStore
from svc_manager.blobs.references import References
from svc_manager.domain.garbage import OWNED_KINDS
from svc_manager.domain.quota import Quota, excess


@dataclass(frozen=True, slots=True)
class PendingUpload:
    """Key, size and experiment of an upload, to be checked against the storage quota."""

    key: str
    size_bytes: int
    experiment_id: str = ""
    """Experiment whose quota it counts against; empty: only that of the installation."""


@dataclass(frozen=True, slots=True)
class _Reservation:
    """Room held for an announced upload until a deadline."""

    upload: PendingUpload
    until: datetime


@dataclass(frozen=True, slots=True)
class BlobUsage:
    """Total size and number of the stored blobs of an experiment or of the installation."""

    used_bytes: int
    blob_count: int


class UsageCounter:
    """Counter of stored bytes, in total and by experiment, that checks uploads against quotas.

    Blobs stored by other processes (large values of the dispatcher, uploads through another
    manager) are counted at the next garbage collection.

    Args:
        blobs: the store.
        references: hashes that experiments name.
        quota: the limits.
    """

    def __init__(self, blobs: BlobStore, references: References, quota: Quota) -> None:
        self._blobs = blobs
        self._references = references
        self.quota = quota
        self._total_bytes: int | None = None
        self._by_experiment: dict[str, int] = {}
        self._reserved: dict[str, _Reservation] = {}
        self._counting = asyncio.Lock()

    async def admit(self, upload: PendingUpload, now: datetime, until: datetime) -> None:
        """Count an upload's bytes as used until a deadline; raise if a quota would be exceeded.

        Args:
            upload: the upload; repeating it reserves no more room.
            now: current time.
            until: end of the reservation.

        Raises:
            ResourceExhaustedError: a quota would be exceeded; the message names limit, use and
                remedy.
        """
        async with self._counting:
            await self._count(upload.experiment_id)
            for key in [key for key, one in self._reserved.items() if one.until <= now]:
                del self._reserved[key]
            others = [one.upload for key, one in self._reserved.items() if key != upload.key]
            own = [one for one in others if one.experiment_id == upload.experiment_id]
            problem = excess(
                self.quota,
                size_bytes=upload.size_bytes,
                installation_used_bytes=(self._total_bytes or 0)
                + sum(one.size_bytes for one in others),
                experiment_id=upload.experiment_id,
                experiment_used_bytes=self._by_experiment.get(upload.experiment_id, 0)
                + sum(one.size_bytes for one in own),
            )
            if problem:
                raise ResourceExhaustedError(problem, {"experiment": upload.experiment_id})
            self._reserved[upload.key] = _Reservation(upload, until)

    async def _count(self, experiment_id: str) -> None:
        if self._total_bytes is None and self.quota.installation_bytes:
            self._total_bytes = sum(info.size_bytes for info in await self.all())
        upload = bool(experiment_id and self.quota.experiment_bytes)
        if upload and experiment_id not in self._by_experiment:
            self._by_experiment[experiment_id] = (await self.of(experiment_id)).used_bytes

    def stored(self, upload: PendingUpload) -> None:
        """Turn an upload's reservation into used bytes; without one, recount at the next query."""
        if self._reserved.pop(upload.key, None) is None:
            # A repetition, or reserved by another manager: recompute at the next query.
            self._total_bytes = None
            self._by_experiment.pop(upload.experiment_id, None)
            return
        if self._total_bytes is not None:
            self._total_bytes += upload.size_bytes
        if upload.experiment_id in self._by_experiment:
            self._by_experiment[upload.experiment_id] += upload.size_bytes

    def hold(self, upload: PendingUpload, until: datetime) -> None:
        """Reserve installation-wide room until a deadline for an upload URL in use, unchecked.

        The experiment's own quota is not charged for it: its upload is counted.
        """
        self._reserved[upload.key] = _Reservation(replace(upload, experiment_id=""), until)

    def forget(self) -> None:
        """Drop all counts, so that the next `admit` counts anew; keep the reservations."""
        self._total_bytes = None
        self._by_experiment.clear()

    async def all(self) -> list[BlobInfo]:
        """Return all blobs of content, staging, outputs, snapshots and summaries; no tombstones."""
        found: list[BlobInfo] = []
        for kind in (CONTENT_KIND, STAGING_KIND, *OWNED_KINDS):
            found.extend(await self._blobs.listing(f"{kind}/"))
        return found

    async def of(self, experiment_id: str) -> BlobUsage:
        """Return bytes and count of an experiment's outputs and referenced blobs that exist."""
        sizes = [
            info.size_bytes for info in await self._blobs.listing(output_prefix(experiment_id))
        ]
        for sha256 in await self._references.of(experiment_id):
            try:
                sizes.append((await self._blobs.info(f"{CONTENT_KIND}/{sha256}")).size_bytes)
            except NotFoundError:  # not a hash, or collected meanwhile
                continue
        return BlobUsage(sum(sizes), len(sizes))

    async def by_experiment(self, infos: Iterable[BlobInfo]) -> dict[str, BlobUsage]:
        """Return {experiment id: size and count of its blobs}, from a listing of the whole store.

        Args:
            infos: result of `all`.
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
