"""Asyncio tasks: an owner of long-running ones, and waits for the first of several to complete."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
_AnyFuture: TypeAlias = "asyncio.Future[Any]"
"""Futures of several types in one sequence; `Future` is invariant."""


class StoppedError(Exception):
    """Error: the stop condition of `result_unless` was met before the work was done."""


async def wait_first(*waits: Awaitable[object]) -> None:
    """Wait until one of several awaitables completes; cancel the others and wait for their end.

    The awaitables are cancelled, too, when the caller is. Pass `asyncio.shield(future)` for a
    future that must go on.

    Raises:
        Exception: the error of an awaitable that completed with one.
    """
    await _first_of([asyncio.ensure_future(wait) for wait in waits])


async def result_unless(stop: Awaitable[object], work: Awaitable[T]) -> T:
    """Return the result of `work`; if `stop` completes first, cancel `work`, raise StoppedError.

    If both complete at the same time, the result wins.

    Raises:
        StoppedError: `stop` completed first; `work` was cancelled and has ended.
        Exception: the error of `work`, or of `stop` if that came first.
    """
    working = asyncio.ensure_future(work)
    done = await _first_of([working, asyncio.ensure_future(stop)])
    if working not in done:
        raise StoppedError
    return working.result()


async def _first_of(futures: Sequence[_AnyFuture]) -> set[_AnyFuture]:
    """Wait for the first of the futures, cancel the others; return those that completed.

    Raises:
        Exception: the error of the first of them, in the order given, if that has one.
    """
    try:
        done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
    next(future for future in futures if future in done).result()
    return done


class TaskOwner:
    """Owner of background tasks: reports their failures, and cancels them at its close.

    A `TaskGroup` bounds tasks by a block; an owner bounds them by the lifetime of an object, and
    the failure of one does not cancel the others: `on_failure` decides.

    Args:
        on_failure: called on the loop with name and error of a task that raised.
    """

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Start a coroutine as a named task owned by this object; raise if the owner is closed.

        Raises:
            RuntimeError: the owner is closed.
        """
        if self._closed:
            work.close()
            raise RuntimeError(f"task {name!r} started after its owner was closed")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def __len__(self) -> int:
        """Return the number of running tasks."""
        return len(self._tasks)

    async def drain(self) -> None:
        """Wait until all tasks have ended, without cancelling them."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def aclose(self) -> None:
        """Cancel all running tasks and wait until they have ended; may be called twice."""
        self._closed = True
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_failure(task.get_name(), error)
