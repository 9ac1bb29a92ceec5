"""Frames between the dispatcher and its checking children."""

import io

import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from svc_dispatcher.adapters.check_frames import read_frame, reply_of, result_of, write_frame


def test_frames_are_read_as_they_were_written() -> None:
    stream = io.BytesIO()
    for payload in (b"", b"one", b"x" * 70_000):
        write_frame(stream, payload)
    stream.seek(0)

    assert [read_frame(stream) for _ in range(4)] == [b"", b"one", b"x" * 70_000, None]


def test_cut_length_is_the_end() -> None:
    assert read_frame(io.BytesIO(b"\x00\x00")) is None


def test_refusal_keeps_its_message_and_facts() -> None:
    error = InvalidArgumentError("a.b", "must be >= 1", 0, "raise it")

    with pytest.raises(InvalidArgumentError) as restored:
        result_of(reply_of(error))

    assert restored.value.message == error.message
    assert restored.value.facts == error.facts
    assert (restored.value.field, restored.value.remedy) == ("a.b", "raise it")


def test_other_error_is_a_failed_precondition() -> None:
    with pytest.raises(FailedPreconditionError, match="no"):
        result_of(reply_of(FailedPreconditionError("no")))


@pytest.mark.parametrize(
    "reply", [b"\x91\xff", b"[]", b"7", b"{}", b'{"refused": 1}', b'{"refused": "", "facts": {}}']
)
def test_reply_that_no_check_sends_is_no_answer(reply: bytes) -> None:
    with pytest.raises(UnavailableError, match="the reply of a check cannot be read"):
        result_of(reply)
