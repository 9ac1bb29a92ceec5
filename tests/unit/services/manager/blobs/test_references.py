from __future__ import annotations

import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2
from svc_common.messaging.memory import InMemoryBus
from svc_manager.blobs.references import hashes_in
from tests.unit.services.manager.storing import StoreFixture, digest

A, B, C = digest(b"a"), digest(b"b"), digest(b"c")


@pytest.mark.parametrize("before", ["", "f", "ff" * 40, "G"])
@pytest.mark.parametrize("after", ["", "0", "ff", "z"])
def test_hash_is_found_whatever_stands_around_its_field(before: str, after: str) -> None:
    event = event_pb2.Event()
    event.trial_ended.trial_id = before
    event.trial_ended.checkpoint.directory = before
    event.trial_ended.checkpoint.archive.CopyFrom(value_pb2.BlobRef(sha256=A, size_bytes=1))
    batch = event_pb2.EventBatch(append_id=after, events=[event, event])

    assert A in hashes_in(batch.SerializeToString())


def test_value_that_lies_elsewhere_is_found_deep_in_parameters() -> None:
    value = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256=B, size_bytes=9))
    event = event_pb2.Event()
    event.trial_scheduled.parameters.map_value.entries.add(key="x", value=value)

    assert hashes_in(event_pb2.EventBatch(events=[event]).SerializeToString()) == {B}


async def test_log_is_read_once_and_then_from_where_it_grew() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        await shelf.log("e1", A)
        assert await shelf.references.of("e1") == {A}

        await shelf.log("e1", B)

        assert await shelf.references.of("e1") == {A, B}


async def test_log_that_is_gone_names_nothing() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        await shelf.log("e1", A)
        await shelf.log("e2", C)
        await shelf.references.of("e1")

        await bus.events.delete("e1")

        assert await shelf.references.experiments() == ["e2"]
        assert await shelf.references.of("e1") == frozenset()
