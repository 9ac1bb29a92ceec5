"""Adapters of the ports of the bus on NATS, and the bundle of them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from svc_common import subjects
from svc_common.errors import LostOwnershipError, UnavailableError
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.limits import LOG_LINES_PER_TRIAL, SERVER_PAYLOAD_LIMIT_BYTES
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_jetstream import (
    WRONG_LAST_SEQUENCE,
    JetStream,
    JetStreamError,
    Stored,
)
from svc_common.messaging.nats_requests import (
    DisconnectedError,
    NoRespondersError,
    RequestTimeoutError,
)
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.nats_tasks import NatsTaskQueue
from svc_common.messaging.ports import InboxMessage, LogChunk, LogMessage, Signal, StreamFacts

DUPLICATE_WINDOW_S: Final = 120.0
"""How long the bus recognises message ids; an optimisation that nothing relies on."""
LOG_LINES_AGE_S: Final = 24 * 3600.0
LOG_LINES_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""The server reserves so much disk, so it is small; the files of agents are the record."""

_EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
_MESSAGE_ID: Final = "Nats-Msg-Id"
_EPOCH: Final = "Nni-Epoch"
_APPEND_ID: Final = "Nni-Append"


class NatsEventLog:
    """`EventLog` on the stream `EXPERIMENTS`."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        """See `EventLog.append`."""
        subject = subjects.event_subject(experiment_id)
        headers = {_EXPECTED: str(expected_sequence), _EPOCH: str(epoch), _APPEND_ID: append_id}
        in_doubt = False
        while True:
            try:
                return await self._js.publish_once(subject, payload, headers)
            except (DisconnectedError, RequestTimeoutError, NoRespondersError):
                in_doubt = True
            except JetStreamError as error:
                if error.code != WRONG_LAST_SEQUENCE:
                    raise
            last = await self.last(experiment_id)
            if last is not None and (last.epoch, last.append_id) == (epoch, append_id):
                return last.sequence
            found = last.sequence if last is not None else 0
            if found != expected_sequence or not in_doubt:
                raise LostOwnershipError(
                    experiment_id,
                    expected_sequence=expected_sequence,
                    found_sequence=found,
                    found_epoch=last.epoch if last is not None else 0,
                )
            # It did not arrive, or not yet. Sending it again is safe: if the first arrives late,
            # the second breaks the expected sequence and the last message is this append.

    async def last(self, experiment_id: str) -> LogMessage | None:
        """See `EventLog.last`."""
        stored = await self._js.last(
            subjects.STREAM_EXPERIMENTS, subjects.event_subject(experiment_id)
        )
        return None if stored is None else _log_message(stored)

    async def read(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """See `EventLog.read`."""
        last = await self.last(experiment_id)
        if last is None or last.sequence <= after_sequence:
            return
        async for message in self.follow(experiment_id, after_sequence):
            yield message
            if message.sequence >= last.sequence:
                return

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogMessage, None]:
        """See `EventLog.follow`."""
        subject = subjects.event_subject(experiment_id)
        async for batch in self._js.follow(subjects.STREAM_EXPERIMENTS, subject, after_sequence):
            for stored in batch:
                yield _log_message(stored)

    async def follow_all(self, after_sequence: int = 0) -> AsyncGenerator[LogMessage, None]:
        """See `EventLog.follow_all`."""
        stream, pattern = subjects.STREAM_EXPERIMENTS, subjects.ALL_EVENTS
        async for batch in self._js.follow(stream, pattern, after_sequence):
            for stored in batch:
                yield _log_message(stored)

    async def experiments(self) -> list[str]:
        """See `EventLog.experiments`."""
        found: set[str] = set()
        while True:
            answer = await self._js.api(
                f"STREAM.INFO.{subjects.STREAM_EXPERIMENTS}",
                {"subjects_filter": subjects.ALL_EVENTS, "offset": len(found)},
            )
            page = answer["state"].get("subjects") or {}
            found.update(subjects.experiment_of_event(subject) for subject in page)
            if not page or len(found) >= int(answer.get("total", 0)):
                return sorted(found)

    async def delete(self, experiment_id: str) -> None:
        """See `EventLog.delete`."""
        await self._js.purge(subjects.STREAM_EXPERIMENTS, subjects.event_subject(experiment_id))


class NatsInbox:
    """`Inbox` on the stream `INBOX`."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream

    async def publish(
        self, experiment_id: str, source: str, payload: bytes, *, message_id: str
    ) -> int:
        """See `Inbox.publish`."""
        subject = subjects.inbox_subject(experiment_id, source)
        return await self._js.publish(subject, payload, {_MESSAGE_ID: message_id})

    async def follow(
        self, experiment_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[list[InboxMessage], None]:
        """See `Inbox.follow`."""
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
        """See `Inbox.last_sequence`."""
        stored = await self._js.last(subjects.STREAM_INBOX, subjects.inbox_filter(experiment_id))
        return 0 if stored is None else stored.sequence

    async def trim(self, experiment_id: str, through_sequence: int) -> None:
        """See `Inbox.trim`."""
        await self._js.purge(
            subjects.STREAM_INBOX, subjects.inbox_filter(experiment_id), through_sequence + 1
        )

    async def delete(self, experiment_id: str) -> None:
        """See `Inbox.delete`."""
        await self._js.purge(subjects.STREAM_INBOX, subjects.inbox_filter(experiment_id))


class NatsSignals:
    """`Signals` on core NATS."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def publish(self, subject: str, payload: bytes) -> bool:
        """See `Signals.publish`."""
        return self._connection.publish(subject, payload)

    async def request(self, subject: str, payload: bytes, timeout_s: float) -> bytes:
        """See `Signals.request`."""
        _, answer = await self._connection.request(subject, payload, timeout_s=timeout_s)
        return answer

    def reply(self, signal: Signal, payload: bytes) -> bool:
        """See `Signals.reply`."""
        return bool(signal.reply_subject) and self._connection.publish(
            signal.reply_subject, payload
        )

    async def subscribe(self, subject: str) -> AsyncGenerator[Signal, None]:
        """See `Signals.subscribe`."""
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
    """`LogLines` on the stream `LOGS`; publishing is not acknowledged."""

    def __init__(self, jetstream: JetStream) -> None:
        self._js = jetstream

    def publish(self, experiment_id: str, trial_id: str, payload: bytes) -> bool:
        """See `LogLines.publish`."""
        connection = self._js.connection
        if connection.congested:  # reports and acknowledgements go first
            return False
        return connection.publish(subjects.log_subject(experiment_id, trial_id), payload)

    async def follow(
        self, experiment_id: str, trial_id: str, after_sequence: int = 0
    ) -> AsyncGenerator[LogChunk, None]:
        """See `LogLines.follow`."""
        subject = subjects.log_subject(experiment_id, trial_id)
        async for batch in self._js.follow(subjects.STREAM_LOGS, subject, after_sequence):
            for stored in batch:
                yield LogChunk(trial_id, stored.sequence, stored.payload)

    async def last_sequence(self, experiment_id: str, trial_id: str) -> int:
        """See `LogLines.last_sequence`."""
        subject = subjects.log_subject(experiment_id, trial_id)
        stored = await self._js.last(subjects.STREAM_LOGS, subject)
        return 0 if stored is None else stored.sequence

    async def delete(self, experiment_id: str) -> None:
        """See `LogLines.delete`."""
        await self._js.purge(subjects.STREAM_LOGS, subjects.log_filter(experiment_id))


class NatsBus:
    """All ports on one connection: `async with NatsBus(settings) as bus`.

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
        self._owns_streams = settings.owns_streams
        self._js = JetStream(self._connection, waits_for_streams=not settings.owns_streams)
        self.events = NatsEventLog(self._js)
        self.inbox = NatsInbox(self._js)
        self.tasks = NatsTaskQueue(self._js, confined=not settings.owns_streams)
        self.signals = NatsSignals(self._connection)
        self.log_lines = NatsLogLines(self._js)

    async def __aenter__(self) -> Self:
        """Connect; make the streams if this client owns them."""
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
        """Close."""
        await self.aclose()

    @property
    def connected(self) -> bool:
        """See `Bus.connected`."""
        return self._connection.connected

    async def wait_connected(self, connected: bool = True) -> None:  # noqa: FBT001, FBT002 - the awaited state reads as a word
        """See `Bus.wait_connected`."""
        if connected:
            await self._connection.wait_connected()
        else:
            await self._connection.wait_disconnected()

    async def streams(self) -> list[StreamFacts]:
        """See `Bus.streams`."""
        found = []
        for name in stream_configs(self._replicas):
            with suppress(JetStreamError):  # it does not exist
                found.append(_stream_facts(name, await self._js.api(f"STREAM.INFO.{name}")))
        return found

    async def aclose(self) -> None:
        """See `Bus.aclose`."""
        await self._connection.aclose()


def stream_configs(replicas: int) -> Mapping[str, Mapping[str, object]]:
    """Return the configuration of every stream by name."""
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
        },
        subjects.STREAM_INBOX: {
            **common,
            "subjects": [subjects.ALL_INBOXES],
            "retention": "limits",
        },
        subjects.STREAM_TASKS: {
            **common,
            "subjects": [subjects.ALL_TASKS],
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


def _log_message(stored: Stored) -> LogMessage:
    headers = stored.headers
    return LogMessage(
        experiment_id=subjects.experiment_of_event(stored.subject),
        sequence=stored.sequence,
        payload=stored.payload,
        epoch=int(headers.get(_EPOCH, "0")),
        append_id=headers.get(_APPEND_ID, ""),
        time_ns=stored.time_ns,
    )
