"""Reason why an actor is pending: its request beside the nodes, and what the autoscaler reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from svc_trial_runner.fleet.domain.agents import PlatformProblem

_HIDDEN: Final = ("node:", "object_store_memory")
"""Resources that no agent asks for begin like this."""
_MEMORY: Final = "memory"
_GIBIBYTE: Final = 1024**3
_SHOWN_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Resources of one live node: its address, totals and used amounts by Ray's names."""

    address: str
    """IP address."""
    total: Mapping[str, float]
    used: Mapping[str, float]

    def has(self, request: Mapping[str, float]) -> bool:
        """Return whether the node could have the request if it were idle."""
        return all(self.total.get(name, 0.0) >= amount for name, amount in request.items())

    def has_free(self, request: Mapping[str, float]) -> bool:
        """Return whether the node has room for the request now."""
        return all(
            self.total.get(name, 0.0) - self.used.get(name, 0.0) >= amount
            for name, amount in request.items()
        )


@dataclass(frozen=True, slots=True)
class ClusterDemand:
    """Nodes of a cluster, with launches and failures of its autoscaler."""

    nodes: tuple[NodeResources, ...]
    has_autoscaler: bool = False
    starting: tuple[str, ...] = ()
    """Types of the nodes that the autoscaler is starting, one for each node."""
    failures: tuple[str, ...] = ()
    """Failed starts of nodes, in the autoscaler's words."""


def pending_reason(request: Mapping[str, float], demand: ClusterDemand) -> str:
    """Return why an actor with a request waits, as a sentence."""
    asked = resource_words(request)
    if any(node.has_free(request) for node in demand.nodes):
        return f"Ray is starting the actor ({asked})"
    if any(node.has(request) for node in demand.nodes):
        words = f"no node has {asked} free now: {_usage_words(request, demand.nodes)}"
    else:
        words = f"no node has {asked}: {_largest_words(request, demand.nodes)}"
    return "; ".join([words, *_autoscaler_words(demand)])


def missing_resources(request: Mapping[str, float], demand: ClusterDemand) -> list[PlatformProblem]:
    """Return a problem if no node, even idle, has the request and no autoscaler can add one."""
    if demand.has_autoscaler or any(node.has(request) for node in demand.nodes):
        return []
    names = {"CPU": "numCpus", "GPU": "numGpus", _MEMORY: _MEMORY}
    lacking = [
        name
        for name, amount in request.items()
        if not any(node.has({name: amount}) for node in demand.nodes)
    ]
    field = names.get(lacking[0], "resources") if lacking else "resources"
    return [
        PlatformProblem(
            field,
            "must be what one node has",
            resource_words(request),
            f"{_largest_words(request, demand.nodes)}; add a node, or ask for less",
            permanent=False,
        )
    ]


def resource_words(request: Mapping[str, float]) -> str:
    """Return a request in words: `2 CPU, 1 GPU, 16 GiB memory`."""
    words = [f"{_amount(name, amount)} {name}" for name, amount in request.items()]
    return ", ".join(words) or "no resources"


def _amount(name: str, amount: float) -> str:
    return f"{amount / _GIBIBYTE:.3g} GiB" if name == _MEMORY else f"{amount:g}"


def _usage_words(request: Mapping[str, float], nodes: Sequence[NodeResources]) -> str:
    parts = []
    for name in request:
        total = sum(node.total.get(name, 0.0) for node in nodes)
        used = sum(node.used.get(name, 0.0) for node in nodes)
        parts.append(f"{_amount(name, used)} of {_amount(name, total)} {name} used")
    return ", ".join(parts)


def _largest_words(request: Mapping[str, float], nodes: Sequence[NodeResources]) -> str:
    if not nodes:
        return "no node is alive"
    largest = {name: max(node.total.get(name, 0.0) for node in nodes) for name in request}
    return f"the most of one node is {resource_words(largest)}"


def _autoscaler_words(demand: ClusterDemand) -> list[str]:
    words = []
    if demand.starting:
        types = ", ".join(sorted(set(demand.starting)))
        words.append(f"the autoscaler is starting {len(demand.starting)} nodes ({types})")
    if demand.failures:
        words.append(f"the autoscaler has failed: {demand.failures[-1][:_SHOWN_CHARACTERS]}")
    if demand.has_autoscaler and not words:
        words.append("the autoscaler starts no node for it")
    return words


def visible_resources(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return the resources that an agent can ask for."""
    return {name: amount for name, amount in amounts.items() if not name.startswith(_HIDDEN)}
