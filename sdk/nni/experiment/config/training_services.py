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
    """Base of the platforms' classes."""

    platform: Text = ""
    """Name of the platform."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return the rules of the platform that this section breaks.

        Args:
            field: its place, e.g. `trainingService`.
            trial_gpu_number: GPUs of one trial; `None` if not given.
        """
        _ = field, trial_gpu_number
        return []


class LocalConfig(TrainingServiceConfig):
    """This machine."""

    platform: Literal["local"] = "local"
    use_active_gpu: Flag | None = None
    """May trials use GPUs that other processes occupy? Needed when a trial wants GPUs."""
    max_trial_number_per_gpu: Annotated[Integer, Field(ge=1)] = 1
    """Trials that may share one GPU."""
    gpu_indices: GpuIndices | None = None
    """GPUs that may be handed out; not given: all."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """See the base."""
        if trial_gpu_number and self.use_active_gpu is None:
            rule = "must be true or false when trialGpuNumber is larger than 0"
            remedy = "true on a desktop, where the screen occupies the GPU; else false"
            return [Problem(f"{field}.useActiveGpu", rule, None, remedy)]
        return []


class RemoteMachineConfig(ConfigModel):
    """One machine that is reached over SSH."""

    host: Text
    port: Integer = 22
    user: Text
    password: Text | None = Field(default=None, repr=False)
    ssh_key_file: AbsolutePath | None = None
    ssh_passphrase: Text | None = Field(default=None, repr=False)
    use_active_gpu: Flag = False
    max_trial_number_per_gpu: Integer = 1
    gpu_indices: GpuIndices | None = None
    python_path: Text | None = None
    """Put first on the trial's PATH."""


class RemoteConfig(TrainingServiceConfig):
    """Machines that are reached over SSH."""

    platform: Literal["remote"] = "remote"
    reuse_mode: Flag = True
    machine_list: list[RemoteMachineConfig] = Field(default_factory=list)

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """See the base."""
        _ = trial_gpu_number
        if not self.machine_list:
            return [Problem(f"{field}.machineList", "must name at least one machine")]
        return []


class OpenpaiConfig(TrainingServiceConfig):
    """An OpenPAI cluster."""

    platform: Literal["openpai"] = "openpai"
    host: Text | None = None
    username: Text | None = None
    token: Text | None = Field(default=None, repr=False)
    trial_cpu_number: PositiveInt | None = None
    trial_memory_size: SizeText | None = None
    storage_config_name: Text | None = None
    docker_image: Text = DEFAULT_IMAGE
    virtual_cluster: Text | None = None
    local_storage_mount_point: AbsolutePath | None = None
    container_storage_mount_point: Text | None = None
    reuse_mode: Flag = True
    openpai_config: dict[str, Any] | None = None
    openpai_config_file: AbsolutePath | None = None


class AmlConfig(TrainingServiceConfig):
    """Azure machine learning."""

    platform: Literal["aml"] = "aml"
    subscription_id: Text | None = None
    resource_group: Text | None = None
    workspace_name: Text | None = None
    compute_target: Text | None = None
    docker_image: Text = DEFAULT_IMAGE
    max_trial_number_per_gpu: Integer = 1
    use_active_gpu: Flag = False


class DlcConfig(TrainingServiceConfig):
    """PAI-DLC."""

    platform: Literal["dlc"] = "dlc"
    type: Text = "Worker"
    image: Text | None = None
    job_type: Literal["TFJob", "PyTorchJob"] = "TFJob"
    pod_count: PositiveInt | None = None
    ecs_spec: Text | None = None
    region: Text | None = None
    nas_data_source_id: Text | None = None
    access_key_id: Text | None = None
    access_key_secret: Text | None = Field(default=None, repr=False)
    local_storage_mount_point: AbsolutePath = Path("/home/admin/workspace/")
    container_storage_mount_point: Text = "/root/data/"


class KubeflowConfig(TrainingServiceConfig):
    """Kubeflow."""

    platform: Literal["kubeflow"] = "kubeflow"
    operator: Text | None = None
    api_version: Text | None = None
    storage: dict[str, Any] | None = None
    worker: dict[str, Any] | None = None
    ps: dict[str, Any] | None = None
    master: dict[str, Any] | None = None
    reuse_mode: Flag = True


class FrameworkControllerConfig(TrainingServiceConfig):
    """FrameworkController."""

    platform: Literal["frameworkcontroller"] = "frameworkcontroller"
    storage: dict[str, Any] | None = None
    service_account_name: Text | None = None
    namespace: Text | None = None
    config_path: AbsolutePath | None = None
    task_roles: list[dict[str, Any]] = Field(default_factory=list)
    reuse_mode: Flag = True


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
