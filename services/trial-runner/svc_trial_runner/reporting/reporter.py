"""Delivery of reports to the managers: in order, in batches, on disk until acknowledged."""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from svc_common.errors import OutOfRoomError, UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Inbox
from svc_common.tasks import TaskOwner
from svc_trial_runner.converters import reports_message
from svc_trial_runner.ports import ReportSpool

_BATCH_BYTES: Final = 1024 * 1024
"""Largest batch of reports in one message; the bus takes 8 MB."""
_LINGER_S: Final = 0.002
"""Least time between two messages of an experiment, unless a last report waits: a trial that
reports thousands of metrics a second costs hundreds of messages, and ends are not delayed."""
ROOM_BYTES: Final = 64 * 1024 * 1024
"""Reports held in memory before trials must wait: reached when the bus is away for long."""
FULL_RETRY_S: Final = 1.0
"""Delay between two tries while the bus is out of room: an operator has to free space."""


class _Outbox:
    """Queue of one experiment's unsent reports, with its timer and state of sending."""

    __slots__ = ("entries", "last_reports", "sending", "sent_at_s", "spooled", "timer")

    def __init__(self) -> None:
        self.entries: deque[tuple[bytes, Callable[[], None] | None]] = deque()
        self.spooled = 0
        """Number of the oldest reports that are in the spool."""
        self.last_reports = 0
        self.sending = False
        self.sent_at_s = 0.0
        self.timer: asyncio.Handle | None = None


class Reporter:
    """Sender of trials' reports to managers' INBOXes, in order and in batches.

    While one message of an experiment is on its way, further reports collect for the next; so
    order is kept and load makes batches. A report is in the spool before it is sent, a last report
    before `add` returns: a crash loses only metrics of attempts that are lost with it.

    Args:
        inbox: of the bus.
        spool: keeps reports across restarts of the agent.
        tasks: owner of the sending tasks.
        runner_id: of this agent.
        boot_id: of this process.
        room_bytes: reports held in memory before trials must wait.
        full_retry_s: delay between two tries while the bus is out of room, in seconds.
    """

    def __init__(
        self,
        inbox: Inbox,
        spool: ReportSpool,
        tasks: TaskOwner,
        runner_id: str,
        boot_id: str,
        *,
        room_bytes: int = ROOM_BYTES,
        full_retry_s: float = FULL_RETRY_S,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._inbox = inbox
        self._spool = spool
        self._tasks = tasks
        self._runner_id = runner_id
        self._boot_id = boot_id
        self._room_bytes = room_bytes
        self._full_retry_s = full_retry_s
        self._outboxes: dict[str, _Outbox] = {}
        self._waiting = 0
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._messages = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def add(
        self, experiment_id: str, entry: bytes, on_arrived: Callable[[], None] | None = None
    ) -> None:
        """Queue an encoded report for an experiment's manager and schedule its sending.

        Args:
            experiment_id: of the manager to send to.
            entry: the report, made by `converters.report_entry`.
            on_arrived: given for a last report: called once when it is durable in the inbox.
        """
        outbox = self._outboxes.get(experiment_id)
        if outbox is None:
            outbox = self._outboxes[experiment_id] = _Outbox()
        outbox.entries.append((entry, on_arrived))
        self._waiting += 1
        self._bytes += len(entry)
        if self._waiting == 1:
            self._idle.clear()
        if self._bytes > self._room_bytes:
            self._room.clear()
        if on_arrived is not None:
            outbox.last_reports += 1
            self._append(experiment_id, outbox)
        self._schedule(experiment_id, outbox)

    def flush(self) -> None:
        """Write all reports to the spool now."""
        for experiment_id, outbox in self._outboxes.items():
            self._append(experiment_id, outbox)

    def forget(self, experiment_id: str) -> None:
        """Drop an experiment's report queue if it is empty."""
        outbox = self._outboxes.get(experiment_id)
        if outbox is not None and not outbox.entries:
            del self._outboxes[experiment_id]

    @property
    def has_room(self) -> bool:
        """True if a trial may report now; the agent's own reports always fit."""
        return self._room.is_set()

    async def wait_room(self) -> None:
        """Wait until trials may report again."""
        await self._room.wait()

    async def wait_idle(self) -> None:
        """Wait until all reports so far are acknowledged."""
        await self._idle.wait()

    def _append(self, experiment_id: str, outbox: _Outbox) -> None:
        fresh = islice(outbox.entries, outbox.spooled, None)
        self._spool.append([(experiment_id, entry) for entry, _ in fresh])
        outbox.spooled = len(outbox.entries)

    def _schedule(self, experiment_id: str, outbox: _Outbox) -> None:
        """Schedule the next message of reports: at once for a last report, else after a delay."""
        if outbox.sending:
            return
        if outbox.timer is not None:
            if not outbox.last_reports:
                return
            outbox.timer.cancel()
        since_s = self._loop.time() - outbox.sent_at_s
        if outbox.last_reports or since_s > _LINGER_S:
            outbox.timer = self._loop.call_soon(self._start, experiment_id, outbox)
        else:
            outbox.timer = self._loop.call_later(
                _LINGER_S - since_s, self._start, experiment_id, outbox
            )

    def _start(self, experiment_id: str, outbox: _Outbox) -> None:
        outbox.timer = None
        outbox.sending = True
        self._tasks.start(self._send(experiment_id, outbox), f"reports {experiment_id}")

    async def _send(self, experiment_id: str, outbox: _Outbox) -> None:
        """Spool and publish a batch of an experiment's reports; go on while last reports wait."""
        while outbox.entries:
            self._append(experiment_id, outbox)
            batch = _next_batch(outbox)
            try:
                await self._publish(experiment_id, batch)
            except UnavailableError:
                get_logger().info("reports stay in the spool", experiment=experiment_id)
                return
            self._arrived(experiment_id, outbox, len(batch))
            if not outbox.last_reports:
                break
        outbox.sending = False
        outbox.sent_at_s = self._loop.time()
        if outbox.entries:
            self._schedule(experiment_id, outbox)

    async def _publish(self, experiment_id: str, batch: list[bytes]) -> None:
        """Publish a batch of reports; repeat it while the bus is out of room.

        Raises:
            UnavailableError: the bus was closed.
        """
        self._messages += 1
        message_id = f"{self._boot_id}-{self._messages}"
        message = reports_message(self._runner_id, self._boot_id, batch)
        waits = False
        while True:
            try:
                await self._inbox.publish(
                    experiment_id, self._runner_id, message, message_id=message_id
                )
            except OutOfRoomError as error:
                if not waits:
                    get_logger().warning(
                        "reports wait for room", experiment=experiment_id, error=error.message
                    )
                waits = True
                await asyncio.sleep(self._full_retry_s)
            else:
                return

    def _arrived(self, experiment_id: str, outbox: _Outbox, count: int) -> None:
        self._spool.acknowledge(experiment_id, count)
        outbox.spooled -= count
        calls = []
        for _ in range(count):
            entry, call = outbox.entries.popleft()
            calls.append(call)
            self._bytes -= len(entry)
        if self._bytes <= self._room_bytes:
            self._room.set()
        self._waiting -= count
        if self._waiting == 0:
            self._idle.set()
        for call in calls:
            if call is not None:
                outbox.last_reports -= 1
                call()


def _next_batch(outbox: _Outbox) -> list[bytes]:
    batch: list[bytes] = []
    size = 0
    for entry, _ in outbox.entries:
        size += len(entry)
        if batch and size > _BATCH_BYTES:
            break
        batch.append(entry)
    return batch
