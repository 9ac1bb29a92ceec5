"""Platform `kubeflow`: agents as TFJobs or PyTorchJobs of the training operator (API v1).

In reuse mode, the default, an object has one pod, which is an agent. Otherwise an object has the
roles of the section, and its chief's pod is an agent for one trial: `Chief` of a TFJob, `Master` of
a PyTorchJob. The other pods run the commands of their roles, and the operator gives all of them the
variables of a distributed training.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.adapters.kubernetes.manifests import (
    RoleCommand,
    agent_template,
    object_metadata,
    role_template,
)
from svc_trial_runner.fleet.adapters.kubernetes.options import given_options
from svc_trial_runner.fleet.adapters.kubernetes.workloads import (
    SUCCEEDED,
    Workload,
    WorkloadEnd,
    WorkloadKind,
    condition_end,
)
from svc_trial_runner.fleet.adapters.operators.sections import (
    PodRole,
    base_options,
    base_problems,
    parse_role,
    pod_problems,
    role_options,
    role_problems,
)
from svc_trial_runner.fleet.domain.agents import AgentOrder, PlatformProblem
from svc_trial_runner.fleet.ports import AdapterContext, PlatformAdapter

TF_OPERATOR: Final = "tf-operator"
PYTORCH_OPERATOR: Final = "pytorch-operator"
API_VERSION: Final = "v1"
OPERATOR: Final = "the training operator of Kubeflow (API v1)"
_GROUP: Final = "kubeflow.org"
_KINDS: Final = {
    TF_OPERATOR: WorkloadKind(_GROUP, API_VERSION, "TFJob", "tfjobs", operator=OPERATOR),
    PYTORCH_OPERATOR: WorkloadKind(
        _GROUP, API_VERSION, "PyTorchJob", "pytorchjobs", operator=OPERATOR
    ),
}
_REPLICAS: Final = {TF_OPERATOR: "tfReplicaSpecs", PYTORCH_OPERATOR: "pytorchReplicaSpecs"}
_CONTAINERS: Final = {TF_OPERATOR: "tensorflow", PYTORCH_OPERATOR: "pytorch"}
"""Names of the container that the operator fills with its variables."""
_CHIEFS: Final = {TF_OPERATOR: "Chief", PYTORCH_OPERATOR: "Master"}
_ROLES: Final = {TF_OPERATOR: ("worker", "ps"), PYTORCH_OPERATOR: ("worker", "master")}


def kubeflow_adapter(context: AdapterContext) -> PlatformAdapter:
    """Return the adapter of the platform `kubeflow`."""
    return KubernetesAdapter(context, KubeflowWorkload(given_options(context.section)))


class KubeflowWorkload(Workload):
    """`Workload` of TFJobs or PyTorchJobs: rules of the options, an agent's manifest, its end.

    Args:
        section: options of the platform, as they are written.
    """

    platform = "kubeflow"

    def __init__(self, section: Mapping[str, object]) -> None:
        self._section = section
        operator = section.get("operator")
        self._operator = operator if isinstance(operator, str) and operator in _KINDS else ""
        chosen = self._operator or TF_OPERATOR
        self.kind = _KINDS[chosen]
        self._chief_type = _CHIEFS[chosen]
        self._replicas = _REPLICAS[chosen]
        self._roles = {name: parse_role(name, given) for name, given in _given_roles(section)}
        self._base = replace(base_options(section), container=_CONTAINERS[chosen])
        self._chief = (
            self._roles.get("master")
            or self._roles.get("worker")
            or PodRole("worker", "worker", 1, "", "", "", "", None)
        )
        self.options = role_options(self._base, self._chief)

    def problems(self) -> list[PlatformProblem]:
        """Return problems of the section's options; see `Workload`."""
        problems = [*base_problems(self._section), *self._own_problems()]
        return problems or pod_problems(self.options, self._chief)

    def _own_problems(self) -> Iterator[PlatformProblem]:
        section = self._section
        if not self._operator:
            rule = f"must be one of {', '.join(_KINDS)}"
            yield PlatformProblem("operator", rule, repr(section.get("operator"))[:80])
        version = section.get("apiVersion")
        if version not in (None, API_VERSION):
            rule = "must be v1, that of the training operator"
            yield PlatformProblem("apiVersion", rule, repr(version)[:80])
        given = dict(_given_roles(section))
        if "worker" not in given:
            yield PlatformProblem("worker", "must be given")
        for name, role in given.items():
            if name not in _ROLES[self._operator or TF_OPERATOR]:
                yield PlatformProblem(name, f"is no role of {self._operator}")
            yield from role_problems(name, role)
        master = self._roles.get("master")
        if master is not None and master.count > 1:
            yield PlatformProblem("master.replicas", "must be 1", str(master.count))
        if not self.options.reuse_mode:
            yield from (
                PlatformProblem(f"{role.field}.command", "must be given with reuseMode: false")
                for _, role, count in self._other_roles()
                if count and not role.command.strip()
            )

    def manifest(
        self, order: AgentOrder, pool_labels: Mapping[str, str], version: str
    ) -> dict[str, Any]:
        """Return the TFJob or PyTorchJob of an agent; see `Workload`."""
        chief = agent_template(self.options, order, pool_labels, version)
        replicas = {self._chief_type: _replica(1, chief)}
        if not self.options.reuse_mode:
            for kind, role, count in self._other_roles():
                if count:
                    options = role_options(self._base, role)
                    command = RoleCommand(role.name, role.command)
                    template = role_template(options, order, pool_labels, version, command)
                    replicas[kind] = _replica(count, template)
        policy: dict[str, Any] = {
            "cleanPodPolicy": "Running",  # parameter servers do not end by themselves
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": self.options.ttl_seconds_after_finished,
        }
        if self.options.queue:
            policy["suspend"] = True  # Kueue starts it
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": object_metadata(self.options, order, pool_labels, str(order.name)),
            "spec": {"runPolicy": policy, self._replicas: replicas},
        }

    def _other_roles(self) -> Iterator[tuple[str, PodRole, int]]:
        """Yield kind of replica, role and number of the pods beside the chief's.

        The chief is one of the workers, unless there is a master.
        """
        worker = self._roles.get("worker")
        if worker is not None:
            yield "Worker", worker, worker.count - ("master" not in self._roles)
        servers = self._roles.get("ps")
        if servers is not None:
            yield "PS", servers, servers.count

    def end(self, item: Mapping[str, Any]) -> WorkloadEnd | None:
        """Return how a job has ended; see `Workload`."""
        return condition_end(item, SUCCEEDED)


def _given_roles(section: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in ("worker", "ps", "master"):
        role = section.get(name)
        if isinstance(role, Mapping):
            yield name, role


def _replica(count: int, template: dict[str, Any]) -> dict[str, Any]:
    return {"replicas": count, "restartPolicy": "Never", "template": template}
