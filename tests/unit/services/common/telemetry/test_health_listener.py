from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.telemetry import health_listener
from svc_common.telemetry.health_listener import HealthListener
from tests.support.ports import has_ipv6

_LIMIT_S = health_listener._REQUEST_TIMEOUT_S


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests take longer than a probe's: this process may stall before it sends one."""
    monkeypatch.setattr(health_listener, "_REQUEST_TIMEOUT_S", 60.0)


class Work:
    """Readiness by hand."""

    taken = True

    def __call__(self) -> bool:
        return self.taken


@asynccontextmanager
async def listening(work: Work) -> AsyncIterator[tuple[HealthListener, httpx.AsyncClient]]:
    listener = HealthListener(work)
    await listener.start("127.0.0.1:0")
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{listener.port}", timeout=60
        ) as client:
            yield listener, client
    finally:
        listener.close()


async def test_loop_that_turns_is_alive_and_ready_only_if_it_takes_work() -> None:
    work = Work()
    async with listening(work) as (_, client):
        assert (await client.get("/livez")).text == "OK\n"
        assert (await client.get("/readyz")).status_code == 200
        work.taken = False

        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/readyz")).status_code == 503


async def test_answer_has_nothing_but_the_state() -> None:
    async with listening(Work()) as (_, client):
        answer = await client.get("/readyz?verbose=1")

    assert answer.content == b"OK\n"
    assert set(answer.headers) == {"content-type", "content-length", "connection"}


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("HEAD", "/livez", 200), ("GET", "/", 404), ("GET", "/metrics", 404), ("POST", "/livez", 405)],
)
async def test_methods_and_paths(method: str, path: str, code: int) -> None:
    async with listening(Work()) as (_, client):
        answer = await client.request(method, path)

    assert answer.status_code == code
    assert (answer.content == b"") == (method == "HEAD")


@pytest.mark.parametrize("line", [b"\r\n\r\n", b"GET\r\n\r\n", b"x" * 5000])
async def test_malformed_requests_end_their_connection_only(line: bytes) -> None:
    async with listening(Work()) as (listener, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(line)
        answer = await reader.read()
        writer.close()

        assert answer[:12] in {b"", b"HTTP/1.1 400"}
        assert (await client.get("/livez")).status_code == 200


async def test_idle_connections_do_not_take_the_place_of_all_others_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health_listener, "_REQUEST_TIMEOUT_S", _LIMIT_S)
    async with listening(Work()) as (listener, client):
        idle = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(40)]
        # Those beyond the limit are closed at once, the others after the time limit of a request.
        assert await idle[-1][0].read() == b""
        for _, writer in idle[:16]:
            writer.close()
        await idle[0][0].read()

        assert (await client.get("/livez")).status_code == 200
        for _, writer in idle:
            writer.close()


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_address_of_ipv6_stands_in_brackets() -> None:
    listener = HealthListener(Work())
    await listener.start("[::1]:0")

    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.get(f"http://[::1]:{listener.port}/livez")
    listener.close()

    assert answer.status_code == 200


async def test_taken_port_and_malformed_address_are_named() -> None:
    async with listening(Work()) as (listener, _):
        with pytest.raises(FailedPreconditionError, match="NNI_HEALTH"):
            await HealthListener(Work()).start(f"127.0.0.1:{listener.port}")
    with pytest.raises(InvalidArgumentError, match="NNI_HEALTH must be host:port"):
        await HealthListener(Work()).start("8081")
