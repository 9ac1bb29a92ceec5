"""Storage of large values in the blob store."""

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_wire.values import from_value, to_value
from svc_common.storage.large_values import LargeValues
from svc_common.storage.memory import InMemoryBlobStore

LARGE = {"x": "y" * 300_000, "z": float("inf")}


def message(*values: object) -> inbox_pb2.InboxMessage:
    return inbox_pb2.InboxMessage(
        parameters_generated=event_pb2.ParametersGenerated(
            parameters=[event_pb2.GeneratedParameters(parameters=to_value(v)) for v in values]
        )
    )


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
