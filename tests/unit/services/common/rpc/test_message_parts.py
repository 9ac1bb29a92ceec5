"""Parts of messages are counted before they are decoded."""

import asyncio

import pytest

from nni_proto.bytes.v1 import byte_service_pb2
from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import experiment_service_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError, ResourceExhaustedError
from svc_common.rpc.message_parts import (
    FEW_PARTS,
    MANY_PARTS,
    MAP_ENTRY_PARTS,
    PARTS_LIMIT,
    TEXT_LIMIT_BYTES,
    DecodingTurns,
    check_parts,
    count_parts,
)
from svc_common.rpc.unread_requests import parts_of_method

EXPERIMENTS = "/nni_proto.experiment.v1.ExperimentService/"
IMPORT = f"{EXPERIMENTS}ImportData"
READ_VALUE = value_pb2.Value.FromString
VALUE = value_pb2.Value.DESCRIPTOR
NO_LIMIT = 10**9


def with_length(tag: bytes, content: bytes) -> bytes:
    """Return a length-delimited field."""
    length, digits = len(content), []
    while True:
        length, digit = length >> 7, length & 127
        digits.append(digit | (128 if length else 0))
        if not length:
            return tag + bytes(digits) + content


@pytest.mark.parametrize(
    ("part", "inside"),
    [
        (b"\x0a\x00", True),  # item of a list
        (b"\x8a\x00\x00", True),  # the same with a tag in one byte more than it needs
        (b"\x08\x01", False),  # field that is no list, over and over
        (b"\x32\x00", False),  # message that is no list, over and over
        (b"\x7a\x00", False),  # field of a later version
        (b"\x78\x00", False),
        (b"\x7d1234", False),
        (b"\x7912345678", False),
        (b"\x7b\x7c", False),  # begin and end of a group
    ],
)
def test_message_of_too_many_parts_is_refused(part: bytes, *, inside: bool) -> None:
    payload = part * 1_001
    message = with_length(b"\x2a", payload) if inside else payload

    with pytest.raises(
        ResourceExhaustedError, match=r"ImportData must have at most 1,000 parts .* in pieces"
    ):
        check_parts(IMPORT, 1_000, READ_VALUE, message)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (None, 0),
        (1.5, 1),
        ([], 1),
        ([1.5, 2.5], 5),
        ({"a": 1.5}, 5),
        ([{"a": 1.5, "b": [None, "text"]}], 14),
    ],
)
def test_every_field_on_the_wire_is_a_part(data: object, count: int) -> None:
    payload = to_value(data).SerializeToString()

    assert count_parts(payload, VALUE, NO_LIMIT) == count


def test_packed_numbers_are_parts() -> None:
    request = experiment_service_pb2.CreateExperimentRequest()
    request.config.tuner_gpu_indices.extend([1] * 100)

    assert count_parts(request.SerializeToString(), request.DESCRIPTOR, NO_LIMIT) == 102


def test_entry_of_a_map_counts_as_much_as_its_place_in_a_hash_table_costs() -> None:
    request = experiment_service_pb2.CreateExperimentRequest(environment={"a": "b"})

    count = count_parts(request.SerializeToString(), request.DESCRIPTOR, NO_LIMIT)

    assert count == MAP_ENTRY_PARTS + 2


def test_count_stops_above_the_limit() -> None:
    assert count_parts(b"\x08\x01" * 1000, VALUE, 10) == 11


def test_long_texts_are_one_part() -> None:
    value = to_value(["x" * 5_000_000] * 3)

    assert check_parts(IMPORT, 1000, READ_VALUE, value.SerializeToString()) == 7


def test_text_that_would_hold_the_loop_is_refused() -> None:
    payload = to_value("x" * (TEXT_LIMIT_BYTES + 1)).SerializeToString()

    with pytest.raises(InvalidArgumentError, match=r"16,777,216 bytes, got '16,777,217 bytes'"):
        check_parts(IMPORT, PARTS_LIMIT, READ_VALUE, payload)


def test_bytes_of_a_blob_are_one_part() -> None:
    request = byte_service_pb2.UploadRequest(data=b"\x0a\x00" * 4_000_000)
    read = byte_service_pb2.UploadRequest.FromString

    assert check_parts("/Upload", FEW_PARTS, read, request.SerializeToString()) == 1


@pytest.mark.parametrize(
    "payload",
    [b"\x2a", b"\x2a\x81", b"\x80" * 11, b"\x2a\x7f\x0a\x7f\x08", b"\x79\x00"],
    ids=["no length", "half a length", "long tag", "lengths beyond the end", "short number"],
)
def test_malformed_message_is_left_to_the_decoder(payload: bytes) -> None:
    assert count_parts(payload, VALUE, NO_LIMIT) <= len(payload)


def test_small_message_is_not_counted() -> None:
    assert check_parts(IMPORT, 1000, READ_VALUE, b"\x0a\x00" * 500) == 0


def test_function_that_reads_no_message_has_no_limit() -> None:
    assert check_parts(IMPORT, 10, None, b"\x0a\x00" * 100) == 0
    assert check_parts(IMPORT, 10, bytes.decode, b"\x0a\x00" * 100) == 0


@pytest.mark.parametrize(
    ("method", "limit"),
    [
        (f"{EXPERIMENTS}CreateExperiment", PARTS_LIMIT),
        (f"{EXPERIMENTS}UpdateExperiment", PARTS_LIMIT),
        (IMPORT, PARTS_LIMIT),
        ("/nni_proto.trial.v1.TrialService/AddTrial", PARTS_LIMIT),
        (f"{EXPERIMENTS}WaitExperiment", FEW_PARTS),
        ("/nni_proto.experiment.v1.StudyService/RenewLeases", FEW_PARTS),
        ("/nni_proto.trial.v1.TrialService/ListTrials", FEW_PARTS),
    ],
)
def test_messages_without_values_of_users_have_few_parts(method: str, limit: int) -> None:
    assert parts_of_method(method) == limit


async def test_messages_of_many_parts_take_turns() -> None:
    turns, order = DecodingTurns(), []
    first_may_end = asyncio.Event()

    async def first() -> None:
        async with turns.turn(MANY_PARTS + 1):
            await first_may_end.wait()
            order.append("first")

    async def second() -> None:
        async with turns.turn(MANY_PARTS + 1):
            order.append("second")

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        group.create_task(second())
        await asyncio.sleep(0)
        async with turns.turn(MANY_PARTS):
            order.append("small")
        first_may_end.set()

    assert order == ["small", "first", "second"]
