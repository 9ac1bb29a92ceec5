"""Use cases on the byte store as a whole: usage and garbage collection."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.messaging.ports import EventLog
from svc_common.storage.ports import BlobStore, PresignedUrls
from svc_manager.blobs.agent_access import AgentBlobAccess, FindExperiment
from svc_manager.blobs.garbage_collector import CollectionResult, GarbageCollector
from svc_manager.blobs.references import References
from svc_manager.blobs.usage import BlobUsage, UsageCounter
from svc_manager.domain.quota import Quota
from svc_manager.domain.state import Experiment
from svc_manager.usecases.uploads import BlobTransfers

_GRACE_LIMIT_MS: Final = 100 * 365 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class StorageUsage:
    """Used bytes of the byte store, in total and by experiment, with the quotas."""

    total: BlobUsage
    """Usage of all blobs, also of unreferenced ones."""
    quota: Quota
    experiments: tuple[tuple[str, BlobUsage], ...]
    """By id, largest first."""


class Storage:
    """Use cases that report the used storage and delete unreachable blobs.

    Args:
        counter: counter of usage.
        collector: the garbage collector.
        references: references of logs, which tell the existing experiments.
        code_travels: whether agents get code as archives.
    """

    def __init__(
        self,
        counter: UsageCounter,
        collector: GarbageCollector,
        references: References,
        *,
        code_travels: bool,
    ) -> None:
        self._counter = counter
        self._collector = collector
        self._references = references
        self.code_travels = code_travels

    async def usage(self, experiment_id: str = "") -> StorageUsage:
        """Return used bytes and blob counts: in total, and by experiment (largest first) or of one.

        Args:
            experiment_id: restrict the result to this experiment; empty: all.

        Raises:
            NotFoundError: there is no such experiment.
        """
        infos = await self._counter.all()
        total = BlobUsage(sum(info.size_bytes for info in infos), len(infos))
        if experiment_id:
            if experiment_id not in await self._references.experiments():
                raise NotFoundError("experiment", experiment_id)
            own = await self._counter.of(experiment_id)
            return StorageUsage(total, self._counter.quota, ((experiment_id, own),))
        uses = await self._counter.by_experiment(infos)
        ordered = sorted(uses.items(), key=lambda item: (-item[1].used_bytes, item[0]))
        return StorageUsage(total, self._counter.quota, tuple(ordered))

    async def clean(self, *, dry_run: bool, grace_ms: int | None) -> CollectionResult:
        """Delete (dry run: list) unreachable blobs; return the result; raise for a bad grace.

        Args:
            dry_run: delete nothing.
            grace_ms: overrides the configured grace.

        Raises:
            InvalidArgumentError: the grace is negative, or longer than 100 years.
        """
        if grace_ms is None:
            return await self._collector.collect(dry_run=dry_run)
        if not 0 <= grace_ms <= _GRACE_LIMIT_MS:
            rule = f"must be 0 to {_GRACE_LIMIT_MS // 1000} s"
            raise InvalidArgumentError("grace", rule, f"{grace_ms} ms")
        grace = timedelta(milliseconds=grace_ms)
        return await self._collector.collect(dry_run=dry_run, grace=grace)


@dataclass(frozen=True, slots=True)
class BlobPolicy:
    """Quotas, grace of garbage and sharing of folders that an installation configures."""

    quota: Quota
    grace: timedelta
    """Age below which a blob is never garbage."""
    travel: bool
    """True if clients and agents share no folders with the managers."""


@dataclass(frozen=True, slots=True)
class BlobServices:
    """Transfers, usage and garbage collector of the byte store, built together."""

    transfers: BlobTransfers
    storage: Storage
    collector: GarbageCollector


def build_blob_services(
    blobs: BlobStore,
    events: EventLog,
    clock: Clock,
    policy: BlobPolicy,
    live: Callable[[], Iterable[Experiment]],
    find: FindExperiment,
) -> BlobServices:
    """Build transfers, usage and garbage collector over one byte store; nothing is started.

    Args:
        blobs: the store.
        events: the logs, which name blobs.
        clock: source of time.
        policy: settings of the installation.
        live: returns the loaded experiments.
        find: returns the state of an experiment, for agents that are limited to their trials.
    """
    references = References(events)
    counter = UsageCounter(blobs, references, policy.quota)
    collector = GarbageCollector(
        blobs, references, counter, live, policy.grace, monotonic_s=clock.monotonic_s
    )
    urls = blobs if isinstance(blobs, PresignedUrls) else None
    return BlobServices(
        BlobTransfers(
            blobs, urls, counter, clock, events, collector.request, AgentBlobAccess(find, blobs)
        ),
        Storage(counter, collector, references, code_travels=policy.travel),
        collector,
    )
