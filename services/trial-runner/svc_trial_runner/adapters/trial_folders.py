"""Folders of trials on disk, and the pipes that lead into their files.

A no-op trial costs two folders, five files and two pipes; so everything here calls the operating
system directly, without threads and without buffers. `trial.log` is a second name of `stdout`: it
has the same content, and a link costs a fiftieth of a file on a busy disk.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.logs import get_logger
from svc_trial_runner.domain.output import STDERR, STDOUT, TRIAL_LOG, OutputLimit, Tail, tail_bytes
from svc_trial_runner.ports import LaunchError, TrialFilesRequest

_READ_BYTES: Final = 64 * 1024
"""Size of a pipe."""
_READS_AT_ONCE: Final = 8
"""Reads of a full pipe before other callbacks get their turn."""
_CUT_READS: Final = 64
"""Reads of a full pipe at most when it is cut; its holder may be writing all the time."""
_TAIL_BYTES: Final = 4096
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
"""Without following a link that an earlier attempt of the trial has put in the place of a file."""
_APPEND: Final = _CREATE | os.O_APPEND
"""Append mode, since others may append as well: a trial may log to its `trial.log`."""


class _Pipe:
    """Reader of a trial's stdout or stderr pipe, which copies output to a file up to a limit."""

    __slots__ = ("_broken", "_file", "_limit", "_loop", "_on_data", "_on_end", "reader", "writer")

    def __init__(
        self,
        file: int,
        limit_bytes: int,
        on_data: Callable[["_Pipe", bytes], None],
        on_end: Callable[["_Pipe"], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._file = file
        self._limit = OutputLimit(limit_bytes, tail_bytes(limit_bytes))
        self._on_data = on_data
        self._on_end = on_end
        self._broken = False
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reader, False)
        self._loop.add_reader(self.reader, self._read)

    def close_writer(self) -> None:
        """Close the agent's copy of the pipe's write end, so that the reader sees end of file."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def _read(self) -> None:
        self._take(_READS_AT_ONCE)

    def _take(self, reads: int) -> None:
        for _ in range(reads):
            try:
                chunk = os.read(self.reader, _READ_BYTES)
            except BlockingIOError:
                return
            if not chunk:
                self._end()
                return
            self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        kept = self._limit.take(chunk)
        if kept:
            self._write(kept)
        self._on_data(self, chunk)

    def _write(self, data: bytes) -> None:
        """Append output to the file; log the first error of a series, lose the output."""
        try:
            _write(self._file, data)
            self._broken = False
        except OSError as error:
            if not self._broken:
                get_logger().warning("output not written", error=str(error))
            self._broken = True

    def catch_up(self) -> None:
        """Read the bytes that the pipe holds now, up to a bound."""
        if self.reader >= 0:
            self._take(_CUT_READS)

    def cut(self) -> None:
        """Read the bytes that the pipe holds now, up to a bound; close it despite other writers."""
        if self.reader < 0:
            return
        for _ in range(_CUT_READS):
            try:
                chunk = os.read(self.reader, _READ_BYTES)
            except BlockingIOError:
                break
            if not chunk:
                break
            self._keep(chunk)
        self._end()

    def _end(self) -> None:
        rest = self._limit.end()
        if rest:
            self._write(rest)
        self._loop.remove_reader(self.reader)
        os.close(self.reader)
        self.reader = -1
        self.close_writer()
        self._on_end(self)


class OpenTrialFolder:
    """Handle of a running trial's folder: output pipes into files, stderr's tail, state file."""

    __slots__ = (
        "_code_user",
        "_directory",
        "_files",
        "_open",
        "_stderr",
        "_stdout",
        "_tail",
        "_watchers",
        "at_end",
    )

    def __init__(
        self, directory: str, files: tuple[int, int], limit_bytes: int, code_user: CodeUser
    ) -> None:
        self._directory = directory
        self._code_user = code_user
        self._files = files
        self._tail = Tail(_TAIL_BYTES)
        self._watchers: list[Callable[[], None]] = []
        self._open = 2
        self.at_end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stdout, stderr = files
        self._stdout = _Pipe(stdout, limit_bytes, self._on_data, self._on_pipe_end)
        try:
            self._stderr = _Pipe(stderr, limit_bytes, self._on_data, self._on_pipe_end)
        except OSError:  # out of descriptors, which the first pipe must not hold
            self._stdout.cut()
            raise

    @property
    def stdout(self) -> int:
        """Descriptor of the write end of the pipe for stdout; -1 after `launched`."""
        return self._stdout.writer

    @property
    def stderr(self) -> int:
        """Descriptor of the write end of the pipe for stderr; -1 after `launched`."""
        return self._stderr.writer

    def launched(self) -> None:
        """Close the agent's copies of the pipes: the process holds its own."""
        self._stdout.close_writer()
        self._stderr.close_writer()

    def catch_up(self) -> bool:
        """Read the bytes that both pipes hold now, up to a bound; return whether both ended."""
        self._stdout.catch_up()
        self._stderr.catch_up()
        return self.at_end.done()

    def cut(self) -> None:
        """Read the bytes that the pipes hold now, and close them even if a writer remains."""
        self._stdout.cut()
        self._stderr.cut()

    def stderr_tail(self) -> str:
        """Return the last lines of stderr, within `_TAIL_BYTES`."""
        return self._tail.text()

    def write_state(self, line: str) -> None:
        """Write the exit line to the trial's `.nni/state`; an error is only logged."""
        try:
            with self._code_user.acting():
                _write_file(f"{self._directory}/.nni/state", line.encode())
        except OSError as error:
            get_logger().warning("state not written", folder=self._directory, error=str(error))

    def watch(self, on_output: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for each piece of output; return a function that cancels it."""
        self._watchers.append(on_output)
        return lambda: self._watchers.remove(on_output)

    def announce(self) -> None:
        """Call the watchers, as after output: a file of the folder has grown."""
        for watcher in self._watchers:
            watcher()

    def _on_data(self, pipe: _Pipe, chunk: bytes) -> None:
        if pipe is self._stderr:
            self._tail.add(chunk)
        self.announce()

    def _on_pipe_end(self, _pipe: _Pipe) -> None:
        self._open -= 1
        if self._open:
            return
        for file in self._files:
            os.close(file)
        if not self.at_end.done():
            self.at_end.set_result(None)
        for watcher in self._watchers:
            watcher()


class DiskTrialFolders:
    """Creator of trial folders with scripts, parameters and output files.

    Args:
        default_limit_bytes: limit of each stream where a trial's spec sets none.
        code_user: account of trials, which the files belong to.
    """

    def __init__(self, default_limit_bytes: int, code_user: CodeUser = SAME_USER) -> None:
        self._default_limit_bytes = default_limit_bytes
        self._code_user = code_user

    def prepare(self, directory: str, output_folder: str = "") -> None:
        """Create trial and output folder if a separate user or an output folder needs them.

        For the agent's own user the trial's folder is created later.

        Raises:
            LaunchError: a folder cannot be created or shared.
        """
        if self._code_user.uid is None and not output_folder:
            return
        try:
            for folder in (directory, f"{directory}/{output_folder}".rstrip("/")):
                os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as below
                if self._code_user.uid is not None:
                    self._code_user.share(folder)
        except OSError as error:
            raise LaunchError(f"the trial's folder cannot be shared: {error}") from error

    async def release(self, directory: str) -> None:
        """Let the services read and delete an ended trial's files.

        Nothing happens if trials run as the agent's own user.
        """
        if self._code_user.uid is not None:
            await asyncio.to_thread(self._code_user.open_to_services, directory)

    def open(self, request: TrialFilesRequest) -> OpenTrialFolder:
        """Create a trial's folder with script, parameters, outputs; open pipes of stdout, stderr.

        Raises:
            LaunchError: the folder cannot be written.
        """
        # The pipes, too: a trial may open its output again by name, as /dev/stdout.
        with self._code_user.acting():
            return self._open(request)

    def _open(self, request: TrialFilesRequest) -> OpenTrialFolder:
        directory = str(request.directory)
        files: list[int] = []
        try:
            _make_folders(directory)
            _write_file(f"{directory}/run.sh", request.run_script.encode(), 0o755)
            _write_file(f"{directory}/parameter.cfg", request.parameter_file.encode())
            files.append(os.open(f"{directory}/{STDOUT}", _APPEND, 0o644))
            files.append(os.open(f"{directory}/{STDERR}", _APPEND, 0o644))
            _name_again(f"{directory}/{STDOUT}", f"{directory}/{TRIAL_LOG}")
            limit_bytes = request.output_limit_bytes or self._default_limit_bytes
            return OpenTrialFolder(directory, (files[0], files[1]), limit_bytes, self._code_user)
        except OSError as error:
            for file in files:
                os.close(file)
            raise LaunchError(f"the trial's folder cannot be written: {error}") from error


def _make_folders(directory: str) -> None:
    """Create the folder of a trial and `.nni` in it, unless they exist."""
    folder = f"{directory}/.nni"
    try:
        # Only the first trial of an experiment lacks the parent; `makedirs` would look for it.
        with suppress(FileExistsError):
            os.mkdir(directory)  # noqa: PTH102 - costs half of Path.mkdir
        os.mkdir(folder)  # noqa: PTH102 - as above
    except (FileNotFoundError, FileExistsError):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above


def _name_again(path: str, name: str) -> None:
    """Add a second name of a file by a hard link, else a symbolic one; leave an existing name."""
    try:
        os.link(path, name)
    except FileExistsError:
        return  # exists from an earlier attempt
    except OSError:
        os.symlink(os.path.basename(path), name)  # noqa: PTH119, PTH211 - as above


def _write_file(path: str, data: bytes, mode: int = 0o644) -> None:
    file = os.open(path, _CREATE, mode)
    try:
        _write(file, data)
    finally:
        os.close(file)


def _write(file: int, data: bytes) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, data[written:])
