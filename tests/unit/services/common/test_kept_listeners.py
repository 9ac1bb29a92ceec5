"""Sockets that travel between a parent and the runs of its child, over real descriptors."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from svc_common import kept_listeners
from svc_common.kept_listeners import KeptListeners, ListenerKeeper
from tests.support.ports import free_port

NextRun = Callable[[], Awaitable[KeptListeners]]


@pytest.fixture
async def keeper() -> AsyncIterator[ListenerKeeper]:
    keeper = ListenerKeeper()
    yield keeper
    keeper.close()


@pytest.fixture
def next_run(keeper: ListenerKeeper, monkeypatch: pytest.MonkeyPatch) -> Iterator[NextRun]:
    """Return the function that returns the child's end as its next run inherits it."""
    monkeypatch.setattr(kept_listeners, "_ANSWER_S", 60.0)
    runs: list[KeptListeners] = []

    async def inherit() -> KeptListeners:
        descriptor = os.dup(keeper.child_end.fileno())
        runs.append(await asyncio.to_thread(KeptListeners.inherited, descriptor))
        return runs[-1]

    yield inherit
    for run in runs:
        run.close()


def listening() -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Not a port of outgoing connections: one to itself would find a port open that is closed.
    bound.bind(("127.0.0.1", free_port()))
    bound.listen()
    return bound


def port_of(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


async def until(condition: Callable[[], bool]) -> None:
    """Let the parent's loop read what has been sent."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the parent has not read what was sent")


def connects(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def can_listen(port: int) -> bool:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", port))
            other.listen()
        except OSError:
            return False
        return True


async def test_socket_goes_on_listening_after_the_child_and_reaches_the_next_run(
    keeper: ListenerKeeper, next_run: NextRun
) -> None:
    bound = listening()
    port = port_of(bound)
    first = await next_run()
    first.keep(bound)
    await until(lambda: port in keeper.ports)
    first.close()
    bound.close()  # the child has died

    assert not can_listen(port)
    assert connects(port)  # the connection waits in the backlog
    taken = (await next_run()).take(port)

    assert taken is not None
    with taken:
        assert taken.proto == socket.IPPROTO_TCP
        waiting, _ = taken.accept()
        waiting.close()


async def test_dropped_port_is_free_at_once(keeper: ListenerKeeper, next_run: NextRun) -> None:
    run = await next_run()
    bound = listening()
    port = port_of(bound)
    run.keep(bound)
    await until(lambda: port in keeper.ports)

    run.drop(bound)
    bound.close()

    assert not connects(port)
    assert can_listen(port)  # although the parent has not read the message yet
    await until(lambda: port not in keeper.ports)
    assert (await next_run()).take(port) is None


async def test_next_run_drops_what_no_experiment_uses(
    keeper: ListenerKeeper, next_run: NextRun
) -> None:
    run = await next_run()
    used, unused = listening(), listening()
    ports = {port_of(used), port_of(unused)}
    for bound in (used, unused):
        run.keep(bound)
    await until(lambda: keeper.ports == ports)
    used.close()
    gone = port_of(unused)
    unused.close()

    following = await next_run()
    following.drop_others(frozenset(ports - {gone}))

    await until(lambda: keeper.ports == ports - {gone})
    assert can_listen(gone)
    kept = following.take((ports - {gone}).pop())
    assert kept is not None
    kept.close()


async def test_list_that_a_killed_run_did_not_read_is_skipped(
    keeper: ListenerKeeper, next_run: NextRun
) -> None:
    run = await next_run()
    bound = listening()
    port = port_of(bound)
    run.keep(bound)
    await until(lambda: port in keeper.ports)
    keeper.child_end.send(b"list of-a-killed-run")

    taken = (await next_run()).take(port)

    assert taken is not None
    taken.close()
    bound.close()


async def test_kept_again_replaces_the_earlier_socket(
    keeper: ListenerKeeper, next_run: NextRun
) -> None:
    run = await next_run()
    bound = listening()
    for _ in range(2):
        run.keep(bound)
    await until(lambda: port_of(bound) in keeper.ports)

    taken = (await next_run()).take(port_of(bound))

    assert taken is not None
    taken.close()
    bound.close()


async def test_without_a_parent_nothing_is_kept() -> None:
    run = KeptListeners.inherited(-1)
    bound = listening()

    run.keep(bound)
    run.drop_others(frozenset())
    run.drop(bound)

    assert run.take(port_of(bound)) is None
    assert connects(port_of(bound))  # its owner closes it
    bound.close()


async def test_parent_that_is_gone_costs_nothing_but_the_keeping(
    keeper: ListenerKeeper, next_run: NextRun
) -> None:
    run = await next_run()
    keeper.close()
    bound = listening()

    run.keep(bound)
    run.drop(bound)

    assert not connects(port_of(bound))
    bound.close()
