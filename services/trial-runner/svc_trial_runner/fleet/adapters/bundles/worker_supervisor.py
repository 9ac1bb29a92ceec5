"""Supervisor of one agent on a worker: rotates its log, records its end; standard library only.

It holds the lock of the agent's folder as long as the agent runs, so that no agent runs twice. The
agent gets its settings, which have secrets, on stdin; while it runs no file has them.
"""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

from svc_trial_runner.fleet.adapters.bundles.worker_bundles import SITE
from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    END,
    LOCK,
    LOG,
    PROCESS,
    SETTINGS,
    WorkerError,
    WorkerFolders,
    file_errors,
    make_private,
    write_fields,
    write_private,
)
from svc_trial_runner.fleet.adapters.bundles.worker_machine import boot_key, machine_key
from svc_trial_runner.fleet.adapters.bundles.worker_processes import MARK, kill_marked, start_time

LOG_LIMIT_BYTES: Final = 5 * 1024 * 1024
"""Of `agent.log`, and of `agent.log.1` before it."""
ALREADY_RUNS: Final = "already_runs"
_ERROR: Final = "ERROR:"
"""Begins a line by which an agent says why it ends."""
_READ_AT_END_BYTES: Final = 4000
_REASON_CHARACTERS: Final = 500
_LAST_OUTPUT_S: Final = 1.0
TETHER_GRACE_S: Final = 10.0
_CHUNK_BYTES: Final = 64 * 1024
_UNSUPPORTED: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


class LimitedLog:
    """Log file that is rotated at a size limit; one earlier file is kept.

    Args:
        path: of the file; output is appended.
        limit_bytes: of each of the two files.
    """

    def __init__(self, path: Path, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._file = path.open("ab", buffering=0)

    def write(self, data: bytes) -> None:
        """Append output, rotating the file at its limit; drop what a full disk refuses."""
        with suppress(OSError):
            if self._file.tell() + len(data) > self._limit_bytes and self._file.tell():
                with suppress(OSError):  # no room for another file: this one grows
                    self._rotate()
            self._file.write(data)

    def _rotate(self) -> None:
        with suppress(FileNotFoundError):  # renamed before, when the next one could not be made
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        following = self._path.open("ab", buffering=0)
        self._file.close()
        self._file = following

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def lock_agent(folder: Path) -> int | None:
    """Lock an agent's folder; return the descriptor, even without lock support; None: it is taken.

    Raises:
        OSError: the file of the lock cannot be created.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:  # some network file systems have no locks
            os.close(descriptor)
            raise
    return descriptor


class _Termination:
    """Handler of TERM and INT, which are passed on to the agent."""

    def __init__(self) -> None:
        self.requested = False
        self._agent: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._request())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def pass_to(self, agent: "subprocess.Popen[bytes]") -> None:
        """Set the agent; a request that came before it is passed on now."""
        self._agent = agent
        if self.requested:
            agent.terminate()

    def _request(self) -> None:
        self.requested = True
        if self._agent is not None:
            self._agent.terminate()


class Tether:
    """Pipe to the process for which an agent runs; when it closes, agent and trials are ended.

    Args:
        source: of which all that the supervisor needs was read.
        folder: of the agent.
        grace_s: time from the request to end to the kill.
    """

    def __init__(self, source: BinaryIO, folder: Path, grace_s: float = TETHER_GRACE_S) -> None:
        self._source = source
        self._folder = folder
        self._grace_s = grace_s
        self.is_cut = False

    def start(self) -> None:
        """Begin to wait for the end of the pipe, in a thread."""
        threading.Thread(target=self._wait, daemon=True, name="tether").start()

    def _wait(self) -> None:
        while self._source.read(1):
            continue
        self.is_cut = True
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self._grace_s)
        kill_marked(self._folder)


def detach() -> None:
    """Fork and continue in the child; the parent exits, so that its caller need not wait."""
    if os.fork():
        os._exit(0)


def supervise(folders: WorkerFolders, name: str, digest: str, settings: bytes | None = None) -> int:
    """Run an agent until it ends; return its exit code, 0 at once if another process runs it.

    A line `started` or `already_runs` is written to stdout before the agent's first output.

    Args:
        folders: of NNI.
        name: of the agent.
        digest: of the bundle that it runs from.
        settings: content of its file of settings; None: that file is in its folder, from which it
            is removed, and written again after a request to end, since a batch system may then run
            the agent once more.

    Raises:
        WorkerError: the folder cannot be used, or there are no settings.
    """
    folder = folders.agent(name)
    with file_errors(folder):
        make_private(folder)
        lock = lock_agent(folder)
        if lock is None:
            _notify(ALREADY_RUNS)
            return 0
        try:
            return _run(folders.bundle(digest), folder, digest, settings)
        finally:
            os.close(lock)


def _run(bundle: Path, folder: Path, digest: str, given: bytes | None) -> int:
    settings = _read_settings(folder) if given is None else given
    if not (bundle / SITE).is_dir():
        raise WorkerError("bundle_missing", f"{bundle} is not unpacked", permanent=False)
    kill_marked(folder)  # left by a supervisor that was killed
    (folder / END).unlink(missing_ok=True)
    log = LimitedLog(folder / LOG)
    termination = _Termination()
    write_fields(folder / PROCESS, _process(digest))
    os.putenv(MARK, str(folder))
    agent = subprocess.Popen(
        [sys.executable, "-I", "-S", str(bundle / "run.py"), "agent", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
    )
    termination.pass_to(agent)
    assert agent.stdin is not None
    with suppress(BrokenPipeError), agent.stdin:
        agent.stdin.write(settings)
    (folder / SETTINGS).unlink(missing_ok=True)
    _notify("started")
    code = _await_end(agent, log, folder)
    if given is None and termination.requested:
        write_private(folder / SETTINGS, settings)
    return code


def _read_settings(folder: Path) -> bytes:
    try:
        return (folder / SETTINGS).read_bytes()
    except FileNotFoundError as error:
        raise WorkerError("settings_missing", f"{folder} has no {SETTINGS}") from error


def _process(digest: str) -> dict[str, object]:
    return {
        "machine": machine_key(),
        "host": os.uname().nodename,
        "boot": boot_key(),
        "pid": os.getpid(),
        "start_time": start_time(os.getpid()),
        "bundle": digest,
        "started_at": time.time(),
    }


def _await_end(agent: "subprocess.Popen[bytes]", log: LimitedLog, folder: Path) -> int:
    assert agent.stdout is not None
    reader = threading.Thread(target=_copy, args=(agent.stdout, log), daemon=True)
    reader.start()
    code = agent.wait()
    code = 128 - code if code < 0 else code
    kill_marked(folder)  # not this process: the environment that it began with has no mark
    reader.join(_LAST_OUTPUT_S)  # a trial in a session of its own may hold the pipe
    end = {"exit_code": code, "reason": _last_words(folder / LOG), "ended_at": time.time()}
    with suppress(FileNotFoundError):  # an agent that was given up removes its folder
        write_fields(folder / END, end)
    return code


def _copy(source: IO[bytes], log: LimitedLog) -> None:
    while chunk := os.read(source.fileno(), _CHUNK_BYTES):
        log.write(chunk)


def _last_words(path: Path) -> str:
    """Return the last error in a log, else its last line."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _READ_AT_END_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in lines if line.startswith(_ERROR)]
        return (errors or lines or [""])[-1][:_REASON_CHARACTERS]
    return ""


def _notify(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()
