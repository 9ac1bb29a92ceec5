"""Adapter of the platform `shell`: calls NNI's worker program by a command."""

import asyncio
from collections.abc import Sequence

from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)
from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    CommandResult,
    WorkerCommand,
    WorkerCommands,
    bundle_digest,
    read_report,
)
from svc_trial_runner.fleet.adapters.bundles.worker_facts import check_facts, read_facts
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    parse_agent_name,
)
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError

LIMIT_S = 120.0
LOOK_EVERY_S = 5.0
PHASES = {"running": AgentPhase.RUNNING, "ended": AgentPhase.ENDED}


class ShellAdapter:
    """Starts, lists and ends agents on one machine."""

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        options = context.section.options
        self._command = list(options.get("command", []))
        self._commands = WorkerCommands(str(options.get("folder", "~/.nni")))
        self._folder = ""
        self._digest = ""

    async def check(self) -> list[PlatformProblem]:
        """Return what is wrong with the section, or with the machine."""
        if not self._command:
            return [PlatformProblem("command", "must be a list of texts")]
        try:
            check_facts(read_facts(await self._run(self._commands.probe())))
        except PlatformError as error:
            problem = PlatformProblem(
                "command", str(error), remedy=error.remedy, permanent=error.permanent
            )
            return [problem]
        return []

    async def prepare(self) -> None:
        """Send the bundle of the agent unless it is there."""
        facts = read_facts(await self._run(self._commands.probe()))
        check_facts(facts)
        self._folder = facts.folder
        self._commands = self._commands.with_interpreter(facts.interpreter)
        bundle = await self._context.bundles.bundle(facts.python, facts.platform_tag)
        self._digest = bundle_digest(bundle)
        if self._digest not in facts.bundles:
            read_report(await self._run(self._commands.unpack(bundle)))

    async def capacity(self) -> int | None:
        """Return 1: the agent has all slots of the machine."""
        return 1

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Start agents; one that runs already is left alone."""
        await self.prepare()
        failures = []
        for order in orders:
            name = str(order.name)
            settings = write_agent_settings(await self._settings(order))
            try:
                read_report(await self._run(self._commands.start(name, self._digest, settings)))
            except PlatformError as error:
                failures.append(
                    LaunchFailure(order.name, str(error), error.remedy, error.permanent)
                )
        return failures

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents of this pool that have a folder on the machine."""
        report = read_report(await self._run(self._commands.status(self._prefix)))
        found = []
        for one in report["agents"]:
            name = parse_agent_name(one["name"])
            if name is not None and name.pool == self._context.pool and one["state"] in PHASES:
                phase = PHASES[one["state"]]
                found.append(PlatformAgent(name, phase, one["host"], one.get("reason", "")))
        return found

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """End agents with their trials, and remove their folders."""
        if names:
            read_report(await self._run(self._commands.remove([str(name) for name in names])))

    async def clean(self) -> None:
        """Remove all agents of this pool, and bundles that no agent uses."""
        await self.terminate([agent.name for agent in await self.agents()])
        # No name begins like this: other pools keep their agents.
        read_report(await self._run(self._commands.clean("-", bundles=True)))

    async def wait_changed(self) -> None:
        """Return after a while: the machine notifies of nothing."""
        await asyncio.sleep(LOOK_EVERY_S)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    async def _run(self, command: WorkerCommand) -> CommandResult:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                command.line,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise PlatformError(f"{self._command[0]} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(LIMIT_S):
                content = await asyncio.to_thread(b"".join, command.chunks())
                output, errors = await process.communicate(content)
        except TimeoutError as error:
            process.kill()
            raise PlatformError(f"{self._command[0]} gave no answer in {LIMIT_S:g} s") from error
        return CommandResult(output, errors, process.returncode)

    async def _settings(self, order: AgentOrder) -> AgentSettings:
        return AgentSettings(
            name=str(order.name),
            pool=order.name.pool,
            platform=self._context.section.platform,
            home=f"{self._folder}/agents/{order.name}/home",
            connection=await self._connection(),
            bus_user=order.credentials.bus_user,
            bus_password=order.credentials.bus_password,
            manager_token=order.credentials.manager_token,
            slots=order.slots,
            max_trials=order.max_trials,
        )

    async def _connection(self) -> ConnectionSettings:
        if self._context.section.options.get("sharesNetwork"):
            endpoints = self._context.endpoints
            return ConnectionSettings(ConnectionKind.DIRECT, endpoints.bus, endpoints.manager_grpc)
        front = await self._context.front.open()
        return ConnectionSettings(
            ConnectionKind.TLS, f"tls://{front.address}", front.address, authority=front.authority
        )

    @property
    def _prefix(self) -> str:
        return f"nni-{self._context.installation}-{self._context.pool}-"
