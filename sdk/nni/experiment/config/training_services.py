"""Configuration of training services: one class per platform.

Only the local platform is at work yet; the others' fields can be written, loaded and saved, and
an experiment that uses them is refused when it is created.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from nni.experiment.config.base import (
    AbsolutePath,
    ConfigModel,
    Flag,
    GpuIndices,
    Integer,
    SizeText,
    Text,
)
from nni.experiment.errors import ConfigError, Problem

DEFAULT_IMAGE: Final = "msranni/nni:latest"


class TrainingServiceConfig(ConfigModel):
    """Base class of the configurations of one platform each."""

    platform: Text = ""
    """Name of the platform."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return which rules of its platform this section breaks; by default none.

        Args:
            field: path of the section, e.g. `trainingService`.
            trial_gpu_number: GPUs of one trial; `None` if not given.

        Returns:
            One problem per broken rule; empty if the section is valid.
        """
        _ = field, trial_gpu_number
        return []


class LocalConfig(TrainingServiceConfig):
    """Configuration of this machine as the platform of trials.

    Examples:
        >>> from nni.experiment import ExperimentConfig, LocalConfig
        >>> service = LocalConfig(use_active_gpu=False, gpu_indices=[0, 1])
        >>> ExperimentConfig(training_service=service).training_service.platform
        'local'
    """

    platform: Literal["local"] = "local"
    """Name of the platform."""
    use_active_gpu: Flag | None = None
    """True if trials may use GPUs that other processes occupy; required if trials use GPUs."""
    max_trial_number_per_gpu: Annotated[Integer, Field(ge=1)] = 1
    """Trials that may share one GPU."""
    gpu_indices: GpuIndices | None = None
    """GPUs that may be handed out; not given: all."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return a problem if trials take GPUs and `useActiveGpu` is not given."""
        if trial_gpu_number and self.use_active_gpu is None:
            rule = "must be true or false when trialGpuNumber is larger than 0"
            remedy = "true on a desktop, where the screen occupies the GPU; else false"
            return [Problem(f"{field}.useActiveGpu", rule, None, remedy)]
        return []


class RemoteMachineConfig(ConfigModel):
    """SSH access to one machine of a `RemoteConfig`.

    Examples:
        >>> from nni.experiment import RemoteMachineConfig
        >>> RemoteMachineConfig(host="10.0.0.7", user="ann", ssh_key_file="/home/ann/key").port
        22
    """

    host: Text
    """Name or IP address."""
    port: Integer = 22
    """Port of the SSH server."""
    user: Text
    """Name of the user to log in as."""
    password: Text | None = Field(default=None, repr=False)
    """Password of the user; not given: a key is used."""
    ssh_key_file: AbsolutePath | None = None
    """File with the private key."""
    ssh_passphrase: Text | None = Field(default=None, repr=False)
    """Passphrase of the private key."""
    use_active_gpu: Flag = False
    """True if trials may use GPUs that other processes occupy."""
    max_trial_number_per_gpu: Integer = 1
    """Trials that may share one GPU."""
    gpu_indices: GpuIndices | None = None
    """GPUs that may be handed out; not given: all."""
    python_path: Text | None = None
    """Put first on the trial's PATH."""
    host_key_policy: Literal["strict", "accept-new"] = "strict"
    """`accept-new` accepts the key of a host that is not in `known_hosts` once; a changed key is
    always refused."""
    slots: PositiveInt | None = None
    """Trials at once on the machine; not given: the `slots` of the section."""
    setup_lines: list[Text] | None = None
    """Lines of bash that run before the trials: `module load cuda`, `conda activate x`."""
    folder: Text | None = None
    """Folder of NNI on the machine; not given: `~/.nni`."""


class RemoteConfig(TrainingServiceConfig):
    """Configuration of machines that are reached over SSH.

    Examples:
        >>> from nni.experiment import RemoteConfig, RemoteMachineConfig
        >>> machine = RemoteMachineConfig(host="10.0.0.7", user="ann", password="secret")
        >>> [one.host for one in RemoteConfig(machine_list=[machine]).machine_list]
        ['10.0.0.7']
    """

    platform: Literal["remote"] = "remote"
    """Name of the platform."""
    reuse_mode: Flag = True
    """True if one job of the platform runs several trials in succession."""
    slots: PositiveInt | None = None
    """Trials at once on each machine; not given: `trialConcurrency` is shared out evenly."""
    machine_list: list[RemoteMachineConfig] = Field(default_factory=list)
    """Machines on which trials run; at least one."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return a problem if no machine is listed."""
        _ = trial_gpu_number
        if not self.machine_list:
            return [Problem(f"{field}.machineList", "must name at least one machine")]
        return []


class OpenpaiConfig(TrainingServiceConfig):
    """Configuration of an OpenPAI cluster.

    Examples:
        >>> from nni.experiment import OpenpaiConfig
        >>> service = OpenpaiConfig(host="pai.example.org", username="ann", trial_memory_size="8gb")
        >>> service.docker_image
        'msranni/nni:latest'
    """

    platform: Literal["openpai"] = "openpai"
    """Name of the platform."""
    host: Text | None = None
    """Name of the cluster's server."""
    username: Text | None = None
    """Name of the user."""
    token: Text | None = Field(default=None, repr=False)
    """Token of the user."""
    trial_cpu_number: PositiveInt | None = None
    """CPU cores of a trial."""
    trial_memory_size: SizeText | None = None
    """Memory of a trial, such as `8gb`."""
    storage_config_name: Text | None = None
    """Name of the storage in OpenPAI."""
    docker_image: Text = DEFAULT_IMAGE
    """Docker image of the trials."""
    virtual_cluster: Text | None = None
    """Virtual cluster whose resources are used."""
    local_storage_mount_point: AbsolutePath | None = None
    """Folder at which this machine mounts the storage."""
    container_storage_mount_point: Text | None = None
    """Folder at which trials mount the storage."""
    reuse_mode: Flag = True
    """True if one job of the platform runs several trials in succession."""
    openpai_config: dict[str, Any] | None = None
    """Job configuration in OpenPAI's own form; excludes `openpai_config_file`."""
    openpai_config_file: AbsolutePath | None = None
    """File with the job configuration in OpenPAI's own form."""


class AmlConfig(TrainingServiceConfig):
    """Configuration of Azure Machine Learning.

    Examples:
        >>> from nni.experiment import AmlConfig
        >>> AmlConfig(workspace_name="tuning", compute_target="gpus").to_dict()["computeTarget"]
        'gpus'
    """

    platform: Literal["aml"] = "aml"
    """Name of the platform."""
    subscription_id: Text | None = None
    """Id of the Azure subscription."""
    resource_group: Text | None = None
    """Resource group of the workspace."""
    workspace_name: Text | None = None
    """Name of the workspace."""
    compute_target: Text | None = None
    """Name of the compute cluster."""
    docker_image: Text = DEFAULT_IMAGE
    """Docker image of the trials."""
    max_trial_number_per_gpu: Integer = 1
    """Trials that may share one GPU."""
    use_active_gpu: Flag = False
    """True if trials may use GPUs that other processes occupy."""


class DlcConfig(TrainingServiceConfig):
    """Configuration of PAI-DLC, the training service of Alibaba Cloud.

    Examples:
        >>> from nni.experiment import DlcConfig
        >>> DlcConfig(job_type="PyTorchJob", pod_count=2, region="cn-hangzhou").job_type
        'PyTorchJob'
    """

    platform: Literal["dlc"] = "dlc"
    """Name of the platform."""
    type: Text = "Worker"
    """Role of the pods in the job."""
    image: Text | None = None
    """Docker image of the trials."""
    job_type: Literal["TFJob", "PyTorchJob"] = "TFJob"
    """Kind of the job."""
    pod_count: PositiveInt | None = None
    """Pods of a job."""
    ecs_spec: Text | None = None
    """Instance type of a pod."""
    region: Text | None = None
    """Region of the cloud."""
    nas_data_source_id: Text | None = None
    """Id of the data source that carries code and outputs."""
    access_key_id: Text | None = None
    """Id of the access key."""
    access_key_secret: Text | None = Field(default=None, repr=False)
    """Secret of the access key."""
    local_storage_mount_point: AbsolutePath = Path("/home/admin/workspace/")
    """Folder at which this machine mounts the data source."""
    container_storage_mount_point: Text = "/root/data/"
    """Folder at which trials mount the data source."""


class KubeflowConfig(TrainingServiceConfig):
    """Configuration of a Kubernetes cluster with Kubeflow.

    Examples:
        >>> from nni.experiment import KubeflowConfig
        >>> KubeflowConfig(operator="tf-operator", worker={"replicas": 2}).worker
        {'replicas': 2}
    """

    platform: Literal["kubeflow"] = "kubeflow"
    """Name of the platform."""
    operator: Text | None = None
    """`tf-operator` or `pytorch-operator`."""
    api_version: Text | None = None
    """API version of the operator."""
    storage: dict[str, Any] | None = None
    """Settings of the storage that carries code and outputs."""
    worker: dict[str, Any] | None = None
    """Replicas, command, image and resources of the workers."""
    ps: dict[str, Any] | None = None
    """The same of the parameter servers; `tf-operator` only."""
    master: dict[str, Any] | None = None
    """The same of the master; `pytorch-operator` only."""
    reuse_mode: Flag = True
    """True if one job of the platform runs several trials in succession."""


class FrameworkControllerConfig(TrainingServiceConfig):
    """Configuration of a Kubernetes cluster with FrameworkController.

    Examples:
        >>> from nni.experiment import FrameworkControllerConfig
        >>> role = {"name": "worker", "taskNumber": 2}
        >>> FrameworkControllerConfig(namespace="tuning", task_roles=[role]).task_roles[0]["name"]
        'worker'
    """

    platform: Literal["frameworkcontroller"] = "frameworkcontroller"
    """Name of the platform."""
    storage: dict[str, Any] | None = None
    """Settings of the storage that carries code and outputs."""
    service_account_name: Text | None = None
    """Kubernetes service account of the controller."""
    namespace: Text | None = None
    """Kubernetes namespace of the jobs."""
    config_path: AbsolutePath | None = None
    """File with the job configuration in FrameworkController's own form."""
    task_roles: list[dict[str, Any]] = Field(default_factory=list)
    """Name, task number, command, image and resources of each role."""
    reuse_mode: Flag = True
    """True if one job of the platform runs several trials in succession."""


PLATFORMS: Final[dict[str, type[TrainingServiceConfig]]] = {
    "local": LocalConfig,
    "remote": RemoteConfig,
    "openpai": OpenpaiConfig,
    "aml": AmlConfig,
    "dlc": DlcConfig,
    "kubeflow": KubeflowConfig,
    "frameworkcontroller": FrameworkControllerConfig,
}
"""The class of each platform's section."""

AVAILABLE_PLATFORMS: Final = frozenset({"local"})
"""Platforms on which trials can run today."""

REMOVED_PLATFORMS: Final = {
    "adl": "AdaptDL is not supported; use kubeflow",
    "dlts": "DLTS is not supported; use kubeflow",
    "hybrid": "give a list of platforms: [{platform: local}, ...]",
    "paiYarn": "PAI on YARN is not supported; use openpai",
}
"""Names of platforms that NNI had, and the remedy."""

_ALIASES: Final = {"pai": "openpai"}


def new_training_service(platform: str) -> TrainingServiceConfig:
    """Return an empty section of a platform.

    Raises:
        ConfigError: there is no such platform.
    """
    return _class_of(platform)()


def _class_of(platform: object) -> type[TrainingServiceConfig]:
    name = _ALIASES.get(platform, platform) if isinstance(platform, str) else platform
    if isinstance(name, str) and name in PLATFORMS:
        return PLATFORMS[name]
    close = difflib.get_close_matches(str(platform), PLATFORMS, n=1)
    remedy = REMOVED_PLATFORMS.get(str(platform), f"did you mean {close[0]}?" if close else "")
    rule = "must be one of " + ", ".join(PLATFORMS)
    raise ConfigError([Problem("platform", rule, platform, remedy)])


def _from_section(section: object) -> TrainingServiceConfig:
    if isinstance(section, TrainingServiceConfig):
        return section
    if not isinstance(section, dict):
        raise ConfigError([Problem("", "must be a mapping such as {platform: local}", section)])
    if "platform" not in section:
        raise ConfigError([Problem("platform", "must be given", None, "for example: local")])
    cls = _class_of(section["platform"])
    return cls(**{**section, "platform": cls.model_fields["platform"].default})


def _from_sections(
    value: object,
) -> TrainingServiceConfig | list[TrainingServiceConfig] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        return _from_section(value)
    services = []
    for index, section in enumerate(value):
        try:
            services.append(_from_section(section))
        except ConfigError as error:
            raise error.moved(f"[{index}]") from error
    return services


TrainingServices = Annotated[Any, BeforeValidator(_from_sections)]
"""A section of any platform or a list of them, made from mappings by their `platform`."""
