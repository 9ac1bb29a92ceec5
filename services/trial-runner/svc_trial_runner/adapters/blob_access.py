"""Access to the blob store: direct, or through the manager."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from svc_common.access.transport import Transport
from svc_common.clock import Clock
from svc_common.rpc.client import open_channel, token_metadata
from svc_common.storage.factory import open_blob_store
from svc_common.storage.retries import RetryingBlobExchange
from svc_common.storage.s3_settings import S3Settings
from svc_trial_runner.adapters.trial_blobs import StoredTrialBlobs
from svc_trial_runner.domain.claims import AttemptKey


@dataclass(frozen=True, slots=True)
class OpenedStores:
    """Blob stores of the agent: for code and values, and for checkpoints and outputs."""

    blobs: RetryingBlobExchange
    """For outputs."""
    of_attempt: Callable[[AttemptKey], RetryingBlobExchange]
    """Returns the store for code and values of an attempt."""
    trials: StoredTrialBlobs
    """For checkpoints and outputs."""


@dataclass(frozen=True, slots=True)
class StoreLocations:
    """Location of the blob store (folder, S3 or behind the manager) and access to it."""

    home: Path
    """Folder of the installation's state."""
    s3: S3Settings | None
    """None: a folder below `home`."""
    manager: str
    """`host:port` of the manager as proxy; empty: the store is accessed directly."""
    transport: Transport
    """Security of the connections to the manager and to the store."""
    token: str = field(repr=False)
    by_url: bool = True
    """Whether this machine may reach the store behind the manager."""


@asynccontextmanager
async def open_stores(places: StoreLocations, clock: Clock) -> AsyncIterator[OpenedStores]:
    """Open the blob stores, directly or through the manager, with retry of calls; yield them."""
    if not places.manager:
        async with open_blob_store(places.home, places.s3) as store:
            blobs = RetryingBlobExchange(store, clock)
            roomy = RetryingBlobExchange(store, clock, wait_for_space=True)
            yield OpenedStores(blobs, lambda _: blobs, StoredTrialBlobs(blobs, lambda _: roomy))
        return
    # Imported here: costs memory that the local shape need not have.
    from svc_trial_runner.adapters.manager_blobs import ManagerBlobExchange

    async with open_channel(places.manager, places.transport) as channel:
        manager = ManagerBlobExchange(
            channel,
            token_metadata(places.token),
            tls=places.transport.client_context(),
            by_url=places.by_url,
        )
        blobs = RetryingBlobExchange(manager, clock)

        def of_attempt(attempt: AttemptKey) -> RetryingBlobExchange:
            return RetryingBlobExchange(manager.of_attempt(attempt), clock)

        def checkpoints_of(attempt: AttemptKey) -> RetryingBlobExchange:
            own = manager.of_attempt(attempt, checkpoints=True)
            return RetryingBlobExchange(own, clock, wait_for_space=True)

        yield OpenedStores(blobs, of_attempt, StoredTrialBlobs(blobs, checkpoints_of))
