"""Platform `slurm`: agents as batch jobs; Slurm's commands run on this machine or a login node."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from svc_common import environment
from svc_trial_runner.agent_settings import (
    LEAST_GRACE_S,
    AgentSettings,
    write_agent_settings,
)
from svc_trial_runner.fleet.adapters.job_agents import (
    agent_settings,
    is_own,
    raise_first,
    wait_for_poll,
)
from svc_trial_runner.fleet.adapters.remote.machines import parse_login
from svc_trial_runner.fleet.adapters.slurm.agent_connections import AgentConnections
from svc_trial_runner.fleet.adapters.slurm.agent_files import AgentFiles
from svc_trial_runner.fleet.adapters.slurm.agent_jobs import latest_jobs, platform_agent
from svc_trial_runner.fleet.adapters.slurm.command_runner import (
    CommandRunner,
    LocalCommandRunner,
    UnusableRunner,
)
from svc_trial_runner.fleet.adapters.slurm.commands import SlurmCommands, SlurmRefusalError
from svc_trial_runner.fleet.adapters.slurm.job_names import JobOrder, group_orders
from svc_trial_runner.fleet.adapters.slurm.job_script import (
    ScriptPaths,
    lifetime_s,
    write_job_script,
)
from svc_trial_runner.fleet.adapters.slurm.listings import (
    Cluster,
    JobStage,
    SlurmJob,
    read_cluster,
)
from svc_trial_runner.fleet.adapters.slurm.login_runner import LoginRunner
from svc_trial_runner.fleet.adapters.slurm.options import option_problems, parse_options
from svc_trial_runner.fleet.adapters.slurm.partition_limits import (
    broken_limits,
    chosen_partition,
)
from svc_trial_runner.fleet.adapters.slurm.quantities import parse_time_limit
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    parse_agent_name,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError

PLATFORM: Final = "slurm"
END_LIMIT_S: Final = 60.0
"""Time within which a cancelled job has to leave the queue; one that has not is removed later."""
END_STEP_S: Final = 0.5
SETTLED_FACTOR: Final = 6
"""While all agents run the queue is looked at this much more rarely: the bus notices most ends."""
MARGIN_S: Final = 2.0
"""Part of the time from TERM to KILL that is left for the end of the agent's process."""
NOT_SUBMITTED: Final = AgentName("00000000", "check", 0)
"""Agent of the script that `check` has tested."""


class SlurmAdapter:
    """`PlatformAdapter` of a Slurm cluster for one pool: each agent is a batch job.

    Slurm notifies of nothing: `wait_changed` looks at the queue, one `squeue` for all jobs of the
    pool every `pollIntervalSeconds` while jobs are pending or starting, every `SETTLED_FACTOR`
    times that while all run, and not at all without jobs.

    Args:
        context: of the pool.
        runner: of Slurm's commands; None: they are called on the login node that the section names,
            else on this machine.
    """

    def __init__(self, context: AdapterContext, runner: CommandRunner | None = None) -> None:
        self._context = context
        self._options = parse_options(context.section.options)
        self._changed = asyncio.Event()
        machine, self._login_problems = parse_login(context.section)
        self._login = None if machine is None else LoginRunner(machine, context, self._changed.set)
        self._runner = runner or self._login or self._default_runner()
        self._slurm = SlurmCommands(self._runner, self._options)
        self._files = AgentFiles(self._runner, self._options, context.bundles)
        self._connections = AgentConnections(
            context, self._options, self._slurm, self._files, self._login
        )
        self._known_cluster: Cluster | None = None
        self._ending: set[AgentName] = set()
        """Terminated agents whose folders are not removed."""
        self._jobs: dict[AgentName, SlurmJob] = {}
        self._listed: list[PlatformAgent] = []
        """What `agents` has found last, and what it was made of."""
        self._failed = False

    def _default_runner(self) -> CommandRunner:
        """Return this machine's runner, or one that raises the first rule that the login breaks."""
        if self._login_problems:
            return UnusableRunner(self._login_problems[0])
        return LocalCommandRunner()

    # Checks

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section; if none, of partition, nodes and a test submission."""
        problems = self._broken_rules()
        if problems:
            return problems
        try:
            return await self._cluster_problems()
        except PlatformError as error:
            return [error.problem("platform", PLATFORM)]

    def _broken_rules(self) -> list[PlatformProblem]:
        """Return problems of login and options, found without contacting the cluster."""
        return [*self._login_problems, *option_problems(self._context.section.options)]

    async def _cluster_problems(self) -> list[PlatformProblem]:
        await self._runner.connect()
        missing = await self._slurm.missing_programs()
        if missing:
            rule = f"must have Slurm's commands, and has no {', '.join(missing)}"
            remedy = "install Slurm's client programs, or set commandsFolder to their folder"
            return [PlatformProblem("platform", rule, PLATFORM, remedy)]
        partitions, nodes = await self._slurm.partitions(), await self._slurm.nodes()
        problems = broken_limits(self._options, partitions, nodes)
        await self._connections.open(partitions, nodes)
        return problems or await self._refusals()

    async def _refusals(self) -> list[PlatformProblem]:
        """Return problems for which Slurm permanently refuses a test job of this section."""
        order = AgentOrder(NOT_SUBMITTED, AgentCredentials("", "", ""), slots=1)
        refused = await self._slurm.test(await self._script(JobOrder((order,)), "check"))
        # Nodes that are down or busy now are no fault of the section.
        if refused is None or not refused.permanent:
            return []
        field = refused.field or "options"
        value = self._context.section.options.get(field, "")
        return [PlatformProblem(field, str(refused), str(value), refused.remedy)]

    async def prepare(self) -> None:
        """Open the TLS front if nodes need it, and send the bundle; see `PlatformAdapter`."""
        raise_first(self._broken_rules())
        await self._runner.connect()
        await self._connections.open(await self._slurm.partitions(), await self._slurm.nodes())
        await self._files.send_bundle()

    async def capacity(self) -> int | None:
        """Return None: Slurm queues jobs within its limits, and gives the reasons for waiting."""
        return None

    # Agents

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Submit jobs for orders without one, equal ones as an array; see `PlatformAdapter`."""
        known = {agent.name for agent in await self.agents()} | _live(self._jobs).keys()
        missing = [order for order in orders if order.name not in known]
        if not missing:
            return []
        digest = await self._files.send_bundle()
        limit = (await self._cluster()).array_index_limit if self._options.arrays else 0
        failures: list[LaunchFailure] = []
        for job in group_orders(missing, limit):
            failures += await self._submit(job, digest)
        self._changed.set()
        return failures

    async def _submit(self, job: JobOrder, digest: str) -> list[LaunchFailure]:
        lifetime = await self._lifetime_s()
        names = [str(order.name) for order in job.orders]
        for order in job.orders:
            content = write_agent_settings(await self._agent_settings(order, lifetime))
            await self._files.write_settings(str(order.name), digest, content)
        folder = (await self._files.facts()).folder
        try:
            await self._slurm.submit(await self._script(job, digest), folder)
        except SlurmRefusalError as error:
            if error.is_unreachable:
                raise  # the job may have been taken: the next call finds it by its name
            await self._files.remove(names)
            return [
                LaunchFailure(order.name, str(error), error.remedy, error.permanent)
                for order in job.orders
            ]
        return []

    async def _script(self, job: JobOrder, digest: str) -> str:
        facts = await self._files.facts()
        folder = self._files.log_folder(facts)
        await self._files.make_folder(folder)
        python = self._options.python or ("python3" if self._options.image else facts.interpreter)
        paths = ScriptPaths(facts.folder, folder, digest, python)
        return write_job_script(self._options, job, paths)

    async def _agent_settings(self, order: AgentOrder, lifetime: float | None) -> AgentSettings:
        folder = (await self._files.facts()).folder
        settings = agent_settings(
            PLATFORM,
            order,
            await self._connections.settings(),
            self._options,
            home=f"{folder}/agents/{order.name}/home",
            version=environment.text(environment.NNI_VERSION, "unknown"),
        )
        return replace(
            settings,
            max_lifetime_s=lifetime,
            grace_s=agent_grace_s(self._options.grace_seconds, (await self._cluster()).kill_wait_s),
            shared_storage=self._context.section.shared_storage,
        )

    async def _lifetime_s(self) -> float | None:
        duration_s = parse_time_limit(self._options.max_trial_duration)
        limit_s = self._options.time_limit_s
        if duration_s is not None and limit_s is None:
            partition = chosen_partition(self._options, await self._slurm.partitions())
            limit_s = None if partition is None else partition.job_time_s
        return lifetime_s(self._options, limit_s, duration_s)

    async def agents(self) -> list[PlatformAgent]:
        """Return agents that have a folder, by their jobs; remove terminated ones that are over."""
        try:
            self._jobs = await self._queue()
            if _live(self._jobs):
                await self._connections.reopen_relay()
            found = await self._look(self._jobs)
        except PlatformError:
            self._failed = True
            raise
        self._failed = False
        await self._remove_ended(self._jobs)
        self._listed = found
        return found

    async def _queue(self) -> dict[AgentName, SlurmJob]:
        """Return the jobs of this pool that the queue shows."""
        return latest_jobs(
            job for job in await self._slurm.queue() if is_own(self._context, job.agent)
        )

    async def _look(self, jobs: Mapping[AgentName, SlurmJob]) -> list[PlatformAgent]:
        states = await self._files.states(self._prefix)
        named = {
            name: state for name, state in _named(states).items() if is_own(self._context, name)
        }
        forgotten = [name for name in named if name not in jobs]
        known = {**await self._forgotten_jobs(forgotten), **jobs}
        found = [
            platform_agent(name, state, await self._detailed(known.get(name)))
            for name, state in sorted(named.items())
            if name not in self._ending
        ]
        return [agent for agent in found if agent is not None]

    async def _forgotten_jobs(self, names: Sequence[AgentName]) -> dict[AgentName, SlurmJob]:
        """Return jobs that the queue shows no more, from the accounting if there is one."""
        if not names or not (await self._cluster()).has_accounting:
            return {}
        jobs = latest_jobs(await self._slurm.jobs_of_accounting())
        return {name: jobs[name] for name in names if name in jobs}

    async def _detailed(self, job: SlurmJob | None) -> SlurmJob | None:
        """Return a failed job with the exit code from Slurm's details, any other job unchanged."""
        if job is None or job.state != "FAILED" or job.exit_code:
            return job
        details = await self._slurm.details(job.id)
        return next((one for one in details if one.agent == job.agent), job)

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Cancel the jobs of agents, wait until they are over, and remove their folders."""
        self._ending |= {name for name in names if is_own(self._context, name)}
        await self._end_jobs()

    async def clean(self) -> None:
        """Cancel all jobs of the pool, remove the folders, and the bundles if no agent is left."""
        states = await self._files.states(self._prefix)
        self._ending |= {name for name in _named(states) if is_own(self._context, name)}
        self._ending |= set(_live(await self._queue()))
        await self._end_jobs()
        await self._files.remove_rest()

    async def leftovers(self) -> list[Leftover]:
        """Return the jobs and folders of agents of the installation; see `PlatformCleaner`."""
        installation = self._context.installation
        names = set(await self._files.states(f"nni-{installation}-"))
        names |= {
            str(job.agent) for job in await self._slurm.queue() if job.stage is not JobStage.ENDED
        }
        return leftovers_of(names, installation)

    async def clean_rest(self) -> None:
        """Remove bundles and output of jobs if no agent has a folder; see `PlatformCleaner`."""
        await self._files.remove_rest()

    async def _end_jobs(self) -> None:
        """Cancel terminated agents' jobs; wait, within a limit; remove folders of ended ones."""
        deadline_s = time.monotonic() + END_LIMIT_S
        jobs = await self._queue()
        await self._slurm.cancel([job.id for name, job in jobs.items() if name in self._ending])
        while self._ending & _live(jobs).keys() and time.monotonic() < deadline_s:
            await asyncio.sleep(END_STEP_S)  # Slurm notifies of nothing
            jobs = await self._queue()
        await self._remove_ended(jobs)
        self._changed.set()

    async def _remove_ended(self, jobs: Mapping[AgentName, SlurmJob]) -> None:
        gone = self._ending - _live(jobs).keys()
        await self._files.remove(sorted(map(str, gone)))
        self._ending -= gone

    # Changes

    async def wait_changed(self) -> None:
        """Poll the queue until the result of `agents` may differ; wait without limit."""
        self._changed.clear()
        while True:
            await self._pause()
            if self._changed.is_set() or not await self._is_same():
                return

    async def _pause(self) -> None:
        """Wait until the next poll is due, or until agents were launched or ended."""
        interval_s: float | None = self._options.poll_interval_seconds
        if not self._failed and not self._ending:
            interval_s = look_interval_s(self._listed, self._options.poll_interval_seconds)
        await wait_for_poll(self._changed, interval_s)

    async def _is_same(self) -> bool:
        """Query the queue; return False if it differs since `agents`, or at a first failure."""
        try:
            jobs = await self._queue()
            if jobs != self._jobs or self._failed:
                return False
            starting = any(agent.phase is AgentPhase.STARTING for agent in self._listed)
            return not starting or await self._look(jobs) == self._listed
        except PlatformError:
            # The first failure is shown; then the end of the failures is waited for.
            known, self._failed = self._failed, True
            return known

    async def aclose(self) -> None:
        """Release the connection; jobs continue."""
        await self._runner.aclose()

    async def _cluster(self) -> Cluster:
        """Return the settings of the cluster; request them from Slurm at the first call only."""
        if self._known_cluster is None:
            self._known_cluster = read_cluster(await self._slurm.configuration())
        return self._known_cluster

    @property
    def _prefix(self) -> str:
        return f"nni-{self._context.installation}-{self._context.pool}-"


def agent_grace_s(before_limit_s: float, kill_wait_s: float) -> float:
    """Return how long an agent has from TERM, at its limit or when it is cancelled, to KILL."""
    return max(LEAST_GRACE_S, min(before_limit_s, kill_wait_s) - MARGIN_S)


def look_interval_s(agents: Iterable[PlatformAgent], interval_s: float) -> float | None:
    """Return the time until the next poll of the queue; None: no poll is needed.

    Args:
        agents: as they were listed last.
        interval_s: while an agent is pending or starting.
    """
    phases = {agent.phase for agent in agents}
    if phases & {AgentPhase.PENDING, AgentPhase.STARTING}:
        return interval_s
    return interval_s * SETTLED_FACTOR if AgentPhase.RUNNING in phases else None


def _named(states: Mapping[str, dict[str, Any]]) -> dict[AgentName, dict[str, Any]]:
    found = {parse_agent_name(text): state for text, state in states.items()}
    return {name: state for name, state in found.items() if name is not None}


def _live(jobs: Mapping[AgentName, SlurmJob]) -> dict[AgentName, SlurmJob]:
    return {name: job for name, job in jobs.items() if job.stage is not JobStage.ENDED}
