"""Shared parts of adapters whose agents are cluster jobs that connect by the TLS front."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Protocol

from svc_trial_runner.agent_settings import AgentSettings, ConnectionKind, ConnectionSettings
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    LaunchFailure,
    PlatformProblem,
    parse_agent_name,
)
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, PlatformError


class AgentOptions(Protocol):
    """Interface of a section's options for its agents: reuse, setup lines, folder of Python."""

    @property
    def reuse_mode(self) -> bool:
        """True if an agent runs several trials; False: one, and ends."""
        ...

    @property
    def setup_lines(self) -> tuple[str, ...]:
        """Shell lines that agents run before trials."""
        ...

    @property
    def python_path(self) -> str:
        """Folder of the trials' Python; empty: not given."""
        ...


def raise_first(problems: Iterable[PlatformProblem]) -> None:
    """Raise PlatformError for the first broken rule of a section; do nothing if there is none.

    Raises:
        PlatformError: a rule is broken; permanent.
    """
    for broken in problems:
        raise rule_error(broken)


def rule_error(broken: PlatformProblem) -> PlatformError:
    """Convert a problem of a section to a permanent PlatformError."""
    words = f"{broken.field} {broken.rule}, got {broken.value!r}"
    return PlatformError(words, broken.remedy, permanent=True)


def is_own(context: AdapterContext, name: AgentName) -> bool:
    """Return whether an agent is of the pool and the installation of an adapter."""
    return (name.installation, name.pool) == (context.installation, context.pool)


def own_jobs(
    context: AdapterContext, jobs: Iterable[dict[str, Any]], key: str
) -> list[tuple[AgentName, dict[str, Any]]]:
    """Return the jobs of an adapter's pool with the names of their agents; drop other jobs.

    Args:
        context: of the adapter.
        jobs: as the platform lists them.
        key: of a job's name, which is that of its agent.
    """
    named = ((parse_agent_name(str(job[key])), job) for job in jobs)
    return [(name, job) for name, job in named if name is not None and is_own(context, name)]


async def launch_jobs(
    orders: Iterable[AgentOrder],
    known: Collection[AgentName],
    submit: Callable[[AgentOrder], Awaitable[None]],
    refusal: type[PlatformError],
) -> list[LaunchFailure]:
    """Submit a job for each order without one; return the orders that are refused for good.

    Args:
        orders: of the pool.
        known: agents that have a job.
        submit: function that submits the job of an order.
        refusal: error by which the platform refuses a job.

    Raises:
        PlatformError: a job was refused for now, or the platform failed otherwise.
    """
    failures = []
    for order in orders:
        if order.name in known:
            continue
        try:
            await submit(order)
        except refusal as error:
            if not error.permanent:
                raise
            failures.append(LaunchFailure(order.name, str(error), error.remedy, error.permanent))
    return failures


async def wait_for_poll(changed: asyncio.Event, interval_s: float | None) -> None:
    """Wait until the next poll of a platform is due, or until agents were launched or ended.

    Args:
        changed: set when the adapter has launched or ended agents.
        interval_s: until the next poll; None: no poll is due.
    """
    try:
        async with asyncio.timeout(interval_s):
            await changed.wait()
    except TimeoutError:
        return


def tls_connection(front: FrontEndpoint) -> ConnectionSettings:
    """Return the connection of agents to bus and manager through the TLS front."""
    return ConnectionSettings(
        ConnectionKind.TLS,
        bus=f"tls://{front.address}",
        manager=front.address,
        authority=front.authority,
    )


def agent_settings(
    platform: str,
    order: AgentOrder,
    connection: ConnectionSettings,
    options: AgentOptions,
    *,
    home: str,
    version: str,
) -> AgentSettings:
    """Return the settings of an agent that a platform starts; other fields have their defaults.

    Args:
        platform: of the pool.
        order: with the agent's name, credentials and slots.
        connection: way to bus and manager.
        options: of the section.
        home: folder of the agent.
        version: NNI's version in the installation.
    """
    reuses = options.reuse_mode
    return AgentSettings(
        name=str(order.name),
        pool=order.name.pool,
        platform=platform,
        home=home,
        connection=connection,
        bus_user=order.credentials.bus_user,
        bus_password=order.credentials.bus_password,
        manager_token=order.credentials.manager_token,
        slots=order.slots if reuses else 1,
        max_trials=order.max_trials if reuses else 1,
        setup_lines=options.setup_lines,
        python_path=options.python_path,
        version=version,
    )


def job_agent_settings(
    platform: str,
    order: AgentOrder,
    front: FrontEndpoint,
    options: AgentOptions,
    grace_s: float,
    version: str,
) -> AgentSettings:
    """Return the settings of an agent in a job's container, which connects by the TLS front.

    Args:
        platform: of the pool.
        order: with the agent's name, credentials and slots.
        front: way in.
        options: of the section.
        grace_s: time that the platform grants from TERM to KILL, without a margin.
        version: NNI's version in the installation.
    """
    settings = agent_settings(
        platform, order, tls_connection(front), options, home="~/agent", version=version
    )
    return replace(settings, grace_s=grace_s)
