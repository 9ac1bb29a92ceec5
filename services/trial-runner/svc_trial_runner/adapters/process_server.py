"""Client of a process server: a warm interpreter, or the spawner, which start trials.

Requests are messages on a `SOCK_SEQPACKET` pair, with the descriptors of stdout and stderr beside
them, and the server answers with events; `docs/trial-protocol.md` has all of them.
"""

import array
import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.logs import get_logger
from svc_trial_runner.adapters.process_table import identity_of, signal_group
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.ports import LaunchError, StarterEndedError, UnfitTrialError

_MESSAGE_LIMIT_BYTES: Final = 256 * 1024
_KILL: Final = 9
_STARTER_ENDED: Final = "the process that starts trials has ended"
TAKEOVER_TIMEOUT_S: Final = 5.0
"""Time for a generation to take over from a dead one and answer the requests in the socket."""
START_TIMEOUT_S: Final = 30.0
"""Time limit of a start; an unanswered one was received by a process that died meanwhile."""


class ServedProcess:
    """Trial process that a process server started: identity, warm or not, future of its end."""

    __slots__ = ("ended", "identity", "warm")

    def __init__(
        self, identity: ProcessIdentity, *, warm: bool, ended: asyncio.Future[int | None]
    ) -> None:
        self.identity = identity
        self.warm = warm
        self.ended = ended


class _Launch:
    """Trial start sent to a process server: futures of start and end, deadline, and process."""

    __slots__ = ("deadline_s", "ended", "process", "started")

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.started: asyncio.Future[ServedProcess] = loop.create_future()
        self.ended: asyncio.Future[int | None] = loop.create_future()
        self.process: ServedProcess | None = None


class ProcessServer:
    """Client of a child process (warm interpreter or spawner) that starts trials on request.

    Args:
        command: argument list; `{fd}` stands for the number of the control socket.
        environment: variables of the server.
        warm: whether its trials count as warm.
        on_gone: called once, when the server has ended or reported itself unfit.
        on_end: called once, when the server has ended.
        code_user: account of the server and its trials.
        start_timeout_s: time limit of a start; an unanswered one was received by a process that
            died meanwhile.
        takeover_timeout_s: time for a generation to take over from a dead one and answer the
            requests in the socket, in seconds.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        warm: bool,
        on_gone: Callable[["ProcessServer"], None],
        on_end: Callable[[ProcessIdentity], None] = lambda _: None,
        code_user: CodeUser = SAME_USER,
        start_timeout_s: float = START_TIMEOUT_S,
        takeover_timeout_s: float = TAKEOVER_TIMEOUT_S,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._warm = warm
        self._on_gone = on_gone
        self._on_end = on_end
        self._start_timeout_s = start_timeout_s
        self._takeover_timeout_s = takeover_timeout_s
        self._launches: dict[str, _Launch] = {}
        self._starts_timer: asyncio.TimerHandle | None = None
        """One for all starts, since most of them take a millisecond."""
        self._unsent: list[tuple[bytes, tuple[int, ...]]] = []
        self._gone = False
        self.retired_by_us = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(0)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self._control.setsockopt(socket.SOL_SOCKET, option, _MESSAGE_LIMIT_BYTES)
        try:
            self._process = subprocess.Popen(
                [word.replace("{fd}", str(theirs.fileno())) for word in command],
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                **code_user.process_options,
            )
        except OSError as error:
            self._control.close()
            raise LaunchError(f"cannot start {command[0]}: {error}") from error
        finally:
            theirs.close()
        self.identity = identity_of(self._process.pid) or ProcessIdentity(self._process.pid, 0)
        self._loop.add_reader(self._control.fileno(), self._receive)

    @property
    def gone(self) -> bool:
        """True if the server accepts no more starts."""
        return self._gone

    @property
    def running(self) -> int:
        """Number of the server's trials that have not ended."""
        return len(self._launches)

    def ends_with(self, pids: Collection[int]) -> bool:
        """Return whether no trial is left once these processes have ended."""
        return all(
            launch.process is not None and launch.process.identity.pid in pids
            for launch in self._launches.values()
        )

    def trial_pids(self) -> list[int]:
        """Return the process ids of the server's trials that have not ended."""
        started = (launch.process for launch in self._launches.values())
        return [process.identity.pid for process in started if process is not None]

    async def start(
        self, label: str, message: Mapping[str, Any], descriptors: tuple[int, int]
    ) -> ServedProcess:
        """Send a start request with its output descriptors; return the started trial process.

        Args:
            label: unique name among the running trials.
            message: fields of the protocol's `start` beside `op` and `id`.
            descriptors: stdout and stderr; owned by the caller.

        Raises:
            LaunchError: the server refused, or has ended.
        """
        if self._gone:
            raise StarterEndedError(_STARTER_ENDED)
        data = _encoded({"op": "start", "id": label, **message})
        deadline_s = self._loop.time() + self._start_timeout_s
        launch = self._launches[label] = _Launch(self._loop, deadline_s)
        self._send(data, descriptors)
        if self._starts_timer is None:
            self._starts_timer = self._loop.call_at(deadline_s, self._time_out_starts)
        return await launch.started

    def orphan_ended(self, pid: int, status: int) -> None:
        """Resolve the end of a trial of this server that the agent reaped after its starter died.

        Nothing happens if it is no trial of this server. The kernel kills trials with their parent,
        so an end by KILL does not show the trial's own end: its status is unknown.
        """
        for label, launch in self._launches.items():
            if launch.process is not None and launch.process.identity.pid == pid:
                del self._launches[label]
                _resolve(launch.ended, None if status & 0x7F == _KILL else status)
                return

    def _time_out_starts(self) -> None:
        """Fail the starts that are overdue; set the timer for the others, if there are any."""
        now_s = self._loop.time()
        waiting = [(name, one) for name, one in self._launches.items() if one.process is None]
        for label, launch in waiting:
            if launch.deadline_s <= now_s:
                self._time_out_start(label)
        next_s = min((one.deadline_s for _, one in waiting if one.deadline_s > now_s), default=None)
        self._starts_timer = (
            None if next_s is None else self._loop.call_at(next_s, self._time_out_starts)
        )

    def _time_out_start(self, label: str) -> None:
        launch = self._launches.get(label)
        if launch is not None and launch.process is None:
            del self._launches[label]
            _reject(launch.started, f"no answer within {self._start_timeout_s:g} s")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the process server that needs no answer.

        Raises:
            UnfitTrialError: it is too long.
        """
        self._send(_encoded(message), ())

    def _send(self, data: bytes, descriptors: tuple[int, ...]) -> None:
        if self._unsent or not self._try_send(data, descriptors):
            self._unsent.append((data, tuple(os.dup(number) for number in descriptors)))
            self._loop.add_writer(self._control.fileno(), self._send_more)

    def _try_send(self, data: bytes, descriptors: tuple[int, ...]) -> bool:
        ancillary = []
        if descriptors:
            rights = array.array("i", descriptors)
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        try:
            self._control.sendmsg([data], ancillary)
        except BlockingIOError:
            return False
        except OSError:
            return True  # it has ended; the reader notices and fails the starts in progress
        return True

    def _send_more(self) -> None:
        while self._unsent:
            data, descriptors = self._unsent[0]
            if not self._try_send(data, descriptors):
                return
            del self._unsent[0]
            for number in descriptors:
                os.close(number)
        self._loop.remove_writer(self._control.fileno())

    def _receive(self) -> None:
        while True:
            try:
                data = self._control.recv(_MESSAGE_LIMIT_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._end()
                return
            self._handle(json.loads(data))

    def _handle(self, message: dict[str, Any]) -> None:
        event, label = message.get("event"), message.get("id", "")
        launch = self._launches.get(label)
        if event == "started" and launch is None:
            # The start has timed out.
            signal_group(message["pid"], signal.SIGKILL)
        elif event == "started" and launch is not None:
            identity = ProcessIdentity(message["pid"], message["start_time"])
            launch.process = ServedProcess(identity, warm=self._warm, ended=launch.ended)
            _resolve(launch.started, launch.process)
        elif event == "exited" and launch is not None:
            del self._launches[label]
            if launch.process is None:
                _reject(launch.started, "it ended before it began to run")
            _resolve(launch.ended, message["status"])
        elif event == "refused" and launch is not None:
            del self._launches[label]
            _reject(launch.started, str(message.get("reason")))
        elif event == "unfit":
            get_logger().warning("interpreter unfit for trials", reason=message.get("reason"))
            self._retire()
        elif event == "dropped":
            get_logger().info(
                "module not preloaded", module=message.get("module"), reason=message.get("reason")
            )
            if not message.get("module"):
                self._check_starts()

    def _check_starts(self) -> None:
        """After a takeover inside the server, schedule the failure of starts still unanswered.

        The ancestor answers the starts still in the socket before anything sent later; so a start
        that is unanswered a while after that was lost.
        """
        for label, launch in self._launches.items():
            if launch.process is None:
                self._loop.call_later(self._takeover_timeout_s, self._time_out_start, label)

    def _retire(self) -> None:
        """Mark the server as accepting no more starts and call `on_gone`; trials continue."""
        if not self._gone:
            self._gone = True
            self._on_gone(self)

    def _end(self) -> None:
        """After the server's end, fail its starts, resolve its trials as unknown, close sockets."""
        if self._starts_timer is not None:
            self._starts_timer.cancel()
            self._starts_timer = None
        self._loop.remove_reader(self._control.fileno())
        self._loop.remove_writer(self._control.fileno())
        self._control.close()
        for _, descriptors in self._unsent:
            for number in descriptors:
                os.close(number)
        self._unsent.clear()
        self._retire()
        launches, self._launches = self._launches, {}
        for launch in launches.values():
            if not launch.started.done():
                launch.started.set_exception(StarterEndedError(_STARTER_ENDED))
            _resolve(launch.ended, None)
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._on_end(self.identity)

    def quit(self) -> None:
        """Order the process server to end after its last trial; accept no more starts."""
        self.retired_by_us = True
        self._retire()
        if self._control.fileno() >= 0:
            self.send({"op": "quit"})

    def close(self) -> None:
        """End the process server at once with all its trials."""
        self.retired_by_us = True
        self._gone = True
        if self._control.fileno() >= 0:
            self._end()


def _encoded(message: Mapping[str, Any]) -> bytes:
    data = json.dumps(message).encode()
    if len(data) > _MESSAGE_LIMIT_BYTES:
        raise UnfitTrialError(
            "command and variables of a trial must have less than "
            f"{_MESSAGE_LIMIT_BYTES} bytes, got {len(data)}"
        )
    return data


def _resolve(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: asyncio.Future[Any], reason: str) -> None:
    if not future.done():
        future.set_exception(LaunchError(reason))
