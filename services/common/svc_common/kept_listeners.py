"""Listening sockets of a child that its parent keeps open while the child restarts.

No other user of the machine gets their ports meanwhile, and connections wait. Parent and child
share a pair of Unix sockets, over which the sockets travel:

    child to parent: `keep <port>` with the socket, `drop <port>`, `list <nonce>`
    parent to child: `kept <nonce>` with a socket, for each of them, then `end <nonce>`

The nonce tells the answer from one that an earlier run of the child did not read.
"""

import asyncio
import secrets
import socket
from contextlib import suppress
from typing import Final, Self

from svc_common.logs import get_logger

_MESSAGE_BYTES: Final = 64
_ANSWER_S: Final = 5.0
"""Time limit for the parent's list, in seconds."""


class ListenerKeeper:
    """Parent's end: keeps a child's listening sockets open while the child restarts."""

    def __init__(self) -> None:
        self._end, self.child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """End that each run of the child inherits."""
        self._end.setblocking(False)  # noqa: FBT003 - its only way
        self._kept: dict[int, socket.socket] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._end, self._read)

    @property
    def ports(self) -> frozenset[int]:
        """Ports of the kept sockets."""
        return frozenset(self._kept)

    def close(self) -> None:
        """Close all kept sockets and both ends of the pair; may be called twice."""
        if self._end.fileno() >= 0:
            self._loop.remove_reader(self._end)
        for one in (*self._kept.values(), self._end, self.child_end):
            one.close()
        self._kept.clear()

    def _read(self) -> None:
        while True:
            try:
                message, sockets = _receive(self._end)
            except BlockingIOError:
                return
            except OSError as error:
                get_logger().warning("kept listeners not read", error=str(error))
                return
            self._handle(message, sockets)

    def _handle(self, message: str, sockets: list[socket.socket]) -> None:
        verb, _, word = message.partition(" ")
        if verb == "keep" and sockets:
            self._drop(word)
            self._kept[int(word)] = sockets.pop()
        elif verb == "drop":
            self._drop(word)
        elif verb == "list":
            self._answer(word)
        for one in sockets:
            one.close()

    def _drop(self, port: str) -> None:
        kept = self._kept.pop(int(port), None)
        if kept is not None:
            kept.close()

    def _answer(self, nonce: str) -> None:
        for port, kept in list(self._kept.items()):
            try:
                _send(self._end, f"kept {nonce}", kept)
            except OSError as error:  # the child reads nothing: it has to bind the rest anew
                get_logger().warning("kept listener given up", port=port, error=str(error))
                self._drop(str(port))
        with suppress(OSError):
            _send(self._end, f"end {nonce}")


class KeptListeners:
    """Child's end: takes back its earlier run's listening sockets and gives new ones to keep.

    Args:
        end: inherited end of the pair; None: nothing is kept.
    """

    def __init__(self, end: socket.socket | None = None) -> None:
        self._end = end
        self._earlier: dict[int, socket.socket] = {}

    @classmethod
    def inherited(cls, descriptor: int) -> Self:
        """Open the inherited end and fetch the kept sockets from the parent, blocking briefly.

        Args:
            descriptor: of the end; -1: there is none.
        """
        if descriptor < 0:
            return cls()
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)
        listeners = cls(end)
        listeners._ask(end)
        return listeners

    def take(self, port: int) -> socket.socket | None:
        """Return the socket of an earlier run at a port; None: there is none."""
        return self._earlier.pop(port, None)

    def keep(self, bound: socket.socket) -> None:
        """Send a listening socket to the parent, which keeps it open; do nothing without one."""
        self._tell(f"keep {bound.getsockname()[1]}", bound)

    def drop(self, bound: socket.socket) -> None:
        """Shut a listening socket down here and at the parent; do nothing without a parent."""
        self._tell(f"drop {bound.getsockname()[1]}")
        if self._end is not None:
            # Frees the port before the parent has closed its copy.
            with suppress(OSError):
                bound.shutdown(socket.SHUT_RDWR)

    def drop_others(self, ports: frozenset[int]) -> None:
        """Close an earlier run's kept sockets whose ports are not among ``ports``."""
        for port in self._earlier.keys() - ports:
            with self._earlier.pop(port) as unwanted:
                self.drop(unwanted)

    def close(self) -> None:
        """Close the child's end and its copies; the parent keeps the sockets for the next run."""
        for one in self._earlier.values():
            one.close()
        self._earlier.clear()
        if self._end is not None:
            self._end.close()
            self._end = None

    def _ask(self, end: socket.socket) -> None:
        nonce = secrets.token_hex(8)
        end.settimeout(_ANSWER_S)
        try:
            _send(end, f"list {nonce}")
            while True:
                message, sockets = _receive(end)
                if message == f"kept {nonce}" and sockets:
                    kept = sockets.pop()
                    kept.setblocking(False)  # noqa: FBT003 - its only way
                    self._earlier[kept.getsockname()[1]] = kept
                for one in sockets:
                    one.close()
                if message == f"end {nonce}":
                    break
        except OSError as error:
            get_logger().warning("kept listeners not received", error=str(error))
        end.setblocking(False)  # noqa: FBT003 - as above

    def _tell(self, message: str, bound: socket.socket | None = None) -> None:
        if self._end is None:
            return
        try:
            _send(self._end, message, bound)
        except OSError as error:
            get_logger().warning("listener not announced", error=str(error))


def _send(end: socket.socket, message: str, bound: socket.socket | None = None) -> None:
    descriptors = [] if bound is None else [bound.fileno()]
    socket.send_fds(end, [message.encode()], descriptors)


def _receive(end: socket.socket) -> tuple[str, list[socket.socket]]:
    """Receive one message and the sockets sent with it; raise OSError if the end is closed.

    Raises:
        OSError: nothing can be received.
    """
    data, descriptors, _, _ = socket.recv_fds(end, _MESSAGE_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    if not data:
        raise ConnectionResetError("the other end is closed")
    return data.decode(errors="replace"), [socket.socket(fileno=one) for one in descriptors]
