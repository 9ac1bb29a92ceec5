from __future__ import annotations

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_views import RedisViews
from svc_manager.event_log.summaries import Summaries

CLOSED_PORT = "redis://127.0.0.1:1/0"
"""Nothing listens on this port."""


def view(experiment_id: str) -> experiment_pb2.Experiment:
    return experiment_pb2.Experiment(id=experiment_id)


@pytest.fixture
def summaries() -> Summaries:
    blobs = InMemoryBlobStore()
    return Summaries(BlobViews(blobs), blobs)


async def test_summary_of_the_end_of_the_log_is_given(summaries: Summaries) -> None:
    await summaries.put(view("e1"), 7)
    await summaries.put(view("e2"), 9)

    assert await summaries.get({"e1": 7, "e2": 9, "e3": 1}) == {"e1": view("e1"), "e2": view("e2")}


async def test_summary_of_another_time_is_not_given(summaries: Summaries) -> None:
    await summaries.put(view("e1"), 7)

    assert await summaries.get({"e1": 8}) == {}


async def test_deleted_summary_is_gone(summaries: Summaries) -> None:
    await summaries.put(view("e1"), 7)

    await summaries.delete("e1")

    assert await summaries.get({"e1": 7}) == {}


async def test_a_store_of_views_that_is_away_raises_nothing() -> None:
    async with RedisConnection(CLOSED_PORT) as redis:
        summaries = Summaries(RedisViews(redis), InMemoryBlobStore())

        await summaries.put(view("e1"), 7)
        found = await summaries.get({"e1": 7})
        await summaries.delete("e1")

    assert found == {}
