"""Use cases of those who look after the byte store."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.messaging.ports import EventLog
from svc_common.storage.ports import BlobStore, PresignedUrls
from svc_manager.blobs.garbage_collector import Collection, CollectionResult
from svc_manager.blobs.references import References
from svc_manager.blobs.usage import BlobUsage, UsageCounter
from svc_manager.domain.quota import Quota
from svc_manager.domain.state import Experiment
from svc_manager.usecases.uploads import ByteExchange

_LONGEST_GRACE_MS: Final = 100 * 365 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class StorageUsage:
    """How much is stored, and how much may be."""

    total: BlobUsage
    """Of everything, also of what no experiment refers to."""
    quota: Quota
    experiments: tuple[tuple[str, BlobUsage], ...]
    """By id, largest first."""


class Storage:
    """Looks into the byte store and cleans it.

    Args:
        use: counts.
        collection: cleans.
        references: knows which experiments there are.
        code_travels: whether agents get code as archives.
    """

    def __init__(
        self,
        use: UsageCounter,
        collection: Collection,
        references: References,
        *,
        code_travels: bool,
    ) -> None:
        self._use = use
        self._collection = collection
        self._references = references
        self.code_travels = code_travels

    async def usage(self, experiment_id: str = "") -> StorageUsage:
        """Count what is stored.

        Args:
            experiment_id: tell of this one only; empty: of all.

        Raises:
            NotFoundError: there is no such experiment.
        """
        infos = await self._use.all()
        total = BlobUsage(sum(info.size_bytes for info in infos), len(infos))
        if experiment_id:
            if experiment_id not in await self._references.experiments():
                raise NotFoundError("experiment", experiment_id)
            own = await self._use.of(experiment_id)
            return StorageUsage(total, self._use.quota, ((experiment_id, own),))
        uses = await self._use.by_experiment(infos)
        ordered = sorted(uses.items(), key=lambda item: (-item[1].used_bytes, item[0]))
        return StorageUsage(total, self._use.quota, tuple(ordered))

    async def clean(self, *, dry_run: bool, grace_ms: int | None) -> CollectionResult:
        """Delete what nothing refers to; see `Collection.collect`.

        Args:
            dry_run: only tell.
            grace_ms: instead of the one that is set.

        Raises:
            InvalidArgumentError: the grace is negative, or longer than anything is kept.
        """
        if grace_ms is None:
            return await self._collection.collect(dry_run=dry_run)
        if not 0 <= grace_ms <= _LONGEST_GRACE_MS:
            rule = f"must be 0 to {_LONGEST_GRACE_MS // 1000} s"
            raise InvalidArgumentError("grace", rule, f"{grace_ms} ms")
        grace = timedelta(milliseconds=grace_ms)
        return await self._collection.collect(dry_run=dry_run, grace=grace)


@dataclass(frozen=True, slots=True)
class BlobPolicy:
    """How an installation keeps bytes."""

    quota: Quota
    grace: timedelta
    """What was stored so lately is never garbage."""
    travel: bool
    """Whether clients and agents share no folders with the managers."""


@dataclass(frozen=True, slots=True)
class BlobServices:
    """All that has to do with the byte store."""

    exchange: ByteExchange
    storage: Storage
    collection: Collection


def build_blob_services(
    blobs: BlobStore,
    events: EventLog,
    clock: Clock,
    rules: BlobPolicy,
    live: Callable[[], Iterable[Experiment]],
) -> BlobServices:
    """Put the parts together; nothing is started.

    Args:
        blobs: the store.
        events: logs, which name what is stored.
        clock: tells what is young.
        rules: of this installation.
        live: the experiments that this manager has loaded.
    """
    references = References(events)
    use = UsageCounter(blobs, references, rules.quota)
    collection = Collection(blobs, references, use, live, rules.grace)
    urls = blobs if isinstance(blobs, PresignedUrls) else None
    return BlobServices(
        ByteExchange(blobs, urls, use, clock),
        Storage(use, collection, references, code_travels=rules.travel),
        collection,
    )
