"""Platform `ray`: agents as subprocesses of detached actors on an existing cluster."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from svc_common import environment
from svc_trial_runner.agent_settings import (
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)
from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    DEFAULT_FOLDER,
    CommandResult,
    bundle_digest,
    read_report,
)
from svc_trial_runner.fleet.adapters.bundles.worker_facts import check_facts, read_facts
from svc_trial_runner.fleet.adapters.job_agents import (
    agent_settings,
    is_own,
    raise_first,
    tls_connection,
    wait_for_poll,
)
from svc_trial_runner.fleet.adapters.ray_actors.agent_actor import network_key
from svc_trial_runner.fleet.adapters.ray_actors.cluster import (
    ActorPlan,
    ActorState,
    RayCluster,
)
from svc_trial_runner.fleet.adapters.ray_actors.demand import missing_resources, pending_reason
from svc_trial_runner.fleet.adapters.ray_actors.driver import ActorRefusedError, RayDriver
from svc_trial_runner.fleet.adapters.ray_actors.options import option_problems, parse_options
from svc_trial_runner.fleet.adapters.slurm.reachability import (
    can_be_bound,
    connection,
)
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
from svc_trial_runner.fleet.domain.needs import SLOTS_OPTION
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError

PLATFORM: Final = "ray"
GRACE_S: Final = 10.0
"""Time between the request to end an agent and its kill."""
SETTLED_FACTOR: Final = 5
"""While all agents run they are looked at this much more rarely: the bus notices most ends."""
_HELD_CHARACTERS: Final = 16
_BUNDLE_MARK: Final = ".bundle."
"""In the name of an actor that has a bundle, between pool and hash."""
_SILENT: Final = "its actor does not report its state; is its node busy, or away?"
_ANYWHERE: Final = ""
"""Settings of agents that do not share the fleet's loopback interface."""
_EXAMPLE: Final = AgentName("00000000", "check", 0)


class RayAdapter:
    """`PlatformAdapter` of a pool on a Ray cluster, with each agent in a detached actor.

    An agent has the name of its actor. The bundle is in an actor of its own, since actors may wait
    for resources longer than this process runs; the settings, which have secrets, are an argument
    of the actor. An agent on a machine with the fleet's loopback interface uses that; others use
    the TLS front, which is opened if the cluster has another machine or an autoscaler.

    Args:
        context: of the pool.
        cluster: None: that of the section, by the package `ray`.
    """

    def __init__(self, context: AdapterContext, cluster: RayCluster | None = None) -> None:
        self._context = context
        self._options = parse_options(context.section.options)
        self._cluster: RayCluster = cluster or RayDriver(
            self._options.address, self._options.namespace
        )
        self._front: FrontEndpoint | None = None
        self._digest = ""
        self._requests: dict[AgentName, Mapping[str, float]] = {}
        self._seen: dict[AgentName, PlatformAgent] = {}
        """Agents as they were listed last, ended ones until they are terminated."""
        self._changed = asyncio.Event()

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section itself; if none, of the cluster and one of its nodes."""
        problems = option_problems(self._context.section.options)
        if problems:
            return problems
        try:
            await self._cluster.connect()
            demand = await self._cluster.demand()
            problems = missing_resources(self._assumed_request(), demand)
            check_facts(read_facts((await self._run("probe"))[0], "a node of the cluster"))
        except PlatformError as error:
            return [error.problem("platform", PLATFORM)]
        return problems

    async def prepare(self) -> None:
        """Check options and a node; open the front if needed; start an actor to hold the bundle."""
        raise_first(option_problems(self._context.section.options))
        demand = await self._cluster.demand()
        addresses = {node.address for node in demand.nodes}
        here = [await asyncio.to_thread(can_be_bound, address) for address in addresses]
        own = connection(self._context.endpoints)
        if own.kind is not ConnectionKind.TLS and (demand.has_autoscaler or not all(here)):
            self._front = await self._context.front.open()
        facts = read_facts((await self._run("probe"))[0], "a node of the cluster")
        check_facts(facts)
        bundle = await self._context.bundles.bundle(facts.python, facts.platform_tag)
        self._digest = bundle_digest(bundle)
        await self._cluster.hold_bundle(self._holder, bundle)

    async def capacity(self) -> int | None:
        """Return None: actors wait for resources, and give the reasons."""
        return None

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Create an actor for each order without one; return the refused; see `PlatformAdapter`."""
        known = {str(name) for name in self._seen} | await self._cluster.names()
        missing = [order for order in orders if str(order.name) not in known]
        if missing:
            await self.prepare()  # nodes may have come, and the actor with the bundle may be gone
        failures = []
        for order in missing:
            request = self._options.request(order)
            try:
                await self._cluster.create(self._plan(order, request))
            except ActorRefusedError as error:
                words = error.message
                failures.append(LaunchFailure(order.name, words, permanent=error.permanent))
                continue
            self._requests[order.name] = request
            self._seen[order.name] = PlatformAgent(order.name, AgentPhase.PENDING)
        self._changed.set()
        return failures

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents of this pool whose actors exist, and those that ended meanwhile."""
        self._seen = await self._look()
        return [self._seen[name] for name in sorted(self._seen)]

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """End agents with their trials, and their actors."""
        own = [name for name in names if is_own(self._context, name)]
        await self._cluster.end([str(name) for name in own], GRACE_S)
        for name in own:
            self._seen.pop(name, None)
            self._requests.pop(name, None)
        self._changed.set()

    async def clean(self) -> None:
        """End all actors of the pool; remove its agents' folders and bundles from all nodes."""
        names = await self._cluster.names()
        agents = [
            name for name in map(parse_agent_name, names) if name and is_own(self._context, name)
        ]
        await self.terminate([*agents, *self._seen])
        await self._run("clean", "--bundles", self._prefix, on_all_nodes=True)
        await self._cluster.kill([one for one in names if one.startswith(self._holder_prefix)])

    async def leftovers(self) -> list[Leftover]:
        """Return actors, and folders on all nodes, of the installation; see `PlatformCleaner`."""
        installation = self._context.installation
        prefix = f"nni-{installation}-"
        names = set(await self._cluster.names())
        for result in await self._run("status", prefix, on_all_nodes=True):
            names |= {str(one["name"]) for one in read_report(result, "a node")["agents"]}
        held = {name.partition(_BUNDLE_MARK)[0] for name in names if _BUNDLE_MARK in name}
        pools = {name.removeprefix(prefix) for name in held if name.startswith(prefix)}
        return leftovers_of(names, installation, pools=pools)

    async def clean_rest(self) -> None:
        """Remove unpacked bundles that no agent uses from all nodes; see `PlatformCleaner`."""
        # No name begins like this.
        await self._run("clean", "--bundles", "-", on_all_nodes=True)

    async def wait_changed(self) -> None:
        """Poll the agents until they differ from those listed last; wait without limit."""
        self._changed.clear()
        while not self._changed.is_set():
            await self._pause()
            if self._changed.is_set() or await self._look() != self._seen:
                return

    async def aclose(self) -> None:
        """Drop the connection; actors stay."""
        await self._cluster.aclose()

    async def _pause(self) -> None:
        phases = {agent.phase for agent in self._seen.values()}
        interval_s = self._options.poll_interval_seconds
        if not phases & {AgentPhase.PENDING, AgentPhase.STARTING}:
            interval_s *= SETTLED_FACTOR
        await wait_for_poll(self._changed, interval_s)

    async def _look(self) -> dict[AgentName, PlatformAgent]:
        listed = map(parse_agent_name, await self._cluster.names())
        names = {name for name in listed if name is not None and is_own(self._context, name)}
        over = {
            name: agent
            for name, agent in self._seen.items()
            if agent.phase is AgentPhase.ENDED and name not in names
        }
        asked = sorted((names | self._seen.keys()) - over.keys())
        states = await self._cluster.states([str(name) for name in asked])
        silent = {name: self._silent(name, states[str(name)]) for name in asked}
        waiting = {str(name): states[str(name)] for name in asked if silent[name] is None}
        reasons = await self._pending_reasons(waiting)
        found = {
            name: silent[name] or _agent(name, states[str(name)], reasons.get(str(name)))
            for name in asked
        }
        return {**over, **found}

    def _silent(self, name: AgentName, state: ActorState) -> PlatformAgent | None:
        """Return an agent as last seen if it ran and its actor gives no reply now; else None.

        An actor never waits for resources again: its node is busy, or cannot be reached.
        """
        before = self._seen.get(name)
        if before is None or state.phase is not AgentPhase.PENDING:
            return None
        if before.phase not in {AgentPhase.STARTING, AgentPhase.RUNNING}:
            return None
        return replace(before, reason=_SILENT)

    async def _pending_reasons(self, states: Mapping[str, ActorState]) -> dict[str, str]:
        pending = [name for name, state in states.items() if state.phase is AgentPhase.PENDING]
        if not pending:
            return {}
        demand = await self._cluster.demand()
        requests = {str(name): request for name, request in self._requests.items()}
        assumed = self._assumed_request()  # of agents that another process has launched
        return {name: pending_reason(requests.get(name, assumed), demand) for name in pending}

    def _assumed_request(self) -> dict[str, float]:
        slots = self._context.section.options.get(SLOTS_OPTION)
        order = AgentOrder(
            _EXAMPLE, AgentCredentials("", "", ""), slots if isinstance(slots, int) else 1
        )
        return self._options.request(order)

    def _plan(self, order: AgentOrder, request: Mapping[str, float]) -> ActorPlan:
        options = self._options
        connections = self._connections()
        settings = {key: self._settings(order, one) for key, one in connections.items()}
        return ActorPlan(
            str(order.name),
            request,
            self._digest,
            self._holder,
            options.home or DEFAULT_FOLDER,
            settings,
            options.runtime_env,
            options.scheduling_strategy,
            options.placement_group,
        )

    def _settings(self, order: AgentOrder, connection: ConnectionSettings) -> bytes:
        settings = agent_settings(
            PLATFORM,
            order,
            connection,
            self._options,
            home=f"{self._options.home or DEFAULT_FOLDER}/agents/{order.name}/home",
            version=environment.text(environment.NNI_VERSION, "unknown"),
        )
        return write_agent_settings(settings)

    def _connections(self) -> dict[str, ConnectionSettings]:
        """Return connections by network key: this loopback's and the TLS front's, or one TLS."""
        own = connection(self._context.endpoints)
        if own.kind is ConnectionKind.TLS:
            return {_ANYWHERE: own}
        found = {network_key(): own}
        if self._front is not None:
            found[_ANYWHERE] = tls_connection(self._front)
        return found

    async def _run(self, *arguments: str, on_all_nodes: bool = False) -> list[CommandResult]:
        folder = self._options.home or DEFAULT_FOLDER
        return await self._cluster.run(["--folder", folder, *arguments], on_all_nodes=on_all_nodes)

    @property
    def _prefix(self) -> str:
        return f"nni-{self._context.installation}-{self._context.pool}-"

    @property
    def _holder_prefix(self) -> str:
        return f"nni-{self._context.installation}-{self._context.pool}{_BUNDLE_MARK}"

    @property
    def _holder(self) -> str:
        return f"{self._holder_prefix}{self._digest[:_HELD_CHARACTERS]}"


def _agent(name: AgentName, state: ActorState, pending: str | None) -> PlatformAgent:
    return PlatformAgent(name, state.phase, state.host, pending or state.reason)
