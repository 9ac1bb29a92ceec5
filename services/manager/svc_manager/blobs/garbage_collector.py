"""Garbage collector of the byte store."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.storage.ports import CONTENT_KIND, BlobInfo, BlobStore
from svc_manager.blobs.checkpoints import dead_checkpoints
from svc_manager.blobs.references import References
from svc_manager.blobs.usage import UsageCounter
from svc_manager.domain.blob_access import UPLOADED_KIND
from svc_manager.domain.garbage import TOMBSTONE_KIND, Garbage, Marks, StoredBlob, garbage
from svc_manager.domain.state import Experiment

_PROBE_KEY: Final = "probe/clock"
"""Written to read the store's clock, which may differ from the manager's."""

_CLOCK_STEP: Final = timedelta(seconds=2)
"""Some stores return times in whole seconds."""
_RETRY_AFTER: Final = timedelta(minutes=1)
"""Pause after a collection that failed, unless another one is requested."""


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """Result of a collection: deleted blobs, size of the rest, time until more is old enough.

    Tombstones and records of uploads are not among them: they count as no usage.
    """

    deleted: tuple[StoredBlob, ...]
    kept_count: int
    kept_bytes: int
    next_in: timedelta | None = None
    """Time until all garbage that was left is old enough; None: nothing was left."""

    @property
    def deleted_bytes(self) -> int:
        """Total size of the deleted blobs."""
        return sum(blob.size_bytes for blob in self.deleted)


class GarbageCollector:
    """Mark-and-sweep collector of blobs that no log names; safe on several managers at once.

    Nothing is locked. Blobs that are uploaded or named meanwhile are safe because they are young:
    an upload of existing content makes it young again, and no young blob is deleted.

    Args:
        blobs: the store.
        references: hashes that logs name.
        use: counter of usage, reset after a sweep.
        live: returns the loaded experiments, which know their dead checkpoints.
        grace: age below which a blob is young.
        retry_after: pause after a collection that failed.
        monotonic_s: returns the monotonic time in seconds. A blob ages by it once the collector
            runs: a clock of the store that is set ahead makes nothing old.
    """

    def __init__(
        self,
        blobs: BlobStore,
        references: References,
        use: UsageCounter,
        live: Callable[[], Iterable[Experiment]],
        grace: timedelta,
        retry_after: timedelta = _RETRY_AFTER,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._blobs = blobs
        self._references = references
        self._use = use
        self._live = live
        self._grace = grace
        self._retry_after = retry_after
        self._monotonic_s = monotonic_s
        self._first_read: tuple[int, float] | None = None
        """Clock of the store at its first reading, and the monotonic time."""
        self._requested = asyncio.Event()
        self._running = asyncio.Lock()

    def request(self) -> None:
        """Wake `run` to collect soon; return at once."""
        self._requested.set()

    async def run(self) -> None:
        """Collect after each request, and again once young garbage is old enough; for ever.

        Garbage that is too young is collected once it is old enough; a collection that failed is
        repeated after a pause.
        """
        with suppress(ServiceError):
            await self._now_ms()
        pause: timedelta | None = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if pause is None else pause.total_seconds()):
                    await self._requested.wait()
            self._requested.clear()
            pause = None
            try:
                pause = (await self.collect()).next_in
            except ServiceError as error:
                get_logger().warning("garbage not collected", error=error.message)
                pause = self._retry_after

    async def collect(
        self, *, dry_run: bool = False, grace: timedelta | None = None
    ) -> CollectionResult:
        """Delete (``dry_run``: list) unreferenced blobs older than ``grace``; return the result.

        Tombstones whose lifetime is over, and records of uploads that are not needed any more, are
        deleted, too, but are not in the result.

        Args:
            dry_run: delete nothing.
            grace: overrides the configured grace.

        Raises:
            UnavailableError: the store is away.
        """
        grace = self._grace if grace is None else grace
        async with self._running:
            blobs = _stored(await self._use.all())
            others = [
                *_stored(await self._blobs.listing(f"{TOMBSTONE_KIND}/")),
                *_stored(await self._blobs.listing(f"{UPLOADED_KIND}/")),
            ]
            found = await self._garbage([*blobs, *others], grace)
            left = bool(found.young)
            if not dry_run and found.old:
                for blob in found.old:
                    left |= not await self._delete(blob)
                self._use.forget()
                size_bytes = sum(blob.size_bytes for blob in found.old)
                get_logger().info("garbage collected", count=len(found.old), size_bytes=size_bytes)
        old = set(found.old)
        deleted = tuple(blob for blob in blobs if blob in old)
        kept = [blob.size_bytes for blob in blobs if blob not in old]
        return CollectionResult(
            deleted, len(kept), sum(kept), grace + _CLOCK_STEP if left else None
        )

    async def _garbage(self, blobs: list[StoredBlob], grace: timedelta) -> Garbage:
        now_ms = await self._now_ms()
        if not blobs:
            return Garbage((), ())
        experiments = await self._references.experiments()
        content: set[str] = set()
        named = (f"{CONTENT_KIND}/", f"{UPLOADED_KIND}/")
        if any(blob.key.startswith(named) for blob in blobs):  # otherwise no log is needed
            content = await self._named(experiments)
        marks = Marks(content, frozenset(experiments))
        return garbage(blobs, marks, now_ms, grace // timedelta(milliseconds=1))

    async def _named(self, experiments: Iterable[str]) -> set[str]:
        # Before the logs are read: checkpoints released meanwhile are kept this time.
        dead = {one.id: dead_checkpoints(one) for one in self._live()}
        named: set[str] = set()
        for experiment_id in experiments:
            found = await self._references.of(experiment_id)
            named |= found - dead.get(experiment_id, frozenset())
        return named

    async def _now_ms(self) -> int:
        """Write a probe blob; return its time by the store's clock, without steps ahead."""
        await self._blobs.put_named(_PROBE_KEY, b"")
        now_ms = _ms((await self._blobs.info(_PROBE_KEY)).stored_at)
        now_s = self._monotonic_s()
        if self._first_read is None:
            self._first_read = now_ms, now_s
        first_ms, first_s = self._first_read
        passed = timedelta(seconds=now_s - first_s) + _CLOCK_STEP
        return min(now_ms, first_ms + passed // timedelta(milliseconds=1))

    async def _delete(self, blob: StoredBlob) -> bool:
        """Delete a garbage blob; return False if a new upload has changed its time since."""
        try:
            info = await self._blobs.info(blob.key)
        except NotFoundError:
            return True
        # Some stores return the age of a blob in whole seconds.
        if _ms(info.stored_at) // 1000 > blob.stored_at_ms // 1000:
            return False
        await self._blobs.delete(blob.key)
        return True


def _stored(infos: Iterable[BlobInfo]) -> list[StoredBlob]:
    return [StoredBlob(info.key, info.size_bytes, _ms(info.stored_at)) for info in infos]


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
