"""Configuration of the platforms whose pods belong to objects of an operator of Kubernetes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from nni.experiment.config.base import (
    AbsolutePath,
    Amount,
    ConfigModel,
    Count,
    Flag,
    Integer,
    PositiveInteger,
    SizeText,
    Text,
)
from nni.experiment.config.kubernetes_services import PodPoolConfig, QuantityText
from nni.experiment.config.yaml_file import read_yaml
from nni.experiment.errors import ConfigError, Problem

TF_OPERATOR = "tf-operator"
PYTORCH_OPERATOR = "pytorch-operator"


def _checked_memory(value: object) -> object:
    """Return an int as megabytes, such as `512mb`; any other value as it is."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return f"{value}mb" if is_number else value


def _spelled_policy(value: object) -> object:
    """Return a policy in the spelling of schema v2; ValueError if it has both spellings."""
    if not isinstance(value, dict) or "minSucceededTaskCount" not in value:
        return value
    if "minSucceedTaskCount" in value:
        raise ValueError("must not have minSucceedTaskCount and minSucceededTaskCount")
    renamed = {"minSucceededTaskCount": "minSucceedTaskCount"}
    return {renamed.get(name, name): count for name, count in value.items()}


def _spelled_storage(value: object) -> object:
    """Return a kind of storage in its documented case; an unknown value as it is."""
    known = {one.lower(): one for one in ("nfs", "azureStorage", "pvc")}
    return known.get(value.lower(), value) if isinstance(value, str) else value


StorageKind = Annotated[Literal["nfs", "azureStorage", "pvc"], BeforeValidator(_spelled_storage)]
MemoryText = Annotated[SizeText, BeforeValidator(_checked_memory)]


class PodStorageConfig(ConfigModel):
    """Storage that all pods of a job mount: NFS, Azure file share, or a claim.

    Code, parameters and outputs of trials travel through NNI, so that none is needed.
    """

    storage_type: StorageKind
    """Kind of the storage."""
    server: Text | None = None
    """Name or address of the NFS server."""
    path: Text | None = None
    """Exported folder of the NFS server; with `pvc`, the folder in the containers."""
    azure_account: Text | None = None
    """Name of the storage account."""
    azure_share: Text | None = None
    """Name of the file share."""
    key_vault_name: Text | None = None
    """Name of the key vault; not used: see `secret_name`."""
    key_vault_key: Text | None = None
    """Name of the key in the vault; not used: see `secret_name`."""
    secret_name: Text | None = None
    """Secret of the namespace with `azurestorageaccountname` and `azurestorageaccountkey`."""
    claim_name: Text | None = None
    """Claim of the namespace that is mounted; not given with `pvc`: the template mounts it."""
    mount_path: Text | None = None
    """Folder in the containers; not given: `/mnt/nni`."""


class KubeflowRoleConfig(ConfigModel):
    """Pods of one role of a TFJob or PyTorchJob: number, image, CPUs, GPUs, memory."""

    replicas: PositiveInteger = 1
    """Number of pods; in reuse mode an agent has one."""
    command: Text | None = None
    """Command of the pods besides the one of the trial; in reuse mode not used."""
    code_directory: AbsolutePath | None = None
    """Not used: `trialCodeDirectory` of the experiment is sent to agents."""
    docker_image: Text | None = None
    """Image with NNI's trial-runner; not given: the trial-runner of this version."""
    cpu_number: Amount | None = None
    """CPUs of a pod."""
    gpu_number: Count | None = None
    """GPUs of a pod; not given: as many as the trials of an agent ask for."""
    memory_size: MemoryText | None = None
    """Memory of a pod, such as `8gb`; a number is megabytes."""


class KubeflowConfig(PodPoolConfig):
    """Configuration of a Kubernetes cluster with the training operator of Kubeflow.

    Examples:
        >>> from nni.experiment import KubeflowConfig
        >>> service = KubeflowConfig(operator="tf-operator", worker={"memorySize": 8192})
        >>> service.worker.memory_size
        '8192mb'
    """

    platform: Literal["kubeflow"] = "kubeflow"
    """Name of the platform."""
    operator: Literal["tf-operator", "pytorch-operator"] | None = None
    """Agents are TFJobs, or PyTorchJobs."""
    api_version: Text | None = None
    """API version of the operator, `v1`."""
    storage: PodStorageConfig | None = None
    """Storage that the pods mount; not given: none."""
    worker: KubeflowRoleConfig | None = None
    """Workers; without a master, the trial runs in the first one."""
    ps: KubeflowRoleConfig | None = None
    """Parameter servers; `tf-operator` only."""
    master: KubeflowRoleConfig | None = None
    """Master, in which the trial runs; `pytorch-operator` only."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of the operator, of roles that it does not have, and of GPUs."""
        problems = super().problems(field, trial_gpu_number)
        if self.operator is None:
            rule = f"must be {TF_OPERATOR} or {PYTORCH_OPERATOR}"
            problems.append(Problem(f"{field}.operator", rule))
        if self.worker is None:
            remedy = "for example: {replicas: 1, memorySize: 8gb}"
            problems.append(Problem(f"{field}.worker", "must be given", None, remedy))
        foreign = "ps" if self.operator == PYTORCH_OPERATOR else "master"
        if self.operator is not None and getattr(self, foreign) is not None:
            problems.append(Problem(f"{field}.{foreign}", f"is no role of {self.operator}"))
        chief = "worker" if self.master is None else "master"
        return [
            *problems,
            *_gpu_problems(f"{field}.{chief}", getattr(self, chief), trial_gpu_number),
        ]


class FrameworkAttemptCompletionPolicy(ConfigModel):
    """Numbers of tasks of a role that end the whole Framework; -1: any number does not."""

    min_failed_task_count: Annotated[Integer, Field(ge=-1)] | None = None
    """Failed tasks with which the Framework has failed; not given: 1."""
    min_succeed_task_count: Annotated[Integer, Field(ge=-1)] | None = None
    """Succeeded tasks with which the Framework has succeeded; not given: 1."""


class FrameworkControllerRoleConfig(ConfigModel):
    """Tasks of one role of a Framework: number, image, CPUs, GPUs, memory, policy."""

    name: Text | None = None
    """Lower-case letters and digits: `worker`."""
    task_number: PositiveInteger = 1
    """Number of tasks; in reuse mode an agent has one."""
    command: Text | None = None
    """Command of the tasks besides the one of the trial; in reuse mode not used."""
    code_directory: AbsolutePath | None = None
    """Not used: `trialCodeDirectory` of the experiment is sent to agents."""
    docker_image: Text | None = None
    """Image with NNI's trial-runner; not given: the trial-runner of this version."""
    cpu_number: Amount | None = None
    """CPUs of a task."""
    gpu_number: Count | None = None
    """GPUs of a task; not given: as many as the trials of an agent ask for."""
    memory_size: MemoryText | None = None
    """Memory of a task, such as `8gb`; a number is megabytes."""
    framework_attempt_completion_policy: (
        Annotated[FrameworkAttemptCompletionPolicy, BeforeValidator(_spelled_policy)] | None
    ) = None
    """When the tasks of this role end the Framework."""


class FrameworkControllerConfig(PodPoolConfig):
    """Configuration of a Kubernetes cluster with FrameworkController.

    Examples:
        >>> from nni.experiment import FrameworkControllerConfig
        >>> role = {"name": "worker", "taskNumber": 2}
        >>> FrameworkControllerConfig(namespace="tuning", task_roles=[role]).task_roles[0].name
        'worker'
    """

    platform: Literal["frameworkcontroller"] = "frameworkcontroller"
    """Name of the platform."""
    storage: PodStorageConfig | None = None
    """Storage that the pods mount; not given: none."""
    service_account_name: Text | None = None
    """Service account of the pods; the same as `service_account`."""
    config_path: AbsolutePath | None = None
    """File with a Framework in FrameworkController's own form, in whose first task the agent
    runs."""
    framework: dict[str, Any] | None = None
    """Content of that file; not given: it is read when an experiment is created."""
    task_roles: list[FrameworkControllerRoleConfig] = Field(default_factory=list)
    """Roles of the Framework; the trial runs in the first task of the first one."""

    def sent_fields(self) -> dict[str, Any]:
        """Return the fields for the services; the content of configPath is the framework.

        Returns:
            Values by camelCase name, see `to_dict`.

        Raises:
            ConfigError: the file cannot be read, or is no mapping.
        """
        fields = self.to_dict()
        if self.config_path is not None and self.framework is None:
            fields["framework"] = self._read_framework()
        return fields

    def _read_framework(self) -> dict[str, Any]:
        assert self.config_path is not None
        content = read_yaml(self.config_path, "configPath")
        if isinstance(content, dict):
            return content
        raise ConfigError([Problem("configPath", "must be a Framework", str(self.config_path))])

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of roles, service accounts, the file of configPath, and GPUs."""
        problems = super().problems(field, trial_gpu_number)
        if self.config_path is None and self.framework is None and not self.task_roles:
            rule = "must be given, or configPath"
            problems.append(Problem(f"{field}.taskRoles", rule))
        if self.service_account_name is not None and self.service_account is not None:
            rule = "must not be given with serviceAccount"
            problems.append(Problem(f"{field}.serviceAccountName", rule, self.service_account_name))
        if self.config_path is not None and self.framework is None:
            try:
                self._read_framework()
            except ConfigError as error:
                problems += [one.moved(field) for one in error.problems]
        first = self.task_roles[0] if self.task_roles else None
        return [*problems, *_gpu_problems(f"{field}.taskRoles[0]", first, trial_gpu_number)]


class AdlStorageConfig(ConfigModel):
    """NFS export that the pods of AdaptDL mount."""

    server: Text
    """Name or address of the NFS server."""
    path: Text
    """Exported folder."""
    container_mount_path: Text
    """Folder in the containers."""


class AdlCheckpointConfig(ConfigModel):
    """Volume for the checkpoints of an AdaptDLJob, which is removed with its pod."""

    storage_class: Text
    """Storage class of the cluster."""
    storage_size: QuantityText
    """Size, such as `1Gi`."""


class AdlConfig(PodPoolConfig):
    """Configuration of a Kubernetes cluster with the AdaptDL scheduler.

    Examples:
        >>> from nni.experiment import AdlConfig
        >>> AdlConfig(docker_image="team/trials", trial_memory_size="8Gi").trial_memory_size
        '8Gi'
    """

    platform: Literal["adl"] = "adl"
    """Name of the platform."""
    adaptive: Flag = False
    """True if the scheduler may move an agent to another node."""
    docker_image: Text | None = None
    """Image with NNI's trial-runner; not given: the trial-runner of this version."""
    trial_cpu_number: QuantityText | None = None
    """CPUs of an agent."""
    trial_memory_size: QuantityText | None = None
    """Memory of an agent: `8Gi`."""
    storage: AdlStorageConfig | None = None
    """NFS export that the pods mount; not given: none."""
    checkpoint: AdlCheckpointConfig | None = None
    """Volume for checkpoints at `/mnt/adaptdl/checkpoint`; not given: none."""


def _gpu_problems(
    field: str,
    role: KubeflowRoleConfig | FrameworkControllerRoleConfig | None,
    trial_gpu_number: int | None,
) -> list[Problem]:
    """Return a problem if a trial asks for more GPUs than the pod of its agent has."""
    if role is None or role.gpu_number is None or (trial_gpu_number or 0) <= role.gpu_number:
        return []
    rule = "must be >= trialGpuNumber: trials run in the pod of an agent"
    return [Problem(f"{field}.gpuNumber", rule, role.gpu_number)]
