"""Platform `remote`: agents on machines that are reached over SSH."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from svc_common import environment
from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)
from svc_trial_runner.fleet.adapters.bundles.worker_agents import ENDED, PREPARED, RUNNING
from svc_trial_runner.fleet.adapters.bundles.worker_commands import WorkerFailure, bundle_digest
from svc_trial_runner.fleet.adapters.remote.commands import TRANSFER_LIMIT_S, worker_error
from svc_trial_runner.fleet.adapters.remote.connections import open_connection
from svc_trial_runner.fleet.adapters.remote.errors import MachineError
from svc_trial_runner.fleet.adapters.remote.host_keys import ACCEPTED_HOSTS
from svc_trial_runner.fleet.adapters.remote.links import MachineLink
from svc_trial_runner.fleet.adapters.remote.machines import Machine, parse_machines
from svc_trial_runner.fleet.adapters.remote.placement import MachineState, owners, place
from svc_trial_runner.fleet.adapters.remote.records import MachineRecord
from svc_trial_runner.fleet.adapters.remote.sessions import Session
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
from svc_trial_runner.fleet.domain.needs import SLOTS_OPTION
from svc_trial_runner.fleet.domain.section_values import whole_number
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError

PLATFORM: Final = "remote"
STOP_GRACE_S: Final = 10.0
"""Time between the request to end an agent and its kill."""
_MARGIN_S: Final = 2.0
"""Part of the grace that is left for the end of the agent's own process."""
AGENTS_AT_ONCE: Final = 16
"""Machines that are worked on at the same time."""
_SHOWN_ERRORS: Final = 3
_HERE: Final = frozenset({RUNNING, ENDED, PREPARED})
"""States of agents that are not another machine's, which shares the home."""

_T = TypeVar("_T")
_Listing = list[dict[str, Any]] | PlatformError


class RemoteAdapter:
    """`PlatformAdapter` of machines reached over SSH: places agents, keeps links and forwards.

    Everything that runs is known by the machines; only where an agent was started is written down
    here as well, for the time in which its machine cannot be reached.

    Args:
        context: of the pool.
        accepted_hosts_file: file of host keys that `accept-new` accepted; None: the installation's.
        config_files: SSH configurations; None: `~/.ssh/config`.
    """

    def __init__(
        self,
        context: AdapterContext,
        accepted_hosts_file: Path | None = None,
        config_files: Sequence[Path] | None = None,
    ) -> None:
        self._context = context
        self._accepted_hosts_file = accepted_hosts_file or environment.home() / ACCEPTED_HOSTS
        self._config_files = config_files
        self._changed = asyncio.Event()
        self._machines, self._problems = parse_machines(context.section)
        self._reuses = context.section.options.get("reuseMode") is not False
        self._links = [
            MachineLink(machine, self._open_session, context.endpoints, self._changed.set)
            for machine in self._machines
        ]
        self._slots = whole_number(context.section.options.get(SLOTS_OPTION), 1)
        self._listed: dict[int, list[PlatformAgent]] = {}
        self._record = MachineRecord(context.folder, self._machines)
        self._at_once = asyncio.Semaphore(AGENTS_AT_ONCE)

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the section itself; if none, those found by asking every machine."""
        if self._problems:
            return list(self._problems)
        results = await self._each(self._facts_of)
        problems = [
            one.problem(link.machine.field("host"), link.machine.host)
            for link, one in zip(self._links, results, strict=True)
            if isinstance(one, PlatformError)
        ]
        places: dict[tuple[str, str], Machine] = {}
        for link, result in zip(self._links, results, strict=True):
            if isinstance(result, PlatformError):
                continue
            first = places.setdefault(result, link.machine)
            if first is not link.machine:
                problems.append(
                    PlatformProblem(
                        link.machine.field("host"),
                        f"must not be the machine and home of {first.field('host')}",
                        link.machine.host,
                        "use slots for several trials at once on one machine",
                    )
                )
        return problems

    async def prepare(self) -> None:
        """Send the bundle to each machine that can be reached and has not got it.

        Raises:
            PlatformError: no machine can be reached, or none can have the bundle.
        """
        self._raise_if_all_failed(await self._each(self._prepare))

    async def capacity(self) -> int | None:
        """Return the number of machines; without reuse of agents the number of their slots.

        None: a machine without `slots`, and without reuse.
        """
        limits = [self._limit(machine, None) for machine in self._machines]
        return None if None in limits else sum(limit or 0 for limit in limits)

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Place and start agents that do not exist; return those that were not started.

        Raises:
            PlatformError: the section breaks rules, or no machine can be reached.
        """
        if not orders:
            return []
        listings = await self._list()
        found = self._owned(listings)
        exist = {agent.name for agents in found.values() for agent in agents}
        prepared = {name for name, one in self._names(listings).items() if one["state"] == PREPARED}
        missing = [one for one in orders if one.name not in exist or one.name in prepared]
        if not missing:
            return []
        self._raise_if_all_failed(listings)
        gpus = max((order.gpus_per_trial or 0 for order in missing), default=0)
        states = [
            self._state(self._limit(self._machines[index], gpus), listing, found[index])
            for index, listing in enumerate(listings)
        ]
        placement = place(missing, states)
        await self._record.add({order.name: index for index, order in placement.places})
        results = await asyncio.gather(
            *(self._launch(self._links[index], order) for index, order in placement.places)
        )
        self._changed.set()
        return [*placement.failures, *(one for one in results if one is not None)]

    async def agents(self) -> list[PlatformAgent]:
        """List the pool's agents, ended ones included; renew forwards of reachable machines.

        Those of a machine that cannot be reached are as they were last seen.

        Raises:
            PlatformError: no machine can be reached, and no agent is known.
        """
        listings = await self._list()
        found = self._owned(listings)
        agents = [agent for index in sorted(found) for agent in found[index]]
        if not agents:
            self._raise_if_all_failed(listings)
        for index, listing in enumerate(listings):
            if not isinstance(listing, PlatformError):
                await self._renew(index, listing, found[index])
        return agents

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """End agents, with their trials, and forget them.

        Raises:
            PlatformError: a machine that has one of them cannot be reached.
        """
        if names:
            await self._remove(set(names))

    async def clean(self) -> None:
        """Remove agents and sockets of this pool from all machines; unpacked bundles stay.

        Raises:
            PlatformError: a machine cannot be reached.
        """
        await self._remove(None)
        results = await self._each(lambda link: link.close_forwards())
        for link, result in zip(self._links, results, strict=True):
            # A machine that never had anything of the pool has nothing to be removed.
            if isinstance(result, PlatformError) and link.has_forwards:
                raise result

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents on all machines by pool; raise if one is not reached."""
        self._raise_broken_rule()
        results = await self._each(self._states_of(f"nni-{self._context.installation}-"))
        names: list[str] = []
        for result in results:
            if isinstance(result, PlatformError):
                raise result
            names += [str(one["name"]) for one in result if one["state"] in _HERE]
        return leftovers_of(names, self._context.installation)

    async def clean_rest(self) -> None:
        """Remove unpacked bundles that no agent uses from all machines; raise if one fails."""

        async def remove(link: MachineLink) -> None:
            session = await link.session()
            await session.facts()
            # No name begins like this.
            await session.call(session.commands.clean("-", STOP_GRACE_S, bundles=True))

        for result in await self._each(remove):
            if isinstance(result, PlatformError):
                raise result

    async def wait_changed(self) -> None:
        """Wait until a machine is lost or found, or an agent ends."""
        await self._changed.wait()
        self._changed.clear()

    async def aclose(self) -> None:
        """Close the connections; agents run on. May be called twice."""
        await asyncio.gather(*(link.aclose() for link in self._links))

    # Connections

    async def _open_session(self, machine: Machine, on_end: Callable[[], None]) -> Session:
        connection = await open_connection(machine, self._accepted_hosts_file, self._config_files)
        return Session(machine, connection, self._key(machine), on_end)

    def _key(self, machine: Machine) -> str:
        """Return the hash that names this pool's folder of sockets on a machine."""
        words = (self._context.installation, self._context.pool, machine.address)
        return hashlib.sha256("|".join(words).encode()).hexdigest()[:8]

    async def _each(self, work: Callable[[MachineLink], Awaitable[_T]]) -> list[_T | PlatformError]:
        """Run work on all machines concurrently; return the result or error of each."""

        async def one(link: MachineLink) -> _T | PlatformError:
            async with self._at_once:
                try:
                    return await work(link)
                except WorkerFailure as failure:
                    return worker_error(link.machine, failure)
                except PlatformError as error:
                    return error

        return list(await asyncio.gather(*map(one, self._links)))

    def _raise_if_all_failed(self, results: Sequence[object]) -> None:
        """Raise PlatformError if the section breaks rules, or if all results are errors."""
        self._raise_broken_rule()
        errors = [one for one in results if isinstance(one, PlatformError)]
        if len(errors) == len(results):
            raise PlatformError(
                "; ".join(error.message for error in errors[:_SHOWN_ERRORS]),
                errors[0].remedy,
                permanent=all(error.permanent for error in errors),
            )

    def _raise_broken_rule(self) -> None:
        if self._problems:
            problem = self._problems[0]
            raise PlatformError(f"{problem.field} {problem.rule}", problem.remedy, permanent=True)

    # Check and preparation

    async def _facts_of(self, link: MachineLink) -> tuple[str, str]:
        facts = await (await link.session(retry=True)).facts()
        return facts.host, facts.folder

    async def _prepare(self, link: MachineLink) -> str:
        """Bring the bundle to a machine; return its hash."""
        session = await link.session(retry=True)
        return await self._send_bundle(session)

    async def _send_bundle(self, session: Session, *, again: bool = False) -> str:
        facts = await session.facts()
        bundle = await self._context.bundles.bundle(facts.python, facts.platform_tag)
        digest = bundle_digest(bundle)
        if again or not session.has_bundle(digest):
            await session.call(session.commands.unpack(bundle), TRANSFER_LIMIT_S)
            session.note_bundle(digest)
        return digest

    # Launch

    def _limit(self, machine: Machine, gpus_per_trial: int | None) -> int | None:
        """Return how many agents a machine may have at once; None: any number.

        Agents do not know of each other's GPUs, so that machines with several of them need `slots`.
        """
        if self._reuses:
            return 1
        slots = machine.slots or self._slots
        return 1 if slots is None and gpus_per_trial else slots

    @staticmethod
    def _state(
        limit: int | None, listing: _Listing, agents: Sequence[PlatformAgent]
    ) -> MachineState:
        if isinstance(listing, PlatformError):
            return MachineState(
                limit, len(agents), listing.message, listing.remedy, listing.permanent
            )
        live = sum(agent.phase is not AgentPhase.ENDED for agent in agents)
        return MachineState(limit, live)

    async def _launch(self, link: MachineLink, order: AgentOrder) -> LaunchFailure | None:
        try:
            async with self._at_once:
                await self._start(link, order)
        except WorkerFailure as failure:
            error: PlatformError = worker_error(link.machine, failure)
        except PlatformError as refusal:
            error = refusal
        else:
            return None
        alone = len(self._links) == 1
        return LaunchFailure(
            order.name, error.message, error.remedy, permanent=error.permanent and alone
        )

    async def _start(self, link: MachineLink, order: AgentOrder) -> None:
        session = await link.session()
        digest = await self._send_bundle(session)
        folder = await link.forwards()
        facts = await session.facts()
        settings = write_agent_settings(self._settings(link.machine, order, folder, facts.folder))
        command = session.commands.start(str(order.name), digest, settings)
        try:
            await session.call(command)
        except WorkerFailure as failure:
            if failure.code != "bundle_missing":
                raise
            await self._send_bundle(session, again=True)
            await session.call(command)

    def _settings(
        self, machine: Machine, order: AgentOrder, sockets: str, folder: str
    ) -> AgentSettings:
        slots = machine.slots or order.slots
        return AgentSettings(
            name=str(order.name),
            pool=order.name.pool,
            platform=PLATFORM,
            home=f"{folder}/agents/{order.name}/home",
            connection=ConnectionSettings(ConnectionKind.SOCKETS, folder=sockets),
            bus_user=order.credentials.bus_user,
            bus_password=order.credentials.bus_password,
            manager_token=order.credentials.manager_token,
            slots=slots if self._reuses else 1,
            max_trials=order.max_trials if self._reuses else 1,
            setup_lines=machine.setup_lines,
            python_path=machine.python_path,
            grace_s=STOP_GRACE_S - _MARGIN_S,
            gpu_indices=machine.gpu_indices,
            use_active_gpu=machine.use_active_gpu,
            trials_per_gpu=machine.trials_per_gpu,
            version=environment.text(environment.NNI_VERSION, "unknown"),
            shared_storage=self._context.section.shared_storage,
        )

    # Agents on the machines

    async def _list(self) -> list[_Listing]:
        """Return the states of the pool's agents on each machine, or its error."""
        prefix = f"nni-{self._context.installation}-{self._context.pool}-"
        return [
            one if isinstance(one, PlatformError) else [each for each in one if self._is_ours(each)]
            for one in await self._each(self._states_of(prefix))
        ]

    @staticmethod
    def _states_of(prefix: str) -> Callable[[MachineLink], Awaitable[list[dict[str, Any]]]]:
        """Return a function that lists a machine's agents whose names begin with a prefix."""

        async def states(link: MachineLink) -> list[dict[str, Any]]:
            session = await link.session()
            await session.facts()
            report = await session.call(session.commands.status(prefix))
            found: list[dict[str, Any]] = report["agents"]
            return found

        return states

    def _is_ours(self, state: Mapping[str, Any]) -> bool:
        """Return whether a state is of an agent of this pool that is not another machine's."""
        name = parse_agent_name(str(state["name"]))
        return (
            name is not None
            and name.installation == self._context.installation
            and name.pool == self._context.pool
            and state["state"] in _HERE
        )

    @staticmethod
    def _names(listings: Sequence[_Listing]) -> dict[AgentName, dict[str, Any]]:
        """Return the states of listed agents by name; machines with an error are passed over."""
        states = {}
        for listing in listings:
            for one in [] if isinstance(listing, PlatformError) else listing:
                name = parse_agent_name(one["name"])
                if name is not None:
                    states[name] = one
        return states

    def _owned(self, listings: Sequence[_Listing]) -> dict[int, list[PlatformAgent]]:
        """Return agents by machine index and remember them; of a lost machine those last seen."""
        recorded = self._record.places()
        found: dict[AgentName, list[int]] = {}
        for index, listing in enumerate(listings):
            for name in self._names([listing]):
                found.setdefault(name, []).append(index)
        owner = owners(found, recorded)
        states = self._names(listings)
        for index, listing in enumerate(listings):
            if isinstance(listing, PlatformError):
                self._listed[index] = self._last_seen(index, listing, recorded, set(owner))
            else:
                self._listed[index] = [
                    _agent(name, states[name], self._machines[index].host)
                    for name in sorted(owner)
                    if owner[name] == index
                ]
        return dict(self._listed)

    def _last_seen(
        self,
        index: int,
        error: PlatformError,
        recorded: Mapping[AgentName, int],
        elsewhere: set[AgentName],
    ) -> list[PlatformAgent]:
        known = {agent.name: agent for agent in self._listed.get(index, ())}
        names = {*known, *(name for name, place in recorded.items() if place == index)}
        return [
            PlatformAgent(
                name,
                known[name].phase if name in known else AgentPhase.RUNNING,
                self._machines[index].host,
                error.message,
            )
            for name in sorted(names - elsewhere)
        ]

    async def _renew(
        self, index: int, listing: list[dict[str, Any]], agents: Sequence[PlatformAgent]
    ) -> None:
        """Open forwards and a watch for a machine's running agents; ignore a failed connection."""
        names = {str(agent.name) for agent in agents if agent.phase is AgentPhase.RUNNING}
        if not names:
            return
        link = self._links[index]
        with suppress(MachineError):  # the link has the error, and the next listing shows it
            await link.forwards()
            session = await link.session()
            await session.watch(int(one["pid"]) for one in listing if one["name"] in names)

    async def _remove(self, names: set[AgentName] | None) -> None:
        """End agents (None: all of the pool) and remove their folders; raise the first error."""
        listings = await self._list()
        found = self._owned(listings)
        wanted = {
            index: [one.name for one in agents if names is None or one.name in names]
            for index, agents in found.items()
        }

        async def remove(link: MachineLink) -> list[AgentName]:
            mine = wanted[self._links.index(link)]
            if mine:
                session = await link.session(retry=True)
                await session.facts()
                names_there = [str(one) for one in mine]
                await session.call(session.commands.remove(names_there, STOP_GRACE_S))
            return mine

        results = await self._each(remove)
        removed = {name for one in results if isinstance(one, list) for name in one}
        for index in wanted:
            self._listed[index] = [one for one in self._listed[index] if one.name not in removed]
        kept = {name for some in wanted.values() for name in some} - removed
        await self._record.forget(removed if names is None else names - kept)
        errors = [one for one in results if isinstance(one, PlatformError)]
        if errors:
            raise errors[0]


def _agent(name: AgentName, state: Mapping[str, Any], host: str) -> PlatformAgent:
    """Return an agent, RUNNING or ENDED, for a worker's state; PREPARED counts as ENDED."""
    if state["state"] == RUNNING:
        return PlatformAgent(name, AgentPhase.RUNNING, host)
    if state["state"] == PREPARED:
        return PlatformAgent(name, AgentPhase.ENDED, host, "it was not started")
    return PlatformAgent(name, AgentPhase.ENDED, host, str(state.get("reason") or "it ended"))
