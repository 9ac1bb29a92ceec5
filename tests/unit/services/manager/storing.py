"""Parts of the manager that use the byte store, over a store and logs in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta

from nni_proto.experiment.v1 import event_pb2
from svc_common.clock import ManualClock
from svc_common.errors import NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.ports import ContentMismatchError
from svc_manager.blobs.agent_access import AgentBlobAccess
from svc_manager.blobs.garbage_collector import GarbageCollector
from svc_manager.blobs.references import References
from svc_manager.blobs.usage import UsageCounter
from svc_manager.domain.quota import Quota
from svc_manager.domain.state import Experiment
from svc_manager.usecases.uploads import BlobTransfers, Purpose, Upload

GRACE = timedelta(hours=2)
NO_LIMIT = Quota(0, 0)


class SignedUrls:
    """`PresignedUrls` that sign nothing."""

    blobs: InMemoryBlobStore
    """Set by `StoreFixture`."""

    async def get_url(self, key: str, lifetime: timedelta) -> str:
        return f"http://store/{key}?get={lifetime.total_seconds():g}"

    async def put_url(self, key: str, lifetime: timedelta, size_bytes: int | None = None) -> str:
        return f"http://store/{key}?put={lifetime.total_seconds():g}&size={size_bytes}"

    async def take(self, staged: str, key: str, sha256: str, size_bytes: int) -> None:
        data = await self.blobs.get(staged)
        await self.blobs.delete(staged)
        if (digest(data), len(data)) != (sha256, size_bytes):
            raise ContentMismatchError(f"{len(data)} other bytes were uploaded for {key!r}")
        await self.blobs.put_named(key, data)

    async def send(self, url: str, data: bytes) -> None:
        """PUT content to a URL that `put_url` returned."""
        await self.blobs.put_named(url.removeprefix("http://store/").partition("?")[0], data)


@dataclass
class StoreFixture:
    """Byte store with its counter, collector and use cases."""

    bus: InMemoryBus
    quota: Quota = NO_LIMIT
    clock: ManualClock = field(default_factory=ManualClock)
    live: list[Experiment] = field(default_factory=list)
    urls: SignedUrls | None = None

    def __post_init__(self) -> None:
        self.blobs = InMemoryBlobStore(self.clock)
        if self.urls is not None:
            self.urls.blobs = self.blobs
        self.references = References(self.bus.events)
        self.use = UsageCounter(self.blobs, self.references, self.quota)
        self.collector = GarbageCollector(
            self.blobs,
            self.references,
            self.use,
            lambda: self.live,
            GRACE,
            monotonic_s=self.clock.monotonic_s,
        )
        self.orphans = 0
        self.access = AgentBlobAccess(self._find, self.blobs)
        self.transfers = BlobTransfers(
            self.blobs,
            self.urls,
            self.use,
            self.clock,
            self.bus.events,
            self._count_orphan,
            self.access,
        )

    async def _find(self, experiment_id: str) -> Experiment:
        for experiment in self.live:
            if experiment.id == experiment_id:
                return experiment
        raise NotFoundError("experiment", experiment_id)

    def _count_orphan(self) -> None:
        self.orphans += 1

    async def log(self, experiment_id: str, *hashes: str) -> None:
        """Append events that name blobs to the log of an experiment."""
        last = await self.bus.events.last(experiment_id)
        sequence = last.sequence if last else 0
        for number, sha256 in enumerate(hashes):
            event = event_pb2.Event()
            event.trial_ended.checkpoint.archive.sha256 = sha256
            payload = event_pb2.EventBatch(events=[event]).SerializeToString()
            sequence = await self.bus.events.append(
                experiment_id,
                payload,
                expected_sequence=sequence,
                epoch=1,
                append_id=f"{sequence}.{number}",
            )


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def upload_of(data: bytes, purpose: Purpose = Purpose.VALUE, experiment_id: str = "") -> Upload:
    return Upload(purpose, digest(data), len(data), experiment_id)


def output_of(data: bytes, file_name: str = "stdout", experiment_id: str = "e1") -> Upload:
    return Upload(Purpose.OUTPUT, digest(data), len(data), experiment_id, "t1", 1, file_name)
