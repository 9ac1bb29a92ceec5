"""Runner of commands whose Slurm is a table of jobs; other commands run on this machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.slurm.command_runner import LocalCommandRunner
from svc_trial_runner.fleet.adapters.slurm.quantities import parse_indices

PARTITIONS: Final = (
    "PartitionName=main Default=YES DefaultTime=01:00:00 MaxTime=02:00:00 State=UP\n"
)
NODES: Final = (
    "NodeName=n1 CPUTot=8 Gres=gpu:2 NodeAddr=127.0.0.1 NodeHostName=n1 RealMemory=4000"
    " Partitions=main\n"
)
DOWN: Final = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


@dataclass
class TableJob:
    """Row of the table."""

    id: str
    name: str
    state: str = "PENDING"
    reason: str = "Priority"
    nodes: str = ""
    exit_code: str = "0:0"


@dataclass
class ScriptedSlurm:
    """Table of jobs behind the port of commands.

    Attributes:
        jobs: as `squeue` shows them.
        accounted: as `sacct` shows them; None: there is no accounting.
        failures: what a program prints before it fails, by its name; `*` is for all.
        scripts: that were submitted.
        calls: names of Slurm's programs that were called, in order.
        is_here: as the port has it.
    """

    jobs: list[TableJob] = field(default_factory=list)
    accounted: list[TableJob] | None = None
    failures: dict[str, str] = field(default_factory=dict)
    nodes: str = NODES
    array_size: int = 1001
    submits_before_failing: bool = False
    scripts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    is_here: bool = True
    _last: int = 0
    _called: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait_calls(self, count: int) -> None:
        """Wait until a number of Slurm's programs were called."""
        async with self._called:
            await self._called.wait_for(lambda: len(self.calls) >= count)

    async def run(
        self, arguments: Sequence[str], *, content: Iterable[bytes] = (), limit_s: float
    ) -> CommandResult:
        """Answer a command of Slurm from the table; run another one here."""
        program, *words = arguments
        if program == "sh" and "sbatch" in words:
            return CommandResult(b"", b"", 0)
        if program not in {"sbatch", "squeue", "scancel", "scontrol", "sacct"}:
            return await LocalCommandRunner().run(arguments, content=content, limit_s=limit_s)
        async with self._called:
            self.calls.append(program)
            self._called.notify_all()
        failure = self.failures.get(program, self.failures.get("*"))
        if failure is not None and not (program == "sbatch" and self.submits_before_failing):
            return CommandResult(b"", failure.encode(), 1)
        output = self._answer(program, words, b"".join(content).decode())
        if failure is not None:
            return CommandResult(b"", failure.encode(), 1)
        return CommandResult(output.encode(), b"", 0)

    async def connect(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    def _answer(self, program: str, words: Sequence[str], script: str) -> str:
        match program:
            case "sbatch":
                return "" if "--test-only" in words else self._submit(script)
            case "squeue":
                rows = [(j.id, j.name, j.state, j.nodes, j.reason) for j in self.jobs]
                return "".join("|".join(row) + "\n" for row in rows)
            case "sacct":
                rows = [(j.id, j.name, j.state, j.exit_code, j.nodes) for j in self.accounted or ()]
                return "".join("|".join(row) + "\n" for row in rows)
            case "scancel":
                for job in self.jobs:
                    if job.id in words:
                        job.state, job.reason = "CANCELLED", "None"
                return ""
            case _:
                return self._show(words)

    def _submit(self, script: str) -> str:
        self.scripts.append(script)
        self._last += 1
        name = re.search(r"--job-name=(\S+)", script)
        array = re.search(r"--array=(\S+)", script)
        assert name is not None
        tasks = [f"_{index}" for index in parse_indices(array[1])] if array else [""]
        self.jobs += [TableJob(f"{self._last}{task}", name[1]) for task in tasks]
        return f"{self._last}\n"

    def _show(self, words: Sequence[str]) -> str:
        match words[1]:
            case "partition":
                return PARTITIONS
            case "node":
                return self.nodes
            case "config":
                kind = "none" if self.accounted is None else "slurmdbd"
                return (
                    f"AccountingStorageType = accounting_storage/{kind}\n"
                    f"MaxArraySize = {self.array_size}\n"
                )
            case _:
                return "".join(
                    f"JobId={job.id} JobName={job.name} JobState={job.state}"
                    f" Reason={job.reason} ExitCode={job.exit_code}\n"
                    for job in self.jobs
                    if job.id == words[-1]
                )
