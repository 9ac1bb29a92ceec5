import asyncio

import pytest
from google.protobuf.message import DecodeError

from nni_proto.common.v1 import value_pb2
from nni_proto.runner.v1 import task_pb2
from nni_wire.values import to_value
from svc_common.large_work import ON_LOOP_BYTES
from svc_common.messaging.decoding import decode_counted, decode_off_loop

EMPTY_TRIALS = b"\x2a\x00"
"""A trial without fields in a presence message."""


def test_message_with_too_many_parts_is_refused_by_the_rule() -> None:
    rule = r"RunnerPresence must have at most 1,000 parts .* got more in 2,002 bytes"

    with pytest.raises(DecodeError, match=rule):
        decode_counted(task_pb2.RunnerPresence, EMPTY_TRIALS * 1_001, 1_000)


def test_message_with_so_many_parts_is_decoded() -> None:
    presence = decode_counted(task_pb2.RunnerPresence, EMPTY_TRIALS * 1_000, 1_000)

    assert len(presence.trials) == 1_000


def test_malformed_message_is_refused_by_the_decoder() -> None:
    with pytest.raises(DecodeError):
        decode_counted(task_pb2.RunnerPresence, b"\xff" * 20, 10)


async def test_small_message_is_decoded_at_once() -> None:
    decoding = decode_off_loop(task_pb2.RunnerPresence, EMPTY_TRIALS, 1_000)

    with pytest.raises(StopIteration) as ended:
        decoding.send(None)  # no step of the event loop

    assert len(ended.value.value.trials) == 1


async def test_large_message_is_decoded_in_a_thread() -> None:
    payload = to_value("x" * ON_LOOP_BYTES).SerializeToString()

    decoding = decode_off_loop(value_pb2.Value, payload, 10)

    assert asyncio.isfuture(decoding.send(None))
    decoding.close()


async def test_large_message_with_too_many_parts_is_refused() -> None:
    payload = EMPTY_TRIALS * ON_LOOP_BYTES

    with pytest.raises(DecodeError, match="at most 50,000 parts"):
        await decode_off_loop(task_pb2.RunnerPresence, payload, 50_000)
