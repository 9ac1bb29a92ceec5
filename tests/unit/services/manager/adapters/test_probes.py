"""Probes of stores that fail; the integration tests run all probes against real servers."""

from collections.abc import Collection
from typing import cast

import grpc.aio
import pytest

from svc_common.clock import ManualClock
from svc_common.errors import NotFoundError, UnavailableError
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.adapters.probes import dispatcher_probe, store_probe, views_probe
from svc_manager.ports import Views


class FaultyStore(InMemoryBlobStore):
    """Byte store that returns other bytes than were written, or none."""

    def __init__(self, found: bytes | None) -> None:
        super().__init__(ManualClock())
        self._found = found

    async def get(self, key: str) -> bytes:
        if self._found is None:
            raise NotFoundError("blob", key)
        return self._found


async def test_a_working_store_keeps_nothing_of_the_probe() -> None:
    blobs = InMemoryBlobStore(ManualClock())

    assert "written and read" in await store_probe(blobs)()
    assert await blobs.keys("probe/") == []


@pytest.mark.parametrize(("found", "text"), [(b"other", "other bytes"), (None, "has lost")])
async def test_a_faulty_store_is_reported(found: bytes | None, text: str) -> None:
    blobs = FaultyStore(found)

    with pytest.raises(UnavailableError, match=text):
        await store_probe(blobs)()

    assert await blobs.keys("probe/") == []


async def test_a_dispatcher_that_is_away_is_named() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1 does not answer"):
            await dispatcher_probe(channel, "127.0.0.1:1")()


async def test_a_store_of_views_answers_without_the_view() -> None:
    class EmptyViews:
        async def get(self, experiment_ids: Collection[str]) -> dict[str, tuple[int, bytes]]:
            assert experiment_ids
            return {}

    assert await views_probe(cast("Views", EmptyViews()))() == "answers"
