"""Platform `openpai`: agents as jobs of OpenPAI, which reach bus and manager by the TLS front."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from svc_common import environment
from svc_trial_runner.agent_settings import write_agent_settings
from svc_trial_runner.fleet.adapters.http_requests import NOT_FOUND
from svc_trial_runner.fleet.adapters.job_agents import (
    is_own,
    job_agent_settings,
    launch_jobs,
    own_jobs,
    raise_first,
    wait_for_poll,
)
from svc_trial_runner.fleet.adapters.json_answers import AnswerError, JsonPart
from svc_trial_runner.fleet.adapters.openpai.api import (
    CONFLICT,
    OpenpaiApi,
    OpenpaiRefusalError,
)
from svc_trial_runner.fleet.adapters.openpai.job_protocol import job_of
from svc_trial_runner.fleet.adapters.openpai.options import (
    PROTOCOL,
    TOKEN,
    option_problems,
    parse_options,
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
from svc_trial_runner.fleet.domain.section_secrets import with_secrets
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError

PLATFORM: Final = "openpai"
GRACE_S: Final = 20.0
"""Part of OpenPAI's grace, 30 s, in which an agent hands its trials over."""
END_LIMIT_S: Final = 60.0
"""Longest wait for the end of stopped jobs; OpenPAI kills a container after 30 s."""
_SHOWN_CHARACTERS: Final = 400
_STOP: Final = "STOP"
_PHASES: Final = {
    "WAITING": AgentPhase.PENDING,
    "RUNNING": AgentPhase.RUNNING,
    "STOPPING": AgentPhase.RUNNING,
    "STOPPED": AgentPhase.ENDED,
    "SUCCEEDED": AgentPhase.ENDED,
    "FAILED": AgentPhase.ENDED,
}


class OpenpaiAdapter:
    """`PlatformAdapter` of an OpenPAI cluster for one pool: each agent is a job.

    OpenPAI keeps its jobs for ever. A job that has ended and was stopped, also after its end, is
    one that the fleet has forgotten; its execution type says so. A stopped job that has not ended
    is an agent still, which hands its trials over.

    Args:
        context: of the pool.
        end_limit_s: longest wait for the end of stopped jobs.
    """

    def __init__(self, context: AdapterContext, end_limit_s: float = END_LIMIT_S) -> None:
        self._context = context
        self._end_limit_s = end_limit_s
        section = context.section
        job = with_secrets(section.options.get(PROTOCOL), PROTOCOL, section.secrets)
        self._given = {**section.options, PROTOCOL: job}
        self._options = parse_options(self._given)
        self._api = OpenpaiApi(self._options, section.secrets.get(TOKEN, ""))
        self._version = environment.text(environment.NNI_VERSION, "unknown")
        self._forgotten: set[AgentName] = set()
        """Ended agents whose jobs OpenPAI's controller has no more, so that they cannot be
        stopped."""
        self._changed = asyncio.Event()

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section itself; if none, of login, virtual cluster and storage."""
        problems = self._own_problems()
        if problems:
            return problems
        try:
            return await asyncio.to_thread(lambda: list(self._cluster_problems()))
        except PlatformError as error:
            field = TOKEN if getattr(error, "status", 0) in {401, 403} else "host"
            value = self._options.host if field == "host" else ""
            return [error.problem(field, value)]

    def _own_problems(self) -> list[PlatformProblem]:
        return option_problems(self._given, self._context.section.secrets)

    def _cluster_problems(self) -> Iterator[PlatformProblem]:
        self._api.jobs(self._context.installation)
        cluster = self._options.virtual_cluster
        if cluster:
            try:
                self._api.virtual_cluster(cluster)
            except OpenpaiRefusalError as error:
                if error.status != NOT_FOUND:
                    raise
                rule = "must be a virtual cluster of OpenPAI"
                yield PlatformProblem("virtualCluster", rule, cluster)
        storage = self._options.storage
        if storage and storage not in (known := self._api.storages()):
            rule = f"must be a storage that you may mount: {', '.join(known)[:200] or 'none'}"
            yield PlatformProblem("storageConfigName", rule, storage)

    async def prepare(self) -> None:
        """Raise for broken rules of the section, then open the TLS front; see `PlatformAdapter`."""
        raise_first(self._own_problems())
        await self._context.front.open()

    async def capacity(self) -> int | None:
        """Return None: OpenPAI queues any number of jobs."""
        return None

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Submit a job for each order without one; return the refused; see `PlatformAdapter`."""
        if not orders:
            return []
        front = await self._context.front.open()
        known = {name for name, _ in await self._jobs()}
        submit = partial(self._submit, front)
        failures = await launch_jobs(orders, known, submit, OpenpaiRefusalError)
        self._changed.set()
        return failures

    async def _submit(self, front: FrontEndpoint, order: AgentOrder) -> None:
        settings = job_agent_settings(
            PLATFORM, order, front, self._options.agent, GRACE_S, self._version
        )
        job = job_of(self._options, order, write_agent_settings(settings), self._version)
        try:
            await asyncio.to_thread(self._api.submit, job)
        except OpenpaiRefusalError as error:
            if error.status != CONFLICT:  # else it was taken before an answer was lost
                raise

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents whose job has not ended, or was not stopped, with OpenPAI's reasons."""
        found = []
        for name, job in await self._jobs():
            forgotten = job.get("executionType") == _STOP or name in self._forgotten
            if not (forgotten and _is_over(job)):
                found.append(await self._agent(name, job))
        return sorted(found, key=lambda agent: agent.name)

    async def _agent(self, name: AgentName, job: Mapping[str, Any]) -> PlatformAgent:
        state = job.get("state") or ""
        phase = _PHASES.get(state, AgentPhase.RUNNING)
        if state == "WAITING" and job.get("subState") == "AttemptPreparing":
            phase = AgentPhase.STARTING
        reason = "" if state in _PHASES else f"OpenPAI says {state or 'nothing'}"
        if state == "FAILED":
            reason = await self._end_words(name)
        elif phase is not AgentPhase.ENDED and job.get("executionType") == _STOP:
            reason = "OpenPAI stops its job"
        elif phase is AgentPhase.PENDING:
            reason = f"WAITING in the virtual cluster {job.get('virtualCluster') or 'default'}"
        return PlatformAgent(name, phase, "", reason)

    async def _end_words(self, name: AgentName) -> str:
        try:
            return end_words(await asyncio.to_thread(self._api.job_status, str(name)))
        except OpenpaiRefusalError:
            return ""
        except AnswerError as error:  # the end itself is known
            return error.message

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Stop the jobs of agents, and wait until they have ended.

        Raises:
            PlatformError: a job has not ended within the limit; its agent is not forgotten then.
        """
        own = {name for name in names if is_own(self._context, name)}
        left = await self._stop({name: job for name, job in await self._jobs() if name in own})
        if left:
            name, job = min(left.items())
            raise PlatformError(
                f"the job {name} is {job.get('state')} {self._end_limit_s:g} s after its stop",
                "look at it in OpenPAI's portal; it is waited for",
            )

    async def clean(self) -> None:
        """Stop all jobs of the pool, and wait, within the limit, until they have ended."""
        await self._stop(dict(await self._jobs()))

    async def _stop(
        self, jobs: Mapping[AgentName, Mapping[str, Any]]
    ) -> dict[AgentName, Mapping[str, Any]]:
        """Stop jobs, wait until they have ended, and return those that have not."""
        for name, job in jobs.items():
            if job.get("executionType") != _STOP:
                await asyncio.to_thread(self._api.stop, str(name))
        deadline_s = time.monotonic() + self._end_limit_s
        left = dict(jobs)
        while left:
            found = {name: job for name, job in await self._jobs() if name in jobs}
            left = {name: job for name, job in found.items() if not _is_over(job)}
            self._forgotten |= found.keys() - left.keys()
            if not left or time.monotonic() > deadline_s:
                break
            await asyncio.sleep(min(self._options.agent.poll_interval_s, 1.0))
        self._changed.set()
        return left

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents whose jobs have not ended, by pool."""
        installation = self._context.installation
        jobs = await asyncio.to_thread(self._api.jobs, installation)
        names = {job["name"] for job in jobs if not _is_over(job)}
        return leftovers_of(names, installation)

    async def clean_rest(self) -> None:
        """Do nothing: all jobs are of a pool, and the image has the agent."""

    async def wait_changed(self) -> None:
        """Wait for the poll interval, or until agents were launched or ended; send no request."""
        self._changed.clear()
        await wait_for_poll(self._changed, self._options.agent.poll_interval_s)

    async def aclose(self) -> None:
        """Do nothing: connections are closed after each request, and jobs continue."""

    async def _jobs(self) -> list[tuple[AgentName, dict[str, Any]]]:
        """Return (agent's name, job summary) of the pool's jobs, ended ones included."""
        jobs = await asyncio.to_thread(self._api.jobs, self._context.installation)
        return own_jobs(self._context, jobs, "name")


def _is_over(job: Mapping[str, Any]) -> bool:
    return _PHASES.get(job.get("state") or "") is AgentPhase.ENDED


def end_words(status: JsonPart) -> str:
    """Return why a job has failed, from the messages of OpenPAI, else its exit code; empty: none.

    Args:
        status: field `jobStatus` of the details of the job.

    Raises:
        AnswerError: a field of it has another type.
    """
    fields = status.checked((), ("appExitTriggerMessage", "appExitDiagnostics"))
    specification = status.field("appExitSpec")
    phrase = None if specification.value is None else specification.checked((), ("phrase",))
    words = [
        (phrase or {}).get("phrase"),
        fields.get("appExitTriggerMessage"),
        fields.get("appExitDiagnostics"),
    ]
    text = ": ".join(" ".join(one.split()) for one in words if one)
    code = status.field("appExitCode").integer()
    return (text or ("" if code is None else f"exit code {code}"))[:_SHOWN_CHARACTERS]
