"""Tests of words, requests and answers of enrolments."""

import pytest

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.enrolment import (
    Enrolled,
    EnrolmentRequest,
    EnrolmentWord,
    Refused,
    answer_from_line,
    answer_to_line,
    request_from_line,
    request_to_line,
    secret_hash,
)

FINGERPRINT = "0" * 64
REQUEST = EnrolmentRequest("secret", "desks", "machine", "host", "4.0.1", slots=3)


def test_word_survives_its_text() -> None:
    word = EnrolmentWord.new(FINGERPRINT)

    assert EnrolmentWord.parse(f" {word.text()}\n") == word


def test_words_are_drawn_and_hidden() -> None:
    word = EnrolmentWord.new(FINGERPRINT)

    assert word.secret != EnrolmentWord.new(FINGERPRINT).secret
    assert word.secret not in repr(word)
    assert word.secret not in secret_hash(word.secret)


@pytest.mark.parametrize("text", ["", "secret-text", f"nni1.secret-text.{FINGERPRINT}"])
def test_text_that_is_no_word_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="nnictl runner invite") as caught:
        EnrolmentWord.parse(text)

    assert "secret-text" not in str(caught.value)


def test_request_survives_its_line() -> None:
    assert request_from_line(request_to_line(REQUEST)) == REQUEST
    assert "secret" not in repr(REQUEST)


@pytest.mark.parametrize("slots", [1, 10_000])
@pytest.mark.parametrize("text", ["d", "d" * 200])
def test_smallest_and_largest_values_are_accepted(slots: int, text: str) -> None:
    request = EnrolmentRequest("secret", text, "machine", "host", "4.0.1", slots=slots)

    assert request_from_line(request_to_line(request)) == request


def test_request_of_an_older_version_has_one_slot() -> None:
    line = request_to_line(REQUEST).replace(b', "slots": 3', b"")

    assert request_from_line(line).slots == 1


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"[]\n",
        b'{"pool": "desks"}\n',
        request_to_line(REQUEST).replace(b"3", b"0"),
        request_to_line(REQUEST).replace(b"3", b'"3"'),
        request_to_line(REQUEST).replace(b"3", b"10001"),
        request_to_line(REQUEST).replace(b'"desks"', b'""'),
        request_to_line(REQUEST).replace(b"desks", b"d" * 201),
        request_to_line(REQUEST).replace(b'"desks"', b"7"),
        request_to_line(REQUEST).replace(b"slots", b"posts"),
        request_to_line(REQUEST).replace(b"3", b"true"),
        request_to_line(REQUEST).replace(b'"host"', b'"\\ud800"'),
        request_to_line(REQUEST).replace(b': "secret"', b': "\\ud800"'),
        request_to_line(REQUEST).replace(b'"host"', b'"\\u001b[2J"'),
        b"[" * 16_000 + b"\n",
    ],
)
def test_line_that_is_no_request_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        request_from_line(line)


@pytest.mark.parametrize(
    "answer",
    [
        Enrolled("name", "user", "4.0.1", bus_password="one", manager_token="two"),
        Refused("no", "ask again"),
    ],
)
def test_answer_survives_its_line(answer: Enrolled | Refused) -> None:
    assert answer_from_line(answer_to_line(answer)) == answer


def test_answer_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="same version of NNI"):
        answer_from_line(b'{"name": "n", "new_field": 1}\n')
