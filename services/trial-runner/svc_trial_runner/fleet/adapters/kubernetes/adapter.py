"""Agents in pods of Kubernetes, which reach bus and manager by the TLS front.

The platform `kubernetes` starts them as Jobs; others start them as objects of an operator.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from svc_common import environment
from svc_trial_runner.agent_settings import AgentSettings, write_agent_settings
from svc_trial_runner.fleet.adapters.job_agents import is_own, job_agent_settings, raise_first
from svc_trial_runner.fleet.adapters.kubernetes.agent_states import (
    is_leaving,
    latest_pods,
    needs_warnings,
    object_agent,
    platform_agent,
    warning_texts,
)
from svc_trial_runner.fleet.adapters.kubernetes.api import KubernetesApi, refused
from svc_trial_runner.fleet.adapters.kubernetes.causes import (
    CONFLICT,
    NOT_FOUND,
    KubernetesRefusalError,
    is_unavailable,
    launch_failure,
)
from svc_trial_runner.fleet.adapters.kubernetes.checks import cluster_problems
from svc_trial_runner.fleet.adapters.kubernetes.manifests import (
    PLATFORM_LABEL,
    POOL_LABEL,
    labels_of_installation,
    labels_of_pool,
    owner_patch,
    secret_manifest,
    selector,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import MARGIN_S, given_options
from svc_trial_runner.fleet.adapters.kubernetes.workloads import JobWorkload, Workload
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError

PODS: Final = "/api/v1/namespaces/{namespace}/pods"
SECRETS: Final = "/api/v1/namespaces/{namespace}/secrets"
EVENTS: Final = "/api/v1/namespaces/{namespace}/events"
WATCH_S: Final = 240
"""Time after which a watch is begun again while all agents run; proxies cut longer ones."""
WAITING_WATCH_S: Final = 10
"""The same while an agent waits: events with its reason change no pod."""
PAUSE_S: Final = 5.0
"""Time between two tries while the cluster cannot be reached."""
END_MARGIN_S: Final = 15.0
"""A pod that still exists so long after its grace is on a node that is lost."""
END_STEP_S: Final = 0.25
_CHECKED: Final = AgentName("00000000", "check", 0)
"""Agent of the job that `check` offers to the server."""


class KubernetesAdapter:
    """`PlatformAdapter` of one pool on Kubernetes: an agent is a Job, or the like, and a Secret.

    An agent is a Job, or an object of an operator, and a Secret with its name; the Secret belongs
    to that object and is removed with it. All calls of the cluster block, and run in threads.

    Args:
        context: of the pool.
        workload: which objects start the pods of agents; None: Jobs.
    """

    def __init__(self, context: AdapterContext, workload: Workload | None = None) -> None:
        self._context = context
        self._workload = workload or JobWorkload(given_options(context.section))
        self._options = self._workload.options
        self._jobs = self._workload.kind.path
        # How pods follow the deletion of their object.
        self._with_pods = {"propagationPolicy": self._workload.kind.propagation}
        self._api = KubernetesApi(self._options)
        self._labels = labels_of_pool(context.installation, context.pool, context.folder.name)
        self._version = environment.text(environment.NNI_VERSION, "unknown")
        self._front: FrontEndpoint | None = None
        self._listed: list[PlatformAgent] = []
        self._pods_version = ""
        self._changed = asyncio.Event()
        self._closed = False

    # Checks

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section itself; if none, of the cluster, with a job's dry run."""
        given = self._context.section.options
        problems = self._workload.problems()
        if problems:
            return problems
        order = AgentOrder(_CHECKED, AgentCredentials("", "", ""), slots=1)
        job = self._workload.manifest(order, self._labels, self._version)
        try:
            return await asyncio.to_thread(
                cluster_problems, self._api, self._options, given, job, self._workload.kind
            )
        except KubernetesRefusalError as error:
            return [refused(error).problem("context", self._options.context)]
        except PlatformError as error:
            return [error.problem("context", self._options.context)]

    async def prepare(self) -> None:
        """Raise for broken rules; read the cluster's credentials, open the TLS front."""
        raise_first(self._workload.problems())
        await asyncio.to_thread(self._api.connect)
        self._front = await self._context.front.open()

    async def capacity(self) -> int | None:
        """Return None: the cluster's quotas and nodes decide, and give the reasons."""
        return None

    # Agents

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Create the secret and job of each order without a job; return the refused orders."""
        if not orders:
            return []
        self._front = await self._context.front.open()
        jobs, _ = await self._list(self._jobs)
        known = {object_agent(job): job for job in jobs if not is_leaving(job)}
        results = [await self._launched(order, known.get(order.name)) for order in orders]
        self._changed.set()
        return [failure for failure in results if failure is not None]

    async def _launched(
        self, order: AgentOrder, job: Mapping[str, Any] | None
    ) -> LaunchFailure | None:
        name = order.name
        try:
            if job is None:
                await self._replace_secret(order)
                job = await self._create_job(order)
            # Of a job that a killed fleet has created, this may be missing.
            kind = self._workload.kind
            patch = owner_patch(job, kind.api_version, kind.kind)
            await self._request("PATCH", f"{SECRETS}/{name}", patch)
        except KubernetesRefusalError as error:
            if error.refusal.status == NOT_FOUND and job is not None:
                return None  # it was ended meanwhile
            if is_unavailable(error.refusal):
                raise refused(error) from error
            if job is None:
                await self._removed(f"{SECRETS}/{name}")
            return launch_failure(name, error.refusal)
        return None

    async def _replace_secret(self, order: AgentOrder) -> None:
        """Create an agent's secret, replacing an earlier one, whose credentials are revoked."""
        settings = write_agent_settings(self._settings(order))
        manifest = secret_manifest(order.name, self._labels, settings)
        try:
            await self._request("POST", SECRETS, manifest)
        except KubernetesRefusalError as error:
            if error.refusal.status != CONFLICT:
                raise
            await self._removed(f"{SECRETS}/{order.name}")
            await self._request("POST", SECRETS, manifest)

    async def _create_job(self, order: AgentOrder) -> Mapping[str, Any]:
        manifest = self._workload.manifest(order, self._labels, self._version)
        try:
            return await self._request("POST", self._jobs, manifest)
        except KubernetesRefusalError as error:
            if error.refusal.status != CONFLICT:
                raise
            name = self._workload.object_name(order.name)
            return await self._request("GET", f"{self._jobs}/{name}")

    def _settings(self, order: AgentOrder) -> AgentSettings:
        front = self._front
        if front is None:
            raise PlatformError("the TLS front is not open")
        grace_s = self._options.grace_seconds - MARGIN_S
        return job_agent_settings(
            self._workload.platform, order, front, self._options, grace_s, self._version
        )

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents that have a job, with their states from job, pod and events."""
        jobs, _ = await self._list(self._jobs)
        pods, version = await self._list(PODS)
        latest = latest_pods(pod for pod in pods if self._workload.is_agent_pod(pod))
        own = [job for job in jobs if not is_leaving(job)]
        found = self._agents(own, latest, {})
        if any(needs_warnings(agent) for agent in found):
            events, _ = await self._list(EVENTS, {"fieldSelector": "type=Warning"})
            found = self._agents(own, latest, warning_texts(events))
        self._pods_version, self._listed = version, found
        return found

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Delete agents' jobs and secrets; wait, within their grace, until the pods have ended."""
        own = [name for name in names if is_own(self._context, name)]
        for name in own:
            job = f"{self._jobs}/{self._workload.object_name(name)}"
            await self._removed(job, self._with_pods)
            await self._removed(f"{SECRETS}/{name}")
        if own:
            await self._pods_gone(set(own))
        self._changed.set()

    async def clean(self) -> None:
        """Delete the pool's jobs, pods and secrets; wait, within the grace, for the pods' end."""
        for path in (self._jobs, SECRETS):
            chosen = {"labelSelector": selector(self._labels), **self._with_pods}
            await self._removed(path, chosen)
        await self._pods_gone(None)
        self._changed.set()

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents with jobs, pods or secrets, by pool and platform."""
        query = {"labelSelector": selector(labels_of_installation(self._context.installation))}
        found: dict[tuple[str, str], set[str]] = {}
        for path in (self._jobs, PODS, SECRETS):
            for item in (await self._list(path, query))[0]:
                if not is_leaving(item):
                    labels = item["metadata"]["labels"]
                    place = (labels.get(POOL_LABEL, ""), labels.get(PLATFORM_LABEL, ""))
                    found.setdefault(place, set()).add(str(object_agent(item) or ""))
        return [
            Leftover(pool, tuple(sorted(names - {""})), key)
            for (pool, key), names in sorted(found.items())
            if pool and key
        ]

    async def clean_rest(self) -> None:
        """Do nothing: all objects are of a pool, and the image has the agent."""

    async def _pods_gone(self, names: set[AgentName] | None) -> None:
        """Wait until no pod of agents is left, but no longer than their grace and a margin.

        Args:
            names: of the agents; None: all of the pool.
        """
        deadline_s = time.monotonic() + self._options.grace_seconds + END_MARGIN_S
        while True:
            pods, _ = await self._list(PODS)
            left = {object_agent(pod) for pod in pods if _is_live(pod)}
            if not (left if names is None else left & names) or time.monotonic() > deadline_s:
                return
            await asyncio.sleep(END_STEP_S)

    # Changes

    async def wait_changed(self) -> None:
        """Wait until a pod changes, agents are launched or ended, or a time limit is over.

        A watch begins at the version of the list, so it misses nothing; one that the server has
        forgotten (410 Gone) counts as a change.
        """
        self._changed.clear()
        waiting = any(agent.phase is AgentPhase.PENDING for agent in self._listed)
        limit_s = WAITING_WATCH_S if waiting else WATCH_S
        cancelled = threading.Event()
        watch = asyncio.create_task(
            asyncio.to_thread(self._watch, limit_s, cancelled.is_set), name="watch of pods"
        )
        changed = asyncio.create_task(self._changed.wait(), name="change by this adapter")
        try:
            await asyncio.wait({watch, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            cancelled.set()
            self._api.stop_watching()
            await asyncio.gather(watch, changed, return_exceptions=True)
        if watch.exception() is not None and not self._closed:
            await asyncio.sleep(PAUSE_S)  # the next `agents` shows the error

    def _watch(self, limit_s: int, is_over: Callable[[], bool]) -> None:
        chosen = {"labelSelector": selector(self._labels)}
        self._api.watch(PODS, self._pods_version, limit_s, is_over, chosen)

    async def aclose(self) -> None:
        """Release the connections; agents continue."""
        self._closed = True
        await asyncio.to_thread(self._api.close)

    # Requests

    async def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        return await asyncio.to_thread(self._api.request, method, path, body, query)

    async def _list(
        self, path: str, query: Mapping[str, object] | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """List objects by a query (None: those of the pool); return them and the list's version."""
        asked = query or {"labelSelector": selector(self._labels)}
        try:
            return await asyncio.to_thread(self._api.list, path, asked)
        except KubernetesRefusalError as error:
            raise refused(error) from error

    async def _removed(self, path: str, query: Mapping[str, object] | None = None) -> None:
        """Delete an object or a collection; do nothing if it is gone."""
        try:
            await self._request("DELETE", path, query=query)
        except KubernetesRefusalError as error:
            if error.refusal.status != NOT_FOUND:
                raise refused(error) from error

    def _agents(
        self,
        jobs: Iterable[Mapping[str, Any]],
        pods: Mapping[AgentName, Mapping[str, Any]],
        warnings: Mapping[str, Sequence[str]],
    ) -> list[PlatformAgent]:
        found = []
        for job in jobs:
            name = object_agent(job)
            pod = None if name is None else pods.get(name)
            words = [*warnings.get(str(job["metadata"]["name"]), ())]
            if pod is not None:
                words = [*warnings.get(str(pod["metadata"]["name"]), ()), *words]
            agent = platform_agent(job, pod, words, self._workload.end)
            found += [] if agent is None else [agent]
        return sorted(found, key=lambda agent: agent.name)


def _is_live(pod: Mapping[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
