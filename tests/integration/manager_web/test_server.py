"""Listeners on real sockets: ports, live streams, closing."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.ports import Listeners, PortTakenError
from svc_manager.web.listeners.server import WebServer
from tests.support.ports import free_port
from tests.unit.services.manager.web.conftest import (
    API,
    EXPERIMENT,
    TOKEN,
    dependencies,
    experiment,
)
from tests.unit.services.manager.web.in_memory import InMemoryManager


@pytest.fixture
def manager(tmp_path: Path) -> InMemoryManager:
    made = InMemoryManager()
    made.put(experiment(tmp_path))
    return made


@pytest.fixture
async def web(manager: InMemoryManager) -> AsyncIterator[WebServer]:
    server = WebServer(TOKEN)
    await server.serve(dependencies(manager))
    yield server
    await server.aclose()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=60, trust_env=False) as made:
        yield made


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_listener_of_an_experiment_means_that_experiment(
    web: WebServer, client: httpx.AsyncClient
) -> None:
    listeners: Listeners = web  # the port that it implements
    port = free_port()

    await listeners.open_listener(port, EXPERIMENT, "")
    answer = await client.get(f"http://127.0.0.1:{port}{API}/version")

    assert answer.json()["experimentId"] == EXPERIMENT
    assert listeners.urls(port, "") == [f"http://127.0.0.1:{port}"]
    assert listeners.urls(port, "p") == [f"http://127.0.0.1:{port}/p/"]


async def test_small_answers_are_sent_without_waiting_for_more(web: WebServer) -> None:
    bound = await web._bind(0)

    # What asyncio looks at before it sets TCP_NODELAY on accepted connections.
    with bound:
        assert bound.proto == socket.IPPROTO_TCP


@pytest.mark.claim("platform", 58)
@pytest.mark.claim("platform", 59)
async def test_closing_frees_the_port_at_once_and_may_be_repeated(web: WebServer) -> None:
    port = free_port()
    await web.open_listener(port, EXPERIMENT, "")
    assert is_listening(port)

    await web.close_listener(EXPERIMENT)
    await web.close_listener(EXPERIMENT)

    assert not is_listening(port)
    await web.open_listener(port, EXPERIMENT, "")
    assert is_listening(port)


async def test_opening_again_changes_nothing_and_another_port_moves_it(web: WebServer) -> None:
    first, second = free_port(), free_port()
    await web.open_listener(first, EXPERIMENT, "")
    await web.open_listener(first, EXPERIMENT, "")

    await web.open_listener(second, EXPERIMENT, "")

    assert not is_listening(first)
    assert is_listening(second)


@pytest.mark.claim("platform", 28)
async def test_taken_port_names_the_experiment_that_holds_it(web: WebServer) -> None:
    port = free_port()
    await web.open_listener(port, EXPERIMENT, "")

    with pytest.raises(PortTakenError, match=f"port {port} .*experiment {EXPERIMENT}"):
        await web.open_listener(port, "exp00002", "")


@pytest.mark.claim("platform", 28)
async def test_taken_port_names_the_program_that_holds_it(web: WebServer) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        with pytest.raises(PortTakenError, match=rf"pid {os.getpid()}"):
            await web.open_listener(port, EXPERIMENT, "")


@pytest.mark.parametrize("prefix", ["../x", "a b", "/a", "a/", "a?b"])
async def test_prefix_must_be_a_plain_path(web: WebServer, prefix: str) -> None:
    with pytest.raises(InvalidArgumentError, match="url_prefix"):
        await web.open_listener(free_port(), EXPERIMENT, prefix)


async def test_events_arrive_while_the_connection_is_open_and_end_with_the_listener(
    web: WebServer, client: httpx.AsyncClient, manager: InMemoryManager
) -> None:
    port = free_port()
    await web.open_listener(port, EXPERIMENT, "")
    lines: list[str] = []

    async with client.stream("GET", f"http://127.0.0.1:{port}{API}/events?after=latest") as answer:
        stream = answer.aiter_lines()
        assert await anext(stream) == "retry: 1000"
        started = event_pb2.TrialStarted(trial_id="tria7", attempt=1)
        manager.append(EXPERIMENT, event_pb2.Event(trial_started=started))
        async for line in stream:
            lines.append(line)
            if line.startswith("data: "):
                break
        await web.close_listener(EXPERIMENT)
        rest = [line async for line in stream]

    assert "event: trial_started" in lines
    assert "".join(rest) == ""


async def test_client_that_leaves_a_stream_leaves_nothing_behind(
    web: WebServer, client: httpx.AsyncClient
) -> None:
    port = free_port()
    await web.open_listener(port, EXPERIMENT, "")

    async with client.stream("GET", f"http://127.0.0.1:{port}{API}/events") as answer:
        await anext(answer.aiter_lines())
    await web.close_listener(EXPERIMENT)

    # Much sooner than the grace is over, which a forgotten stream would use up.
    async with asyncio.timeout(60) as limit:
        await web.aclose(grace_s=600)
    assert not limit.expired()


async def test_viewed_experiment_is_shown_but_not_changed(
    web: WebServer, client: httpx.AsyncClient, manager: InMemoryManager
) -> None:
    manager.experiments[EXPERIMENT].state = experiment_pb2.EXPERIMENT_STATE_VIEWED
    port = free_port()
    await web.open_listener(port, EXPERIMENT, "")
    base = f"http://127.0.0.1:{port}{API}"

    read = await client.get(f"{base}/check-status")
    changed = await client.put(
        f"{base}/experiment?update_type=MAX_TRIAL_NUM",
        json={"params": {"maxTrialNumber": 3}},
        headers={"Authorization": f"Bearer {TOKEN}"},
    )

    assert read.json()["status"] == "VIEWED"
    assert changed.status_code == 409
