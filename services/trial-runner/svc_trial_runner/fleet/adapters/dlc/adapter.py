"""Platform `dlc`: agents as jobs of PAI-DLC, which reach bus and manager by the TLS front."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Any, Final

from svc_common import environment
from svc_trial_runner.agent_settings import write_agent_settings
from svc_trial_runner.fleet.adapters.dlc.api import DlcApi, DlcRefusalError
from svc_trial_runner.fleet.adapters.dlc.options import (
    SECRET,
    DlcOptions,
    option_problems,
    parse_options,
)
from svc_trial_runner.fleet.adapters.dlc.settings_folder import SettingsFolder, path_in_container
from svc_trial_runner.fleet.adapters.job_agents import (
    is_own,
    job_agent_settings,
    launch_jobs,
    own_jobs,
    raise_first,
    wait_for_poll,
)
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    parse_agent_name,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError

PLATFORM: Final = "dlc"
GRACE_S: Final = 20.0
"""Part of the grace of a pod, 30 s, in which an agent hands its trials over."""
END_LIMIT_S: Final = 60.0
"""Longest wait for the end of stopped jobs."""
RUN_AGENT: Final = """\
folder="$HOME/.nni-agent"
mkdir -p -m 700 "$folder"
(umask 077; cat {settings} >"$folder/settings.json") && rm -f {settings}
exec {python} -P -m svc_trial_runner --settings "$folder/settings.json"
"""
"""Command of a job: the settings on the NAS belong to another user than that of the container."""
_SHOWN_CHARACTERS: Final = 400
_PHASES: Final = {
    **dict.fromkeys(("Creating", "Queuing", "Bidding"), AgentPhase.PENDING),
    **dict.fromkeys(("EnvPreparing", "SanityChecking", "Restarting"), AgentPhase.STARTING),
    **dict.fromkeys(("Running", "Stopping"), AgentPhase.RUNNING),
    **dict.fromkeys(("Succeeded", "Failed", "Stopped"), AgentPhase.ENDED),
    **dict.fromkeys(("SucceededReserving", "FailedReserving"), AgentPhase.ENDED),
}


class DlcAdapter:
    """`PlatformAdapter` of PAI-DLC for one pool: each agent is a job.

    Settings of agents travel over the NAS. A job that was ended is deleted.

    Args:
        context: of the pool.
    """

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self._options = parse_options(context.section.options)
        self._api = DlcApi(self._options, context.section.secrets.get(SECRET, ""))
        self._settings = SettingsFolder(self._options.local_folder, context.installation)
        self._version = environment.text(environment.NNI_VERSION, "unknown")
        self._changed = asyncio.Event()

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section itself; if none, of the NAS, then of login and region."""
        problems = self._own_problems()
        if problems:
            return problems
        broken = await asyncio.to_thread(self._settings.problem)
        if broken:
            folder = self._options.local_folder
            return [PlatformProblem("localStorageMountPoint", broken, folder)]
        try:
            await self._jobs()
        except PlatformError as error:
            denied = isinstance(error, DlcRefusalError) and error.denied
            field = "accessKeyId" if denied else "region"
            value = self._options.key_id if denied else self._options.region
            return [error.problem(field, value)]
        return []

    def _own_problems(self) -> list[PlatformProblem]:
        section = self._context.section
        return option_problems(section.options, section.secrets)

    async def prepare(self) -> None:
        """Raise for broken rules of the section, then open the TLS front; see `PlatformAdapter`."""
        raise_first(self._own_problems())
        await self._context.front.open()

    async def capacity(self) -> int | None:
        """Return None: the user's quota at PAI-DLC decides how many jobs run."""
        return None

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Submit a job for each order without one; return the refused; see `PlatformAdapter`."""
        if not orders:
            return []
        front = await self._context.front.open()
        known = {name for name, _ in await self._jobs()}
        submit = partial(self._submit, front)
        failures = await launch_jobs(orders, known, submit, DlcRefusalError)
        self._changed.set()
        return failures

    async def _submit(self, front: FrontEndpoint, order: AgentOrder) -> None:
        name = str(order.name)
        job = job_of(self._options, order.name)
        settings = job_agent_settings(
            PLATFORM, order, front, self._options.agent, GRACE_S, self._version
        )
        await asyncio.to_thread(self._settings.write, name, write_agent_settings(settings))
        try:
            await asyncio.to_thread(self._api.submit, job)
        except DlcRefusalError:
            await asyncio.to_thread(self._settings.remove, name)
            raise

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents that have a job, with the reasons that PAI-DLC gives."""
        found = {name: platform_agent(name, job) for name, job in await self._jobs()}
        return [found[name] for name in sorted(found)]

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Stop agents' jobs, wait up to 60 s for their end, delete them and their settings."""
        own = {name for name in names if is_own(self._context, name)}
        await self._end([(name, job) for name, job in await self._jobs() if name in own])
        await self._remove_settings(own)

    async def clean(self) -> None:
        """Stop the pool's jobs, delete those that end within 60 s; remove its agents' settings."""
        await self._end(await self._jobs())
        named = map(parse_agent_name, await asyncio.to_thread(self._settings.names))
        await self._remove_settings(
            [name for name in named if name is not None and is_own(self._context, name)]
        )

    async def _end(self, jobs: Sequence[tuple[AgentName, Mapping[str, Any]]]) -> None:
        ids = {job["JobId"] for _, job in jobs}
        for _, job in jobs:
            if not _is_over(job):
                await asyncio.to_thread(self._api.stop, job["JobId"])
        deadline_s = time.monotonic() + END_LIMIT_S
        while ids:
            left = {job["JobId"]: job for _, job in await self._jobs()}
            for one in [one for one in ids if one in left and _is_over(left[one])]:
                await asyncio.to_thread(self._api.delete, one)
                del left[one]
            ids &= left.keys()
            if not ids or time.monotonic() > deadline_s:
                break
            await asyncio.sleep(min(self._options.agent.poll_interval_s, 1.0))
        self._changed.set()

    async def _remove_settings(self, names: Iterable[AgentName]) -> None:
        for name in names:
            await asyncio.to_thread(self._settings.remove, str(name))

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents that have a job, by pool; see `PlatformCleaner`."""
        installation = self._context.installation
        jobs = await asyncio.to_thread(self._api.jobs, f"nni-{installation}-")
        return leftovers_of({job["DisplayName"] for job in jobs}, installation)

    async def clean_rest(self) -> None:
        """Do nothing: all jobs and folders are of a pool, and the image has the agent."""

    async def wait_changed(self) -> None:
        """Wait for the poll interval, or until agents were launched or ended; send no request."""
        self._changed.clear()
        await wait_for_poll(self._changed, self._options.agent.poll_interval_s)

    async def aclose(self) -> None:
        """Do nothing: connections are closed after each request, and jobs continue."""

    async def _jobs(self) -> list[tuple[AgentName, dict[str, Any]]]:
        """Return the jobs of the pool with the names of their agents."""
        prefix = f"nni-{self._context.installation}-{self._context.pool}-"
        jobs = await asyncio.to_thread(self._api.jobs, prefix)
        return own_jobs(self._context, jobs, "DisplayName")


def job_of(options: DlcOptions, agent: AgentName) -> dict[str, Any]:
    """Return the `CreateJob` request for an agent: one pod, the NAS, the command that runs it.

    Args:
        options: of the section.
        agent: its name is the display name of the job.
    """
    name = str(agent)
    settings = path_in_container(options.container_folder, agent.installation, name)
    command = RUN_AGENT.format(settings=quote(settings), python=quote(options.agent.python))
    job: dict[str, Any] = {
        "DisplayName": name,
        "JobType": options.job_type,
        "JobSpecs": [
            {
                "Type": options.role,
                "Image": options.image,
                "PodCount": 1,
                "EcsSpec": options.instance_type,
            }
        ],
        "DataSources": [
            {"DataSourceId": options.data_source, "MountPath": options.container_folder}
        ],
        "UserCommand": command,
    }
    if options.workspace:
        job["WorkspaceId"] = options.workspace
    return job


def platform_agent(name: AgentName, job: Mapping[str, Any]) -> PlatformAgent:
    """Return an agent by its job's status, RUNNING if that is unknown, with PAI-DLC's reason."""
    status = job.get("Status") or ""
    phase = _PHASES.get(status, AgentPhase.RUNNING)
    words = [job.get(one) or "" for one in ("ReasonCode", "ReasonMessage")]
    reason = ": ".join(" ".join(one.split()) for one in words if one)[:_SHOWN_CHARACTERS]
    if phase is AgentPhase.RUNNING or status.startswith("Succeeded"):
        reason = "" if status in _PHASES else f"PAI-DLC says {status or 'nothing'}"
    elif phase is AgentPhase.PENDING:
        reason = f"{status}: {reason}".strip(": ")
    return PlatformAgent(name, phase, "", reason)


def _is_over(job: Mapping[str, Any]) -> bool:
    return _PHASES.get(job.get("Status") or "") is AgentPhase.ENDED
