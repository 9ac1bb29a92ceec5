"""Tests of the client of the TLS front, against a real one."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Self

import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from svc_trial_runner.enrolment import (
    AUTHORITY_PROTOCOL,
    ENROL_PROTOCOL,
    FRONT_NAME,
    Enrolled,
    EnrolmentRequest,
    Refused,
    answer_to_line,
    request_to_line,
)
from svc_trial_runner.joining.front_client import enrol, parse_front_address, read_authority
from tests.support.certificates import Authority
from tests.support.enrolment_stage import enrolment_request, enrolment_stage, host_and_port
from tests.support.ports import free_port
from tests.support.tls_fronts import tls_front

pytest.importorskip("cryptography")


async def test_machine_enrols_with_the_authority_that_its_word_names(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        host, port = host_and_port(stage.endpoint)

        authority = await asyncio.to_thread(read_authority, host, port, word.authority_sha256)
        answer = await asyncio.to_thread(enrol, host, port, authority, enrolment_request(word))

        assert authority == stage.endpoint.authority
        assert answer.name.endswith("-desks-1")


async def test_front_with_another_authority_gets_no_word(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = replace(await stage.invite(), authority_sha256="0" * 64)
        host, port = host_and_port(stage.endpoint)

        with pytest.raises(FailedPreconditionError, match="nothing secret was sent"):
            await asyncio.to_thread(read_authority, host, port, word.authority_sha256)


async def test_certificate_of_another_authority_gets_no_word(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage, tls_front(tmp_path / "other", {}) as other:
        word = await stage.invite()
        foreign = (await other.open_for("desks/joined")).authority
        host, port = host_and_port(stage.endpoint)

        with pytest.raises(FailedPreconditionError, match="is not of the authority"):
            await asyncio.to_thread(enrol, host, port, foreign, enrolment_request(word))

        assert stage.pool.enrolled == []


async def test_refusal_is_raised_with_its_remedy(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path) as stage:
        word = await stage.invite()
        wrong = replace(enrolment_request(word), secret="guess")
        host, port = host_and_port(stage.endpoint)

        with pytest.raises(FailedPreconditionError, match="nnictl runner invite"):
            await asyncio.to_thread(enrol, host, port, stage.endpoint.authority, wrong)


def test_front_that_is_away_is_named() -> None:
    with pytest.raises(UnavailableError, match="cannot reach the front"):
        read_authority("127.0.0.1", free_port(), "0" * 64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://gate.example.org:8081", ("gate.example.org", 8081)),
        ("https://[2001:db8::7]:9/", ("2001:db8::7", 9)),
    ],
)
def test_address_has_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_front_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "gate:8081", "http://gate:8081", "https://:8081"),
        *("https://gate", "https://gate:x", "https://g:1/a"),
    ],
)
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="https://HOST:PORT"):
        parse_front_address(text)


class Answering:
    """TLS server on loopback that sends an answer to one connection, whatever it receives.

    Args:
        folder: for its certificates.
        answer: pieces that are sent, for ever if it does not end.
    """

    def __init__(self, folder: Path, answer: Iterable[bytes]) -> None:
        self.authority = Authority(folder)
        own = self.authority.sign("front", FRONT_NAME)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(own.certificate, own.key)
        self._context.set_alpn_protocols([AUTHORITY_PROTOCOL, ENROL_PROTOCOL])
        self._answer = answer
        self.protocol: str | None = None
        self.received = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(30)
        self._listener.close()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with suppress(OSError), self._context.wrap_socket(connection, server_side=True) as secured:
            self.protocol = secured.selected_alpn_protocol()
            if self.protocol == ENROL_PROTOCOL:
                self.received = secured.recv(1 << 16)
            for piece in self._answer:
                secured.sendall(piece)
            secured.unwrap()
        connection.close()


@pytest.mark.parametrize(
    "answer", [(), (b"HTTP/1.1 400",), (b"\xff",), repeat(bytes(1 << 16))], ids=range(4)
)
def test_server_that_is_no_front_gets_no_word(tmp_path: Path, answer: Iterable[bytes]) -> None:
    with (
        Answering(tmp_path, answer) as server,
        pytest.raises(FailedPreconditionError, match="is no TLS front of NNI; compare the address"),
    ):
        read_authority("127.0.0.1", server.port, "0" * 64)

    assert server.protocol == AUTHORITY_PROTOCOL


REQUEST = EnrolmentRequest("secret", "desks", "machine", "host", "4.2.1", slots=2)


def test_front_that_does_not_answer_may_be_tried_again(tmp_path: Path) -> None:
    with (
        Answering(tmp_path, ()) as server,
        pytest.raises(UnavailableError, match="did not answer; try again"),
    ):
        enrol("127.0.0.1", server.port, server.authority.ca.read_text(), REQUEST)

    assert server.protocol == ENROL_PROTOCOL
    assert server.received == request_to_line(REQUEST)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (Refused("the pool is full"), "the pool is full"),
        (Refused("the pool is full", "wait"), "the pool is full; wait"),
    ],
)
def test_reason_of_a_refusal_has_its_remedy_if_there_is_one(
    tmp_path: Path, refused: Refused, message: str
) -> None:
    with (
        Answering(tmp_path, [answer_to_line(refused)]) as server,
        pytest.raises(FailedPreconditionError) as raised,
    ):
        enrol("127.0.0.1", server.port, server.authority.ca.read_text(), REQUEST)

    assert raised.value.message == message


def test_answer_may_come_in_pieces(tmp_path: Path) -> None:
    enrolled = Enrolled("one", "user", "4.2.1", bus_password="p", manager_token="t")
    line = answer_to_line(enrolled)

    with Answering(tmp_path, [line[:3], line[3:]]) as server:
        answer = enrol("127.0.0.1", server.port, server.authority.ca.read_text(), REQUEST)

    assert answer == enrolled
