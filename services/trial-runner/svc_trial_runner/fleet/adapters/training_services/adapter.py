"""Platforms of custom training services: agents as jobs that the service's class submits."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from nni_wire.training_services import (
    LIVE_STATUSES,
    JobApplicationForm,
    TrialJobDetail,
    TrialJobMetric,
    TrialJobStatus,
)
from svc_common import environment
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_trial_runner.agent_settings import GRACE_S, write_agent_settings
from svc_trial_runner.fleet.adapters.job_agents import (
    is_own,
    job_agent_settings,
    launch_jobs,
    raise_first,
    wait_for_poll,
)
from svc_trial_runner.fleet.adapters.training_services.job_folders import COMMAND, JobFolders
from svc_trial_runner.fleet.adapters.training_services.options import (
    option_problems,
    parse_options,
    whole_section,
)
from svc_trial_runner.fleet.adapters.training_services.service_calls import (
    ServiceCalls,
    TrainingServiceError,
    agent_of,
)
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError

TRIAL_CONFIG: Final = "trial_config"
END_LIMIT_S: Final = 60.0
"""Longest wait for the end of cancelled jobs."""
_END_STEP_S: Final = 1.0
_PHASES: Final = {
    TrialJobStatus.WAITING: AgentPhase.PENDING,
    TrialJobStatus.RUNNING: AgentPhase.RUNNING,
    TrialJobStatus.UNKNOWN: AgentPhase.RUNNING,
}
"""Phases of live jobs; all others have ended."""


class TrainingServiceAdapter:
    """`PlatformAdapter` over a class of `nni_wire.training_services`: each agent is a job.

    A service may list its jobs for ever. An agent is known until its job has ended and its folder
    on this machine is gone: `terminate` removes that.

    Args:
        service_class: a `TrainingService`.
        context: of the pool.
        end_limit_s: longest wait for the end of cancelled jobs.
    """

    def __init__(
        self, service_class: object, context: AdapterContext, end_limit_s: float = END_LIMIT_S
    ) -> None:
        self._service_class = service_class
        self._context = context
        self._end_limit_s = end_limit_s
        self._options = parse_options(context.section.options)
        self._folders = JobFolders(context.folder)
        self._version = environment.text(environment.NNI_VERSION, "unknown")
        self._opened: ServiceCalls | None = None
        self._tasks: TaskOwner | None = None
        """Main loop of the opened service."""
        self._loop_failure: BaseException | None = None
        self._is_configured = False
        self._has_warned = False
        self._changed = asyncio.Event()

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section, then the error by which the service lists its jobs."""
        problems = option_problems(self._context.section.options)
        if problems:
            return problems
        try:
            await (await self._calls()).jobs()
        except PlatformError as error:
            return [error.problem("platform", self._context.section.platform)]
        return []

    async def prepare(self) -> None:
        """Raise for broken rules of the section; open the TLS front and the service."""
        raise_first(option_problems(self._context.section.options))
        await self._context.front.open()
        await self._calls()

    async def capacity(self) -> int | None:
        """Return None: a service queues what it cannot run."""
        return None

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Submit a job for each order without one; return the refused; see `PlatformAdapter`."""
        if not orders:
            return []
        front = await self._context.front.open()
        bundle = await self._context.bundles.bundle(
            self._options.python_version, self._options.platform_tag
        )
        known = {name for name, _ in await self._jobs()}
        await self._configure()
        submit = partial(self._submit, front, bundle)
        failures = await launch_jobs(orders, known, submit, TrainingServiceError)
        self._changed.set()
        return failures

    async def _configure(self) -> None:
        """Pass the common values of all jobs to the service, once."""
        if not self._is_configured:
            config = {"command": COMMAND, "codeDir": str(self._folders.folder)}
            await (await self._calls()).set_metadata(TRIAL_CONFIG, json.dumps(config))
            self._is_configured = True

    async def _submit(self, front: FrontEndpoint, bundle: Path, order: AgentOrder) -> None:
        name = str(order.name)
        platform = self._context.section.platform
        settings = job_agent_settings(platform, order, front, self._options, GRACE_S, self._version)
        folder = await asyncio.to_thread(
            self._folders.write, name, bundle, write_agent_settings(settings), self._options
        )
        calls = await self._calls()
        try:
            job = await calls.submit(_form(order, folder, reuses=self._options.reuse_mode))
            await self._check_tags(order.name, job)
        except TrainingServiceError as error:
            if error.permanent:
                await asyncio.to_thread(self._folders.remove, name)
            raise

    async def _check_tags(self, name: AgentName, job: TrialJobDetail) -> None:
        """Cancel a job and raise unless the fleet finds it again by its tags.

        Raises:
            TrainingServiceError: the job has not the tags of its form.
        """
        if agent_of(job) == name:
            return
        await (await self._calls()).cancel(job.id)
        raise TrainingServiceError(
            f"the result of submit_trial_job must have the tags of the form, got {job.tags!r}",
            "return them in tags, or return the form itself",
            permanent=True,
        )

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents whose jobs live, or have ended and were not terminated."""
        found = {}
        for name, job in await self._jobs():
            if _is_live(job) or (name not in found and str(name) in self._folders):
                found[name] = platform_agent(name, job)
        return [found[name] for name in sorted(found)]

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Cancel agents' jobs, wait for their end, and remove their folders.

        Raises:
            PlatformError: a job has not ended within the limit; its agent is not forgotten then.
        """
        own = {name for name in names if is_own(self._context, name)}
        await self._end(own)
        for name in own:
            await asyncio.to_thread(self._folders.remove, str(name))

    async def clean(self) -> None:
        """Cancel all jobs of the pool, wait for their end, and let the service clean up.

        Raises:
            PlatformError: a job has not ended within the limit, or the service fails.
        """
        await self._end({name for name, _ in await self._jobs()})
        await (await self._calls()).clean_up()
        await self._close_service()
        await asyncio.to_thread(self._folders.remove_all)

    async def _end(self, names: set[AgentName]) -> None:
        live = await self._live(names)
        for job in live:
            await self._cancel(job)
        deadline_s = time.monotonic() + self._end_limit_s
        while live and (live := await self._live(names)):
            if time.monotonic() > deadline_s:
                raise TrainingServiceError(
                    f"the job {live[0].id} is {live[0].status} {self._end_limit_s:g} s after "
                    "cancel_trial_job",
                    "look at it on its platform; it is waited for",
                )
            await asyncio.sleep(min(self._options.poll_interval_s, _END_STEP_S))
        self._changed.set()

    async def _cancel(self, job: TrialJobDetail) -> None:
        """Cancel a job; do nothing if it has ended in between."""
        calls = await self._calls()
        try:
            await calls.cancel(job.id)
        except TrainingServiceError:
            if any(one.id == job.id and _is_live(one) for one in await calls.jobs()):
                raise

    async def _live(self, names: set[AgentName]) -> list[TrialJobDetail]:
        return [job for name, job in await self._jobs() if name in names and _is_live(job)]

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents whose jobs live, by pool; see `PlatformCleaner`."""
        jobs = await (await self._calls()).jobs()
        names = {str(agent_of(job)) for job in jobs if _is_live(job)}
        return leftovers_of(names, self._context.installation)

    async def clean_rest(self) -> None:
        """Do nothing: all jobs and folders are of a pool."""

    async def wait_changed(self) -> None:
        """Wait for the poll interval, or until agents were launched or ended; send no request."""
        self._changed.clear()
        await wait_for_poll(self._changed, self._options.poll_interval_s)

    async def aclose(self) -> None:
        """End the main loop of the service; jobs continue."""
        await self._close_service()

    async def _jobs(self) -> list[tuple[AgentName, TrialJobDetail]]:
        """Return the jobs of the pool with the names of their agents."""
        jobs = await (await self._calls()).jobs()
        named = ((agent_of(job), job) for job in jobs)
        return [
            (name, job) for name, job in named if name is not None and is_own(self._context, name)
        ]

    async def _calls(self) -> ServiceCalls:
        """Return the calls of the service; open it if it is not open, or has failed.

        Raises:
            TrainingServiceError: it cannot be opened, or its main loop has failed.
        """
        failure, self._loop_failure = self._loop_failure, None
        if failure is not None:
            await self._close_service()  # the next call opens it again
            raise TrainingServiceError(f"the main loop has ended: {failure}") from failure
        if self._opened is None:
            section = whole_section(self._context.section)
            folder = self._context.folder
            calls = ServiceCalls.create(self._service_class, section, folder)
            calls.listen(self._ignore_metric)
            self._tasks = TaskOwner(self._note_failure)
            self._tasks.start(calls.run(), "training service")
            self._opened = calls
        return self._opened

    async def _close_service(self) -> None:
        tasks, self._tasks, self._opened = self._tasks, None, None
        self._is_configured = False
        if tasks is not None:
            await tasks.aclose()

    def _note_failure(self, _: str, error: BaseException) -> None:
        self._loop_failure = error
        self._changed.set()

    def _ignore_metric(self, metric: TrialJobMetric) -> None:
        """Log the first metric that the service sends: agents report those of trials."""
        if not self._has_warned:
            self._has_warned = True
            get_logger().warning("metrics of a training service ignored", job=metric.id)


def platform_agent(name: AgentName, job: TrialJobDetail) -> PlatformAgent:
    """Return an agent by its job's status, with the message of the job as its reason."""
    phase = _PHASES.get(job.status, AgentPhase.ENDED)
    reason = " ".join(str(job.message).split())
    if not reason and job.status not in {TrialJobStatus.RUNNING, TrialJobStatus.SUCCEEDED}:
        reason = f"the job {job.id} is {job.status}"
    return PlatformAgent(name, phase, "", reason)


def _form(order: AgentOrder, folder: Path, *, reuses: bool) -> JobApplicationForm:
    gpus = (order.gpus_per_trial or 0) * (order.slots if reuses else 1)
    constraint: Mapping[str, object] = {"type": "GPUNumber", "gpus": [gpus]}
    return JobApplicationForm(
        sequence_id=order.name.number,
        command=COMMAND,
        code_directory=str(folder),
        tags=(str(order.name),),
        placement_constraint=constraint if gpus else None,
    )


def _is_live(job: TrialJobDetail) -> bool:
    return job.status in LIVE_STATUSES
