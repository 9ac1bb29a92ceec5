"""JetStream on a `Connection`: acknowledged publishing, API calls, ordered followers.

After a lost connection, calls are repeated; an operation that must happen once says how its
repetition is recognised (expected sequence, message id).

nats-py's JetStream is not used: its ordered consumer starts again at the first message after a
restart of the server, and its calls cost two to three times as much (`bench_bus`).
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from svc_common.errors import (
    OutOfRoomError,
    PermissionDeniedError,
    ServiceError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_requests import (
    DisconnectedError,
    Headers,
    NoRespondersError,
    RequestTimeoutError,
)
from svc_common.subjects import IMPORTED_API, JETSTREAM_API

ANSWER_TIMEOUT_S: Final = 5.0
"""Limit of an API call or acknowledgement; then it is repeated."""
FIRST_RETRY_S: Final = 0.02
LAST_RETRY_S: Final = 1.0

EXPECTED_SEQUENCE: Final = "Nats-Expected-Last-Subject-Sequence"
"""Header of a message that is stored only if the subject's last message has this sequence."""
WRONG_LAST_SEQUENCE: Final = 10071
"""Error code: the subject's last message is not the expected one."""
NO_MESSAGE_FOUND: Final = 10037
STREAM_NOT_FOUND: Final = 10059
STREAM_NAME_IN_USE: Final = 10058
CONSUMER_NOT_FOUND: Final = 10014
_OUT_OF_ROOM: Final = frozenset({10023, 10028, 10047, 10077})
"""Error codes: memory, storage or a limit of the stream is used up."""
_UNAVAILABLE: Final = 503

HEARTBEAT_S: Final = 5.0
"""Longest interval between two messages of the server to a follower."""
SILENCE_LIMIT_S: Final = 3 * HEARTBEAT_S
"""Silence after which a follower makes its consumer again."""
INACTIVE_S: Final = 30.0
"""The server deletes a consumer without subscriber after this time."""
_FLOW_LIMIT_MESSAGES: Final = 2_000
"""A follower with so many unread messages does not ask for more."""


class JetStreamError(ServiceError):
    """Error that a JetStream server returned for an operation, with its error code.

    Attributes:
        code: its error code, e.g. `WRONG_LAST_SEQUENCE`.
    """

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"the bus refused: {description} ({code})", {"code": str(code)})
        self.code = code


_read_json: Final = json.JSONDecoder().decode
"""Reader of a decoded answer: `json.loads` finds out the encoding of bytes, for each one."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Message stored in a JetStream stream: subject, sequence, payload, headers, time."""

    subject: str
    sequence: int
    payload: bytes
    headers: Headers
    time_ns: int


class JetStream:
    """JetStream operations on a NATS connection: publish, read, follow, streams, purge.

    Args:
        connection: open, or opening.
        confined: another process makes the streams: calls wait for a missing one instead of
            raising, and reach the API under the name that it has in this user's account.
    """

    def __init__(self, connection: Connection, *, confined: bool = False) -> None:
        self.connection = connection
        self.confined = confined
        """Whether this user may not make streams and consumers."""
        self.api_prefix = IMPORTED_API if confined else JETSTREAM_API
        """First part of the subjects of the API."""

    async def publish(self, subject: str, payload: bytes, headers: Headers | None = None) -> int:
        """Store a message, repeated until the server answers (at least once); return its sequence.

        Raises:
            JetStreamError: the server refuses the message.
            ResourceExhaustedError: the message is too large.
            OutOfRoomError: the server is out of room.
            UnavailableError: the connection was closed.
        """
        retry_s = FIRST_RETRY_S
        while True:
            try:
                return await self.publish_once(subject, payload, headers)
            except DisconnectedError:
                await self.connection.wait_connected()
            except (NoRespondersError, RequestTimeoutError):
                # A server that has just started accepts clients before its streams are loaded. One
                # of a cluster without a leader answers at once that it is unavailable.
                await asyncio.sleep(retry_s)
                retry_s = min(retry_s * 2, LAST_RETRY_S)

    async def publish_once(
        self, subject: str, payload: bytes, headers: Headers | None = None
    ) -> int:
        """Store a message once; return its sequence, or raise if the outcome is unknown.

        Raises:
            DisconnectedError: the server went away; the message may be stored.
            RequestTimeoutError: the server did not answer; the message may be stored.
            NoRespondersError: the stream does not exist (yet); nothing was stored.
            JetStreamError: the server refuses the message.
            ResourceExhaustedError: the message is too large.
            OutOfRoomError: the server is out of room.
        """
        if not self.connection.connected:
            await self.connection.wait_connected()
        if self.connection.congested:
            await self.connection.writable()
        _, answer = await self.connection.request(
            subject, payload, timeout_s=ANSWER_TIMEOUT_S, headers=headers
        )
        return int(_checked(answer)["seq"])

    async def api(self, operation: str, request: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - JSON of the server
        """Call a JetStream API operation and return its JSON; repeat while the server is away.

        Only for operations that may be repeated.

        Raises:
            JetStreamError: the server refuses.
            UnavailableError: the connection was closed.
        """
        payload = json.dumps(request).encode() if request else b""
        retry_s = FIRST_RETRY_S
        while True:
            await self.connection.wait_connected()
            try:
                _, answer = await self.connection.request(
                    f"{self.api_prefix}.{operation}", payload, timeout_s=ANSWER_TIMEOUT_S
                )
                return _checked(answer)
            except DisconnectedError:
                continue
            except (NoRespondersError, RequestTimeoutError):
                pass  # see `publish`
            except JetStreamError as error:
                if error.code != STREAM_NOT_FOUND or not self.confined:
                    raise
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, LAST_RETRY_S)

    async def ensure_stream(self, name: str, config: Mapping[str, object]) -> None:
        """Create a stream unless it exists; update it if its configuration differs.

        A creation that is repeated would count the stream's limits twice, and be refused on a
        server with less room.
        """
        wanted = {"name": name, **config}
        found = await self._configuration(name)
        if found is not None:
            if any(found.get(key) != value for key, value in wanted.items()):
                await self.api(f"STREAM.UPDATE.{name}", wanted)
            return
        try:
            await self.api(f"STREAM.CREATE.{name}", wanted)
        except JetStreamError as error:
            if error.code != STREAM_NAME_IN_USE:
                raise
            await self.api(f"STREAM.UPDATE.{name}", wanted)

    async def has_stream(self, name: str) -> bool:
        """Return whether the server knows a stream; a confined client waits until it does."""
        return await self._configuration(name) is not None

    async def _configuration(self, name: str) -> Mapping[str, object] | None:
        """Return a stream's configuration; None: there is none (a confined client waits)."""
        try:
            answer = await self.api(f"STREAM.INFO.{name}")
        except JetStreamError as error:
            if error.code != STREAM_NOT_FOUND:
                raise
            return None
        found: Mapping[str, object] = answer["config"]
        return found

    async def last(self, stream: str, subject: str) -> Stored | None:
        """Return the last stored message of a subject or pattern; None: there is none."""
        try:
            answer = await self.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
        except JetStreamError as error:
            if error.code == NO_MESSAGE_FOUND:
                return None
            raise
        return _stored(answer["message"])

    async def read_all(self, stream: str) -> list[Stored]:
        """Return all messages of a short stream of any subjects, fetched one by one."""
        found: list[Stored] = []
        while True:
            start = found[-1].sequence + 1 if found else 1
            request = {"seq": start, "next_by_subj": ">"}
            try:
                answer = await self.api(f"STREAM.MSG.GET.{stream}", request)
            except JetStreamError as error:
                if error.code == NO_MESSAGE_FOUND:
                    return found
                raise
            found.append(_stored(answer["message"]))

    async def purge(self, stream: str, subject: str, before: int = 0) -> None:
        """Delete a stream's messages of a subject or pattern, all or below a sequence.

        Args:
            stream: name of the stream.
            subject: subject or pattern.
            before: only messages with a lower sequence; 0: all.
        """
        request: dict[str, object] = {"filter": subject}
        if before:
            request["seq"] = before
        await self.api(f"STREAM.PURGE.{stream}", request)

    async def follow(
        self, stream: str, subject: str, after_sequence: int
    ) -> AsyncGenerator[list[Stored], None]:
        """Yield a stream's messages after `after_sequence` in batches, in order, for ever."""
        follower = _Follower(self, stream, subject, after_sequence)
        try:
            while True:
                yield await follower.next_batch()
        except StopAsyncIteration:
            return
        finally:
            await follower.aclose()


class _Follower:
    """Ordered JetStream consumer that is created again after a gap, silence or outage."""

    def __init__(self, stream_api: JetStream, stream: str, subject: str, after: int) -> None:
        self._js = stream_api
        self._connection = stream_api.connection
        self._stream = stream
        self._subject = subject
        self._last = after
        self._delivered = 0
        self._box: CallbackQueue[Stored] = CallbackQueue()
        self._sid = 0
        self._incomplete = asyncio.Event()
        self._flow_reply = ""
        self._loop = asyncio.get_running_loop()
        self._received_s = self._loop.time()
        self._watch = self._loop.call_later(SILENCE_LIMIT_S, self._check_silence)
        self._remove_callback = self._connection.on_change(self._changed)
        self._maker = self._loop.create_task(self._make(), name=f"follow {subject}")

    async def next_batch(self) -> list[Stored]:
        """Wait for messages and return up to 1,000; reply to a deferred flow-control request."""
        batch = await self._box.get_some(1_000)
        if self._flow_reply and len(self._box) < _FLOW_LIMIT_MESSAGES:
            self._connection.publish(self._flow_reply, b"")
            self._flow_reply = ""
        return batch

    async def aclose(self) -> None:
        """End the subscription and its tasks; the server drops the consumer after `INACTIVE_S`."""
        self._watch.cancel()
        self._remove_callback()
        self._connection.unsubscribe(self._sid)
        self._box.close()
        self._maker.cancel()
        await asyncio.gather(self._maker, return_exceptions=True)

    def _changed(self) -> None:
        if self._connection.closed:
            self._box.close()
        self._incomplete.set()

    async def _make(self) -> None:
        """Create the consumer, and again from the last sequence when messages may be missing."""
        while not self._connection.closed:
            self._incomplete.clear()
            self._connection.unsubscribe(self._sid)
            inbox = self._connection.new_inbox()
            self._delivered = 0
            self._flow_reply = ""
            self._received_s = self._loop.time()
            self._sid = self._connection.subscribe(inbox, self._receive)
            try:
                await self._js.api(
                    f"CONSUMER.CREATE.{self._stream}",
                    {"stream_name": self._stream, "config": self._config(inbox)},
                )
            except (JetStreamError, PermissionDeniedError) as error:
                get_logger().warning("follower refused", subject=self._subject, error=error.message)
                await asyncio.sleep(LAST_RETRY_S)
                continue
            except UnavailableError:
                return  # the connection was closed
            await self._incomplete.wait()

    def _config(self, inbox: str) -> dict[str, object]:
        return {
            "deliver_subject": inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._last + 1,
            "filter_subject": self._subject,
            "ack_policy": "none",
            "max_deliver": 1,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
            "inactive_threshold": int(INACTIVE_S * 1e9),
            "mem_storage": True,
            "num_replicas": 1,
        }

    def _receive(self, subject: str, reply: str, headers: Headers, payload: bytes) -> None:
        self._received_s = self._loop.time()
        if "Status" in headers:
            self._control(reply, headers)
            return
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>
        parts = reply.split(".")
        sequence, delivered = int(parts[-4]), int(parts[-3])
        if delivered != self._delivered + 1:
            self._incomplete.set()
            return
        self._delivered = delivered
        if sequence > self._last:
            self._last = sequence
            self._box.put(Stored(subject, sequence, payload, headers, int(parts[-2])))

    def _control(self, reply: str, headers: Headers) -> None:
        """Handle a heartbeat or flow-control message; mark a gap if messages were lost."""
        if reply:
            if len(self._box) < _FLOW_LIMIT_MESSAGES:
                self._connection.publish(reply, b"")
            else:
                self._flow_reply = reply
            return
        stalled = headers.get("Nats-Consumer-Stalled")
        if stalled and not self._flow_reply:
            self._connection.publish(stalled, b"")
        if int(headers.get("Nats-Last-Consumer", self._delivered)) != self._delivered:
            self._incomplete.set()

    def _check_silence(self) -> None:
        silent_s = self._loop.time() - self._received_s
        if silent_s >= SILENCE_LIMIT_S and self._connection.connected:
            self._incomplete.set()
            silent_s = 0.0
        self._watch = self._loop.call_later(
            max(1.0, SILENCE_LIMIT_S - silent_s), self._check_silence
        )


def _checked(answer: bytes) -> Any:  # noqa: ANN401 - JSON of the server
    """Decode a JetStream answer; raise the error that it reports.

    Raises:
        RequestTimeoutError: the server is temporarily unavailable.
        OutOfRoomError: the server is out of room.
        JetStreamError: the server refuses.
    """
    value = _read_json(answer.decode())
    error = value.get("error")
    if error is None:
        return value
    code = int(error.get("err_code", 0))
    description = str(error.get("description", ""))
    if code in _OUT_OF_ROOM:
        raise OutOfRoomError(f"the bus is out of room: {description}; free disk space")
    if int(error.get("code", 0)) == _UNAVAILABLE:
        raise RequestTimeoutError(f"the bus is temporarily unavailable: {description}")
    raise JetStreamError(code, description)


def _stored(message: Mapping[str, Any]) -> Stored:
    return Stored(
        subject=message["subject"],
        sequence=int(message["seq"]),
        payload=base64.b64decode(message.get("data", "")),
        headers=_decode_headers(base64.b64decode(message.get("hdrs", ""))),
        time_ns=nanoseconds(message["time"]) if message.get("time") else 0,
    )


def nanoseconds(time: str) -> int:
    """Convert an ISO time of the server to nanoseconds since 1970, rounded to microseconds."""
    return round(datetime.fromisoformat(time).timestamp() * 1e6) * 1_000


def _decode_headers(block: bytes) -> Headers:
    """Parse the raw header block of a stored message; nats-py has no public function for it."""
    lines = (line.partition(":") for line in block.decode().split("\r\n")[1:])
    return {name: value.strip() for name, colon, value in lines if colon}
