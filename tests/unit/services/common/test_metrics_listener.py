from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from svc_common import metrics_listener
from svc_common.access.security import Guard
from svc_common.access.transport import Transport
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.lifecycle import Service
from svc_common.metrics_listener import (
    MetricsListener,
    open_metrics_listener,
    serve_metrics,
)
from svc_common.telemetry.metrics import CONTENT_TYPE, Registry

TOKEN = "a-token-that-cannot-be-guessed"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests take longer: this process may stall before it sends one."""
    monkeypatch.setattr(metrics_listener, "_REQUEST_TIMEOUT_S", 60.0)


def registry() -> Registry:
    made = Registry()
    made.counter("nni_things_total", "Things").inc()
    return made


@asynccontextmanager
async def listening(guard: Guard, host: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    listener = await open_metrics_listener(registry(), guard, f"{host}:0")
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{listener.port}", timeout=60
    ) as client:
        yield client
    await listener.aclose()


async def test_loopback_reads_without_a_token() -> None:
    async with listening(Guard.of_token(TOKEN)) as client:
        answer = await client.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == CONTENT_TYPE
    assert "nni_things_total 1" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/metrics/x", 404), ("POST", "/metrics", 405)],
)
async def test_other_paths_and_methods_are_refused(method: str, path: str, status: int) -> None:
    async with listening(Guard.of_token(TOKEN)) as client:
        assert (await client.request(method, path)).status_code == status


async def test_other_machines_need_a_token() -> None:
    guard = Guard(Guard.of_token(TOKEN).authenticator, Transport(insecure=True), len(TOKEN))
    async with listening(guard, "0.0.0.0") as client:
        refused = await client.get("/metrics")
        wrong = await client.get("/metrics", headers={"Authorization": "Bearer wrong"})
        right = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})

    assert [refused.status_code, wrong.status_code, right.status_code] == [401, 401, 200]


async def test_plain_text_off_loopback_is_refused() -> None:
    with pytest.raises(FailedPreconditionError, match="NNI_METRICS"):
        await open_metrics_listener(registry(), Guard.of_token(TOKEN), "0.0.0.0:0")


async def test_malformed_address_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="host:port"):
        await open_metrics_listener(registry(), Guard.of_token(TOKEN), "9464")


async def test_a_taken_port_is_a_clear_error() -> None:
    first = await open_metrics_listener(registry(), Guard.of_token(TOKEN), "127.0.0.1:0")

    with pytest.raises(FailedPreconditionError, match=str(first.port)):
        await MetricsListener(registry(), Guard.of_token(TOKEN)).start("127.0.0.1", first.port)

    await first.aclose()
    await first.aclose()


async def test_metrics_are_served_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNI_METRICS", "127.0.0.1:0")
    service = Service()

    facts = await serve_metrics(service, registry(), Guard.of_token(TOKEN))

    async with httpx.AsyncClient(timeout=60) as client:
        assert (await client.get(f"http://{facts['metrics']}/metrics")).status_code == 200
    await service.aclose()


async def test_without_the_variable_metrics_are_served_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NNI_METRICS", raising=False)

    assert await serve_metrics(Service(), registry(), Guard.of_token(TOKEN)) == {}


async def test_dash_is_no_address_of_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_METRICS", "-")

    with pytest.raises(InvalidArgumentError, match="NNI_METRICS"):
        await serve_metrics(Service(), registry(), Guard.of_token(TOKEN))
