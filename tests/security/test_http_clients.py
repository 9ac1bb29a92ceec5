"""Clients that are slow, rude or guessing, at a real listener."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.keyring import Keyring
from svc_common.access.security import Guard
from svc_common.access.transport import Transport
from svc_common.telemetry.metrics import Registry
from svc_manager.telemetry.metrics import Instruments
from svc_manager.web.listeners.route_table import ROUTES
from svc_manager.web.listeners.server import WebServer
from tests.support.manual_timers import ManualTimers
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, dependencies, experiment
from tests.unit.services.manager.web.in_memory import InMemoryManager

TOKEN = "a token of enough characters"
SOON_S = 0.2
"""Time limit of clients that never finish a request."""
HEAD_TIMEOUT_S = 12.5
"""Long enough for ordinary requests on a loaded machine; `ManualTimers` lets it pass at once."""
BODY_TIMEOUT_S = 60.0


@asynccontextmanager
async def serving(
    tmp_path: Path,
    head_timeout_s: float = HEAD_TIMEOUT_S,
    body_timeout_s: float = BODY_TIMEOUT_S,
) -> AsyncIterator[int]:
    manager = InMemoryManager()
    manager.put(experiment(tmp_path))
    server = WebServer(TOKEN, head_timeout_s=head_timeout_s, body_timeout_s=body_timeout_s)
    yield await server.serve(dependencies(manager))
    await server.aclose()


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    async with serving(tmp_path) as port:
        yield port


@pytest.fixture
async def strict_port(tmp_path: Path) -> AsyncIterator[int]:
    """Port of a listener with a short time limit for the head of a request."""
    async with serving(tmp_path, head_timeout_s=SOON_S) as port:
        yield port


async def said(port: int, request: bytes = b"") -> bytes:
    """Send some bytes; return all that is answered until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


async def test_connection_that_says_nothing_is_closed(strict_port: int) -> None:
    assert await said(strict_port) == b""


async def test_head_that_never_ends_is_given_up_however_it_drips(strict_port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", strict_port)
    closed = asyncio.ensure_future(reader.read())
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    async with asyncio.timeout(60):
        for number in range(10_000):
            await asyncio.wait({closed}, timeout=SOON_S / 10)
            if closed.done():
                break
            writer.write(b"X-%d: x\r\n" % number)
    writer.close()

    assert number < 100
    # A connection that is closed before all of its input was read is reset.
    assert isinstance(closed.exception(), ConnectionResetError) or closed.result() == b""


async def test_body_that_never_ends_is_refused(tmp_path: Path) -> None:
    head = (
        f"PUT {API}/experiments/{EXPERIMENT}/experiment?update_type=MAX_TRIAL_NUM HTTP/1.1\r\n"
        f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )

    async with serving(tmp_path, body_timeout_s=SOON_S) as port:
        answer = await said(port, head.encode())

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_head_that_is_too_long_is_refused(port: int) -> None:
    # Above the limit, and less than what arrives at once: a close before all of it was read resets
    # the connection, and the answer may be lost.
    head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 40_000

    answer = await said(port, head)

    assert answer.startswith(b"HTTP/1.1 4")


async def test_kept_connection_that_has_been_answered_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, HEAD_TIMEOUT_S)
    async with (
        serving(tmp_path, head_timeout_s=HEAD_TIMEOUT_S) as port,
        httpx.AsyncClient(trust_env=False, timeout=60) as client,
    ):
        for _ in range(3):
            answer = await client.get(f"http://127.0.0.1:{port}{API}/version")
            assert timers.pending == 0
            assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/", f"{API}/version", f"{API}/nothing", "/static/nothing"])
async def test_every_answer_has_the_headers_that_protect_its_page(port: int, path: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        answer = await client.get(f"http://127.0.0.1:{port}{path}")

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_guessing_caller_has_to_wait_and_others_do_not(
    tmp_path: Path,
) -> None:
    manager = InMemoryManager()
    manager.put(experiment(tmp_path))
    now_s = [0.0]
    trail = AuditTrail(tmp_path / "log")
    authenticator = Authenticator(Keyring(TOKEN), trail, now_s=lambda: now_s[0])
    server = WebServer(TOKEN, guard=Guard(authenticator))
    port = await server.serve(dependencies(manager))
    url = f"http://127.0.0.1:{port}{API}/experiments/{EXPERIMENT}/tensorboard-tasks"

    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:

        async def attempt(token: str) -> httpx.Response:
            return await client.delete(url, headers={"Authorization": f"Bearer {token}"})

        guesses = [await attempt(f"guess {number}") for number in range(30)]
        owner = await attempt(TOKEN)
        now_s[0] = 61.0
        later = await attempt("guess")
    await server.aclose()
    authenticator.close()
    lines = (tmp_path / "log" / "audit.log").read_text().splitlines()
    deeds = [json.loads(line) for line in lines]

    assert [answer.status_code for answer in guesses] == [401] * 20 + [429] * 10
    assert int(guesses[-1].headers["retry-after"]) > 0
    assert owner.status_code == 200
    assert later.status_code == 401
    assert sum(deed["outcome"] == "UNAUTHENTICATED" for deed in deeds) == 21
    assert "guess" not in "".join(lines)


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[int]:
    """A listener that other machines could reach."""
    manager = InMemoryManager()
    manager.put(experiment(tmp_path))
    guard = Guard(Authenticator.of_token(TOKEN), Transport(insecure=True), len(TOKEN))
    server = WebServer(TOKEN, "0.0.0.0", guard=guard)
    site = replace(dependencies(manager), instruments=Instruments(Registry()))
    yield await server.serve(site)
    await server.aclose()


async def first_line(port: int, target: str, *headers: str) -> str:
    head = "\r\n".join([f"GET {target} HTTP/1.1", "Connection: close", *headers, "", ""])
    answer = await said(port, head.encode())
    return answer.partition(b"\r\n")[0].decode()


PATHS = sorted(
    {
        f"{API}{route.path}".replace("{trial_id}", "tria0").replace("{name}", "trial.log")
        for route in ROUTES
        if route.method == "GET"
    }
    | {f"{API}/openapi.json", "/metrics"}
)


@pytest.mark.parametrize("target", PATHS)
async def test_nothing_but_the_page_is_shown_to_other_machines(far: int, target: str) -> None:
    assert " 401 " in await first_line(far, target, "Host: box:8080")
    assert " 200 " in await first_line(far, "/", "Host: box:8080")


@pytest.mark.parametrize(
    "host", ["box/?", "box/#", "box/x?y=", "box?", "[::1]/?", "box\\", "x@box/?", ""]
)
@pytest.mark.parametrize("target", [f"{API}/experiments-info", "/metrics"])
async def test_a_strange_host_opens_nothing(far: int, host: str, target: str) -> None:
    line = await first_line(far, target, f"Host: {host}")

    assert " 200 " not in line
    assert " 40" in line


@pytest.mark.parametrize(
    "target",
    [
        f"{API}/experiments-info?/../../", f"//{API}/experiments-info", "/%61pi/v1/nni/version",
        f"/oview/..{API}/version", f"{API}/version%3F", f"{API}/version%00", f"{API}/VERSION",
        "/static/..%2f..%2fsecurity.py", "/static/../../security.py", "/%2e%2e/%2e%2e/etc/passwd",
        "http://box/metrics", "/metrics/", "/x/metrics",
    ],
)  # fmt: skip
async def test_no_way_of_writing_a_path_opens_anything(far: int, target: str) -> None:
    line = await first_line(far, target, "Host: box:8080")

    assert " 200 " not in line


async def test_with_the_token_figures_are_shown(far: int) -> None:
    line = await first_line(far, "/metrics", "Host: box", f"Authorization: Bearer {TOKEN}")

    assert " 200 " in line
