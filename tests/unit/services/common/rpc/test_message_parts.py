"""Parts of messages are counted before they are decoded."""

import asyncio

import pytest

from nni_proto.bytes.v1 import byte_service_pb2
from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import experiment_service_pb2
from nni_proto.trial.v1 import trial_service_pb2
from nni_wire.limits import GRPC_MESSAGE_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from nni_wire.values import to_value
from svc_common.errors import ResourceExhaustedError
from svc_common.rpc.message_parts import FEW_PARTS, PARTS_LIMIT, DecodingTurns, check_parts, tags_of

CREATE = "/nni_proto.experiment.v1.ExperimentService/CreateExperiment"
ADD = "/nni_proto.trial.v1.TrialService/AddTrial"
READ_VALUE = value_pb2.Value.FromString
ITEM = b"\x0a\x00"
LONG_ITEM = b"\x8a\x00\x00"
"""The same with a tag in one byte more than it needs."""


def list_of(item: bytes, count: int) -> bytes:
    """Return a value that is a list of the item, as bytes."""
    length, digits = len(item) * count, []
    while True:
        length, digit = length >> 7, length & 127
        digits.append(digit | (128 if length else 0))
        if not length:
            return bytes([0x2A, *digits]) + item * count


@pytest.mark.parametrize("item", [ITEM, LONG_ITEM], ids=["usual", "long"])
@pytest.mark.parametrize(
    ("method", "limit_bytes", "limit"),
    [(CREATE, GRPC_MESSAGE_LIMIT_BYTES, PARTS_LIMIT), (ADD, MESSAGE_LIMIT_BYTES, FEW_PARTS)],
)
def test_message_of_too_many_parts_is_refused(
    item: bytes, method: str, limit_bytes: int, limit: int
) -> None:
    assert len(READ_VALUE(list_of(item, 3)).list_value.items) == 3

    with pytest.raises(ResourceExhaustedError, match=rf"{limit:,} list items and map entries"):
        check_parts(method, limit_bytes, READ_VALUE, list_of(item, limit + 1))


def test_large_message_of_few_parts_is_accepted() -> None:
    payload = to_value({"text": "x" * 10_000_000, "list": [1.5] * 1000}).SerializeToString()

    count = check_parts(ADD, MESSAGE_LIMIT_BYTES, READ_VALUE, payload)

    assert 1000 <= count < FEW_PARTS


def test_result_of_as_many_trials_as_promised_is_accepted() -> None:
    trial = to_value({"parameter": {f"p{index}": 0.1 for index in range(20)}, "value": 0.5})
    one = trial.SerializeToString()
    digits = bytes([len(one) & 127 | 128, len(one) >> 7])
    payload = list_of(b"\x0a" + digits + one, 50_000)

    assert check_parts(CREATE, GRPC_MESSAGE_LIMIT_BYTES, READ_VALUE, payload) <= PARTS_LIMIT


def test_items_of_every_field_are_counted() -> None:
    request = experiment_service_pb2.CreateExperimentRequest()
    request.config.search.enqueue.add()
    request.config.training_services.add()
    request.environment["a"] = "b"

    tags = tags_of(request.DESCRIPTOR)

    assert {0x0A, 0x12, 0x2A, 0x9A} <= set(tags)


def test_bytes_of_a_blob_are_no_parts() -> None:
    assert tags_of(byte_service_pb2.UploadRequest.DESCRIPTOR) == b""
    assert tags_of(trial_service_pb2.GetTrialRequest.DESCRIPTOR) == b""


def test_function_that_reads_no_message_has_no_limit() -> None:
    assert check_parts(ADD, MESSAGE_LIMIT_BYTES, None, ITEM * PARTS_LIMIT) == 0
    assert check_parts(ADD, MESSAGE_LIMIT_BYTES, bytes.decode, ITEM * PARTS_LIMIT) == 0


async def test_messages_of_many_parts_take_turns() -> None:
    turns, order = DecodingTurns(), []
    first_may_end = asyncio.Event()

    async def first() -> None:
        async with turns.turn(FEW_PARTS + 1):
            await first_may_end.wait()
            order.append("first")

    async def second() -> None:
        async with turns.turn(FEW_PARTS + 1):
            order.append("second")

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        group.create_task(second())
        await asyncio.sleep(0)
        async with turns.turn(FEW_PARTS):
            order.append("small")
        first_may_end.set()

    assert order == ["small", "first", "second"]
