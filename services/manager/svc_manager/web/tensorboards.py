"""TensorBoard processes over the event files of selected trials.

They are children of the manager; they end with it, with their experiment, or on request.
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import sys
import uuid
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from svc_common.errors import FailedPreconditionError, NotFoundError, ResourceExhaustedError

FIRST_PORT: Final = 6006
PORTS: Final = 200
"""Number of ports to try, from `FIRST_PORT` on."""
GRACE_S: Final = 3.0
"""Time between TERM and KILL, in seconds."""
_HOST: Final = "127.0.0.1"
_PROGRAM: Final = (
    # PR_SET_PDEATHSIG = 1: TensorBoard must not outlive a manager that was killed.
    "import ctypes, runpy, signal; ctypes.CDLL(None).prctl(1, signal.SIGTERM); "
    "runpy.run_module('tensorboard.main', run_name='__main__', alter_sys=True)"
)
_SEPARATORS: Final = frozenset(",:")
"""Separators of the items of `--logdir_spec`, which has no quoting."""


@dataclass(frozen=True, slots=True)
class TensorBoardRun:
    """Folder of one trial's event files, shown by TensorBoard as a run."""

    trial_id: str
    sequence_id: int
    directory: Path
    """Folder of the event files."""

    @property
    def label(self) -> str:
        """Name of the run in TensorBoard."""
        return f"{self.sequence_id}-{self.trial_id}"


@dataclass(frozen=True, slots=True)
class TensorBoardTask:
    """Running TensorBoard process of an experiment: its runs, port and process."""

    id: str
    experiment_id: str
    runs: tuple[TensorBoardRun, ...]
    port: int
    process: asyncio.subprocess.Process

    @property
    def alive(self) -> bool:
        """True if the process is running."""
        return self.process.returncode is None


class TensorBoards:
    """Starter and registry of TensorBoard processes, by experiment.

    Args:
        program: command that takes TensorBoard's options; None = the `tensorboard` package of
            the manager's own Python.
    """

    def __init__(self, program: Sequence[str] | None = None) -> None:
        self._program = program
        self._tasks: dict[str, TensorBoardTask] = {}

    async def start(self, experiment_id: str, runs: Sequence[TensorBoardRun]) -> TensorBoardTask:
        """Start a TensorBoard process over trials' folders, or return one with the same trials.

        Raises:
            FailedPreconditionError: TensorBoard is not installed, or a trial has no event files.
            ResourceExhaustedError: no port is free.
        """
        for task in self.list(experiment_id):
            if {run.trial_id for run in task.runs} == {run.trial_id for run in runs}:
                return task
        program = self._program or _installed_program()
        await asyncio.to_thread(_check_folders, runs)
        # A process of a moment ago listens only seconds after its start.
        port = _free_port({task.port for task in self._tasks.values() if task.alive})
        options = (
            "--logdir_spec",
            ",".join(f"{run.label}:{run.directory}" for run in runs),
            "--host",
            _HOST,
            "--port",
            str(port),
        )
        process = await asyncio.create_subprocess_exec(
            *program,
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        task = TensorBoardTask(uuid.uuid4().hex[:8], experiment_id, tuple(runs), port, process)
        self._tasks[task.id] = task
        return task

    def list(self, experiment_id: str) -> list[TensorBoardTask]:
        """Return the running tasks of an experiment, oldest first; forget ended ones."""
        self._tasks = {key: task for key, task in self._tasks.items() if task.alive}
        return [task for task in self._tasks.values() if task.experiment_id == experiment_id]

    async def stop(self, experiment_id: str, task_id: str) -> TensorBoardTask:
        """End a TensorBoard process of the experiment by its id; return it; raise if it is unknown.

        Raises:
            NotFoundError: the experiment has no such task.
        """
        task = self._tasks.get(task_id)
        if task is None or task.experiment_id != experiment_id:
            raise NotFoundError("TensorBoard task", task_id)
        del self._tasks[task_id]
        await _end(task.process)
        return task

    async def stop_all(self, experiment_id: str | None = None) -> None:
        """End all TensorBoard processes of one experiment or, for None, of all."""
        ending = [
            task for task in self._tasks.values() if experiment_id in {None, task.experiment_id}
        ]
        for task in ending:
            del self._tasks[task.id]
        await asyncio.gather(*(_end(task.process) for task in ending))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(GRACE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _installed_program() -> tuple[str, ...]:
    if importlib.util.find_spec("tensorboard") is None:
        raise FailedPreconditionError(
            f"TensorBoard is not installed beside the manager; run "
            f"`{sys.executable} -m pip install tensorboard`"
        )
    return (sys.executable, "-c", _PROGRAM)


def _check_folders(runs: Sequence[TensorBoardRun]) -> None:
    """Raise FailedPreconditionError if a trial's folder is missing or its path has `,` or `:`."""
    for run in runs:
        if not run.directory.is_dir():
            raise FailedPreconditionError(
                f"trial {run.trial_id} has written no event files: there is no {run.directory}"
            )
        if _SEPARATORS & set(str(run.directory)):
            raise FailedPreconditionError(
                f"TensorBoard cannot open a path with a comma or colon: {run.directory}"
            )


def _free_port(given: Set[int]) -> int:
    for port in range(FIRST_PORT, FIRST_PORT + PORTS):
        if port in given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
            return port
    raise ResourceExhaustedError(
        f"all ports from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are in use; "
        "stop a TensorBoard that you no longer need"
    )
