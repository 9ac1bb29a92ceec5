"""Tests of the endpoint of enrolments."""

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest

from svc_trial_runner.enrolment import (
    ENROL_PROTOCOL,
    MESSAGE_LIMIT_BYTES,
    EnrolmentRequest,
    Refused,
    answer_from_line,
    request_to_line,
)
from svc_trial_runner.fleet.adapters.front.enrolment_endpoint import EnrolmentEndpoint
from tests.support.tls_fronts import connect, tls_front

pytest.importorskip("cryptography")

REQUEST = EnrolmentRequest("secret", "desks", "machine", "host", "4.0.1")


async def refuse(request: EnrolmentRequest, address: str) -> Refused:
    """Refuse, naming what was received."""
    return Refused(f"{request.pool} from {address}")


async def exchange(folder: Path, request: bytes, request_s: float = 10.0) -> bytes:
    """Return everything that the endpoint answers to a request."""
    endpoint = EnrolmentEndpoint(refuse, request_s)
    async with tls_front(folder, {ENROL_PROTOCOL: endpoint.serve}) as front:
        reader, writer = await connect(await front.open_for("desks/joined"), ENROL_PROTOCOL)
        try:
            writer.write(request)
            return await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return b""
        finally:
            writer.close()


async def test_request_is_handled_and_answered(tmp_path: Path) -> None:
    answer = answer_from_line(await exchange(tmp_path, request_to_line(REQUEST)))

    assert answer == Refused("desks from 127.0.0.1")


async def test_line_that_is_no_request_is_refused(tmp_path: Path) -> None:
    answer = answer_from_line(await exchange(tmp_path, b"GET / HTTP/1.1\n"))

    assert isinstance(answer, Refused)
    assert "must be a line of JSON" in answer.reason


@pytest.mark.parametrize("size", [MESSAGE_LIMIT_BYTES + 1, 20 * MESSAGE_LIMIT_BYTES])
async def test_line_that_is_too_long_gets_no_answer(tmp_path: Path, size: int) -> None:
    assert await exchange(tmp_path, b"x" * size + b"\n") == b""


async def test_request_that_does_not_end_gets_no_answer(tmp_path: Path) -> None:
    assert await exchange(tmp_path, b'{"pool"', request_s=0.05) == b""


async def test_request_has_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    times_s = [loop.time()]
    own, other = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=own)
    with contextlib.closing(writer), other, monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: times_s[-1])
        serving = asyncio.create_task(EnrolmentEndpoint(refuse).serve(reader, writer, "10.0.0.2"))
        ended = []
        for passed_s in (0.0, 9.9, 10.1):
            times_s.append(times_s[0] + passed_s)
            for _ in range(10):
                await asyncio.sleep(0)
            ended.append(serving.done())

    assert ended == [False, False, True]
