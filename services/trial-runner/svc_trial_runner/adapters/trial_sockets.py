"""Unix socket server of the trials, which identify themselves by secret tokens."""

import asyncio
import fcntl
import os
import re
import socket
import stat
import struct
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_trial_runner.domain.channel import (
    LINE_LIMIT_BYTES,
    REPLY_NO_NEXT,
    BrokenChannelError,
    ChannelError,
    CheckpointRequest,
    Hello,
    NextRequest,
    ParametersRequest,
    Report,
    next_trial_reply,
    parse_request,
    refusal,
    reply,
)
from svc_trial_runner.ports import NextTrial, TrialSession

_READ_BYTES: Final = 64 * 1024
_BACKLOG: Final = 4096
_SOCKET: Final = "trial.sock"
_UNFINISHED: Final = "trial.part"
_CREDENTIALS: Final = struct.Struct("3i")
"""Ids of process, user and group of a peer."""
_PATH_LIMIT_BYTES: Final = 107
"""Longest address of a Unix socket, without its final zero byte."""


class _Connection:
    """Socket connection of a trial or child: parses lines, checks the token, answers.

    It is a `WaitingProcess` between the request for the next trial and its reply. It has no session
    and no token then, so that the end of the last trial does not close it.
    """

    def __init__(self, sockets: "UnixTrialSockets", peer: socket.socket) -> None:
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._peer = peer
        self._number = peer.fileno()
        self._input = b""
        self._lines: deque[bytes] = deque()
        self._output = b""
        self._waiting = False
        self._at_end = False
        self._session: TrialSession | None = None
        self._waits_for_next = False
        self._accepted: asyncio.Future[bool] | None = None
        """Pending from the reply with the next trial to the first request of that trial."""
        self._pid = 0
        self.token: str | None = None
        self.closed = False
        self._loop.add_reader(self._number, self.read)

    def read(self) -> None:
        """Receive once from the socket without waiting; answer the complete lines."""
        if self.closed or self._waiting or self._at_end:
            return
        try:
            data = self._peer.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._at_end = True
            self._loop.remove_reader(self._number)
        else:
            self._split(data)
        self._note_first_request(made=bool(data))
        self._answer()

    def read_all(self) -> None:
        """Read and answer everything that has been sent on the connection so far."""
        while not (self.closed or self._waiting or self._at_end):
            before = len(self._input)
            self.read()
            if len(self._input) == before and not self._has_data():
                return

    def _has_data(self) -> bool:
        if self.closed or self._at_end or self._waiting:
            return False
        try:
            self._peer.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def _split(self, data: bytes) -> None:
        *lines, self._input = (self._input + data).split(b"\n")
        self._lines.extend(lines)
        if len(self._input) > LINE_LIMIT_BYTES:
            self._refuse_and_end(f"a line must have at most {LINE_LIMIT_BYTES} bytes")

    def _answer(self) -> None:
        while self._lines and not self._waiting and not self.closed:
            line = self._lines.popleft()
            try:
                answer = self._handle(line)
            except BrokenChannelError as error:
                self._refuse_and_end(str(error))
                return
            except ChannelError as error:
                answer = refusal(str(error))
            if isinstance(answer, bytes):
                self._output += answer
            elif answer is not None:
                self._waiting = True
                answer.add_done_callback(self._late_answer)
        self._write()
        if self._at_end and not self._lines and not self._waiting:
            self.close()

    def _late_answer(self, answer: asyncio.Future[bytes]) -> None:
        self._waiting = False
        if self.closed:
            return
        self._output += answer.result()
        self._answer()

    def _handle(self, line: bytes) -> bytes | asyncio.Future[bytes] | None:
        """Return the reply or its future; None: `next` waits; BrokenChannelError if out of step."""
        request = parse_request(line)
        if self._waits_for_next:
            raise BrokenChannelError("no request may follow next before its reply")
        if isinstance(request, Hello):
            return self._greet(request)
        session = self._session
        if session is None:
            raise BrokenChannelError("say hello first")
        match request:
            case ParametersRequest(index=0):
                return session.parameters()
            case ParametersRequest():
                return reply(parameters=None)
            case Report():
                return session.report(request, self._pid)
            case CheckpointRequest():
                return session.save_checkpoint(request)
            case NextRequest():
                return self._wait_for_next(session)

    # the next trial

    @property
    def pid(self) -> int:
        """Process id of the peer, as the kernel knows it."""
        size = _CREDENTIALS.size
        pid, _, _ = _CREDENTIALS.unpack(
            self._peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        )
        return int(pid)

    def _wait_for_next(self, session: TrialSession) -> bytes | None:
        if not session.wait_for_next(self):
            return REPLY_NO_NEXT
        self._sockets.anonymous(self)
        self._session, self.token = None, None
        self._waits_for_next = True
        return None

    def hand_over(self, trial: NextTrial) -> asyncio.Future[bool]:
        """Send the next trial to the waiting process; return a future: whether it was accepted.

        Returns:
            True once the process has made the first request; False if it is gone.
        """
        accepted: asyncio.Future[bool] = self._loop.create_future()
        session = self._sockets.session_of(trial.token)
        if not self._waits_for_next or session is None:
            accepted.set_result(False)
            return accepted
        self._waits_for_next = False
        self._accepted, self._session, self.token = accepted, session, trial.token
        self._sockets.identified(self)
        line = next_trial_reply(trial.directory, trial.variables, trial.unset)
        try:
            sent = socket.send_fds(self._peer, [line], [trial.stdout, trial.stderr])
        except OSError:
            sent = 0
        if sent < len(line):  # the process waits for it, so that there is room
            self.close()
        return accepted

    def release(self) -> None:
        """Reply that there is no further trial, so that the process ends."""
        if self._waits_for_next:
            self._waits_for_next = False
            self._output += REPLY_NO_NEXT
            self._write()
            self.close()

    def _note_first_request(self, *, made: bool) -> None:
        if self._accepted is not None:
            accepted, self._accepted = self._accepted, None
            if not accepted.done():
                accepted.set_result(made)

    def _greet(self, hello: Hello) -> bytes:
        if self._session is not None:
            raise ChannelError("hello was said already")
        session = self._sockets.session_of(hello.token)
        if session is None:
            raise BrokenChannelError("this trial is over, or its token is wrong")
        self._session = session
        self._pid = hello.pid
        self.token = hello.token
        self._sockets.identified(self)
        return session.greet()

    def _write(self) -> None:
        if self.closed or not self._output:
            return
        try:
            sent = self._peer.send(self._output)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        self._output = self._output[sent:]
        # A peer that does not read its replies is not read either.
        if self._output:
            self._loop.remove_reader(self._number)
            self._loop.add_writer(self._number, self._write_more)

    def _write_more(self) -> None:
        self._write()
        if not self._output and not self.closed:
            self._loop.remove_writer(self._number)
            if not self._at_end:
                self._loop.add_reader(self._number, self.read)

    def _refuse_and_end(self, reason: str) -> None:
        self._lines.clear()
        self._output += refusal(reason)
        self._write()
        self.close()

    def close(self) -> None:
        """Close the socket connection and remove it from its server; may be called twice."""
        if self.closed:
            return
        self.closed = True
        self._waits_for_next = False
        self._note_first_request(made=False)
        self._loop.remove_reader(self._number)
        self._loop.remove_writer(self._number)
        self._peer.close()
        self._sockets.gone(self)


class UnixTrialSockets:
    """Unix socket server that connects trials, by secret token, to their sessions.

    Args:
        runtime_directory: parent of the folder; None: the system's temporary folder.
        code_user: account of trials, which alone may connect.
    """

    def __init__(
        self, runtime_directory: Path | None = None, code_user: CodeUser = SAME_USER
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._folder = _private_folder(runtime_directory)
        self._path = str(self._folder / _SOCKET)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(0)
        # The socket gets its name when it listens: one that refuses callers is an abandoned one.
        unfinished = str(self._folder / _UNFINISHED)
        with _locked(self._folder):
            self._listener.bind(unfinished)
            code_user.admit_to_socket(self._folder, unfinished)
            self._listener.listen(_BACKLOG)
            Path(unfinished).rename(self._path)
        self._sessions: dict[str, TrialSession] = {}
        self._strangers: set[_Connection] = set()
        self._by_token: dict[str, set[_Connection]] = {}
        self._on_quiet: dict[str, Callable[[], None]] = {}
        self._loop.add_reader(self._listener.fileno(), self._accept)

    @property
    def path(self) -> str:
        """Path of the socket; at most 107 bytes long."""
        return self._path

    def admit(self, token: str, session: TrialSession) -> None:
        """Register a trial's token: `session` serves the connections that present it."""
        self._sessions[token] = session

    def catch_up(self, token: str) -> bool:
        """Handle all that a token's connections have sent; return whether any is still open."""
        self._accept()
        for connection in list(self._strangers):
            connection.read_all()
        for connection in list(self._by_token.get(token, ())):
            connection.read_all()
        return bool(self._by_token.get(token))

    def when_quiet(self, token: str, call: Callable[[], None]) -> None:
        """Register a callback that runs once, when the last connection with `token` has closed."""
        self._on_quiet[token] = call

    def dismiss(self, token: str) -> None:
        """Forget a token and close the connections that used it."""
        self._sessions.pop(token, None)
        self._on_quiet.pop(token, None)
        for connection in list(self._by_token.get(token, ())):
            connection.close()

    def session_of(self, token: str) -> TrialSession | None:
        """Return the session of a token; None if the token is unknown."""
        return self._sessions.get(token)

    def anonymous(self, connection: _Connection) -> None:
        """Unregister a connection from its token; call back if it was the token's last one."""
        self.gone(connection)
        self._strangers.add(connection)

    def identified(self, connection: _Connection) -> None:
        """Move a connection to those of the token that it has presented."""
        self._strangers.discard(connection)
        assert connection.token is not None
        self._by_token.setdefault(connection.token, set()).add(connection)

    def gone(self, connection: _Connection) -> None:
        """Remove a closed connection; call back if it was the last of its token."""
        self._strangers.discard(connection)
        token = connection.token
        if token is None:
            return
        peers = self._by_token.get(token, set())
        peers.discard(connection)
        if not peers:
            self._by_token.pop(token, None)
            call = self._on_quiet.pop(token, None)
            if call is not None:
                call()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                return  # out of descriptors: the next event of the loop tries again
            peer.settimeout(0)
            connection = _Connection(self, peer)
            self._strangers.add(connection)
            connection.read()

    def close(self) -> None:
        """Delete the socket and its folder; close the listening socket and all connections."""
        self._loop.remove_reader(self._listener.fileno())
        # It listens until it has no name, so no other agent takes it for an abandoned one.
        Path(self._path).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self._folder.rmdir()
        self._listener.close()
        for connection in [*self._strangers, *(c for s in self._by_token.values() for c in s)]:
            connection.close()


def _private_folder(runtime_directory: Path | None) -> Path:
    """Create a private folder for the socket with a path short enough; remove abandoned ones.

    Folders that killed agents of this user have left beside it are removed.
    """
    if runtime_directory is not None:
        folder = runtime_directory / f"nni-{os.urandom(4).hex()}"
        if len(os.fsencode(folder / _SOCKET)) <= _PATH_LIMIT_BYTES:
            remove_abandoned(runtime_directory, "nni-")
            folder.mkdir(mode=0o700)
            return folder
    base = Path(tempfile.gettempdir())
    if len(os.fsencode(base)) > _PATH_LIMIT_BYTES // 2:
        base = Path("/tmp")  # noqa: S108 - the folder made there is private and has a random name
    prefix = f"nni-{os.getuid()}-"
    remove_abandoned(base, prefix)
    folder = base / f"{prefix}{os.urandom(4).hex()}"
    folder.mkdir(mode=0o700)
    return folder


def remove_abandoned(base: Path, prefix: str) -> None:
    """Delete socket folders of this user to whose sockets no process listens any more.

    Args:
        base: folder that holds them.
        prefix: of their names, before eight hexadecimal digits.
    """
    name = re.compile(re.escape(prefix) + "[0-9a-f]{8}")
    for folder in base.glob(f"{prefix}*"):
        with suppress(OSError):
            status = folder.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
            if ours and name.fullmatch(folder.name):
                _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    """Delete the socket folder of a killed agent; keep it or raise if the agent runs or starts.

    A socket that has no final name refuses callers while its agent starts, too. That agent holds
    the lock of the folder from before it binds, so that the lock is free only if it was killed.

    Raises:
        OSError: the folder has no socket (yet), its lock is held, or it is deleted already.
    """
    unfinished = folder / _UNFINISHED
    if unfinished.is_socket():
        with _locked(folder, wait=False):
            unfinished.unlink()
            folder.rmdir()
    elif not _listens(folder / _SOCKET):
        (folder / _SOCKET).unlink()
        folder.rmdir()


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder for the block: wait for it, best effort; without `wait` raise if it is locked.

    Raises:
        OSError: `wait` is false, and another process holds it or the file system has no locks.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if wait:
            # Some network file systems lock no folders: no agent deletes an unfinished socket there
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _listens(path: Path) -> bool:
    """Connect to a socket to return whether a process listens at it; True if unknown.

    Raises:
        FileNotFoundError: there is no socket (yet).
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(0)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            return True
    return True
