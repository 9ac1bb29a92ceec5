"""What the agent needs from the machine it runs on, as promises.

All of it belongs to the event loop that made it. Nothing here polls: ends and output arrive as
events of the loop.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from svc_trial_runner.domain.channel import Report
from svc_trial_runner.domain.claims import JournalRecord, JournalState, ProcessIdentity
from svc_trial_runner.domain.command import PythonCommand
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.domain.tasks import BlobKey


class LaunchError(Exception):
    """A trial's process could not be made; the text says why, for the user."""


# --- processes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One process to be started as the leader of a new session and group."""

    label: str
    """Differs between all processes that run at once."""
    command: str
    """For bash."""
    python: PythonCommand | None
    """The same line, understood; None: only bash can run it."""
    code: str
    """Folder that its code comes from: trials with the same one may share an interpreter."""
    directory: str
    """Working directory: that folder, or the trial's own copy of it."""
    base: Mapping[str, str]
    """Variables shared by many trials; the same object for all of them."""
    variables: Mapping[str, str]
    """This trial's own; they win."""
    stdout: int
    """Descriptor; stays the caller's."""
    stderr: int
    """Descriptor; stays the caller's."""


class TrialProcess(Protocol):
    """A started trial."""

    @property
    def identity(self) -> ProcessIdentity:
        """Its leader; the group and the session have the same number."""
        ...

    @property
    def warm(self) -> bool:
        """Whether a warm interpreter runs it."""
        ...

    @property
    def ended(self) -> asyncio.Future[int | None]:
        """The wait status of the leader; None: unknown, since what had started it died."""
        ...


class Processes(Protocol):
    """Starts trials and ends them."""

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        """Start a process.

        Raises:
            LaunchError: it cannot be started.
        """
        ...

    def terminate(self, process: TrialProcess, token: str) -> None:
        """Send TERM to its group and to its descendants that left the group."""
        ...

    def kill(self, process: TrialProcess, token: str) -> None:
        """Send KILL to all of them, wherever they are by now."""
        ...

    def has_leftovers(self, process: TrialProcess) -> bool:
        """Whether its group has members though its leader is gone."""
        ...

    def release(self, code: str) -> None:
        """No trial with this code will come for now: end what waits for one."""
        ...

    def release_idle(self, idle_s: float) -> None:
        """End what has waited for a trial for `idle_s` or longer."""
        ...

    @property
    def warm_count(self) -> int:
        """How many warm interpreters there are."""
        ...

    async def aclose(self) -> None:
        """End everything that was started."""
        ...


class Sweeper(Protocol):
    """Ends what an earlier agent has left."""

    def sweep(self, state: JournalState) -> int:
        """Kill what is left of the claims and servers of a journal; return how many processes."""
        ...


# --- files of a trial -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialFilesRequest:
    """What stands in a trial's folder when it starts."""

    directory: Path
    run_script: str
    parameter_file: str
    output_limit_bytes: int


class TrialOutput(Protocol):
    """The folder of one trial while it runs, and the pipes that lead there."""

    @property
    def stdout(self) -> int:
        """Write end of the pipe for stdout, until `launched`."""
        ...

    @property
    def stderr(self) -> int:
        """Write end of the pipe for stderr, until `launched`."""
        ...

    def launched(self) -> None:
        """The process holds its ends of the pipes: close ours."""
        ...

    @property
    def at_end(self) -> asyncio.Future[None]:
        """Done when nobody can write any more and everything is in the files."""
        ...

    def catch_up(self) -> bool:
        """Take what is in the pipes now; return whether `at_end` is done."""
        ...

    def cut(self) -> None:
        """Take what is in the pipes now and close them, whoever may still hold the other end."""
        ...

    def stderr_tail(self) -> str:
        """Give the last lines of stderr."""
        ...

    def write_state(self, line: str) -> None:
        """Write `.nni/state`."""
        ...

    def watch(self, on_output: Callable[[], None]) -> Callable[[], None]:
        """Call back after each piece of output; returns how to stop that."""
        ...


class TrialFolders(Protocol):
    """Makes the folders of trials."""

    def open(self, request: TrialFilesRequest) -> TrialOutput:
        """Make the folder, its files and the pipes.

        Raises:
            LaunchError: the folder cannot be written; the text says why.
        """
        ...


# --- trial socket ---------------------------------------------------------------------------


class TrialSession(Protocol):
    """What a trial may ask for on its socket."""

    def greet(self) -> bytes:
        """Answer hello."""
        ...

    def parameters(self) -> bytes:
        """Answer the request for parameters."""
        ...

    def report(self, report: Report, pid: int) -> bytes | asyncio.Future[bytes]:
        """Take a metric over and answer; a future if that takes time."""
        ...


class TrialSockets(Protocol):
    """The one socket on which all trials of this agent call."""

    @property
    def path(self) -> str:
        """Its path; at most 107 bytes long."""
        ...

    def admit(self, token: str, session: TrialSession) -> None:
        """Let whoever shows `token` use `session`."""
        ...

    def catch_up(self, token: str) -> bool:
        """Read everything that has been sent with `token` so far.

        Returns:
            Whether somebody still holds a connection.
        """
        ...

    def when_quiet(self, token: str, call: Callable[[], None]) -> None:
        """Call once, when the last connection with `token` has gone."""
        ...

    def dismiss(self, token: str) -> None:
        """Refuse `token` from now on and close its connections."""
        ...


# --- durable state --------------------------------------------------------------------------


class ClaimJournal(Protocol):
    """What this agent holds, readable by the next one."""

    @property
    def state(self) -> JournalState:
        """What the records add up to."""
        ...

    def append(self, *records: JournalRecord) -> None:
        """Add records; they survive the death of this process as soon as this returns.

        A disk that is full or broken loses only that: the state in memory has them.
        """
        ...

    def forget_servers(self) -> None:
        """Drop the predecessor's servers: they have been swept."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


@dataclass(frozen=True, slots=True)
class SpooledReport:
    """One report on its way to the manager."""

    experiment_id: str
    entry: bytes
    """The report, serialised."""
    acknowledged: bool
    """Whether the manager's inbox has it."""


class ReportSpool(Protocol):
    """Reports on disk until the manager's inbox has them."""

    def inherited(self) -> Sequence[SpooledReport]:
        """Give what the predecessor left, in order; once."""
        ...

    def discard_inherited(self) -> None:
        """Remove what the predecessor left: what still counts of it has been appended again."""
        ...

    def append(self, reports: Iterable[tuple[str, bytes]]) -> None:
        """Add (experiment id, report) pairs; they survive the death of this process.

        A disk that is full or broken loses only that: the reports are still in memory.
        """
        ...

    def acknowledge(self, experiment_id: str, count: int) -> None:
        """The oldest `count` unacknowledged reports of an experiment have arrived."""
        ...

    def before_forgetting(self, call: Callable[[], None]) -> None:
        """Call back each time before acknowledged reports are removed from disk."""
        ...

    def close(self) -> None:
        """Release the files."""
        ...


# --- devices, code, environment -------------------------------------------------------------


class GpuDevices(Protocol):
    """The GPUs of this machine."""

    async def devices(self) -> Sequence[GpuDevice]:
        """Tell what is there now and who uses it; empty if there is no driver."""
        ...


class ProcessTable(Protocol):
    """Who belongs to whom among the processes of this machine."""

    def own(self, process_ids: Iterable[int]) -> frozenset[int]:
        """Give those that are descendants of this agent."""
        ...


class CodeStore(Protocol):
    """Code archives, unpacked."""

    async def materialise(self, archive: BlobKey) -> Path:
        """Give the folder with the content of an archive; unpacked once per content.

        Raises:
            LaunchError: the archive is missing, damaged, too large, or names files outside.
        """
        ...

    async def copy(self, place: Path, target: Path) -> None:
        """Give a trial a copy of its own, in place of what an earlier attempt left there.

        Raises:
            LaunchError: it cannot be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """A trial whose folder is complete."""

    experiment_id: str
    trial_id: str
    attempt: int
    directory: str


class TrialBlobs(Protocol):
    """Brings bytes of trials to this machine and away from it.

    Calls wait while the store is away or has no room; who must not wait for ever cancels them.
    """

    @property
    def trouble(self) -> str:
        """What calls wait for now, in words; empty: for nothing."""
        ...

    async def fetch(self, blob: BlobKey, path: Path) -> None:
        """Write a blob to a file, which appears whole or not at all.

        Raises:
            NotFoundError: it is not there.
            DataLossError: it is damaged.
        """
        ...

    async def keep_checkpoint(self, experiment_id: str, path: Path) -> BlobKey:
        """Store the content of a file by content."""
        ...

    async def keep_output(self, trial: FinishedTrial, file_name: str, path: Path) -> None:
        """Store a file of a trial in place of an earlier one of this name."""
        ...


class FolderArchives(Protocol):
    """Folders as archives; its calls block."""

    def pack(self, folder: Path, archive: Path, without: frozenset[str] = frozenset()) -> int:
        """Write a folder, but for some names directly in it, to a file; return how many files.

        Raises:
            OSError: something cannot be read or written.
        """
        ...

    def extract(self, archive: Path, folder: Path) -> None:
        """Make a folder of an archive that anyone may have made.

        Raises:
            ServiceError: it is damaged, too large, or leads outside of the folder.
        """
        ...


class UploadSpool(Protocol):
    """Remembers whose folders are to be stored; survives the death of this process.

    A disk that is full or broken loses only that: those in memory are stored all the same.
    """

    def inherited(self) -> Sequence[FinishedTrial]:
        """Give what a predecessor has not done, oldest first."""
        ...

    def add(self, trial: FinishedTrial) -> None:
        """Remember a trial."""
        ...

    def done(self, trial: FinishedTrial) -> None:
        """Forget a trial."""
        ...


@dataclass(frozen=True, slots=True)
class ClientEnvironment:
    """Where an experiment was created from."""

    variables: Mapping[str, str]
    interpreter: str | None
    """The client's Python."""


class Environments(Protocol):
    """Environments of creating clients."""

    def load(self, path: str) -> ClientEnvironment:
        """Read an environment file; empty path: the agent's own environment.

        The same object is returned while the file does not change.

        Raises:
            LaunchError: it cannot be read.
        """
        ...


class LargeValues(Protocol):
    """Large values in the byte store."""

    async def load(self, blob: BlobKey) -> Any:  # noqa: ANN401 - any JSON value
        """Give the JSON value.

        Raises:
            LaunchError: it is not there.
        """
        ...

    async def store(self, value: Any) -> BlobKey:  # noqa: ANN401 - any JSON value
        """Keep a JSON value."""
        ...
