"""Links to machines that go away and come back."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

from svc_trial_runner.fleet.adapters.remote import links
from svc_trial_runner.fleet.adapters.remote.connections import open_connection
from svc_trial_runner.fleet.adapters.remote.errors import MachineError
from svc_trial_runner.fleet.adapters.remote.links import (
    MachineLink,
    pause_s,
)
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.remote.sessions import Session
from svc_trial_runner.fleet.ports import InstallationEndpoints
from tests.support.greeters import greetings, open_greeters
from tests.support.remote_machines import PASSWORD, USER, Machines


class Opened:
    """Link to the machine of a world, with an event for its changes."""

    def __init__(self, world: Machines, password: str, endpoints: InstallationEndpoints) -> None:
        self.world = world
        self.changed = asyncio.Event()
        self.tries = 0
        self.password = password
        machine = Machine(0, "127.0.0.1", USER, world.servers[0].port, password=password)
        self.key = os.urandom(4).hex()
        self.link = MachineLink(machine, self._open, endpoints, self.changed.set)

    async def _open(self, machine: Machine, on_end: Callable[[], None]) -> Session:
        self.tries += 1
        connection = await open_connection(machine, self.world.known_hosts, [])
        return Session(machine, connection, self.key, on_end)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a property holds after a change of the link."""
        while not holds():
            await self.changed.wait()
            self.changed.clear()

    async def cut(self) -> None:
        """Kill the server, and wait until the link has noticed."""
        self.world.servers[0].kill()
        await self.until(lambda: self.link.error is not None)


def run(
    folder: Path,
    work: Callable[[Opened], Awaitable[None]],
    password: str = PASSWORD,
    *,
    starts: bool = True,
) -> None:
    """Run work with a link to a new machine."""
    world = Machines(folder)

    async def case() -> None:
        async with asyncio.timeout(120), open_greeters() as endpoints:
            opened = Opened(world, password, endpoints)
            try:
                await work(opened)
            finally:
                await opened.link.aclose()
                await opened.link.aclose()

    try:
        if starts:
            world.start()
        else:
            world.servers[0].port = 9
        asyncio.run(case())
    finally:
        world.close()


def test_pauses_grow_to_a_limit() -> None:
    pauses_s = [pause_s(failures) for failures in (1, 2, 3, 4, 5, 6, 7, 8, 1000)]

    assert pauses_s == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_error_that_no_rule_knows_reaches_those_who_wait() -> None:
    async def refuse(machine: Machine, on_end: Callable[[], None]) -> Session:
        raise LookupError(f"{machine.host} is odd")

    async def case() -> None:
        endpoints = InstallationEndpoints("nats://127.0.0.1:9", "127.0.0.1:9")
        link = MachineLink(Machine(0, "h", USER, 22), refuse, endpoints, lambda: None)
        async with asyncio.timeout(120):
            with pytest.raises(MachineError, match="cannot be used: LookupError: h is odd"):
                await link.session()
        await link.aclose()

    asyncio.run(case())


class CutSession:
    """Session that is cut as soon as it is open."""

    async def wait_closed(self) -> None:
        """Return at once."""

    async def aclose(self) -> None:
        """Do nothing."""


def test_machine_that_cuts_each_connection_is_tried_less_and_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures: list[int] = []

    def pause_s(count: int) -> float:
        failures.append(count)
        return 0.0 if count < 3 else 3600.0

    async def cut(machine: Machine, on_end: Callable[[], None]) -> Session:
        return cast("Session", CutSession())

    async def case() -> None:
        endpoints = InstallationEndpoints("nats://127.0.0.1:9", "127.0.0.1:9")
        changed = asyncio.Event()
        link = MachineLink(Machine(0, "h", USER, 22), cut, endpoints, changed.set)
        async with asyncio.timeout(120):
            with pytest.raises(MachineError, match="the connection was cut"):
                await link.session()
            while len(failures) < 3:
                await changed.wait()
                changed.clear()
        await link.aclose()

    monkeypatch.setattr(links, "pause_s", pause_s)
    asyncio.run(case())

    assert failures == [1, 2, 3]


def test_forwards_are_renewed_after_a_cut_under_a_new_name(tmp_path: Path) -> None:
    async def work(opened: Opened) -> None:
        folder = await opened.link.forwards()
        first = (Path(folder) / "current").read_text()
        await opened.cut()
        opened.world.servers[0].start()

        await opened.until(lambda: opened.link.error is None)

        assert (Path(folder) / "current").read_text() != first
        assert await greetings(folder) == ["bus", "manager"]
        await opened.link.close_forwards()
        assert not opened.link.has_forwards
        assert not Path(folder).exists()

    run(tmp_path, work)


def test_machine_that_is_gone_does_not_hold_the_caller(tmp_path: Path) -> None:
    async def work(opened: Opened) -> None:
        await opened.link.session()
        await opened.cut()

        with pytest.raises(MachineError):
            await opened.link.session()

    run(tmp_path, work)


def test_closed_port_is_tried_again_by_itself(tmp_path: Path) -> None:
    async def work(opened: Opened) -> None:
        with pytest.raises(MachineError, match="no SSH server listens"):
            await opened.link.session()

        await opened.until(lambda: opened.tries > 1)

    run(tmp_path, work, starts=False)


def test_wrong_password_is_tried_again_on_demand_only(tmp_path: Path) -> None:
    async def work(opened: Opened) -> None:
        for _ in range(3):
            with pytest.raises(MachineError, match="was refused"):
                await opened.link.session()
        assert opened.tries == 1

        with pytest.raises(MachineError, match="was refused"):
            await opened.link.session(retry=True)
        assert opened.tries == 2

    run(tmp_path, work, password="wrong")


def test_closed_link_connects_no_more(tmp_path: Path) -> None:
    async def work(opened: Opened) -> None:
        await opened.link.session()
        await opened.link.aclose()

        with pytest.raises(MachineError, match="is not connected"):
            await opened.link.session()
        for _ in range(10):  # turns of the loop in which a task would begin
            await asyncio.sleep(0)
        assert opened.tries == 1

    run(tmp_path, work)


class ScriptedSession(CutSession):
    """Session that is cut on demand, and whose forwards can fail."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.cut = asyncio.Event()
        self.closed = False
        self.opened = 0

    async def wait_closed(self) -> None:
        await self.cut.wait()

    async def open_forwards(self, endpoints: InstallationEndpoints) -> str:
        self.opened += 1
        if self.failure is not None:
            raise self.failure
        return "/tmp/folder"

    async def close_folder(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        self.closed = True


MACHINE = Machine(0, "h", USER, 22)


def scripted(*sessions: ScriptedSession | Exception) -> tuple[MachineLink, asyncio.Event]:
    """Return a link that opens sessions one after another, and an event of its changes."""
    rest = list(sessions)
    changed = asyncio.Event()

    async def open_session(machine: Machine, on_end: Callable[[], None]) -> Session:
        following = rest.pop(0)
        if isinstance(following, Exception):
            raise following
        return cast("Session", following)

    endpoints = InstallationEndpoints("nats://127.0.0.1:9", "127.0.0.1:9")
    return MachineLink(MACHINE, open_session, endpoints, changed.set), changed


def error_of(link: MachineLink) -> MachineError | None:
    """Return the error of the last try; a call, since it changes while a test waits."""
    return link.error


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of failures before each pause, none of which takes time."""
    failures: list[int] = []

    def pause_s(count: int) -> float:
        failures.append(count)
        return 0.0

    monkeypatch.setattr(links, "pause_s", pause_s)
    return failures


async def test_session_whose_forwards_cannot_be_renewed_is_closed(no_pauses: list[int]) -> None:
    refusal = MachineError(MACHINE, "host", "refuses to forward", permanent=True)
    first, second = ScriptedSession(), ScriptedSession(refusal)
    link, changed = scripted(first, second)
    async with asyncio.timeout(30):
        had_forwards = link.has_forwards
        assert await link.forwards() == "/tmp/folder"
        assert (had_forwards, link.has_forwards) == (False, True)
        first.cut.set()
        while error_of(link) is not refusal:
            await changed.wait()
            changed.clear()

        with pytest.raises(MachineError, match="refuses to forward"):
            await link.session()
    await link.aclose()

    assert (first.closed, second.closed, second.opened) == (True, True, 1)


async def test_forwards_that_are_not_wanted_any_more_are_not_renewed(
    no_pauses: list[int],
) -> None:
    first, second = ScriptedSession(), ScriptedSession()
    link, changed = scripted(first, second)
    async with asyncio.timeout(30):
        await link.forwards()
        await link.close_forwards()
        assert not link.has_forwards
        first.cut.set()
        await link.session()
        while not first.closed or link.error is not None:
            await changed.wait()
            changed.clear()
        assert await link.session() is cast("Session", second)
    await link.aclose()

    assert (first.opened, second.opened, second.closed) == (1, 0, True)


async def test_connection_that_lasted_is_no_failed_try(
    no_pauses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "SETTLED_S", 0.0)
    refusal = MachineError(MACHINE, "host", "is away")
    sessions = [ScriptedSession(), ScriptedSession()]
    for session in sessions:
        session.cut.set()
    final = ScriptedSession()
    link, changed = scripted(refusal, refusal, *sessions, final)
    async with asyncio.timeout(30):
        with pytest.raises(MachineError, match="is away"):
            await link.session()
        while len(no_pauses) < 4 or link.error is not None:
            await changed.wait()
            changed.clear()
    await link.aclose()

    assert no_pauses == [1, 2, 1, 1]


async def test_words_of_an_unexpected_error_are_shortened_to_200_characters() -> None:
    link, _ = scripted(LookupError("a" * 300))

    async with asyncio.timeout(30):
        with pytest.raises(MachineError) as caught:
            await link.session()
    await link.aclose()

    assert caught.value.rule == f"cannot be used: LookupError: {'a' * 200}"
    assert (caught.value.value, caught.value.remedy) == ("h", "it is tried again")
    assert not caught.value.permanent


async def test_cut_is_reported_with_a_remedy() -> None:
    session = ScriptedSession()
    link, changed = scripted(session)
    async with asyncio.timeout(30):
        assert await link.session() is cast("Session", session)
        assert error_of(link) is None
        changed.clear()
        session.cut.set()
        await changed.wait()

    error = error_of(link)
    assert error is not None
    assert error.rule == "is not connected: the connection was cut"
    assert "it is opened again" in error.remedy
    await link.aclose()


async def test_link_that_was_never_used_is_closed() -> None:
    link, _ = scripted()

    await link.aclose()

    with pytest.raises(MachineError, match="the link is closed"):
        await link.session()
