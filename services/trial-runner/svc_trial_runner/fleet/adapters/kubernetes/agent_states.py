"""Phases and reasons of agents, from the objects of their jobs, pods and events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from svc_trial_runner.fleet.adapters.kubernetes.causes import explained, shortened
from svc_trial_runner.fleet.adapters.kubernetes.manifests import AGENT_LABEL
from svc_trial_runner.fleet.adapters.kubernetes.options import AGENT_CONTAINERS
from svc_trial_runner.fleet.adapters.kubernetes.workloads import WorkloadEnd, condition_end
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentPhase,
    PlatformAgent,
    parse_agent_name,
)

NO_POD: Final = "the cluster has made no pod of the job yet"
LOST_NODE: Final = "node {node} does not answer"
_LOST: Final = frozenset({"NodeLost", "NodeUnreachable"})
_ORDINARY: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
"""Reasons of waiting containers that say nothing."""
_DISRUPTION: Final = "DisruptionTarget"
_ERROR: Final = "Error"
_LOST_POD: Final = "BackoffLimitExceeded"
"""Reason of a Job without a pod: it has had one."""


def object_agent(item: Mapping[str, Any]) -> AgentName | None:
    """Return the agent that a job, pod or secret belongs to; None: it belongs to no agent."""
    return parse_agent_name(str(item.get("metadata", {}).get("labels", {}).get(AGENT_LABEL, "")))


def is_leaving(item: Mapping[str, Any]) -> bool:
    """Return whether an object is being deleted."""
    return bool(item.get("metadata", {}).get("deletionTimestamp"))


def latest_pods(pods: Iterable[Mapping[str, Any]]) -> dict[AgentName, Mapping[str, Any]]:
    """Return the pod of each agent; of several the one that is not over, else the last one."""
    found: dict[AgentName, Mapping[str, Any]] = {}
    for pod in sorted(pods, key=_order):
        name = object_agent(pod)
        if name is not None:
            found[name] = pod
    return found


def _order(pod: Mapping[str, Any]) -> tuple[bool, str]:
    phase = pod.get("status", {}).get("phase")
    is_live = phase not in {"Succeeded", "Failed"} and not is_leaving(pod)
    return is_live, str(pod.get("metadata", {}).get("creationTimestamp", ""))


def end_of_job(job: Mapping[str, Any]) -> WorkloadEnd | None:
    """Return how a Job of Kubernetes has ended; None: it has not."""
    return condition_end(job, "Complete")


def platform_agent(
    job: Mapping[str, Any],
    pod: Mapping[str, Any] | None,
    warnings: Sequence[str] = (),
    end_of: Callable[[Mapping[str, Any]], WorkloadEnd | None] = end_of_job,
) -> PlatformAgent | None:
    """Return an agent's phase and reason from its job and pod; None: the job runs no agent.

    Args:
        job: of the agent, or another object whose pod the agent's is.
        pod: of the job; None: there is none.
        warnings: messages of events of job and pod, the latest one first.
        end_of: returns how the object has ended; None: it has not.
    """
    name = object_agent(job)
    if name is None:
        return None
    end = end_of(job)
    if end is not None:
        return _ended(name, pod, end)
    if pod is None:
        return PlatformAgent(name, AgentPhase.PENDING, "", _without_pod(job, warnings))
    node = str(pod.get("spec", {}).get("nodeName", ""))
    match pod.get("status", {}).get("phase"):
        case "Succeeded" | "Failed":
            return _ended(name, pod, WorkloadEnd(failed=False))
        case "Running":
            return _running(name, pod, node)
        case "Unknown":
            reason = explained(LOST_NODE.format(node=node))
            return PlatformAgent(name, AgentPhase.RUNNING, node, reason)
        case _:
            return _pending(name, pod, node, warnings)


def needs_warnings(agent: PlatformAgent) -> bool:
    """Return whether the reason of an agent's wait may be in events, not in its pod."""
    return agent.phase is AgentPhase.PENDING and agent.reason in {NO_POD, ""}


def _ended(name: AgentName, pod: Mapping[str, Any] | None, end: WorkloadEnd) -> PlatformAgent:
    node = str((pod or {}).get("spec", {}).get("nodeName", ""))
    reason = "" if pod is None else pod_end(pod)
    if not reason and end.failed:
        lost = pod is None and end.words.startswith(_LOST_POD)
        reason = "its pod was deleted" if lost else shortened(end.words)
    return PlatformAgent(name, AgentPhase.ENDED, node, reason)


def pod_end(pod: Mapping[str, Any]) -> str:
    """Return why a pod has ended; empty: its agent ended in order."""
    status = pod.get("status", {})
    if status.get("reason") or status.get("phase") == "Failed":
        words = [str(status.get("reason", "")), str(status.get("message", ""))]
        for condition in status.get("conditions") or ():
            if condition.get("type") == _DISRUPTION and condition.get("status") == "True":
                words += [str(condition.get("reason", "")), str(condition.get("message", ""))]
        words.append(_exit_of_containers(status))
        return explained(": ".join(filter(None, words)))
    return ""


def _exit_of_containers(status: Mapping[str, Any]) -> str:
    kinds = ("initContainerStatuses", "containerStatuses")
    for container in (one for kind in kinds for one in status.get(kind) or ()):
        end = container.get("state", {}).get("terminated")
        if not end or not end.get("exitCode"):
            continue
        reason = str(end.get("reason", _ERROR))
        words = "" if reason == _ERROR else f"{reason}, "
        text = f"container {container.get('name')} ended: {words}exit code {end['exitCode']}"
        message = shortened(str(end.get("message", "")))
        return f"{text}: {message}" if message else text
    return ""


def _without_pod(job: Mapping[str, Any], warnings: Sequence[str]) -> str:
    if warnings:
        return explained(warnings[0])
    spec = job.get("spec", {})
    if spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"):
        queue = job["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name")
        return f"Suspended: it waits in the queue {queue}" if queue else "Suspended"
    return NO_POD


def _running(name: AgentName, pod: Mapping[str, Any], node: str) -> PlatformAgent:
    status = pod.get("status", {})
    running = any(
        one.get("name") in AGENT_CONTAINERS and "running" in one.get("state", {})
        for one in status.get("containerStatuses") or ()
    )
    phase = AgentPhase.RUNNING if running else AgentPhase.STARTING
    lost = status.get("reason") in _LOST or _is_unreachable(status)
    return PlatformAgent(name, phase, node, LOST_NODE.format(node=node) if lost else "")


def _is_unreachable(status: Mapping[str, Any]) -> bool:
    """Return whether the control plane, not the node, has declared the pod not ready."""
    return any(
        condition.get("type") == "Ready"
        and condition.get("status") != "True"
        and condition.get("reason") in {"NodeStatusUnknown", "NodeNotReady"}
        for condition in status.get("conditions") or ()
    )


def _pending(
    name: AgentName, pod: Mapping[str, Any], node: str, warnings: Sequence[str]
) -> PlatformAgent:
    """Return a PENDING agent with the reason: no node, a waiting container, else a warning.

    An image may take minutes to fetch.
    """
    status = pod.get("status", {})
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = f"{condition.get('reason', '')}: {condition.get('message', '')}"
            return PlatformAgent(name, AgentPhase.PENDING, "", explained(words.strip(": ")))
    kinds = ("initContainerStatuses", "containerStatuses")
    for container in (one for kind in kinds for one in status.get(kind) or ()):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason", "") not in _ORDINARY:
            words = f"{waiting['reason']}: {waiting.get('message', '')}".strip(": ")
            return PlatformAgent(name, AgentPhase.PENDING, node, explained(words))
    reason = explained(warnings[0]) if warnings else ""
    return PlatformAgent(name, AgentPhase.PENDING, node, reason)


def warning_texts(events: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the texts of warning events by job or pod name, the latest ones first."""
    found: dict[str, list[str]] = {}
    latest_first = sorted(events, key=_time_of_event, reverse=True)
    for event in latest_first:
        if event.get("type") == "Warning":
            words = f"{event.get('reason', '')}: {event.get('message', '')}".strip(": ")
            found.setdefault(str(event.get("involvedObject", {}).get("name", "")), []).append(words)
    return found


def _time_of_event(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    created = str(event.get("metadata", {}).get("creationTimestamp", ""))
    return next((str(time) for time in times if time), created)
