"""Callers' turns: a caller with many slow requests delays itself, not the others."""

import asyncio

import pytest

from svc_common.access.current_call import serving
from svc_common.access.roles import Caller, Role
from svc_common.errors import ResourceExhaustedError
from svc_manager.adapters.caller_turns import TURNS, WAITING_LIMIT, CallerTurns


class Work:
    """Work at the dispatcher that ends when it is allowed to."""

    def __init__(self, turns: CallerTurns) -> None:
        self._turns = turns
        self.running: list[str] = []
        self.done: list[str] = []
        self.release = asyncio.Event()

    def start(self, caller: str, request: str) -> asyncio.Task[None]:
        with serving(Caller(caller, Role.USER, "token")):  # the task keeps this call
            return asyncio.create_task(self._run(request))

    async def _run(self, request: str) -> None:
        async with self._turns.turn():
            self.running.append(request)
            await self.release.wait()
            self.done.append(request)


async def all_started() -> None:
    """Let each task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_others_do_not_wait_for_the_requests_of_one_caller() -> None:
    work = Work(CallerTurns())
    tasks = [work.start("mallory", f"mallory {number}") for number in range(20)]
    await all_started()

    tasks.append(work.start("alice", "alice"))
    await all_started()

    assert work.running == ["mallory 0", "mallory 1", "alice"]
    work.release.set()
    await asyncio.gather(*tasks)


async def test_requests_of_a_caller_run_in_their_order() -> None:
    work = Work(CallerTurns())
    tasks = [work.start("alice", str(number)) for number in range(6)]
    await all_started()

    work.release.set()
    await asyncio.gather(*tasks)

    assert work.done == ["0", "1", "2", "3", "4", "5"]


async def test_caller_with_too_many_waiting_requests_is_refused_and_others_are_not() -> None:
    work = Work(CallerTurns())
    tasks = [work.start("mallory", "m") for _ in range(TURNS + WAITING_LIMIT)]
    await all_started()

    with pytest.raises(ResourceExhaustedError, match="32 requests of this caller"):
        await work.start("mallory", "one more")
    tasks.append(work.start("alice", "alice"))
    await all_started()

    assert "alice" in work.running
    work.release.set()
    await asyncio.gather(*tasks)
    await work.start("mallory", "later")
    assert work.done[-1] == "later"


async def test_request_that_is_cancelled_while_it_waits_gives_its_place_back() -> None:
    work = Work(CallerTurns())
    tasks = [work.start("alice", str(number)) for number in range(TURNS + WAITING_LIMIT)]
    await all_started()

    tasks.pop().cancel()
    await all_started()
    tasks.append(work.start("alice", "in its place"))
    work.release.set()
    await asyncio.gather(*tasks)

    assert work.done[-1] == "in its place"


async def test_failed_request_ends_its_turn() -> None:
    turns = CallerTurns()

    for _ in range(TURNS + 1):
        with pytest.raises(ValueError, match="broken"):
            async with asyncio.timeout(10.0), turns.turn():
                raise ValueError("broken")
