"""Adapters of the ports of the bus on NATS, and the bundle of them."""

import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from svc_common import subjects
from svc_common.errors import UnavailableError
from svc_common.messaging.bus_disk import bus_trouble
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.limits import LOG_LINES_PER_TRIAL, SERVER_PAYLOAD_LIMIT_BYTES
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_event_log import NatsEventLog
from svc_common.messaging.nats_jetstream import JetStream, JetStreamError
from svc_common.messaging.nats_last_values import NatsLastValues
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.nats_tasks import NatsTaskQueue
from svc_common.messaging.ports import InboxMessage, LogChunk, Signal, StreamFacts

DUPLICATE_WINDOW_S: Final = 120.0
"""How long the bus recognises message ids; an optimisation that nothing relies on."""
LOG_LINES_AGE_S: Final = 24 * 3600.0
LOG_LINES_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""The server reserves so much disk, so it is small; the files of agents are the record."""

_DISK_ASKED_EVERY_S: Final = 1.0
"""Age of what is known of the disk, after which it is asked again."""
_MESSAGE_ID: Final = "Nats-Msg-Id"


class NatsInbox:
    """`Inbox` over NATS: messages to experiments' managers on the stream `INBOX`.

    All users publish to this one stream, and the server drops a message whose id another one had.
    So ids begin with a random secret of this object, so that no user can use up the ids of others.
    """

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream
        self._secret = secrets.token_hex(8)

    async def publish(
        self, experiment_id: str, source: str, payload: bytes, *, message_id: str
    ) -> int:
        """Store a message to an experiment's manager, once per id; return its sequence."""
        subject = subjects.inbox_subject(experiment_id, source)
        return await self._js.publish(
            subject, payload, {_MESSAGE_ID: f"{self._secret}.{message_id}"}
        )

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[list[InboxMessage], None]:
        """Yield lists of messages to an experiment's manager after `after_sequence`, for ever."""
        pattern = subjects.inbox_filter(experiment_id)
        async for batch in self._js.follow(subjects.STREAM_INBOX, pattern, after_sequence):
            yield [
                InboxMessage(
                    experiment_id,
                    subjects.parse_inbox(stored.subject)[1],
                    stored.sequence,
                    stored.payload,
                )
                for stored in batch
            ]

    async def last_sequence(self, experiment_id: str) -> int:
        """Return the sequence of the last stored message to an experiment; 0 if there is none."""
        stored = await self._js.last(subjects.STREAM_INBOX, subjects.inbox_filter(experiment_id))
        return 0 if stored is None else stored.sequence

    async def lift(self, cursor: int) -> int | None:
        """If the INBOX ends below `cursor`, republish all with numbers above it; count or None."""
        stream = subjects.STREAM_INBOX
        answer = await self._js.api(f"STREAM.INFO.{stream}")
        if int(answer["state"]["last_seq"]) >= cursor:
            return None
        # While the stream has other subjects its publishers find none, and repeat. If this process
        # is killed meanwhile, the next one restores the subjects when it makes the streams.
        config = answer["config"]
        await self._js.api(
            f"STREAM.UPDATE.{stream}", {**config, "subjects": [subjects.CLOSED_INBOXES]}
        )
        stored = await self._js.read_all(stream)
        await self._js.api(f"STREAM.PURGE.{stream}", {"seq": cursor + 1})
        await self._js.api(f"STREAM.UPDATE.{stream}", config)
        for message in stored:
            await self._js.publish(message.subject, message.payload)
        return len(stored)

    async def trim(self, experiment_id: str, through_sequence: int) -> None:
        """Delete the messages to an experiment's manager up to and including a sequence."""
        await self._js.purge(
            subjects.STREAM_INBOX, subjects.inbox_filter(experiment_id), through_sequence + 1
        )

    async def delete(self, experiment_id: str) -> None:
        """Delete all messages to an experiment."""
        await self._js.purge(subjects.STREAM_INBOX, subjects.inbox_filter(experiment_id))


class NatsSignals:
    """`Signals` over core NATS: unstored publish, request and subscribe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def publish(self, subject: str, payload: bytes) -> bool:
        """Send to the current subscribers; return False if the bus is away: the signal is lost."""
        return self._connection.publish(subject, payload)

    async def request(self, subject: str, payload: bytes, timeout_s: float) -> bytes:
        """Send a request and return the first answer; raise UnavailableError if none comes."""
        _, answer = await self._connection.request(subject, payload, timeout_s=timeout_s)
        return answer

    def reply(self, signal: Signal, payload: bytes) -> bool:
        """Send an answer to the requester of a signal; return False if it was dropped."""
        return bool(signal.reply_subject) and self._connection.publish(
            signal.reply_subject, payload
        )

    async def subscribe(self, subject: str) -> AsyncGenerator[Signal, None]:
        """Subscribe to a subject or pattern; return a generator of its signals until the close."""
        box: CallbackQueue[Signal] = CallbackQueue()

        def receive(subject: str, reply: str, _headers: Mapping[str, str], payload: bytes) -> None:
            box.put(Signal(subject, payload, reply))

        sid = self._connection.subscribe(subject, receive)
        remove = self._connection.on_change(
            lambda: box.close() if self._connection.closed else None
        )
        try:
            await self._connection.flush()
            self._connection.check_allowed(subject)
        except UnavailableError:
            pass  # the server is away; the next connection makes the subscription
        except BaseException:
            remove()
            self._connection.unsubscribe(sid)
            raise

        async def signals() -> AsyncGenerator[Signal, None]:
            try:
                while True:
                    yield await box.get()
            except StopAsyncIteration:
                return
            finally:
                remove()
                self._connection.unsubscribe(sid)

        return signals()


class NatsLogLines:
    """`LogLines` over NATS: trials' output on the stream `LOGS`, not acknowledged."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream

    def publish(self, experiment_id: str, trial_id: str, payload: bytes) -> bool:
        """Send trial output to its stream; return False if disconnected or too much is unsent."""
        connection = self._js.connection
        if connection.congested:  # reports and acknowledgements go first
            return False
        return connection.publish(subjects.log_subject(experiment_id, trial_id), payload)

    async def follow(
        self, experiment_id: str, trial_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogChunk, None]:
        """Yield a trial's stored output after `after_sequence`, then new output, for ever."""
        subject = subjects.log_subject(experiment_id, trial_id)
        async for batch in self._js.follow(subjects.STREAM_LOGS, subject, after_sequence):
            for stored in batch:
                yield LogChunk(trial_id, stored.sequence, stored.payload)

    async def last_sequence(self, experiment_id: str, trial_id: str) -> int:
        """Return the sequence of a trial's last stored output; 0 if there is none."""
        subject = subjects.log_subject(experiment_id, trial_id)
        stored = await self._js.last(subjects.STREAM_LOGS, subject)
        return 0 if stored is None else stored.sequence

    async def delete(self, experiment_id: str) -> None:
        """Delete the output of all trials of an experiment."""
        await self._js.purge(subjects.STREAM_LOGS, subjects.log_filter(experiment_id))


class NatsBus:
    """All bus ports on one NATS connection: `async with NatsBus(settings) as bus`.

    Entering waits for the server as long as it takes and makes the streams. In a client that does
    not own them, calls wait until the manager has made them.

    Raises:
        UnauthenticatedError: on entering, if the server refuses the credentials.
        FailedPreconditionError: on entering, if the two sides do not agree on encryption.
        PermissionDeniedError: from a call that the server forbids this user.
    """

    def __init__(self, settings: NatsSettings) -> None:
        self._connection = Connection(settings)
        self._replicas = settings.replicas
        self._folder = settings.folder
        self._disk_trouble = ""
        self._disk_asked_s = -_DISK_ASKED_EVERY_S
        self._owns_streams = settings.owns_streams
        self._js = JetStream(self._connection, confined=not settings.owns_streams)
        self.events = NatsEventLog(self._js)
        self.inbox = NatsInbox(self._js)
        self.tasks = NatsTaskQueue(self._js, confined=not settings.owns_streams)
        self.signals = NatsSignals(self._connection)
        self.log_lines = NatsLogLines(self._js)
        self.last_values = NatsLastValues(self._js)

    async def __aenter__(self) -> Self:
        """Connect to NATS; create or update the streams if this client owns them."""
        await self._connection.open()
        if not self._owns_streams:
            return self
        try:
            for name, config in stream_configs(self._replicas).items():
                await self._js.ensure_stream(name, config)
        except BaseException:
            await self._connection.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the NATS connection at the end of the `async with` block."""
        await self.aclose()

    @property
    def connected(self) -> bool:
        """Return whether the bus can be reached now."""
        return self._connection.connected

    @property
    def disk_trouble(self) -> str:
        """Return why the bus cannot store messages, if its disk shows it; empty: nothing shows."""
        if self._folder is None:
            return ""
        now_s = time.monotonic()
        if now_s >= self._disk_asked_s + _DISK_ASKED_EVERY_S:
            self._disk_asked_s = now_s
            self._disk_trouble = bus_trouble(self._folder)
        return self._disk_trouble

    async def wait_connected(self, connected: bool = True) -> None:  # noqa: FBT001, FBT002 - the awaited state reads as a word
        """Wait until the server is reachable (raise if closed), or with False until it is not."""
        if connected:
            await self._connection.wait_connected()
        else:
            await self._connection.wait_disconnected()

    async def wait_refused(self, limit_s: float) -> None:
        """Wait until the server has refused this process's credentials for `limit_s` on end.

        Args:
            limit_s: that time, in seconds, without a break.
        """
        await self._connection.wait_refused(limit_s)

    async def streams(self) -> list[StreamFacts]:
        """Return size, message count and replicas of each existing stream, for the diagnosis."""
        found = []
        for name in stream_configs(self._replicas):
            with suppress(JetStreamError):  # it does not exist
                found.append(_stream_facts(name, await self._js.api(f"STREAM.INFO.{name}")))
        return found

    async def missing_streams(self) -> list[str]:
        """Return the names of the streams that the server does not know."""
        return [
            name for name in stream_configs(self._replicas) if not await self._js.has_stream(name)
        ]

    async def aclose(self) -> None:
        """Close; may be called twice. Waiting calls raise `UnavailableError`, iterators end."""
        await self._connection.aclose()


_POOL_SUBJECTS: Final = (
    subjects.ALL_POOL_NEEDS,
    subjects.ALL_POOL_STATES,
    subjects.ALL_POOL_DEFINITIONS,
    subjects.ALL_POOL_CHECKS,
    subjects.ALL_POOL_PROBLEMS,
    subjects.ALL_POOL_INVITATIONS,
    subjects.ALL_POOL_FRONTS,
)


def stream_configs(replicas: int) -> Mapping[str, Mapping[str, object]]:
    """Return the JetStream configuration of each stream by name: subjects, retention, limits."""
    common: dict[str, object] = {
        "storage": "file",
        "num_replicas": replicas,
        "discard": "old",
        "max_msg_size": SERVER_PAYLOAD_LIMIT_BYTES,
        "duplicate_window": int(DUPLICATE_WINDOW_S * 1e9),
    }
    return {
        subjects.STREAM_EXPERIMENTS: {
            **common,
            "subjects": [subjects.ALL_EVENTS],
            "retention": "limits",
            # How `NatsEventLog` reads: batches, and a copy of each message that was stored.
            "allow_direct": True,
            "republish": {"src": subjects.ALL_EVENTS, "dest": subjects.COPY_TEMPLATE},
        },
        subjects.STREAM_INBOX: {
            **common,
            "subjects": [subjects.ALL_INBOXES],
            "retention": "limits",
        },
        subjects.STREAM_TASKS: {
            **common,
            "subjects": [subjects.ALL_TASKS, subjects.ALL_RETRIES],
            "retention": "workqueue",
        },
        subjects.STREAM_LOGS: {
            **common,
            "subjects": [subjects.ALL_LOGS],
            "retention": "limits",
            "max_age": int(LOG_LINES_AGE_S * 1e9),
            "max_bytes": LOG_LINES_LIMIT_BYTES,
            # A trial with endless output must not push out the output of the others.
            "max_msgs_per_subject": LOG_LINES_PER_TRIAL,
        },
        subjects.STREAM_POOLS: {
            **common,
            "subjects": list(_POOL_SUBJECTS),
            "retention": "limits",
            "max_msgs_per_subject": 1,
            # How `NatsLastValues` reads.
            "allow_direct": True,
            "republish": {"src": subjects.ALL_POOLS, "dest": subjects.POOL_COPY_TEMPLATE},
        },
    }


def _stream_facts(name: str, answer: Mapping[str, Any]) -> StreamFacts:
    state, cluster = answer["state"], answer.get("cluster") or {}
    peers = cluster.get("replicas") or ()
    away = sum(1 for peer in peers if peer.get("offline") or not peer.get("current", True))
    return StreamFacts(
        name,
        messages=int(state["messages"]),
        size_bytes=int(state["bytes"]),
        replicas=int(answer["config"].get("num_replicas", 1)),
        replicas_missing=away,
        consumers=int(state.get("consumer_count", 0)),
    )
