"""Conformance of every `Listeners`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc_common.messaging.memory import InMemoryBus
from svc_manager.ports import Listeners, PortTakenError
from svc_manager.web.dependencies import WebDependencies
from svc_manager.web.listeners.server import WebServer
from tests.support.ports import free_port
from tests.unit.services.manager.world import InMemoryListeners, world_on


@pytest.fixture(params=["memory", "web"])
async def listeners(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Listeners]:
    if request.param == "memory":
        yield InMemoryListeners()
        return
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        manager = world.manager
        web = WebServer("token")
        await web.serve(WebDependencies(manager.experiments, manager.trials, "1", "127.0.0.1:1"))
        yield web
        await web.aclose()


@pytest.fixture
def port() -> int:
    """A port that is free."""
    return free_port()


async def test_opening_the_same_listener_again_changes_nothing(
    listeners: Listeners, port: int
) -> None:
    await listeners.open_listener(port, "first", "p")

    await listeners.open_listener(port, "first", "p")

    assert listeners.urls(port, "p")[0].startswith(f"http://127.0.0.1:{port}/p")


async def test_a_port_of_another_experiment_is_refused_by_its_name(
    listeners: Listeners, port: int
) -> None:
    await listeners.open_listener(port, "first", "")

    with pytest.raises(PortTakenError, match=f"{port} is in use by experiment first") as refusal:
        await listeners.open_listener(port, "second", "")

    assert (refusal.value.port, refusal.value.holder) == (port, "experiment first")


async def test_a_closed_port_is_free_at_once(listeners: Listeners, port: int) -> None:
    await listeners.open_listener(port, "first", "")

    await listeners.close_listener("first")

    await listeners.open_listener(port, "second", "")
    with pytest.raises(PortTakenError):
        await listeners.open_listener(port, "third", "")


async def test_closing_what_is_not_open_changes_nothing(listeners: Listeners, port: int) -> None:
    await listeners.close_listener("unknown")

    await listeners.open_listener(port, "another", "")
    assert listeners.urls(port, "")
