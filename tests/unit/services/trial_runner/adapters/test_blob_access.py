"""Access to the blob store, direct and through the manager."""

import asyncio
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.access.transport import PLAIN
from svc_common.clock import ManualClock
from svc_common.errors import InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.retries import FULL_RETRY_INTERVAL_S
from svc_manager.domain.quota import Quota
from svc_trial_runner.adapters.blob_access import StoreLocations, open_stores
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.ports import FinishedTrial
from tests.support.byte_service import byte_service
from tests.support.ports import free_port
from tests.unit.services.trial_runner.adapters.test_manager_blobs import ElsewhereStore

ATTEMPT = AttemptKey("e1", "t1", 1)


async def test_direct_store_is_shared_by_values_and_trials(tmp_path: Path) -> None:
    places = StoreLocations(tmp_path, None, "", PLAIN, "token")
    (tmp_path / "file").write_bytes(b"weights")

    async with open_stores(places, ManualClock()) as opened:
        key = await opened.trials.keep_checkpoint(ATTEMPT, tmp_path / "file")

        assert await opened.blobs.get(f"sha256/{key.sha256}") == b"weights"


async def test_a_checkpoint_waits_for_space_in_the_direct_store(tmp_path: Path) -> None:
    places, clock = StoreLocations(tmp_path, None, "", PLAIN, "token"), ManualClock()
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)

    async with open_stores(places, clock) as opened:
        # The store treats a file that is too large for a limit of the system as a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, largest[1]))
        try:
            saving = asyncio.ensure_future(
                opened.trials.keep_checkpoint(ATTEMPT, tmp_path / "file")
            )
            while not clock.sleepers and not saving.done():  # noqa: ASYNC110 - a thread
                await asyncio.sleep(0)  # a thread writes: nothing to await here
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, largest)
        trouble = opened.trials.trouble
        clock.advance(FULL_RETRY_INTERVAL_S)
        await saving

    assert trouble


async def test_store_through_an_unavailable_manager_opens_at_once(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "file").write_bytes(b"line")

    async with open_stores(
        StoreLocations(tmp_path, None, address, PLAIN, ""), ManualClock()
    ) as opened:
        # Refused before any call: this name is no output of a trial.
        with pytest.raises(InvalidArgumentError):
            await opened.trials.keep_output(
                FinishedTrial("e1", "t1", 1, ""), "a/b", tmp_path / "file"
            )


async def test_a_checkpoint_waits_for_space_behind_the_manager(tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "file").write_bytes(b"12345")
    async with InMemoryBus() as bus, byte_service(bus, InMemoryBlobStore(), Quota(0, 4)) as address:
        places = StoreLocations(tmp_path, None, address, PLAIN, "")
        async with open_stores(places, clock) as opened:
            saving = asyncio.ensure_future(
                opened.trials.keep_checkpoint(ATTEMPT, tmp_path / "file")
            )
            while not clock.sleepers and not saving.done():  # noqa: ASYNC110 - a server
                await asyncio.sleep(0)  # a server answers: nothing to await here
            trouble, waits = opened.trials.trouble, not saving.done()
            saving.cancel()

    assert waits
    assert "NNI_EXPERIMENT_QUOTA_BYTES" in trouble


async def test_stores_behind_the_manager_hold_what_attempts_put(tmp_path: Path) -> None:
    store = InMemoryBlobStore()
    (tmp_path / "file").write_bytes(b"weights")
    async with InMemoryBus() as bus, byte_service(bus, store) as address:
        places = StoreLocations(tmp_path, None, address, PLAIN, "")
        async with open_stores(places, ManualClock()) as opened:
            key = await opened.of_attempt(ATTEMPT).put(b"value")
            checkpoint = await opened.trials.keep_checkpoint(ATTEMPT, tmp_path / "file")

            assert await opened.blobs.get(key) == b"value"

    assert await store.get(f"sha256/{checkpoint.sha256}") == b"weights"


@pytest.mark.parametrize("by_url", [True, False])
async def test_store_is_reached_by_url_unless_it_may_not(tmp_path: Path, *, by_url: bool) -> None:
    clock = ManualClock()
    async with InMemoryBus() as bus, byte_service(bus, ElsewhereStore()) as address:
        places = StoreLocations(tmp_path, None, address, PLAIN, "")
        places = places if by_url else replace(places, by_url=False)
        async with open_stores(places, clock) as opened:
            putting = asyncio.ensure_future(opened.blobs.put(b"value"))
            while not clock.sleepers and not putting.done():  # noqa: ASYNC110 - a server
                await asyncio.sleep(0)  # a server answers: nothing to await here
            waits = not putting.done()
            putting.cancel()

    assert waits is by_url


def test_token_is_not_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(StoreLocations(tmp_path, None, "", PLAIN, "secret"))
