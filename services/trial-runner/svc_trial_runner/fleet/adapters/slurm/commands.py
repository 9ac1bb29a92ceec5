"""Slurm's commands, with their output parsed and their messages as errors."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult
from svc_trial_runner.fleet.adapters.slurm.causes import refusal
from svc_trial_runner.fleet.adapters.slurm.command_runner import CommandRunner
from svc_trial_runner.fleet.adapters.slurm.listings import (
    SACCT_FORMAT,
    SQUEUE_FORMAT,
    ComputeNode,
    Partition,
    SlurmJob,
    TruncatedOutputError,
    parse_nodes,
    parse_partitions,
    parse_sacct,
    parse_scontrol_jobs,
    parse_squeue,
)
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.ports import PlatformError

Value = TypeVar("Value")

LIMIT_S: Final = 60.0
"""Time of a command; while the controller is down each takes about 9 s, or longer."""
PROGRAMS: Final = ("sbatch", "squeue", "scancel", "scontrol")
HISTORY: Final = "now-7days"
"""How far the accounting is searched."""
_JOB_GONE: Final = re.compile(r"Invalid job id|already completing|already completed", re.IGNORECASE)
_FIND: Final = 'for p; do command -v "$p" >/dev/null || echo "$p"; done'


class SlurmRefusalError(PlatformError):
    """Error of a command that Slurm refused.

    Attributes:
        field: option of the section that is the cause; empty: none is known.
        is_unreachable: True if Slurm does not answer; what was asked for may have been done.
    """

    def __init__(self, words: str) -> None:
        cause = refusal(words)
        super().__init__(cause.text, cause.remedy, permanent=cause.permanent)
        self.field = cause.field
        self.is_unreachable = cause.is_unreachable


class SlurmCommands:
    """Caller of Slurm's commands for one section.

    Args:
        runner: where the commands are.
        options: of the section.
    """

    def __init__(self, runner: CommandRunner, options: SlurmOptions) -> None:
        self._runner = runner
        self._folder = options.commands_folder
        self._configuration = options.slurm_conf

    @property
    def are_here(self) -> bool:
        """True if the commands run on this machine."""
        return self._runner.is_here

    async def missing_programs(self) -> list[str]:
        """Return the names of Slurm's commands that the machine lacks."""
        paths = [self._path(name) for name in PROGRAMS]
        found = await self._runner.run(["sh", "-c", _FIND, "sh", *paths], limit_s=LIMIT_S)
        return found.output.decode("utf-8", "replace").split()

    async def queue(self) -> list[SlurmJob]:
        """Return the jobs of this user's agents, live ones and those that have ended lately."""
        words = ("--noheader", "--array", "--me", "--states=all", f"--format={SQUEUE_FORMAT}")
        output = await self._output("squeue", *words)
        return _parsed(parse_squeue, output)

    async def jobs_of_accounting(self) -> list[SlurmJob]:
        """Return the jobs of this user's agents that the accounting knows."""
        words = ("--noheader", "--parsable2", "--allocations", f"--starttime={HISTORY}")
        return _parsed(parse_sacct, await self._output("sacct", *words, f"--format={SACCT_FORMAT}"))

    async def details(self, job_id: str) -> list[SlurmJob]:
        """Return a job, or tasks of its array, with exit codes; empty: Slurm has forgotten it."""
        result = await self._run("scontrol", "show", "job", "--oneliner", job_id)
        if result.exit_status:
            return []
        return _parsed(parse_scontrol_jobs, _text(result.output))

    async def partitions(self) -> list[Partition]:
        """Return the partitions that this user sees."""
        output = await self._output("scontrol", "show", "partition", "--oneliner")
        return _parsed(parse_partitions, output)

    async def nodes(self) -> list[ComputeNode]:
        """Return the nodes of the cluster."""
        output = await self._output("scontrol", "show", "node", "--oneliner")
        return _parsed(parse_nodes, output)

    async def configuration(self) -> str:
        """Return the settings of the cluster, for `read_cluster`."""
        return await self._output("scontrol", "show", "config")

    async def submit(self, script: str, folder: str) -> None:
        """Submit a script that runs in a folder.

        Raises:
            SlurmRefusalError: Slurm refuses it; the words are Slurm's.
        """
        await self._output("sbatch", "--parsable", f"--chdir={folder}", content=[script.encode()])

    async def test(self, script: str) -> SlurmRefusalError | None:
        """Return why Slurm would refuse a script; submit nothing."""
        try:
            await self._output("sbatch", "--test-only", content=[script.encode()])
        except SlurmRefusalError as error:
            return error
        return None

    async def cancel(self, job_ids: Sequence[str]) -> None:
        """Cancel jobs; do nothing for those that have ended."""
        if not job_ids:
            return
        result = await self._run("scancel", *job_ids)
        if result.exit_status and not _JOB_GONE.search(_text(result.error_output)):
            raise SlurmRefusalError(_words("scancel", result))

    async def _output(self, program: str, *words: str, content: Iterable[bytes] = ()) -> str:
        result = await self._run(program, *words, content=content)
        if result.exit_status != 0:
            raise SlurmRefusalError(_words(program, result))
        return _text(result.output)

    async def _run(self, program: str, *words: str, content: Iterable[bytes] = ()) -> CommandResult:
        prefix = ["env", f"SLURM_CONF={self._configuration}"] if self._configuration else []
        arguments = [*prefix, self._path(program), *words]
        return await self._runner.run(arguments, content=content, limit_s=LIMIT_S)

    def _path(self, program: str) -> str:
        return f"{self._folder}/{program}" if self._folder else program


def _parsed(parse: Callable[[str], list[Value]], output: str) -> list[Value]:
    """Parse the output of a command; raise PlatformError if the output was cut.

    Raises:
        PlatformError: it was cut; what it says of jobs is incomplete.
    """
    try:
        return parse(output)
    except TruncatedOutputError as error:
        raise PlatformError(f"the output of a command of Slurm was cut: {error}") from error


def _words(program: str, result: CommandResult) -> str:
    words = _text(result.error_output).strip() or _text(result.output).strip()
    return words or f"{program} ended with {result.exit_status}"


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
