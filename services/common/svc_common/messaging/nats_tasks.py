"""`TaskQueue` on a JetStream work queue, pulled without polling.

A pool has two consumers: of retried trials, whose tasks come first, and of all others. A grant
becomes a pull request at each that stands at the server until enough tasks have come or it expires;
then its rest is requested again. Requests are also repeated after a reconnection, and by a watchdog
if the server has dropped one without a status message.
"""

import asyncio
import itertools
from typing import Final

from svc_common import subjects
from svc_common.errors import UnavailableError
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.limits import ACK_WAIT_S
from svc_common.messaging.nats_jetstream import (
    ANSWER_TIMEOUT_S,
    CONSUMER_NOT_FOUND,
    FIRST_RETRY_S,
    LAST_RETRY_S,
    NO_MESSAGE_FOUND,
    JetStream,
    JetStreamError,
)
from svc_common.messaging.nats_pulls import OVERDUE_S, StandingPulls
from svc_common.messaging.nats_requests import (
    DisconnectedError,
    Headers,
    NoRespondersError,
    RequestTimeoutError,
)
from svc_common.messaging.ports import Task

_LOOK_S: Final = 0.5
"""Longest wait for the answer whether there are retried tasks, before others are requested: the
answer may be lost, or the server may let the request stand if another agent was faster."""
_FIRST_ACK_TIMEOUT_S: Final = 0.25
"""Wait for the answer to an acknowledgement before it is repeated; doubled each time."""
_WAITING_LIMIT: Final = 50_000
"""Pull requests that may stand at a pool: 10^3 agents with some dozens each."""
_ACK: Final = b"+ACK"
_NAK: Final = b"-NAK"
_PROGRESS: Final = b"+WPI"
_TERM: Final = b"+TERM"
_MESSAGE_ID: Final = "Nats-Msg-Id"


class NatsTaskQueue:
    """`TaskQueue` over NATS: the stream `TASKS` with two durable consumers per pool.

    Args:
        jetstream: of an open connection.
        confined: this user of the bus may not make consumers; publishers to a pool do.
    """

    def __init__(self, jetstream: JetStream, *, confined: bool = False) -> None:
        self._js = jetstream
        self._confined = confined
        self._opened: set[str] = set()

    async def publish(
        self, pool: str, payload: bytes, *, message_id: str, ahead: bool = False
    ) -> int:
        """Queue a task, once per message id, first if `ahead`; return its sequence."""
        await self.open_pool(pool)
        subject = subjects.retry_subject(pool) if ahead else subjects.task_subject(pool)
        return await self._js.publish(subject, payload, {_MESSAGE_ID: message_id})

    async def delete(self, sequence: int) -> None:
        """Delete a task from the stream by its sequence; do nothing if it is gone already."""
        request: dict[str, object] = {"seq": sequence, "no_erase": True}
        try:
            await self._js.api(f"STREAM.MSG.DELETE.{subjects.STREAM_TASKS}", request)
        except JetStreamError as error:
            if error.code not in _GONE:
                raise

    async def pull(self, pool: str) -> "NatsTaskFeed":
        """Return a feed of a pool's tasks; create the pool's consumers if this user may."""
        if not self._confined:
            await self._make_consumers(pool)
        return NatsTaskFeed(self._js, pool)

    async def open_pool(self, pool: str) -> None:
        """Create the consumers of a pool's tasks once, so that agents can pull; may be repeated."""
        if pool in self._opened:
            return
        await self._make_consumers(pool)
        self._opened.add(pool)

    async def close_pool(self, pool: str) -> None:
        """Delete a pool's consumers and tasks; do nothing if there are none."""
        self._opened.discard(pool)
        for consumer, subject in _consumers(pool):
            try:
                await self._js.api(f"CONSUMER.DELETE.{subjects.STREAM_TASKS}.{consumer}", {})
            except JetStreamError as error:
                if error.code != CONSUMER_NOT_FOUND:
                    raise
            await self._js.purge(subjects.STREAM_TASKS, subject)

    async def _make_consumers(self, pool: str) -> None:
        for consumer, subject in _consumers(pool):
            config: dict[str, object] = {
                "durable_name": consumer,
                "filter_subject": subject,
                "deliver_policy": "all",
                "ack_policy": "explicit",
                "ack_wait": int(ACK_WAIT_S * 1e9),
                "max_ack_pending": -1,
                "max_deliver": -1,
                "max_waiting": _WAITING_LIMIT,
            }
            await self._js.api(
                f"CONSUMER.DURABLE.CREATE.{subjects.STREAM_TASKS}.{consumer}",
                {"stream_name": subjects.STREAM_TASKS, "config": config},
            )

    async def ack(self, ack_subject: str) -> None:
        """Acknowledge a finished task; return when the bus has recorded it."""
        await self._acknowledge(ack_subject, _ACK)

    async def nak(self, ack_subject: str, delay_s: float = 0.0) -> None:
        """Return a task to the queue for delivery after `delay_s`."""
        delay = b' {"delay": %d}' % int(delay_s * 1e9) if delay_s > 0 else b""
        await self._acknowledge(ack_subject, _NAK + delay)

    async def in_progress(self, ack_subject: str) -> None:
        """Renew the lease of a task for `ACK_WAIT_S`; return when the bus has recorded it."""
        await self._acknowledge(ack_subject, _PROGRESS)

    async def term(self, ack_subject: str) -> None:
        """Exclude an unfinished task from further deliveries."""
        await self._acknowledge(ack_subject, _TERM)

    async def _acknowledge(self, ack_subject: str, kind: bytes) -> None:
        """Acknowledge until the server answers, with longer time-outs, or the consumer is gone.

        After a kill, the server may have lost the delivery; then it answers no acknowledgement
        before it has delivered the task again.
        """
        connection = self._js.connection
        timeout_s = _FIRST_ACK_TIMEOUT_S
        while True:
            await connection.wait_connected()
            try:
                async with asyncio.timeout(timeout_s):
                    await connection.request(ack_subject, kind, timeout_s=ANSWER_TIMEOUT_S)
            except (TimeoutError, RequestTimeoutError):
                timeout_s = min(timeout_s * 2, ANSWER_TIMEOUT_S)
            except DisconnectedError:
                continue
            except NoRespondersError:
                return  # the consumer is gone, and the task with it
            else:
                return


def _consumers(pool: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return (name, subject) of the two consumers of a pool's tasks."""
    return (
        (subjects.retry_consumer(pool), subjects.retry_subject(pool)),
        (subjects.pool_consumer(pool), subjects.task_subject(pool)),
    )


class NatsTaskFeed:
    """`TaskFeed` over NATS, made of pull requests that wait at the server.

    The consumer of retried tasks is asked first for those it has; requests at both consumers follow
    for the rest of the grants. Together they may bring more than is granted: that is given back at
    once, and another agent gets it.
    """

    def __init__(self, jetstream: JetStream, pool: str) -> None:
        self._connection = jetstream.connection
        self._queue = NatsTaskQueue(jetstream)
        self._pool = pool
        pulls = f"{jetstream.api_prefix}.CONSUMER.MSG.NEXT.{subjects.STREAM_TASKS}"
        self._box: CallbackQueue[Task] = CallbackQueue()
        inbox = self._connection.new_inbox()
        numbers = itertools.count(1)
        self._retry_consumer = subjects.retry_consumer(pool)
        self._retries = StandingPulls(
            self._connection, f"{pulls}.{self._retry_consumer}", inbox, numbers
        )
        self._tasks = StandingPulls(
            self._connection, f"{pulls}.{subjects.pool_consumer(pool)}", inbox, numbers
        )
        self._sid = self._connection.subscribe(f"{inbox}.*", self._receive)
        self._remove_callback = self._connection.on_change(self._changed)
        self._loop = asyncio.get_running_loop()
        self._granted = 0
        self._look = ""
        """Number of the request for the retried tasks that are there, while it is unanswered."""
        self._looked = False
        self._retry_s = FIRST_RETRY_S
        self._requesting = False
        self._closed = False
        self._watchdog: asyncio.TimerHandle | None = None

    def grant(self, count: int) -> None:
        """Allow delivery of `count` more tasks; grants add up, each task uses up one."""
        self._granted += count
        self._request_soon()

    @property
    def granted(self) -> int:
        """Return how many more tasks may be delivered."""
        return self._granted

    def __aiter__(self) -> "NatsTaskFeed":
        """Return itself."""
        return self

    async def __anext__(self) -> Task:
        """Wait for the next task; StopAsyncIteration: the feed is closed."""
        return await self._box.get()

    async def aclose(self) -> None:
        """Withdraw the pull requests and return delivered but unread tasks to the queue."""
        if self._closed:
            return
        self._closed = True
        self._granted = 0
        self._remove_callback()
        if self._watchdog is not None:
            self._watchdog.cancel()
        try:
            # After this no task can be under way to this feed.
            await self._connection.drain(self._sid)
            for task in self._box.take_all():
                await self._queue.nak(task.ack_subject)
        except UnavailableError:
            pass  # tasks that were not given back are delivered again after `ACK_WAIT_S`
        finally:
            self._box.close()

    def _changed(self) -> None:
        """Request all open grants again after a reconnection; end the feed if the bus is closed."""
        if self._connection.closed:
            self._box.close()
            return
        self._retries.clear()
        self._tasks.clear()
        self._look, self._looked = "", False
        self._request_soon()

    def _request_soon(self) -> None:
        """Schedule the pull requests for all grants made in this turn of the event loop."""
        lacks = self._granted > min(self._retries.rest, self._tasks.rest)
        if lacks and not self._requesting and not self._closed:
            self._requesting = True
            self._loop.call_soon(self._request)

    def _request(self) -> None:
        """Request stored retried tasks once; after the answer, the rest at both consumers."""
        self._requesting = False
        if self._closed or self._look:
            return
        lacking = self._granted - self._retries.rest
        if lacking > 0 and not self._looked:
            self._look = self._retries.send(lacking, at_once=True)
            if self._look:
                self._loop.call_later(_LOOK_S, self._end_look, self._look)
        else:
            self._looked = False
            for pulls in (self._retries, self._tasks):
                lacking = self._granted - pulls.rest
                if lacking > 0:
                    pulls.send(lacking)
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(OVERDUE_S, self._watch)

    def _end_look(self, number: str) -> None:
        """End the one-time request for retried tasks, then request standing pulls at both."""
        if self._look == number:
            self._look = ""
            self._looked = self._granted > 0
            self._request_soon()

    def _receive(self, subject: str, reply: str, headers: Headers, payload: bytes) -> None:
        status = headers.get("Status")
        if status is not None:
            self._request_ended(subject.rpartition(".")[2], status)
            return
        self._retry_s = FIRST_RETRY_S
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>
        # A task bears its own subject, not that of the request.
        parts = reply.split(".")
        pulls = self._retries if parts[-6] == self._retry_consumer else self._tasks
        pulls.count_delivery()
        if self._granted <= 0:
            self._connection.publish(reply, _NAK)  # if that is lost, it comes after `ACK_WAIT_S`
            return
        self._granted -= 1
        self._box.put(Task(self._pool, int(parts[-4]), payload, reply, int(parts[-5])))
        if self._look and self._look not in self._retries:
            self._look = ""  # it has brought all that it was for; there may be more
            self._request_soon()

    def _request_ended(self, number: str, status: str) -> None:
        """Forget a pull request that the server ended; request its rest, or back off if refused."""
        self._retries.end(number)
        self._tasks.end(number)
        if number == self._look:
            self._end_look(number)
        elif status in _SERVED:
            self._request_soon()
        else:
            # The consumer does not exist (yet, or any more): back off.
            self._loop.call_later(self._retry_s, self._request_soon)
            self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)

    def _watch(self) -> None:
        self._retries.end_overdue()
        self._tasks.end_overdue()
        self._request_soon()
        self._watchdog = self._loop.call_later(OVERDUE_S, self._watch)


_SERVED: Final = frozenset({"404", "408"})
"""Statuses that end a pull request for which the consumer had no task."""
_GONE: Final = frozenset({NO_MESSAGE_FOUND, 10057, 10043})
"""Error codes of a deletion that finds no message."""
