from __future__ import annotations

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_wire.values import to_value
from svc_manager.converters.blob_refs import blob_digests

FIRST, SECOND, OTHER = "a1" * 32, "b2" * 32, "c3" * 32


def blob(digest: str) -> value_pb2.Value:
    return value_pb2.Value(blob_value=value_pb2.BlobRef(sha256=digest, size_bytes=1))


def test_blobs_are_found_at_any_depth() -> None:
    batch = event_pb2.EventBatch()
    created = batch.events.add().experiment_created
    created.config.search_space.CopyFrom(blob(FIRST))
    inner = batch.events.add().parameters_generated.parameters.add().parameters
    inner.map_value.entries.add(key="x").value.CopyFrom(blob(SECOND))

    assert blob_digests(batch.SerializeToString()) == {FIRST, SECOND}


def test_a_hash_that_is_no_reference_is_none() -> None:
    batch = event_pb2.EventBatch()
    created = batch.events.add().experiment_created
    created.environment_sha256 = OTHER
    created.config.search_space.CopyFrom(to_value({"x": OTHER}))

    assert blob_digests(batch.SerializeToString()) == set()


def test_a_batch_without_any_is_not_even_read() -> None:
    assert blob_digests(b"no batch at all") == set()
