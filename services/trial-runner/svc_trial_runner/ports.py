"""Ports of the agent: what its use cases need from the machine and the blob store.

All objects belong to the event loop that made them. Nothing polls: ends and output arrive as
events of the loop. The module is longer than others, as all ports of a service stand in one.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from svc_trial_runner.domain.channel import CheckpointRequest, Report
from svc_trial_runner.domain.claims import (
    AttemptKey,
    JournalRecord,
    JournalState,
    ProcessIdentity,
)
from svc_trial_runner.domain.command import PythonCommand
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.domain.resource_use import GpuUse, ProcessUse
from svc_trial_runner.domain.tasks import BlobKey, TrialCheckpoint


class LaunchError(Exception):
    """Failure to start a trial; the text is for the user."""


class UnfitTrialError(LaunchError):
    """Failure to start a trial that is the trial's own: each further start would fail, too."""


class StarterEndedError(LaunchError):
    """Error: the process that starts trials has ended: no fault of the trial."""


# --- processes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Request to start a trial's process: command, folder, variables, output descriptors."""

    label: str
    """Unique among all processes that run at once."""
    command: str
    """Command line for bash."""
    python: PythonCommand | None
    """The same line, parsed; None: only bash can run it."""
    code: str
    """Folder of the code: trials with the same folder may share an interpreter."""
    directory: str
    """Working directory: the code folder, or the trial's own copy of it."""
    base: Mapping[str, str]
    """Variables shared by many trials; the same object for all of them."""
    variables: Mapping[str, str]
    """The trial's own variables, which override the shared ones."""
    stdout: int
    """Descriptor; owned by the caller."""
    stderr: int
    """Descriptor; owned by the caller."""
    isolated: bool = False
    """True if the process that starts it must start no other."""
    reuse_group: str = ""
    """Trials of the same group may run in one process, one after another; empty: none may."""


class TrialProcess(Protocol):
    """Interface of a trial's running process: identity and future of its end."""

    @property
    def identity(self) -> ProcessIdentity:
        """Leader of the process group; group and session have the same number."""
        ...

    @property
    def warm(self) -> bool:
        """True if it runs in a warm interpreter."""
        ...

    @property
    def ended(self) -> asyncio.Future[int | None]:
        """Wait status of the leader; None: unknown, since the process that started it died."""
        ...


class Processes(Protocol):
    """Interface of trial processes: launch, terminate, kill; end idle interpreters and orphans."""

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        """Start a trial's process, warm if possible; raise LaunchError if it cannot start.

        Raises:
            LaunchError: the process cannot be started.
        """
        ...

    def terminate(self, process: TrialProcess, token: str) -> None:
        """Send TERM to the group and to descendants that left it."""
        ...

    def kill(self, process: TrialProcess, token: str) -> None:
        """Send KILL to the group and to all descendants."""
        ...

    def has_leftovers(self, process: TrialProcess) -> bool:
        """Return whether members of a trial's process group, or daemons of trials, still run."""
        ...

    def kill_orphans(self, older_than: int | None) -> int:
        """Kill adopted processes that no running trial owns; return their number.

        A daemon without a trial's token belongs to no running trial for sure if it is older than
        the processes of all of them.

        Args:
            older_than: start time of the oldest process whose trial is not over, in clock ticks of
                the machine; None: no trial runs.
        """
        ...

    def release(self, code: str, ending: Collection[int] = ()) -> None:
        """End idle interpreters of a code folder that no trial needs for now.

        Args:
            code: the folder.
            ending: ids of processes that end by themselves; an interpreter whose other processes
                have ended is idle.
        """
        ...

    def release_idle(self, idle_s: float) -> None:
        """End interpreters that have been idle for `idle_s` or longer."""
        ...

    def continue_stopped(self) -> None:
        """Send SIGCONT to process servers, which a trial may have stopped by SIGSTOP."""
        ...

    @property
    def warm_count(self) -> int:
        """Number of warm interpreters."""
        ...

    async def aclose(self) -> None:
        """End all processes that were started."""
        ...


class Sweeper(Protocol):
    """Interface that kills the processes an earlier agent has left."""

    def sweep(self, state: JournalState) -> int:
        """Kill the remaining processes of a journal's claims and servers; return their number."""
        ...


# --- files of a trial -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrialFilesRequest:
    """Folder, start script, parameter file and output limit of a trial to be started."""

    directory: Path
    run_script: str
    parameter_file: str
    output_limit_bytes: int


class TrialOutput(Protocol):
    """Interface of a running trial's folder and of the pipes for its output."""

    @property
    def stdout(self) -> int:
        """Write end of the pipe for stdout, until `launched`."""
        ...

    @property
    def stderr(self) -> int:
        """Write end of the pipe for stderr, until `launched`."""
        ...

    def launched(self) -> None:
        """Close the agent's copies of the pipes: the process holds its own."""
        ...

    @property
    def at_end(self) -> asyncio.Future[None]:
        """Future that is done when all writers have closed and all output is in the files."""
        ...

    def catch_up(self) -> bool:
        """Read the bytes that the pipes hold now; return whether `at_end` is done."""
        ...

    def cut(self) -> None:
        """Read the bytes that the pipes hold now, and close them even if a writer remains."""
        ...

    def stderr_tail(self) -> str:
        """Return the last lines of stderr."""
        ...

    def write_state(self, line: str) -> None:
        """Write the exit line to the trial's file `.nni/state`."""
        ...

    def watch(self, on_output: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for each piece of output; return a function that cancels it."""
        ...

    def announce(self) -> None:
        """Call the watchers, as after output: a file of the folder has grown."""
        ...


class TrialFolders(Protocol):
    """Interface of trials' folders: create, open with files and pipes, release to the services."""

    def prepare(self, directory: str, output_folder: str = "") -> None:
        """Create a trial's folder for a separate code user, if any, and the output folder.

        Raises:
            LaunchError: the folder cannot be created.
        """
        ...

    async def release(self, directory: str) -> None:
        """Let the services read and delete an ended trial's files."""
        ...

    def open(self, request: TrialFilesRequest) -> TrialOutput:
        """Create a trial's folder, scripts, output files and pipes; raise LaunchError on failure.

        Raises:
            LaunchError: the folder cannot be written.
        """
        ...


# --- trial socket ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NextTrial:
    """Trial for a process that waits: token, folder, variables, output descriptors."""

    token: str = field(repr=False)
    """Admitted by the socket server."""
    directory: str
    variables: Mapping[str, str]
    unset: frozenset[str]
    """Names of variables of earlier trials of the process that this one does not have."""
    stdout: int
    """Descriptor; owned by the caller."""
    stderr: int
    """Descriptor; owned by the caller."""


class WaitingProcess(Protocol):
    """Interface of a process that has ended its trial and waits for another one."""

    @property
    def pid(self) -> int:
        """Process id, as the kernel knows it."""
        ...

    def hand_over(self, trial: NextTrial) -> asyncio.Future[bool]:
        """Send the next trial to the process; return a future: whether it was accepted.

        Returns:
            True once the process has made the first request of that trial; False if it is gone.
        """
        ...

    def release(self) -> None:
        """Reply that there is no further trial, so that the process ends."""
        ...


class TrialSession(Protocol):
    """Interface of a trial's socket requests: hello, parameters, metrics, checkpoints, next."""

    def greet(self) -> bytes:
        """Return the reply to hello."""
        ...

    def parameters(self) -> bytes:
        """Return the reply to the request for parameters."""
        ...

    def report(self, report: Report, pid: int) -> bytes | asyncio.Future[bytes]:
        """Accept a metric and return the reply; a future if storing it takes time."""
        ...

    def save_checkpoint(self, request: CheckpointRequest) -> bytes | asyncio.Future[bytes]:
        """Copy the trial's checkpoint folder; return the reply once the trial may write again."""
        ...

    def wait_for_next(self, process: WaitingProcess) -> bool:
        """End the trial with success and keep its process; return whether it can be kept.

        Returns:
            False: the process cannot be kept, and should end, which ends the trial.
        """
        ...


class TrialSockets(Protocol):
    """Interface of the socket server that all trials of the agent connect to."""

    @property
    def path(self) -> str:
        """Path of the socket; at most 107 bytes long."""
        ...

    def admit(self, token: str, session: TrialSession) -> None:
        """Register a trial's token: `session` serves the connections that present it."""
        ...

    def catch_up(self, token: str) -> bool:
        """Handle all that was sent with a token so far; return whether a connection is open.

        Returns:
            Whether a connection is still open.
        """
        ...

    def when_quiet(self, token: str, call: Callable[[], None]) -> None:
        """Register a callback that runs once, when the last connection with `token` has closed."""
        ...

    def dismiss(self, token: str) -> None:
        """Refuse `token` from now on and close its connections."""
        ...


# --- durable state --------------------------------------------------------------------------


class ClaimJournal(Protocol):
    """Interface of the durable record of this agent's claims, read by the next process."""

    @property
    def state(self) -> JournalState:
        """State folded from the records."""
        ...

    def append(self, *records: JournalRecord) -> None:
        """Append records durably before the return; a disk error is only logged.

        A full or broken disk loses only this: the state in memory has them.
        """
        ...

    def forget_servers(self) -> None:
        """Remove an earlier agent's process servers from the journal, once they were killed."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@dataclass(frozen=True, slots=True)
class SpooledReport:
    """Report in the spool: experiment, bytes, and whether the manager has it."""

    experiment_id: str
    entry: bytes
    """Serialised report."""
    acknowledged: bool
    """True if it is in the manager's inbox."""


class ReportSpool(Protocol):
    """Interface of the durable queue of reports that managers have not yet received."""

    def inherited(self) -> Sequence[SpooledReport]:
        """Return the reports that the previous agent process left, in order; call once."""
        ...

    def discard_inherited(self) -> None:
        """Remove the previous process's reports, after those still needed were appended again."""
        ...

    def append(self, reports: Iterable[tuple[str, bytes]]) -> None:
        """Append (experiment id, report) pairs durably; a disk error is only logged.

        A full or broken disk loses only this: the reports are still in memory.
        """
        ...

    def acknowledge(self, experiment_id: str, count: int) -> None:
        """Mark the oldest `count` unacknowledged reports of an experiment as acknowledged."""
        ...

    def before_forgetting(self, call: Callable[[], None]) -> None:
        """Register a callback that runs before acknowledged reports are removed from disk."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


# --- devices, code, environment -------------------------------------------------------------


class TrialUse(Protocol):
    """Interface to read a trial's CPU and memory use once, and to append or delete samples."""

    def read(self, leader: ProcessIdentity) -> ProcessUse | None:
        """Return CPU time and memory of a process and its descendants; None: it has ended."""
        ...

    def append(self, directory: str, line: bytes) -> None:
        """Append a line to the samples of a trial; drop it if it cannot be written."""
        ...

    def forget(self, directory: str) -> None:
        """Delete the samples of a trial's earlier attempt, if there are any."""
        ...


class GpuDevices(Protocol):
    """Interface that lists the machine's GPUs, the processes on them, and their use."""

    async def devices(self) -> Sequence[GpuDevice]:
        """Return the devices and their users; empty without a driver."""
        ...

    async def use(self, indices: Sequence[int]) -> Sequence[GpuUse]:
        """Return utilization and used memory of some devices, in order; omit failing ones."""
        ...


class ProcessTable(Protocol):
    """Interface that tells which processes descend from this agent."""

    def own(self, process_ids: Iterable[int]) -> frozenset[int]:
        """Return the ids that are descendants of this agent."""
        ...


class CodeStore(Protocol):
    """Interface of the cache of unpacked code archives."""

    async def materialise(self, attempt: AttemptKey, archive: BlobKey) -> Path:
        """Return the folder of an unpacked code archive; download and unpack it at first use.

        Args:
            attempt: attempt that needs it.
            archive: hash and size of the archive.

        Raises:
            LaunchError: the archive is missing, damaged, too large, or names files outside.
        """
        ...

    async def copy(self, place: Path, target: Path) -> None:
        """Copy unpacked code into a trial's folder, replacing an earlier attempt's copy.

        Raises:
            LaunchError: the copy cannot be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """Ended trial whose complete folder is to be uploaded."""

    experiment_id: str
    trial_id: str
    attempt: int
    directory: str


class TrialBlobs(Protocol):
    """Interface that moves checkpoints and outputs of trials to and from the blob store.

    Calls wait while the store is unavailable or full; cancel them to stop waiting.
    """

    @property
    def trouble(self) -> str:
        """Reason why calls wait now, as text; empty: none waits."""
        ...

    async def fetch(self, attempt: AttemptKey, blob: BlobKey, path: Path) -> None:
        """Download a blob to a file, atomically; wait while the store is unavailable.

        Args:
            attempt: attempt that needs it.
            blob: hash and size.
            path: the file.

        Raises:
            NotFoundError: the blob does not exist.
            DataLossError: the blob is damaged.
        """
        ...

    async def keep_checkpoint(self, attempt: AttemptKey, path: Path) -> BlobKey:
        """Store the content of a file, which an attempt has made, under its content hash."""
        ...

    async def keep_output(self, trial: FinishedTrial, file_name: str, path: Path) -> None:
        """Store a file of a trial; an earlier file of the same name is replaced."""
        ...


class FolderArchives(Protocol):
    """Interface that packs folders into archives and unpacks them."""

    def pack(self, folder: Path, archive: Path, without: frozenset[str] = frozenset()) -> int:
        """Pack a folder without some entries into an archive file; return the number of entries.

        Raises:
            OSError: a file cannot be read or written.
        """
        ...

    def extract(self, archive: Path, folder: Path) -> None:
        """Unpack an untrusted archive into a new folder; raise if it breaks a limit.

        Raises:
            ServiceError: the archive is damaged, too large, or leads outside of the folder.
        """
        ...


class CheckpointCopies(Protocol):
    """Interface of complete copies of a trial's checkpoints, kept in the trial's folder.

    Calls block for as long as a copy takes.
    """

    def complete(self, directory: str, checkpoint: TrialCheckpoint) -> Path:
        """Copy the trial's checkpoint folder, then remove earlier copies; return the new copy.

        Raises:
            OSError: the folder cannot be read, or the copy not be written.
        """
        ...

    def last(self, directory: str) -> TrialCheckpoint | None:
        """Return the last complete checkpoint in a trial's folder; None: there is none."""
        ...

    def restore(self, directory: str, checkpoint: TrialCheckpoint | None) -> None:
        """Replace the trial's checkpoint folder by a complete copy; None: remove the folder.

        Raises:
            OSError: a folder cannot be read or written.
        """
        ...

    def archive_path(self, directory: str) -> Path:
        """Return the path for the archive of a checkpoint; create its folder.

        Raises:
            OSError: the folder cannot be created.
        """
        ...

    def add(self, directory: str, checkpoint: TrialCheckpoint, archive: Path) -> None:
        """Unpack the downloaded archive of a checkpoint as a complete copy.

        Raises:
            OSError: the copy cannot be written.
            ServiceError: the archive is damaged or too large.
        """
        ...

    def pack(self, folder: Path) -> Path:
        """Pack a checkpoint's copy into an archive beside it; return the archive's path.

        Raises:
            OSError: a file cannot be read or written.
        """
        ...

    def discard(self, directory: str) -> None:
        """Remove all checkpoint copies in a trial's folder."""
        ...


class UploadSpool(Protocol):
    """Interface of the durable queue of trial folders still to be uploaded.

    A full or broken disk loses only this: trials in memory are uploaded all the same.
    """

    def inherited(self) -> Sequence[FinishedTrial]:
        """Return the trials that the previous process has not uploaded, oldest first."""
        ...

    def add(self, trial: FinishedTrial) -> None:
        """Add an ended trial to the queue, so that a later process can upload it."""
        ...

    def done(self, trial: FinishedTrial) -> None:
        """Remove an uploaded trial from the queue."""
        ...


@dataclass(frozen=True, slots=True)
class ClientEnvironment:
    """Variables and Python interpreter of the client that created an experiment."""

    variables: Mapping[str, str]
    interpreter: str | None
    """Path of the client's Python."""


class Environments(Protocol):
    """Interface that finds the environments of trials: of clients, or of this machine."""

    async def load(self, path: str) -> ClientEnvironment:
        """Return the environment in a file, the same object until it changes; empty path: own.

        The same object is returned while the file does not change.

        Raises:
            LaunchError: the environment cannot be had; the text is for the user.
        """
        ...


class LargeValues(Protocol):
    """Interface that stores and loads JSON values too large for a message."""

    async def load(self, attempt: AttemptKey, blob: BlobKey) -> Any:  # noqa: ANN401 - any JSON value
        """Load an attempt's JSON value from the blob store by hash; LaunchError if it fails.

        Raises:
            LaunchError: the value cannot be loaded.
        """
        ...

    async def store(self, attempt: AttemptKey, value: Any) -> BlobKey:  # noqa: ANN401 - any JSON value
        """Store a JSON value that an attempt has reported, and return its key."""
        ...
