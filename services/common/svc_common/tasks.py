"""Owner of the asyncio tasks that live as long as an object does."""

import asyncio
from collections.abc import Callable, Coroutine


class TaskOwner:
    """Starts named tasks, tells of their failures, and ends them all.

    A `TaskGroup` bounds tasks by a block; this bounds them by the life of an object, and a failure
    of one does not cancel its siblings: `on_failure` decides.

    Args:
        on_failure: called on the loop with the name and the error of a task that raised.
    """

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Run `work` until it ends or `aclose` cancels it.

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
        """How many tasks are running."""
        return len(self._tasks)

    async def drain(self) -> None:
        """Wait until all tasks have ended by themselves."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def aclose(self) -> None:
        """Cancel what is running and wait for its end; may be called twice."""
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
