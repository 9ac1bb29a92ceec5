"""Conversion of an adapter's arguments and results to JSON, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    PlatformSection,
    parse_agent_name,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    BundleStore,
    Front,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)


def write_context(context: AdapterContext) -> dict[str, Any]:
    """Return a context's values as JSON-ready fields, secrets included; no bundles, no front."""
    section = context.section
    return {
        "installation": context.installation,
        "pool": context.pool,
        "platform": section.platform,
        "options": dict(section.options),
        "secrets": dict(section.secrets),
        "endpoints": asdict(context.endpoints),
        "folder": str(context.folder),
    }


def read_context(fields: Mapping[str, Any], bundles: BundleStore, front: Front) -> AdapterContext:
    """Return a context from its fields, with stores that call the fleet."""
    return AdapterContext(
        fields["installation"],
        fields["pool"],
        PlatformSection(fields["platform"], fields["options"], fields["secrets"]),
        InstallationEndpoints(**fields["endpoints"]),
        bundles,
        Path(fields["folder"]),
        front,
    )


def write_names(names: Sequence[AgentName]) -> list[str]:
    """Convert agent names to strings for a message."""
    return [str(name) for name in names]


def read_names(texts: Sequence[str]) -> list[AgentName]:
    """Parse agents' names from texts.

    Raises:
        PlatformError: a text is no name of an agent.
    """
    return [_name(text) for text in texts]


def write_orders(orders: Sequence[AgentOrder]) -> list[dict[str, Any]]:
    """Encode orders to start agents as JSON objects, secrets included."""
    return [{**asdict(order), "name": str(order.name)} for order in orders]


def read_orders(found: Sequence[Mapping[str, Any]]) -> list[AgentOrder]:
    """Return orders from the mappings of `write_orders`; raise PlatformError for a bad name."""
    return [
        AgentOrder(
            **{
                **fields,
                "name": _name(fields["name"]),
                "credentials": AgentCredentials(**fields["credentials"]),
            }
        )
        for fields in found
    ]


def write_failures(failures: Sequence[LaunchFailure]) -> list[dict[str, Any]]:
    """Convert launch failures of agents to JSON-compatible dicts."""
    return [{**asdict(failure), "name": str(failure.name)} for failure in failures]


def read_failures(found: Sequence[Mapping[str, Any]]) -> list[LaunchFailure]:
    """Decode launch failures of agents from JSON objects."""
    return [LaunchFailure(**{**fields, "name": _name(fields["name"])}) for fields in found]


def write_agents(agents: Sequence[PlatformAgent]) -> list[dict[str, Any]]:
    """Return agents as JSON-ready mappings: name as text, phase as its value."""
    return [
        {**asdict(agent), "name": str(agent.name), "phase": agent.phase.value} for agent in agents
    ]


def read_agents(found: Sequence[Mapping[str, Any]]) -> list[PlatformAgent]:
    """Return agents from the mappings of `write_agents`; raise PlatformError for a bad name."""
    return [
        PlatformAgent(
            **{**fields, "name": _name(fields["name"]), "phase": AgentPhase(fields["phase"])}
        )
        for fields in found
    ]


def write_problems(problems: Sequence[PlatformProblem]) -> list[dict[str, Any]]:
    """Encode problems of a section as JSON objects."""
    return [asdict(problem) for problem in problems]


def read_problems(found: Sequence[Mapping[str, Any]]) -> list[PlatformProblem]:
    """Decode problems of a section from JSON objects."""
    return [PlatformProblem(**fields) for fields in found]


def write_leftovers(found: Sequence[Leftover]) -> list[dict[str, Any]]:
    """Encode leftovers of pools as JSON objects."""
    return [asdict(one) for one in found]


def read_leftovers(found: Sequence[Mapping[str, Any]]) -> list[Leftover]:
    """Decode leftovers of pools from JSON objects."""
    return [Leftover(**{**fields, "agents": tuple(fields["agents"])}) for fields in found]


def write_endpoint(endpoint: FrontEndpoint) -> dict[str, str]:
    """Encode the TLS front's endpoint as a JSON object."""
    return asdict(endpoint)


def read_endpoint(fields: Mapping[str, str]) -> FrontEndpoint:
    """Decode the TLS front's endpoint from a JSON object."""
    return FrontEndpoint(**fields)


def _name(text: str) -> AgentName:
    name = parse_agent_name(text)
    if name is None:
        raise PlatformError(f"{text[:80]!r} is no name of an agent")
    return name
