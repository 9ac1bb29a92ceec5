from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from nni_proto.trial.v1 import trial_service_pb2 as pb
from svc_common.errors import InvalidArgumentError
from svc_common.unreadable import Unreadable, readable, tolerant


def test_a_message_is_read_and_passed_on() -> None:
    read = tolerant(pb.GetTrialRequest.FromString)
    assert read is not None
    message = pb.GetTrialRequest(trial_id="t")

    assert readable(read(message.SerializeToString())) == message


def test_what_is_no_message_is_refused_when_it_is_used() -> None:
    read = tolerant(pb.GetTrialRequest.FromString)
    assert read is not None
    sent = read(b"\xff")

    assert isinstance(sent, Unreadable)
    with pytest.raises(InvalidArgumentError, match="request must be a message of this method"):
        readable(sent)


def test_a_method_without_a_reader_stays_without_one() -> None:
    assert tolerant(None) is None


async def test_a_stream_is_refused_at_its_first_message_that_is_none() -> None:
    async def sent() -> AsyncIterator[object]:
        yield pb.GetTrialRequest()
        yield Unreadable("wire format was corrupt")

    messages = readable(sent())

    assert await anext(messages) == pb.GetTrialRequest()
    with pytest.raises(InvalidArgumentError, match="wire format was corrupt"):
        await anext(messages)
