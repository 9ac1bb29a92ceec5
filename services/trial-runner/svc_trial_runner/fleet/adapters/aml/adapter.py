"""Platform `aml`: agents as jobs of Azure ML, which reach bus and manager by the TLS front."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from svc_common import environment
from svc_trial_runner.agent_settings import write_agent_settings
from svc_trial_runner.fleet.adapters.agent_image import default_image
from svc_trial_runner.fleet.adapters.aml.azure_requests import AmlRefusalError, TokenSource
from svc_trial_runner.fleet.adapters.aml.jobs import (
    compute_words,
    is_over,
    is_waiting,
    job_of,
    platform_agent,
    tag_of,
)
from svc_trial_runner.fleet.adapters.aml.options import option_problems, parse_options
from svc_trial_runner.fleet.adapters.aml.section_check import workspace_problem
from svc_trial_runner.fleet.adapters.aml.settings_blobs import SettingsBlobs, blob_address
from svc_trial_runner.fleet.adapters.aml.workspace_api import BlobStoreLocation, WorkspaceApi
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
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    parse_agent_name,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError

PLATFORM: Final = "aml"
GRACE_S: Final = 20.0
"""Time for the hand-over of trials after a cancellation, of the 30 s that preempted nodes have."""
END_LIMIT_S: Final = 60.0
"""Longest wait for the end of cancelled jobs."""

_Jobs = dict[AgentName, dict[str, Any]]


class AmlAdapter:
    """`PlatformAdapter` of an Azure ML workspace for one pool: each agent is a command job.

    Settings of agents travel through the workspace's default datastore. A job that was ended is
    deleted; Azure may list it for a while, or for ever if the user must not delete jobs.

    Args:
        context: of the pool.
        tokens: login to Azure.
        address_of: returns the address of the storage account behind a datastore.
        end_limit_s: longest wait for the end of cancelled jobs.
    """

    def __init__(
        self,
        context: AdapterContext,
        tokens: TokenSource,
        address_of: Callable[[BlobStoreLocation], str] = blob_address,
        end_limit_s: float = END_LIMIT_S,
    ) -> None:
        self._context = context
        self._end_limit_s = end_limit_s
        self._options = parse_options(context.section.options)
        self._version = environment.text(environment.NNI_VERSION, "unknown")
        self._image = self._options.image or default_image(self._version)
        self._api = WorkspaceApi(self._options, tokens)
        self._tokens = tokens
        self._address_of = address_of
        self._store: tuple[BlobStoreLocation, SettingsBlobs] | None = None
        self._forgotten: set[AgentName] = set()
        """Agents whose ended jobs were deleted, or cannot be."""
        self._unlisted: set[AgentName] = set()
        """Agents with a job that Azure has taken and not listed yet."""
        self._changed = asyncio.Event()

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section itself; if none, of login, workspace, compute, storage."""
        problems = self._own_problems()
        if problems:
            return problems
        found = await asyncio.to_thread(
            workspace_problem, self._options, self._api, lambda: self._open_store()[1]
        )
        return [] if found is None else [found]

    def _own_problems(self) -> list[PlatformProblem]:
        return option_problems(self._context.section.options)

    def _open_store(self) -> tuple[BlobStoreLocation, SettingsBlobs]:
        """Return the datastore, looked up once, and the settings in it."""
        if self._store is None:
            location = self._api.default_store()
            installation = self._context.installation
            blobs = SettingsBlobs(location, installation, self._tokens, self._address_of)
            self._store = location, blobs
        return self._store

    async def prepare(self) -> None:
        """Raise for broken rules of the section; register the image, open the TLS front."""
        raise_first(self._own_problems())
        await asyncio.to_thread(self._api.ensure_environment, self._image)
        await self._context.front.open()

    async def capacity(self) -> int | None:
        """Return None: jobs wait in the queue of the compute target, which others use as well."""
        return None

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Submit a job for each order without one; return the refused; see `PlatformAdapter`."""
        if not orders:
            return []
        front = await self._context.front.open()
        known = await self._jobs()
        submit = partial(self._submit, front)
        failures = await launch_jobs(orders, known, submit, AmlRefusalError)
        self._changed.set()
        return failures

    async def _submit(self, front: FrontEndpoint, order: AgentOrder) -> None:
        options = self._options
        settings = replace(
            job_agent_settings(PLATFORM, order, front, options.agent, GRACE_S, self._version),
            use_active_gpu=options.use_active_gpu,
            trials_per_gpu=options.trials_per_gpu,
        )
        content = write_agent_settings(settings)
        await asyncio.to_thread(self._submit_job, order.name, content)
        self._unlisted.add(order.name)

    def _submit_job(self, agent: AgentName, settings: bytes) -> None:
        location, blobs = self._open_store()
        name = str(agent)
        blobs.write(name, settings)
        environment_id = self._api.environment_id(self._image)
        job = job_of(self._options, agent, environment_id, location.datastore, blobs.path(name))
        try:
            self._api.submit(name, job)
        except AmlRefusalError:
            if self._api.job(name) is None:  # else it was taken before an answer was lost
                blobs.remove(name)
                raise

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents that have a job, with Azure's reasons and the state of the compute."""
        jobs = await self._jobs()
        words = ""
        if any(map(is_waiting, jobs.values())):
            words = await asyncio.to_thread(self._compute_words)
        return [platform_agent(name, jobs[name], words) for name in sorted(jobs)]

    def _compute_words(self) -> str:
        try:
            return compute_words(self._options.compute, self._api.compute())
        except AmlRefusalError as error:
            return str(error)

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Cancel agents' jobs, wait for their end, delete them and their settings.

        Raises:
            PlatformError: a job has not ended within the limit; it is listed further.
        """
        own = {name for name in names if is_own(self._context, name)}
        if not own:
            return
        jobs = await self._jobs()
        left = await self._end({name: jobs[name] for name in own & jobs.keys()})
        await self._remove_settings(own - left)
        if left:
            raise PlatformError(
                f"the job {min(left)} has not ended {self._end_limit_s:g} s after its cancellation",
                "look at it in the studio; it is cancelled again",
            )

    async def clean(self) -> None:
        """Cancel the pool's jobs, delete those that end within the limit; remove its settings."""
        await self._end(await self._jobs())
        _, blobs = await asyncio.to_thread(self._open_store)
        prefix = f"nni-{self._context.installation}-{self._context.pool}-"
        named = map(parse_agent_name, await asyncio.to_thread(blobs.names, prefix))
        await self._remove_settings(
            [name for name in named if name is not None and is_own(self._context, name)]
        )

    async def _end(self, jobs: Mapping[AgentName, Mapping[str, Any]]) -> set[AgentName]:
        """Cancel jobs, delete those that end within the limit; return the others' agents."""
        for name, job in jobs.items():
            if not is_over(job):
                await asyncio.to_thread(self._cancel, str(name))
        left = set(jobs)
        deadline_s = time.monotonic() + self._end_limit_s
        while True:
            found = await self._jobs()
            left &= found.keys()
            for name in [name for name in left if is_over(found[name])]:
                await asyncio.to_thread(self._delete, str(name))
                self._forgotten.add(name)
                left.discard(name)
            if not left or time.monotonic() > deadline_s:
                break
            await asyncio.sleep(min(self._options.agent.poll_interval_s, 1.0))
        self._changed.set()
        return left

    def _cancel(self, name: str) -> None:
        try:
            self._api.cancel(name)
        except AmlRefusalError:
            job = self._api.job(name)
            if job is not None and not is_over(job):  # else it has ended by itself
                raise

    def _delete(self, name: str) -> None:
        try:
            self._api.delete(name)
        except AmlRefusalError as error:
            if not (error.permanent or error.denied):
                raise

    async def _remove_settings(self, names: Iterable[AgentName]) -> None:
        _, blobs = await asyncio.to_thread(self._open_store)
        for name in names:
            await asyncio.to_thread(blobs.remove, str(name))

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents that have a live job or settings, by pool."""
        installation = self._context.installation
        jobs = await asyncio.to_thread(self._api.jobs, tag_of(installation))
        _, blobs = await asyncio.to_thread(self._open_store)
        names = set(await asyncio.to_thread(blobs.names, f"nni-{installation}-"))
        names |= {str(job["name"]) for job in jobs if not is_over(job)}
        return leftovers_of(names, installation)

    async def clean_rest(self) -> None:
        """Do nothing: all jobs and settings are of a pool, and the image has the agent."""

    async def wait_changed(self) -> None:
        """Wait for the poll interval, or until agents were launched or ended; send no request."""
        self._changed.clear()
        await wait_for_poll(self._changed, self._options.agent.poll_interval_s)

    async def aclose(self) -> None:
        """Do nothing: connections are closed after each request, and jobs continue."""

    async def _jobs(self) -> _Jobs:
        """Return the pool's jobs by agent: new ones before Azure lists them, no deleted ones."""
        listed = await asyncio.to_thread(self._api.jobs, tag_of(self._context.installation))
        jobs = dict(own_jobs(self._context, listed, "name"))
        self._unlisted -= jobs.keys()
        for name in sorted(self._unlisted):  # the list of jobs is behind
            job = await asyncio.to_thread(self._api.job, str(name))
            if job is None:
                self._unlisted.discard(name)
            else:
                jobs[name] = job
        return {name: job for name, job in jobs.items() if name not in self._forgotten}
