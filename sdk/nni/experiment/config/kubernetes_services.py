"""Configuration of the platforms whose trials run in pods of a Kubernetes cluster."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from nni.experiment.config.base import AbsolutePath, Count, Flag, PositiveInteger, Text
from nni.experiment.config.training_service_base import ImagePoolConfig
from nni.experiment.errors import Problem

_QUANTITY: Final = re.compile(r"\d+(\.\d+)?(m|[kMGTPE]|[KMGTPE]i)?\Z")


def _checked_quantity(value: object) -> object:
    text = str(value) if isinstance(value, int | float) else value
    if isinstance(value, bool) or not isinstance(text, str) or not _QUANTITY.match(text):
        raise ValueError("must be a quantity of Kubernetes, such as 2, 500m or 16Gi")
    return text


QuantityText = Annotated[str | float, BeforeValidator(_checked_quantity)]


class PodPoolConfig(ImagePoolConfig):
    """Base of platforms whose agents are pods of a Kubernetes cluster."""

    context: Text | None = None
    """Context of the kubeconfig; not given: its current one."""
    namespace: Text | None = None
    """Namespace of the Jobs; not given: that of the context."""
    kubeconfig: AbsolutePath | None = None
    """File with the access to the cluster; not given: `~/.kube/config`."""
    in_cluster: Flag | None = None
    """True if NNI's services run in the cluster and use the account of their pod; not given: if
    there is no kubeconfig."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is fetched; not given: as the cluster does."""
    image_pull_secrets: list[Text] | None = None
    """Names of Secrets with the login of the image's registry."""
    ephemeral_storage: QuantityText | None = None
    """Room on the disk of the node for an agent: `20Gi`."""
    gpu_resource: Text | None = None
    """Name of a GPU as a resource; not given: `nvidia.com/gpu`."""
    volumes: list[dict[str, Any]] | None = None
    """Volumes in the form of Kubernetes (`nfs`, `persistentVolumeClaim`, `hostPath`, `emptyDir`,
    `configMap`, `secret`), each with `mountPath`."""
    secrets: list[dict[str, Any]] | None = None
    """Secrets of the namespace for the trials: `name` with `mountPath`, with `key` and `env`, or
    alone."""
    node_selector: dict[str, Any] | None = None
    """Labels of the nodes that may run agents."""
    tolerations: list[dict[str, Any]] | None = None
    """Taints of nodes that agents tolerate, in the form of Kubernetes."""
    priority_class: Text | None = None
    """Priority class of the pods."""
    queue: Text | None = None
    """LocalQueue of Kueue that the Jobs wait in."""
    service_account: Text | None = None
    """Service account of the pods; they do not get its token."""
    pod_security: Literal["restricted", "none"] | None = None
    """`restricted`: pods keep that standard of Kubernetes; not given: `restricted`."""
    run_as_user: Count | None = None
    """Number of the user in the container; not given: 65532."""
    pod_template: dict[str, Any] | None = None
    """Further fields of the pod's template, merged in; the container is called `agent`."""
    labels: dict[str, Text] | None = None
    """Further labels of Jobs and pods."""
    annotations: dict[str, Text] | None = None
    """Annotations of Jobs and pods."""
    ttl_seconds_after_finished: Count | None = None
    """Time after which Kubernetes removes a Job that has ended; not given: a day."""
    grace_seconds: PositiveInteger | None = None
    """Time from TERM to KILL of a pod, in which trials are handed over, at most 120; not
    given: 30."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of the agents' limits, and of inCluster with context or kubeconfig."""
        problems = super().problems(field, trial_gpu_number)
        if self.in_cluster and (self.context or self.kubeconfig):
            rule = "must not be true with context or kubeconfig"
            problems.append(Problem(f"{field}.inCluster", rule, self.in_cluster))
        return problems


class KubernetesConfig(PodPoolConfig):
    """Configuration of a Kubernetes cluster, whose Jobs run agents for several trials each.

    Examples:
        >>> from nni.experiment import KubernetesConfig
        >>> service = KubernetesConfig(namespace="tuning", cpus=4, memory="16Gi", gpus=1)
        >>> service.to_dict()["cpus"]
        '4'
    """

    platform: Literal["kubernetes"] = "kubernetes"
    """Name of the platform."""
    image: Text | None = None
    """Image with NNI's trial-runner and the packages of the trials; not given: the trial-runner of
    this version, `nni/trial-runner`."""
    cpus: QuantityText | None = None
    """CPUs of an agent: `4` or `500m`."""
    memory: QuantityText | None = None
    """Memory of an agent: `16Gi`."""
    gpus: Count | None = None
    """GPUs of an agent; not given: as many as its trials ask for."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of two ways to log in, and of GPUs that an agent does not have."""
        problems = super().problems(field, trial_gpu_number)
        if self.gpus is not None and (trial_gpu_number or 0) > self.gpus:
            rule = "must be >= trialGpuNumber: trials run in the pod of an agent"
            problems.append(Problem(f"{field}.gpus", rule, self.gpus))
        return problems
