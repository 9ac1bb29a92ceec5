"""Channel to the agent over its Unix socket: JSON lines, one reply per request.

The protocol is that of ``docs/trial-protocol.md``.
"""

import json
import os

# `socket` and `threading` build classes and enums for 4 ms that no trial needs.
from _socket import AF_UNIX, SOCK_STREAM, socket
from _thread import RLock

from nni.errors import NniError
from nni.trial.encoding import encode_metric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nni.trial.ports import MetricType

_CHUNK_BYTES = 65536


class TrialChannelError(NniError):
    """The agent refused a request, or is gone (it then ends this trial, too)."""


class _Connection:
    """Socket to the agent, which sends a token first; used by one caller at a time."""

    def __init__(self, path: str, token: str) -> None:
        self._socket = socket(AF_UNIX, SOCK_STREAM)
        self._rest = b""
        self._greeted = False
        self._hello = json.dumps({"op": "hello", "token": token, "pid": os.getpid()})
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise TrialChannelError(f"no agent answers at {path}: {error}") from error

    def exchange(self, request: str) -> "dict[str, Any]":
        """Send one request line and return the reply; the first time with the token before it."""
        lines = request if self._greeted else f"{self._hello}\n{request}"
        try:
            self._socket.sendall(f"{lines}\n".encode())
            if not self._greeted:
                self._reply()
                self._greeted = True
            return self._reply()
        except OSError as error:
            raise TrialChannelError(f"the agent of this trial is gone: {error}") from error

    def _reply(self) -> "dict[str, Any]":
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            chunk = self._socket.recv(_CHUNK_BYTES)
            if not chunk:
                raise TrialChannelError("the agent of this trial has closed the connection")
            parts.append(chunk)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        if not reply.get("ok"):
            raise TrialChannelError(f"the agent refused the request: {reply.get('error')}")
        return reply

    def close(self) -> None:
        self._socket.close()


class SocketTrialChannel:
    """The channel of a trial that an agent started.

    Connects at the first request. A process made by ``os.fork`` gets a connection of its own. A
    signal handler may report even while it interrupts a report: it then uses a second connection.
    """

    def __init__(self, path: str, token: str) -> None:
        self._path = path
        self._token = token
        self._lock = RLock()
        self._busy = False
        self._connection: _Connection | None = None
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def parameters(self, index: int) -> object:
        """Return the trial's parameters: any JSON value."""
        reply = self._request(f'{{"op":"parameters","parameter_index":{index}}}')
        return reply["parameters"]

    def report(self, kind: "MetricType", value: object) -> None:
        """See `nni.trial.ports.TrialChannel`; the agent numbers what it takes over."""
        self._request(f'{{"op":"report","type":"{kind}","value":{encode_metric(value)}}}')

    def close(self) -> None:
        """Hang up; a later request connects again."""
        with self._lock:
            self._disconnect()

    def _request(self, request: str) -> "dict[str, Any]":
        with self._lock:
            if self._busy:
                return self._request_aside(request)
            self._busy = True
            finished = False
            try:
                if self._connection is None:
                    self._connection = _Connection(self._path, self._token)
                reply = self._connection.exchange(request)
                finished = True
                return reply
            finally:
                self._busy = False
                if not finished:  # a reply may be under way that no one would read
                    self._disconnect()

    def _request_aside(self, request: str) -> "dict[str, Any]":
        connection = _Connection(self._path, self._token)
        try:
            return connection.exchange(request)
        finally:
            connection.close()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _leave_to_parent(self) -> None:
        """In a forked child: let go of the connection, and of a lock that no one may release."""
        self._disconnect()
        self._lock = RLock()
        self._busy = False
