"""Kinds of objects that the pods of agents belong to: Jobs, or those of an operator."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from svc_trial_runner.fleet.adapters.kubernetes.manifests import (
    AGENT_ROLE,
    ROLE_LABEL,
    job_manifest,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import (
    KubernetesOptions,
    option_problems,
    parse_options,
)
from svc_trial_runner.fleet.domain.agents import AgentName, AgentOrder, PlatformProblem

SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Kind of Kubernetes object: API group, version, names, deletion of pods, needed operator."""

    group: str
    """API group: `batch`, `kubeflow.org`."""
    version: str
    kind: str
    plural: str
    propagation: str = "Background"
    """How pods follow the deletion of their object."""
    operator: str = ""
    """What has to be installed in the cluster; empty: nothing."""

    @property
    def api_version(self) -> str:
        """API group and version, as in an object's `apiVersion`."""
        return f"{self.group}/{self.version}"

    @property
    def path(self) -> str:
        """API path of the objects of a namespace, with the placeholder `{namespace}`."""
        return f"/apis/{self.api_version}/namespaces/{{namespace}}/{self.plural}"


@dataclass(frozen=True, slots=True)
class WorkloadEnd:
    """End of an agent's object: whether it failed, and Kubernetes's message."""

    failed: bool
    words: str = ""
    """Of the controller; empty: none."""


JOBS: Final = WorkloadKind("batch", "v1", "Job", "jobs")


class Workload(ABC):
    """Strategy of one platform: manifest of an agent's object, and how its state is read.

    All of it is pure; `KubernetesAdapter` sends the requests.

    Attributes:
        platform: name of the platform.
        kind: of the objects.
        options: of the pods of agents.
    """

    platform: str
    kind: WorkloadKind
    options: KubernetesOptions

    @abstractmethod
    def problems(self) -> list[PlatformProblem]:
        """Return problems of the section, found without contacting the cluster."""

    @abstractmethod
    def manifest(
        self, order: AgentOrder, pool_labels: Mapping[str, str], version: str
    ) -> dict[str, Any]:
        """Return the manifest of the object that runs an agent.

        Args:
            order: of the agent.
            pool_labels: by which all objects of the pool are found.
            version: of NNI.
        """

    @abstractmethod
    def end(self, item: Mapping[str, Any]) -> WorkloadEnd | None:
        """Return how an object has ended; None: it has not."""

    def object_name(self, agent: AgentName) -> str:
        """Return the name of an agent's object; by default that of the agent."""
        return str(agent)

    def is_agent_pod(self, pod: Mapping[str, Any]) -> bool:
        """Return whether the agent runs in a pod of its object, rather than another role."""
        labels = pod.get("metadata", {}).get("labels") or {}
        return str(labels.get(ROLE_LABEL, AGENT_ROLE)) == AGENT_ROLE


class JobWorkload(Workload):
    """`Workload` of Jobs, which need no operator: rules of the options, manifest, end.

    Args:
        section: options of the platform, as they are written.
    """

    platform = "kubernetes"
    kind = JOBS

    def __init__(self, section: Mapping[str, object]) -> None:
        self._section = section
        self.options = parse_options(section)

    def problems(self) -> list[PlatformProblem]:
        """Return problems of the section's options; see `Workload`."""
        return option_problems(self._section)

    def manifest(
        self, order: AgentOrder, pool_labels: Mapping[str, str], version: str
    ) -> dict[str, Any]:
        """Return the Job of an agent; see `Workload`."""
        return job_manifest(self.options, order, pool_labels, version)

    def end(self, item: Mapping[str, Any]) -> WorkloadEnd | None:
        """Return how a Job has ended; see `Workload`."""
        return condition_end(item, "Complete")


def condition_end(item: Mapping[str, Any], success: str) -> WorkloadEnd | None:
    """Return an object's end, failed or not, and its message, by its conditions; None: no end.

    Args:
        item: object with `status.conditions`.
        success: type of the condition of an object that has succeeded.
    """
    for condition in item.get("status", {}).get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in {success, FAILED}:
            words = f"{condition.get('reason', '')}: {condition.get('message', '')}"
            return WorkloadEnd(condition["type"] == FAILED, words.strip(": "))
    return None
