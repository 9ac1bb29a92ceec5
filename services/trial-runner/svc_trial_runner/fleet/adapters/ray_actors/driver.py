"""`RayCluster` by the package `ray`: this process is a driver of the cluster.

The package is imported at the first connection. It starts threads, and may end the process when
the head is away for long: the adapter runs in a child process of the fleet.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from svc_trial_runner.fleet.adapters.bundles.worker_commands import CommandResult, worker_program
from svc_trial_runner.fleet.adapters.ray_actors import agent_actor
from svc_trial_runner.fleet.adapters.ray_actors.cluster import ActorPlan, ActorState
from svc_trial_runner.fleet.adapters.ray_actors.demand import (
    ClusterDemand,
    NodeResources,
    visible_resources,
)
from svc_trial_runner.fleet.domain.agents import AgentPhase
from svc_trial_runner.fleet.ports import PlatformError

T = TypeVar("T")
STATE_S: Final = 1.0
"""Time within which an actor that runs reports its state."""
COMMAND_S: Final = 60.0
_THREADS: Final = 4
"""Calls of an actor that run at once: looks at its state while it is ended."""
_SHOWN_CHARACTERS: Final = 500
_PHASES: Final = {
    agent_actor.STARTING: AgentPhase.STARTING,
    agent_actor.RUNNING: AgentPhase.RUNNING,
    agent_actor.ENDED: AgentPhase.ENDED,
}
_MISMATCH: Final = re.compile(r"version mismatch", re.IGNORECASE)


class ActorRefusedError(PlatformError):
    """Error: Ray refuses to create an actor."""


class RayDriver:
    """`RayCluster` by the package `ray`, in one thread; reuses a connection of the process.

    Args:
        address: `auto`, or `host:port` of the head.
        namespace: of the actors.
    """

    def __init__(self, address: str, namespace: str) -> None:
        self._address = address
        self._namespace = namespace
        self._ray: Any = None
        self._is_owner = False
        self._handles: dict[str, Any] = {}
        self._looks: dict[str, Any] = {}
        """References of looks at states that are not answered."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ray")
        self._closed = False

    async def connect(self) -> None:
        """Connect to the cluster; see `RayCluster`."""
        await self._call(lambda: None)

    async def demand(self) -> ClusterDemand:
        """Return nodes and autoscaler's state; see `RayCluster`."""
        return await self._call(self._demand)

    async def run(
        self, arguments: Sequence[str], *, on_all_nodes: bool = False
    ) -> list[CommandResult]:
        """Run the worker's program on nodes; see `RayCluster`."""
        return await self._call(lambda: self._run(arguments, on_all_nodes=on_all_nodes))

    async def hold_bundle(self, name: str, bundle: Path) -> None:
        """Start the actor that holds a bundle for the nodes; see `RayCluster`."""
        await self._call(lambda: self._hold_bundle(name, bundle))

    async def names(self) -> set[str]:
        """Return the names of all actors; see `RayCluster`."""
        return await self._call(self._names)

    async def create(self, plan: ActorPlan) -> None:
        """Create the actor of an agent; see `RayCluster`."""
        await self._call(lambda: self._create(plan))

    async def states(self, names: Sequence[str]) -> dict[str, ActorState]:
        """Return the states of actors by name, ended ones included; see `RayCluster`."""
        return await self._call(lambda: self._states(names))

    async def end(self, names: Sequence[str], grace_s: float) -> None:
        """Terminate agents with their trials, then their actors; see `RayCluster`."""
        await self._call(lambda: self._end(names, grace_s))

    async def kill(self, names: Sequence[str]) -> None:
        """Kill actors by name, of any kind; see `RayCluster`."""
        await self._call(lambda: self._kill(names))

    async def aclose(self) -> None:
        """Disconnect if this object has connected the process; may be called twice."""
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
            self._thread.shutdown(wait=False)

    async def _call(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work in the thread; drop the connection if it fails.

        Work whose caller was cancelled goes on, and the next one waits for it.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work)

    def _do(self, work: Callable[[], T]) -> T:
        try:
            if self._ray is None:
                self._connect()
            return work()
        except PlatformError:
            raise
        except Exception as error:
            self._disconnect()
            raise PlatformError(f"Ray: {_words(error)}") from error

    def _connect(self) -> None:
        try:
            import ray
        except ImportError as error:
            raise PlatformError(
                f"platform ray needs a package that is not installed: {error}",
                "pip install 'nni-svc-trial-runner[ray]' where NNI's services are installed",
                permanent=True,
            ) from error
        try:
            if not ray.is_initialized():
                ray.init(
                    self._address,
                    namespace=self._namespace,
                    log_to_driver=False,
                    logging_level="WARNING",
                )
                self._is_owner = True
            ray.cloudpickle.register_pickle_by_value(agent_actor)
        except Exception as error:
            raise connection_error(error, self._address, ray.__version__) from error
        self._ray = ray

    def _disconnect(self) -> None:
        connected, self._ray = self._ray, None
        self._handles.clear()
        self._looks.clear()
        if connected is not None and self._is_owner:
            connected.shutdown()

    def _demand(self) -> ClusterDemand:
        from ray.autoscaler.v2.sdk import get_cluster_status

        status = get_cluster_status(self._ray.get_runtime_context().gcs_address)
        return cluster_demand(status)

    def _run(self, arguments: Sequence[str], *, on_all_nodes: bool) -> list[CommandResult]:
        ray = self._ray
        task = ray.remote(agent_actor.run_program)
        strategies: list[Any] = ["DEFAULT"]
        if on_all_nodes:
            strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
            alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
            strategies = [strategy(node, soft=False) for node in alive]
        program = worker_program()
        references = [
            task.options(num_cpus=0, max_retries=0, scheduling_strategy=one).remote(
                program, list(arguments)
            )
            for one in strategies
        ]
        return [CommandResult(*found) for found in ray.get(references, timeout=COMMAND_S)]

    def _hold_bundle(self, name: str, bundle: Path) -> None:
        if name in self._names():
            return
        holder = self._ray.remote(agent_actor.BundleActor).options(
            name=name, namespace=self._namespace, lifetime="detached", num_cpus=0
        )
        self._ray.get(holder.remote(bundle.read_bytes()).__ray_ready__.remote(), timeout=COMMAND_S)

    def _names(self) -> set[str]:
        listed = self._ray.util.list_named_actors(all_namespaces=True)
        return {one["name"] for one in listed if one["namespace"] == self._namespace}

    def _create(self, plan: ActorPlan) -> None:
        fields = {
            "name": plan.name,
            "digest": plan.digest,
            "holder": plan.holder,
            "namespace": self._namespace,
            "folder": plan.folder,
            "settings": dict(plan.settings),
            "program": worker_program(),
        }
        try:
            actor = self._ray.remote(agent_actor.AgentActor).options(**self._actor_options(plan))
            self._handles[plan.name] = actor.remote(fields)
        except (ValueError, TypeError, RuntimeError) as error:
            if plan.name in self._names():
                return
            raise ActorRefusedError(_words(error), permanent=True) from error

    def _actor_options(self, plan: ActorPlan) -> dict[str, Any]:
        request = dict(plan.request)
        options: dict[str, Any] = {
            "name": plan.name,
            "namespace": self._namespace,
            "lifetime": "detached",
            "max_restarts": 0,  # an agent is launched again under another name
            "max_concurrency": _THREADS,
            "num_cpus": request.pop("CPU", 0),
            "num_gpus": request.pop("GPU", 0),
        }
        memory = request.pop("memory", 0)
        if memory:
            options["memory"] = memory
        if request:
            options["resources"] = request
        if plan.runtime_env:
            options["runtime_env"] = dict(plan.runtime_env)
        if plan.scheduling_strategy:
            options["scheduling_strategy"] = plan.scheduling_strategy
        if plan.placement_group:
            group = self._ray.util.get_placement_group(plan.placement_group)
            strategies = self._ray.util.scheduling_strategies
            options["scheduling_strategy"] = strategies.PlacementGroupSchedulingStrategy(group)
        return options

    def _states(self, names: Sequence[str]) -> dict[str, ActorState]:
        ray = self._ray
        found: dict[str, ActorState] = {}
        for name in names:
            if name not in self._looks:
                handle = self._handle(name)
                if handle is None:
                    found[name] = ActorState(AgentPhase.ENDED, reason="its actor is gone")
                else:
                    self._looks[name] = handle.state.remote()
        asked = {name: self._looks[name] for name in names if name not in found}
        references = list(asked.values())
        ready: list[Any] = []
        if references:
            ready, _ = ray.wait(references, num_returns=len(references), timeout=STATE_S)
        for name, reference in asked.items():
            if reference in ready:
                del self._looks[name]
                found[name] = self._state(reference)
            else:
                found[name] = ActorState(AgentPhase.PENDING)
        return found

    def _handle(self, name: str) -> Any | None:  # noqa: ANN401 - of a package without types
        if name not in self._handles:
            try:
                self._handles[name] = self._ray.get_actor(name, namespace=self._namespace)
            except ValueError:
                return None
        return self._handles[name]

    def _state(self, reference: Any) -> ActorState:  # noqa: ANN401 - as above
        try:
            phase, host, reason = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return ActorState(AgentPhase.ENDED, reason=_words(error))
        return ActorState(_PHASES[phase], host, reason)

    def _end(self, names: Sequence[str], grace_s: float) -> None:
        listed = self._names()
        here = [name for name in names if name in listed]
        states = self._states(here)
        handles = [
            self._handle(name) for name in here if states[name].phase is not AgentPhase.PENDING
        ]
        ending = [handle.end.remote(grace_s) for handle in handles if handle is not None]
        if ending:
            self._ray.wait(ending, num_returns=len(ending), timeout=grace_s + COMMAND_S)
        self._kill(here)
        for name in names:
            self._forget(name)

    def _kill(self, names: Sequence[str]) -> None:
        for name in names:
            handle = self._handle(name)
            if handle is not None:
                self._ray.kill(handle)
            self._forget(name)  # an actor of the same name may follow

    def _forget(self, name: str) -> None:
        self._handles.pop(name, None)
        self._looks.pop(name, None)


def connection_error(error: Exception, address: str, version: str) -> PlatformError:
    """Return the error of a failed connection, with what to do about it."""
    words = _words(error)
    if _MISMATCH.search(words):
        return PlatformError(
            f"Ray and Python have to be those of the cluster at {address}: {words}",
            "install the cluster's version of ray where NNI's services are installed, and run them"
            " with the cluster's version of Python",
            permanent=True,
        )
    return PlatformError(
        f"the Ray cluster at {address} cannot be reached by ray {version}: {words}",
        "start it with `ray start --head`, or run NNI's services on one of its machines",
    )


def cluster_demand(status: Any) -> ClusterDemand:  # noqa: ANN401 - of a package without types
    """Return nodes and autoscaler's state from Ray's `ClusterStatus`."""
    nodes = []
    for node in [*status.active_nodes, *status.idle_nodes]:
        usage = node.resource_usage.usage if node.resource_usage else []
        nodes.append(
            NodeResources(
                node.ip_address,
                visible_resources({one.resource_name: one.total for one in usage}),
                visible_resources({one.resource_name: one.used for one in usage}),
            )
        )
    starting = [
        one.instance_type_name or one.ray_node_type_name
        for one in status.pending_launches
        for _ in range(one.count)
    ]
    starting += [one.instance_type_name or one.ray_node_type_name for one in status.pending_nodes]
    return ClusterDemand(
        tuple(nodes),
        has_autoscaler=status.stats.autoscaler_version not in {None, "", "0"},
        starting=tuple(starting),
        failures=tuple(str(one.details) for one in status.failed_launches),
    )


def _words(error: Exception) -> str:
    """Return the text of an error of Ray, in one line."""
    text = " ".join(str(error).split())
    return (text or type(error).__name__)[:_SHOWN_CHARACTERS]
