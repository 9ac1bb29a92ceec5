"""Files of agents on the shared file system, written and read by the program of a worker."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    CommandResult,
    WorkerCommand,
    WorkerCommands,
    bundle_digest,
    read_report,
)
from svc_trial_runner.fleet.adapters.bundles.worker_facts import (
    WorkerFacts,
    check_facts,
    read_facts,
)
from svc_trial_runner.fleet.adapters.slurm.command_runner import CommandRunner
from svc_trial_runner.fleet.adapters.slurm.options import SlurmOptions
from svc_trial_runner.fleet.ports import BundleStore

LIMIT_S: Final = 60.0
UNPACK_S: Final = 600.0
"""Time for a bundle: missing distributions may be installed by pip."""
LOGS: Final = "slurm"
"""Folder of the jobs' output below that of NNI."""
HOST: Final = "the machine with Slurm's commands"
IMAGE_PLATFORM: Final = "manylinux_2_17"
"""Wheels for images: their C library is not known, and this old one is enough everywhere."""


class AgentFiles:
    """Folders of agents and the bundle, seen from the machine with Slurm's commands.

    Args:
        runner: of commands on that machine.
        options: of the section.
        bundles: packed agents.
    """

    def __init__(self, runner: CommandRunner, options: SlurmOptions, bundles: BundleStore) -> None:
        self._runner = runner
        self._options = options
        self._bundles = bundles
        given = WorkerCommands(python_path=options.python_path)
        self._commands = (
            WorkerCommands(options.home, options.python_path) if options.home else given
        )
        self._facts: WorkerFacts | None = None

    async def facts(self) -> WorkerFacts:
        """Probe the machine once; return its facts, raise PlatformError if no agent can run on it.

        Raises:
            PlatformError: it has no Python, or its folder cannot be used.
        """
        if self._facts is None:
            self._facts = await self._probe()
        return self._facts

    async def _probe(self) -> WorkerFacts:
        facts = read_facts(await self._run(self._commands.probe()), HOST)
        check_facts(facts)
        self._commands = self._commands.with_interpreter(facts.interpreter)
        return facts

    async def send_bundle(self) -> str:
        """Send the bundle unless the machine has it; return its hash.

        Raises:
            PlatformError: it cannot be made or written.
        """
        facts = await self._probe()
        self._facts = facts
        python, tag = facts.python, facts.platform_tag
        if self._options.image:
            major, minor, *_ = self._options.python_version.split(".")
            python, tag = (int(major), int(minor)), f"{IMAGE_PLATFORM}_{facts.machine}"
        bundle: Path = await self._bundles.bundle(python, tag)
        if bundle_digest(bundle) not in facts.bundles:
            read_report(await self._run(self._commands.unpack(bundle), UNPACK_S), HOST)
        return bundle_digest(bundle)

    async def write_settings(self, name: str, digest: str, settings: bytes) -> None:
        """Write the settings of an agent of a bundle, for their owner only."""
        read_report(await self._run(self._commands.write_settings(name, digest, settings)), HOST)

    async def states(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Return the states of the agents that have a folder, by name."""
        report = read_report(await self._run(self._commands.status(prefix)), HOST)
        return {one["name"]: one for one in report["agents"]}

    async def remove(self, names: Sequence[str]) -> None:
        """Remove folders of agents whose jobs are over, and their processes on this machine."""
        if not names:
            return
        report = read_report(await self._run(self._commands.remove(names, grace_s=0.0)), HOST)
        kept = [one["name"] for one in report["agents"] if not one["removed"]]
        if kept:  # of agents that were killed on other machines
            base = (await self.facts()).folder
            paths = [f"{base}/agents/{name}" for name in kept]
            await self._runner.run(["rm", "-rf", "--", *paths], limit_s=LIMIT_S)

    def log_folder(self, facts: WorkerFacts) -> str:
        """Return the folder of the jobs' output."""
        given = self._options.log_folder
        if given.startswith("~/"):
            return f"{facts.home}/{given[2:]}"
        return given or f"{facts.folder}/{LOGS}"

    async def remove_rest(self) -> None:
        """Remove bundles and output of jobs if no agent has a folder, so that nothing is left."""
        if not await self.states(""):
            facts = await self.facts()
            await self._runner.run(["rm", "-rf", "--", f"{facts.folder}/{LOGS}"], limit_s=LIMIT_S)
            # No name begins like this.
            read_report(await self._run(self._commands.clean("-", bundles=True)), HOST)

    async def make_folder(self, path: str) -> None:
        """Create a folder on the shared file system."""
        await self._runner.run(["mkdir", "-p", "--", path], limit_s=LIMIT_S)

    async def _run(self, command: WorkerCommand, limit_s: float = LIMIT_S) -> CommandResult:
        return await self._runner.run(
            ["sh", "-c", command.line], content=command.chunks(), limit_s=limit_s
        )
