"""Persistent SSH connection to one machine: reconnects with back-off, renews port forwards."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from svc_trial_runner.fleet.adapters.remote.errors import MachineError
from svc_trial_runner.fleet.adapters.remote.machines import Machine
from svc_trial_runner.fleet.adapters.remote.sessions import Session
from svc_trial_runner.fleet.ports import InstallationEndpoints

SHORTEST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
SETTLED_S: Final = 30.0
"""A connection that has lasted for so long is no failed try."""

OpenSession = Callable[[Machine, Callable[[], None]], Awaitable[Session]]
"""Opens a session of a machine; the function is called when a watched process ends."""


def pause_s(failures: int) -> float:
    """Return the time before the next try after a number of failures in succession."""
    return float(min(SHORTEST_PAUSE_S * 2 ** min(failures - 1, 10), LONGEST_PAUSE_S))


class MachineLink:
    """SSH connection to one machine that reconnects with back-off when it is cut.

    Once used it connects by itself, after pauses that grow, as long as an error is not permanent: a
    wrong password that is tried again and again locks accounts. `session(retry=True)` tries again.

    Args:
        machine: the entry.
        open_session: opens a session.
        endpoints: of bus and manager, for the forwards.
        on_change: called when the machine is lost or found, or an agent ends.
    """

    def __init__(
        self,
        machine: Machine,
        open_session: OpenSession,
        endpoints: InstallationEndpoints,
        on_change: Callable[[], None],
    ) -> None:
        self.machine = machine
        self.error: MachineError | None = None
        """Of the last try to connect; None: it succeeded, or none was made."""
        self._open_session = open_session
        self._endpoints = endpoints
        self._on_change = on_change
        self._session: Session | None = None
        self._tried = asyncio.Event()
        """Set while the result of a try is known."""
        self._retry = asyncio.Event()
        self._forwards_wanted = False
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def session(self, *, retry: bool = False) -> Session:
        """Return the SSH session; connect first, or again with `retry`; raise if not connected.

        The first call waits for the first try; later ones do not wait for a machine that is gone.

        Args:
            retry: connect now if the last try failed, and wait for its result.

        Raises:
            MachineError: the machine is not connected.
        """
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._run(), name=f"link to {self.machine.address}")
        if retry and self.error is not None and self._session is None:
            self._tried.clear()
            self._retry.set()
        await self._tried.wait()
        if self._session is None:
            raise self.error or MachineError(
                self.machine, "host", "is not connected: the link is closed", self.machine.host
            )
        return self._session

    @property
    def has_forwards(self) -> bool:
        """Whether the folder of sockets was opened and not removed since."""
        return self._forwards_wanted

    async def forwards(self) -> str:
        """Open the forwards, now and at each reconnection; return the folder of their sockets.

        Raises:
            MachineError: the machine is not connected, or refuses.
        """
        session = await self.session()
        self._forwards_wanted = True
        return await session.open_forwards(self._endpoints)

    async def close_forwards(self) -> None:
        """Remove the folder of sockets, and open none any more.

        Raises:
            MachineError: the machine is not connected.
        """
        await (await self.session()).close_folder()
        self._forwards_wanted = False

    async def aclose(self) -> None:
        """Close the connection and stop reconnecting; may be called twice."""
        self._closed = True
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._tried.set()

    async def _run(self) -> None:
        """Keep the machine connected until cancelled: connect, wait for the cut, pause."""
        failures, loop = 0, asyncio.get_running_loop()
        while True:
            try:
                session = await self._connect()
            except MachineError as error:
                failures += 1
                self._report(None, error)
                await self._pause(None if error.permanent else pause_s(failures))
                continue
            except Exception as error:  # noqa: BLE001 - who waits for the machine has to hear of it
                failures += 1
                self._report(None, self._unexpected(error))
                await self._pause(pause_s(failures))
                continue
            connected_s = loop.time()
            try:
                self._report(session, None)
                await session.wait_closed()
            finally:
                self._session = None
                await session.aclose()
            # A machine may take each login and then cut it.
            failures = 1 if loop.time() - connected_s >= SETTLED_S else failures + 1
            cut = MachineError(
                self.machine,
                "host",
                "is not connected: the connection was cut",
                self.machine.host,
                "it is opened again; see that machine and network are up if this lasts",
            )
            self._report(None, cut)
            await self._pause(pause_s(failures))

    def _unexpected(self, error: Exception) -> MachineError:
        """Convert an unexpected exception to the error of a machine."""
        words = f"cannot be used: {type(error).__name__}: {str(error)[:200]}"
        return MachineError(self.machine, "host", words, self.machine.host, "it is tried again")

    async def _connect(self) -> Session:
        session = await self._open_session(self.machine, self._on_change)
        try:
            if self._forwards_wanted:
                await session.open_forwards(self._endpoints)
        except BaseException:
            await session.aclose()
            raise
        return session

    def _report(self, session: Session | None, error: MachineError | None) -> None:
        self._session = session
        self.error = error
        self._retry.clear()
        self._tried.set()
        self._on_change()

    async def _pause(self, time_s: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(time_s):
                await self._retry.wait()
