"""Storage of large values in the blob store."""

import pytest
from structlog.testing import capture_logs

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_wire.values import from_value, to_value
from svc_common.errors import UnavailableError
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore

LARGE = {"x": "y" * 300_000, "z": float("inf")}


def message(*values: object) -> inbox_pb2.InboxMessage:
    return inbox_pb2.InboxMessage(
        parameters_generated=event_pb2.ParametersGenerated(
            parameters=[event_pb2.GeneratedParameters(parameters=to_value(v)) for v in values]
        )
    )


def reported(sha256: str) -> event_pb2.EventBatch:
    value = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256=sha256, size_bytes=9))
    metric = event_pb2.MetricReported(trial_id="abcde", metric=metric_pb2.Metric(value=value))
    return event_pb2.EventBatch(events=[event_pb2.Event(), event_pb2.Event(metric_reported=metric)])


def value_in(batch: event_pb2.EventBatch) -> object:
    return from_value(batch.events[1].metric_reported.metric.value)


class UnreachableStore(InMemoryBlobStore):
    """Store that does not answer."""

    async def get(self, key: str) -> bytes:
        raise UnavailableError(f"no answer for {key}")


async def test_large_parameters_go_to_the_store_and_come_back() -> None:
    blobs = LargeValues(InMemoryBlobStore())

    shrunk = await blobs.offload(message(LARGE, {"x": 1}))
    large, small = (item.parameters for item in shrunk.parameters_generated.parameters)
    referred = value_pb2.Value.FromString(large.SerializeToString())
    await blobs.resolve([large])

    assert referred.WhichOneof("kind") == "blob_value"
    assert from_value(large) == LARGE
    assert from_value(small) == {"x": 1}


async def test_small_messages_stay_as_they_are() -> None:
    blobs = LargeValues(InMemoryBlobStore())

    assert await blobs.offload(message({"x": 1})) == message({"x": 1})


async def test_message_of_many_large_parameters_stays_small() -> None:
    blobs = LargeValues(InMemoryBlobStore())
    parameters = {"x": [1] * 50_000}  # 200 kB

    shrunk = await blobs.offload(message(*[parameters] * 10, {"x": 1}))
    *stored, small = (item.parameters for item in shrunk.parameters_generated.parameters)

    assert {value.WhichOneof("kind") for value in stored} == {"blob_value"}
    assert from_value(small) == {"x": 1}


async def test_large_metrics_of_a_batch_are_loaded() -> None:
    store = InMemoryBlobStore()
    batch = reported((await store.put(b'{"default": 0.5}')).rpartition("/")[2])

    with capture_logs() as lines:
        await LargeValues(store).resolve_metrics(batch, "exp")

    assert value_in(batch) == {"default": 0.5}
    assert lines == []


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff\xfe\xfd", b"{", b'{"x": "\\ud800"}', b"[" * 300 + b"]" * 300, b"[" * 100_000],
    ids=["empty", "no text", "cut", "half a character", "too deep", "deeper than any stack"],
)
async def test_metric_that_is_no_json_value_is_null(text: bytes) -> None:
    store = InMemoryBlobStore()
    batch = reported((await store.put(text)).rpartition("/")[2])

    with capture_logs() as lines:
        await LargeValues(store).resolve_metrics(batch, "exp")

    assert value_in(batch) is None
    assert len(lines) == 1


@pytest.mark.parametrize("sha256", ["0" * 64, "", "../../exp/log"])
async def test_metric_without_a_blob_is_null_and_named_in_the_log_once(sha256: str) -> None:
    values = LargeValues(InMemoryBlobStore())

    with capture_logs() as lines:
        for _ in range(2):
            batch = reported(sha256)
            await values.resolve_metrics(batch, "exp")

    assert value_in(batch) is None
    (line,) = lines
    assert line["log_level"] == "error"
    assert (line["experiment"], line["trial"], line["blob"]) == ("exp", "abcde", sha256)


async def test_unreachable_store_does_not_turn_a_metric_into_null() -> None:
    batch = reported("0" * 64)

    with pytest.raises(UnavailableError):
        await LargeValues(UnreachableStore()).resolve_metrics(batch, "exp")

    assert batch == reported("0" * 64)


async def test_metric_whose_blob_is_restored_is_read_again() -> None:
    store = InMemoryBlobStore()
    key = await InMemoryBlobStore().put(b"0.5")
    lost, found = reported(key.rpartition("/")[2]), reported(key.rpartition("/")[2])

    await LargeValues(store).resolve_metrics(lost, "exp")
    await store.put(b"0.5")
    await LargeValues(store).resolve_metrics(found, "exp")

    assert (value_in(lost), value_in(found)) == (None, 0.5)
