"""Requests that are too large, too deep or senseless, at real servers: refused, and never a 500."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc.aio
import httpx
import pytest

from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc as pb_grpc
from nni_wire.limits import GRPC_MESSAGE_LIMIT_BYTES, METRIC_LIMIT_BYTES, grpc_channel_options
from svc_common.rpc.client import token_metadata
from svc_common.rpc.server import GrpcServer
from svc_manager.web.listeners import http_listener
from svc_manager.web.listeners.server import WebServer
from tests.support.manual_timers import ManualTimers
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, dependencies, experiment
from tests.unit.services.manager.web.in_memory import InMemoryManager

TOKEN = "a token of enough characters"
LINGER_S = 12.5
"""Delay that nothing else uses."""
TRIALS = f"{API}/experiments/{EXPERIMENT}/trial-jobs"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    manager = InMemoryManager()
    manager.put(experiment(tmp_path))
    server = WebServer(TOKEN)
    port = await server.serve(dependencies(manager))
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False, timeout=60
    ) as made:
        yield made
    await server.aclose()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 400),
        (b'{"x":' * 5_000 + b"1" + b"}" * 5_000, 400),
        (b'{"x": ' + b"9" * 100_000 + b"}", 400),
        (b'{"x": "\xff"}', 400),
        (b"", 400),
        (b"[1]", 400),
        (b'"' + b"x" * METRIC_LIMIT_BYTES + b'"', 413),
    ],
    ids=["brackets", "deep", "long number", "no text", "nothing", "no object", "long"],
)
async def test_body_that_is_none_is_refused(
    client: httpx.AsyncClient, body: bytes, status: int
) -> None:
    answer = await client.post(TRIALS, content=body)

    assert answer.status_code == status, answer.text
    assert "error" in answer.json()


async def test_body_without_an_end_is_refused_and_hung_up_on(client: httpx.AsyncClient) -> None:
    head = (
        f"POST {TRIALS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    writer.write(head.encode())
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    answer = asyncio.ensure_future(reader.read(64))

    async with asyncio.timeout(60):
        with suppress(OSError):
            while True:
                writer.write(piece)
                await writer.drain()
    writer.close()

    assert (await answer).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (f"{API}/experiments/{'x' * 2_000}/trial-jobs", {}),
        (f"{API}/experiments/%00/trial-jobs", {}),
        (f"{TRIALS}/..%2F..", {}),
        (TRIALS, {"limit": "1" * 1_000}),
        (TRIALS, {"limit": "-1"}),
        (TRIALS, {"limit": "nan"}),
        (TRIALS, {"ids": "x" * 10_001}),
    ],
)
async def test_name_or_number_that_is_none_is_refused(
    client: httpx.AsyncClient, path: str, query: dict[str, str]
) -> None:
    answer = await client.get(path, params=query)

    assert 400 <= answer.status_code < 500


async def test_numbers_that_are_none_come_back_as_what_json_can_say(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post(TRIALS, content=b'{"x": NaN, "y": Infinity}')

    assert answer.status_code in {200, 201, 400}
    json.loads(answer.text, parse_constant=pytest.fail)


class Trials(pb_grpc.TrialServiceServicer):
    async def GetTrial(self, request: pb.GetTrialRequest, context: object) -> pb.GetTrialResponse:
        return pb.GetTrialResponse()


@pytest.fixture
async def stub() -> AsyncIterator[Any]:
    server = GrpcServer(["nni_proto.trial.v1.TrialService"], TOKEN)
    trials = Trials()  # type: ignore[abstract] # the methods that no test calls
    server.register(lambda one: pb_grpc.add_TrialServiceServicer_to_server(trials, one))
    port = await server.start()
    options: list[tuple[str, Any]] = [
        *grpc_channel_options(),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_http_proxy", 0),
    ]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        yield pb_grpc.TrialServiceStub(channel)
    await server.stop(0.1)


async def refusal(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async with asyncio.timeout(60):
            await call
    return caught.value.code()


async def test_message_that_is_too_large_is_refused(stub: Any) -> None:
    large = pb.GetTrialRequest(trial_id="x" * (GRPC_MESSAGE_LIMIT_BYTES + 1))

    code = await refusal(stub.GetTrial(large, metadata=token_metadata(TOKEN), timeout=60))

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_metadata_that_is_too_large_is_refused(stub: Any) -> None:
    large = (*token_metadata(TOKEN), ("x", "y" * 100_000))

    code = await refusal(stub.GetTrial(pb.GetTrialRequest(), metadata=large, timeout=60))

    assert code in {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}


async def test_long_token_is_nobodys(stub: Any) -> None:
    long = token_metadata("x" * 4_000)

    code = await refusal(stub.GetTrial(pb.GetTrialRequest(), metadata=long, timeout=60))

    assert code is grpc.StatusCode.UNAUTHENTICATED


async def test_refused_request_whose_body_comes_late_does_not_cost_the_connection(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_listener, "LINGER_S", LINGER_S)
    timers = ManualTimers(monkeypatch, LINGER_S)
    head = (
        f"POST {TRIALS} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    )
    follow = f"GET {API}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    async with asyncio.timeout(60):
        writer.write(head.encode())
        refused = await reader.readuntil(b"\r\n")
        await timers.wait_pending()
        writer.write(b"{}" + follow.encode())
        answered = await reader.readuntil(b"\r\n\r\n")
        while b"HTTP/1.1 " not in answered:
            answered = await reader.readuntil(b"\r\n")
        timers.fire()
        writer.write(f"GET {API}/version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        await writer.drain()
        again = b""
        while b'"version"' not in again:
            again = await reader.readuntil(b"}")
    writer.close()

    assert b" 401 " in refused
