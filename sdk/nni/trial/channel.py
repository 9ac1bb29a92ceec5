"""Channel to the agent over its Unix socket: JSON lines, one reply per request.

The protocol is that of ``docs/trial-protocol.md``.
"""

import json
import os

# `socket` and `threading` build classes and enums for 4 ms that no trial needs.
from _socket import AF_UNIX, CMSG_SPACE, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from _thread import RLock

from nni.errors import NniError
from nni.trial.encoding import encode_metric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nni.trial.ports import MetricType

_CHUNK_BYTES = 65536
_TAKEN = b'{"ok":true}'
"""Reply to most requests, which is not worth a parser."""
_DESCRIPTOR_BYTES = 4
_OUTPUTS = ("stdout", "stderr")


class TrialChannelError(NniError):
    """Error: the agent refused a request, or is gone (it then ends this trial, too)."""


class _Connection:
    """Socket to the agent, which sends a token first; used by one caller at a time."""

    def __init__(self, path: str, token: str) -> None:
        self._socket = socket(AF_UNIX, SOCK_STREAM)
        self._rest = b""
        self._greeted = False
        self.offers_next = False
        """Whether the agent may have another trial for this process; known after a request."""
        self._hello = json.dumps({"op": "hello", "token": token, "pid": os.getpid()})
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise TrialChannelError(f"no agent answers at {path}: {error}") from error

    def exchange(self, request: str) -> "dict[str, Any]":
        """Send a request line, first the token; return the reply; TrialChannelError if cut off."""
        lines = request if self._greeted else f"{self._hello}\n{request}"
        try:
            self._socket.sendall(f"{lines}\n".encode())
            if not self._greeted:
                self.offers_next = self._reply().get("next") is True
                self._greeted = True
            return self._reply()
        except OSError as error:
            raise TrialChannelError(f"the agent of this trial is gone: {error}") from error

    def next_trial(self) -> "NextTrial | None":
        """Wait for another trial for this process and return it; None if there is none."""
        descriptors: list[int] = []
        try:
            self._socket.sendall(b'{"op":"next"}\n')
            reply = self._reply(descriptors)
        except OSError as error:
            raise TrialChannelError(f"the agent of this trial is gone: {error}") from error
        if reply["next"] is None or len(descriptors) != len(_OUTPUTS):
            for number in descriptors:
                os.close(number)
            return None
        return NextTrial(reply["next"], descriptors)

    def _receive(self, descriptors: "list[int] | None") -> bytes:
        """Return the next bytes; add the descriptors that came with them to a list."""
        if descriptors is None:
            return self._socket.recv(_CHUNK_BYTES)
        room = CMSG_SPACE(len(_OUTPUTS) * _DESCRIPTOR_BYTES)
        chunk, messages, _, _ = self._socket.recvmsg(_CHUNK_BYTES, room)
        for level, kind, data in messages:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
                descriptors += memoryview(data[: len(data) & -_DESCRIPTOR_BYTES]).cast("i")
        return chunk

    def _reply(self, descriptors: "list[int] | None" = None) -> "dict[str, Any]":
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            chunk = self._receive(descriptors)
            if not chunk:
                raise TrialChannelError("the agent of this trial has closed the connection")
            parts.append(chunk)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        if line == _TAKEN:
            return {"ok": True}
        reply: dict[str, Any] = json.loads(line)
        if not reply.get("ok"):
            raise TrialChannelError(f"the agent refused the request: {reply.get('error')}")
        return reply

    def close(self) -> None:
        self._socket.close()


def request_once(path: str, token: str, request: str) -> "dict[str, Any]":
    """Send one request on a connection of its own and return the reply; or TrialChannelError.

    Other requests of the process do not wait for the reply.

    Args:
        path: of the agent's socket.
        token: of the trial.
        request: one line of JSON, without its end.

    Raises:
        TrialChannelError: no agent answers, or it refuses.
    """
    connection = _Connection(path, token)
    try:
        return connection.exchange(request)
    finally:
        connection.close()


class NextTrial:
    """Next trial of a reused process: environment, folder and output descriptors."""

    def __init__(self, values: "dict[str, Any]", descriptors: "list[int]") -> None:
        self.directory = str(values["cwd"])
        """Working directory."""
        self.environment: dict[str, str] = values["environment"]
        """Variables of the trial alone."""
        self.unset: list[str] = values["unset"]
        """Variables of earlier trials of the process that this one does not have."""
        self.stdout, self.stderr = descriptors


class SocketTrialChannel:
    """Trial channel to the agent over a Unix socket, which is connected at the first request.

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
        """Send a metric to the agent, which numbers it, and wait for its reply."""
        self._request(f'{{"op":"report","type":"{kind}","value":{encode_metric(value)}}}')

    def offers_next(self) -> bool:
        """Return whether the agent may have another trial for this process.

        Raises:
            TrialChannelError: no agent answers.
        """
        with self._lock:
            if self._connection is None:
                self._request('{"op":"parameters"}')  # any request connects
            return self._connection is not None and self._connection.offers_next

    def next_trial(self) -> NextTrial | None:
        """End this trial with success, and wait for another one for this process; None if none.

        The channel is that of the other trial from then on. None: there is none, and the process
        should end, which ends the trial if it has not ended. To be called if `offers_next`.
        """
        with self._lock:
            connection = self._connection
            if connection is None:
                return None
            self._busy = True
            found: NextTrial | None = None
            try:
                found = connection.next_trial()
            except TrialChannelError:  # the agent has ended it, or is gone
                found = None
            finally:
                self._busy = False
                if found is None:
                    self._disconnect()
            if found is not None:
                self._token = found.environment["NNI_TRIAL_TOKEN"]
            return found

    def close(self) -> None:
        """Close the connection; a later request connects again."""
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
        return request_once(self._path, self._token, request)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _leave_to_parent(self) -> None:
        """In a forked child: close the connection, and replace the lock, which may be held."""
        self._disconnect()
        self._lock = RLock()
        self._busy = False
