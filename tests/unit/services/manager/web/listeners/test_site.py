"""The application of one listener: routes, prefix, headers and errors."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from svc_manager.web.listeners.endpoints import EndpointContext
from svc_manager.web.listeners.site import create_site
from svc_manager.web.security import SECURITY_HEADERS, AccessPolicy
from tests.unit.services.manager.web.conftest import (
    API,
    BASE,
    EXPERIMENT,
    TOKEN,
    Site,
    dependencies,
    serve,
)
from tests.unit.services.manager.web.in_memory import InMemoryManager


async def never() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("path", ["/", f"{API}/version", f"{API}/nothing", "/metrics", "/nothing"])
async def test_every_response_has_the_security_headers(site: Site, path: str) -> None:
    answer = await site.anonymous.get(path)

    assert {name: answer.headers[name] for name in SECURITY_HEADERS} == dict(SECURITY_HEADERS)


async def test_refused_requests_have_the_security_headers(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/version", headers={"Host": "evil.example"})

    assert answer.status_code == 403
    assert answer.headers["x-frame-options"] == "DENY"


async def test_responses_of_the_api_are_not_cached(site: Site) -> None:
    answer = await site.anonymous.get(f"{API}/version")

    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/nothing", f"{API}/nothing"])
async def test_unknown_paths_have_the_json_body_of_an_error(site: Site, path: str) -> None:
    answer = await site.anonymous.get(path)

    assert answer.status_code == 404
    assert answer.json() == {"error": "Not Found"}


async def test_prefix_serves_the_api_and_the_metrics_besides_the_root(
    manager: InMemoryManager,
) -> None:
    async with serve(manager, prefix="a/b") as site:
        statuses = [
            (await site.anonymous.get(path)).status_code
            for path in (f"/a/b{API}/version", f"{API}/version", "/a/b/metrics", "/metrics")
        ]

    assert statuses == [200, 200, 200, 200]


async def test_site_without_instruments_has_no_metrics(manager: InMemoryManager) -> None:
    bare = replace(dependencies(manager), instruments=None)
    app = create_site(EndpointContext(bare, AccessPolicy(TOKEN), never, EXPERIMENT))

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
        assert (await client.get("/metrics")).status_code == 404
        assert (await client.get(f"{API}/version")).status_code == 200


async def test_web_sockets_get_no_response(manager: InMemoryManager) -> None:
    app = create_site(EndpointContext(dependencies(manager), AccessPolicy(TOKEN), never))
    sent: list[object] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        sent.append(message)

    await app({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == []
