"""Configuration of training services: one class per platform."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field
from pydantic.alias_generators import to_camel

from nni.experiment.config.aml_service import AmlConfig
from nni.experiment.config.base import (
    AbsolutePath,
    ConfigModel,
    DurationText,
    Flag,
    GpuIndices,
    Port,
    PositiveInteger,
    Text,
)
from nni.experiment.config.dlc_service import DlcConfig
from nni.experiment.config.kubernetes_services import KubernetesConfig
from nni.experiment.config.openpai_service import OpenpaiConfig
from nni.experiment.config.operator_services import (
    AdlConfig,
    FrameworkControllerConfig,
    KubeflowConfig,
)
from nni.experiment.config.own_platforms import own_platform_class
from nni.experiment.config.pool_services import PoolConfig
from nni.experiment.config.quantities import is_slurm_time
from nni.experiment.config.ray_service import RayConfig
from nni.experiment.config.training_service_base import (
    AgentPoolConfig,
    PollInterval,
    TrainingServiceConfig,
)
from nni.experiment.errors import ConfigError, Problem


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
    max_trial_number_per_gpu: PositiveInteger = 1
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

    host: Text = ""
    """Name or IP address; required."""
    port: Port = 22
    """Port of the SSH server."""
    user: Text = ""
    """Name of the user to log in as; required."""
    password: Text | None = Field(default=None, repr=False)
    """Password of the user; not given: a key is used."""
    ssh_key_file: AbsolutePath | None = None
    """File with the private key."""
    ssh_passphrase: Text | None = Field(default=None, repr=False)
    """Passphrase of the private key."""
    use_active_gpu: Flag = False
    """True if trials may use GPUs that other processes occupy."""
    max_trial_number_per_gpu: PositiveInteger = 1
    """Trials that may share one GPU."""
    gpu_indices: GpuIndices | None = None
    """GPUs that may be handed out; not given: all."""
    python_path: Text | None = None
    """Put first on the trial's PATH."""
    host_key_policy: Literal["strict", "accept-new"] = "strict"
    """`accept-new` accepts the key of a host that is not in `known_hosts` once; a changed key is
    always refused."""
    slots: PositiveInteger | None = None
    """Trials at once on the machine; not given: the `slots` of the section."""
    setup_lines: list[Text] | None = None
    """Lines of bash that run before the trials: `module load cuda`, `conda activate x`."""
    folder: Text | None = None
    """Folder of NNI on the machine; not given: `~/.nni`."""


class RemoteConfig(AgentPoolConfig):
    """Configuration of machines that are reached over SSH.

    Examples:
        >>> from nni.experiment import RemoteConfig, RemoteMachineConfig
        >>> machine = RemoteMachineConfig(host="10.0.0.7", user="ann", password="secret")
        >>> [one.host for one in RemoteConfig(machine_list=[machine]).machine_list]
        ['10.0.0.7']
    """

    platform: Literal["remote"] = "remote"
    """Name of the platform."""
    machine_list: list[RemoteMachineConfig] = Field(default_factory=list)
    """Machines on which trials run; at least one."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return general problems and those of machines: none, no host or user, Windows."""
        problems = super().problems(field, trial_gpu_number)
        if not self.machine_list:
            problems.append(Problem(f"{field}.machineList", "must name at least one machine"))
        problems += [
            Problem(f"{field}.machineList[{index}].{name}", "must be given")
            for index, machine in enumerate(self.machine_list)
            for name in ("host", "user")
            if not getattr(machine, name)
        ]
        problems += [
            Problem(
                f"{field}.machineList[{index}].pythonPath",
                "must be one folder: Windows workers are not supported",
                machine.python_path,
            )
            for index, machine in enumerate(self.machine_list)
            if ";" in (machine.python_path or "")
        ]
        return problems


class SlurmConfig(AgentPoolConfig):
    """Configuration of a Slurm cluster, whose jobs run agents for several trials each.

    Slurm's commands run on this machine, or over SSH on the login node that `host` names.

    Examples:
        >>> from nni.experiment import SlurmConfig
        >>> service = SlurmConfig(partition="gpu", gres="gpu:1", time_limit="4h", max_agents=8)
        >>> service.to_dict()["timeLimit"]
        '4h'
    """

    platform: Literal["slurm"] = "slurm"
    """Name of the platform."""
    host: Text | None = None
    """Name or IP address of a login node; not given: Slurm's commands run on this machine."""
    port: Port = 22
    """Port of the SSH server of the login node."""
    user: Text | None = None
    """Name of the user to log in as."""
    password: Text | None = Field(default=None, repr=False)
    """Password of the user; not given: a key is used."""
    ssh_key_file: AbsolutePath | None = None
    """File with the private key."""
    ssh_passphrase: Text | None = Field(default=None, repr=False)
    """Passphrase of the private key."""
    host_key_policy: Literal["strict", "accept-new"] = "strict"
    """`accept-new` accepts the key of a host that is not in `known_hosts` once; a changed key is
    always refused."""
    partition: Text | None = None
    """Partition of the jobs; not given: the cluster's default."""
    account: Text | None = None
    """Account that the jobs are charged to."""
    qos: Text | None = None
    """Quality of service of the jobs."""
    time_limit: Text | None = None
    """Time limit of a job: `4h`, `1-12:00:00`; not given: that of the partition."""
    gres: Text | None = None
    """Generic resources of a job: `gpu:a100:2`; not given: GPUs as its trials ask for."""
    cpus: PositiveInteger | None = None
    """CPUs of a job."""
    memory: Text | None = None
    """Memory of a job: `16G`."""
    nodes: PositiveInteger = 1
    """Nodes of a trial; several are not supported."""
    options: list[Text] | None = None
    """Further options of sbatch: `--constraint=a100`."""
    comment: Text | None = None
    """Comment of the jobs."""
    log_folder: Text | None = None
    """Folder of the jobs' output on the shared file system; not given: the agent's own."""
    setup_lines: list[Text] | None = None
    """Lines of bash that run before agent and trials: `module load cuda`."""
    image: Text | None = None
    """Image of the container in which agent and trials run; not given: none."""
    image_runtime: Literal["apptainer", "pyxis"] = "apptainer"
    """Program that runs the image."""
    image_options: list[Text] | None = None
    """Further options of that program: `--nv`."""
    python: Text | None = None
    """Interpreter of the agent on the compute nodes, at least 3.11; not given: as on the machine of
    Slurm's commands."""
    python_version: Text | None = None
    """Version of `python` in the image: `3.11`; required with an image."""
    python_path: Text | None = None
    """Put first on the PATH of agent and trials."""
    home: Text | None = None
    """Folder of NNI on the shared file system; not given: `~/.nni`."""
    arrays: Flag = True
    """True if agents that are launched together are one job array."""
    max_trial_duration: DurationText | None = None
    """An agent that has less time left takes no trial; not given: that of the experiment."""
    grace_seconds: PositiveInteger | None = None
    """Time before its limit at which a job hands its trials over; not given: 60."""
    poll_interval_seconds: PollInterval | None = None
    """Time between two looks at the queue; not given: 5."""
    commands_folder: Text | None = None
    """Folder of Slurm's commands, if they are not on the PATH."""
    slurm_conf: AbsolutePath | None = None
    """Slurm's configuration, if it is not at its usual place."""

    def problems(self, field: str, trial_gpu_number: int | None) -> list[Problem]:
        """Return problems of the time limit, nodes, the login, and an image without Python."""
        problems = super().problems(field, trial_gpu_number)
        if self.time_limit is not None and not is_slurm_time(self.time_limit):
            rule = "must be a time such as 4h, 90m, 1-12:00:00 or 60 (minutes)"
            problems.append(Problem(f"{field}.timeLimit", rule, self.time_limit))
        if self.nodes > 1:
            rule = "must be 1: trials over several nodes are not supported"
            problems.append(Problem(f"{field}.nodes", rule, self.nodes))
        if self.host is None:
            given = [
                name
                for name in ("user", "password", "ssh_key_file", "ssh_passphrase")
                if getattr(self, name) is not None
            ]
            problems += [
                Problem(f"{field}.{to_camel(name)}", "is for a login node", None, "give its host")
                for name in given
            ]
        elif self.user is None:
            problems.append(Problem(f"{field}.user", "must be given with host"))
        if self.image is not None and self.python_version is None:
            rule = "must be given with image"
            problems.append(Problem(f"{field}.pythonVersion", rule, None, "for example: '3.11'"))
        return problems


PLATFORMS: Final[dict[str, type[TrainingServiceConfig]]] = {
    "local": LocalConfig,
    "remote": RemoteConfig,
    "slurm": SlurmConfig,
    "ray": RayConfig,
    "kubernetes": KubernetesConfig,
    "pool": PoolConfig,
    "openpai": OpenpaiConfig,
    "aml": AmlConfig,
    "dlc": DlcConfig,
    "kubeflow": KubeflowConfig,
    "frameworkcontroller": FrameworkControllerConfig,
    "adl": AdlConfig,
}
"""The class of each platform's section."""

REMOVED_PLATFORMS: Final = {
    "dlts": "DLTS is not supported: it has no public API; use kubeflow",
    "hybrid": "give a list of platforms: [{platform: local}, ...]",
    "paiYarn": "PAI on YARN is not supported; use openpai",
}
"""Names of platforms that NNI had, and the remedy."""

_ALIASES: Final = {"pai": "openpai"}


def new_training_service(platform: str) -> TrainingServiceConfig:
    """Return an empty section of a platform; ConfigError for an unknown name.

    Raises:
        ConfigError: there is no such platform.
    """
    return _class_of(platform)()


def _class_of(platform: object) -> type[TrainingServiceConfig]:
    name = _ALIASES.get(platform, platform) if isinstance(platform, str) else platform
    if isinstance(name, str) and name in PLATFORMS:
        return PLATFORMS[name]
    own = own_platform_class(name) if isinstance(name, str) else None
    if own is not None:
        return own
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
