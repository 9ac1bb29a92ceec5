"""Conversion of the sections of schema v1 that configure where trials run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote
from typing import Any, Final

from nni.experiment.config.section_reader import SectionReader, is_empty, without_nones

PLATFORMS_V1: Final = (
    "local",
    "remote",
    "pai",
    "kubeflow",
    "frameworkcontroller",
    "adl",
    "dlts",
    "aml",
)
"""Values of `trainingServicePlatform`."""

PLATFORM_SECTIONS: Final = {
    "localConfig": "local",
    "machineList": "remote",
    "remoteConfig": "remote",
    "paiConfig": "pai",
    "kubeflowConfig": "kubeflow",
    "frameworkcontrollerConfig": "frameworkcontroller",
    "dltsConfig": "dlts",
    "amlConfig": "aml",
}
"""The platform to which each section belongs."""

_STORAGE_TYPES: Final = ("nfs", "azureStorage", "pvc")


def platform_fields(file: SectionReader, platform: str) -> dict[str, Any]:
    """Return the fields of schema v2 that the platform and its trials have.

    Args:
        file: reader of the whole file.
        platform: value of `trainingServicePlatform`.

    Returns:
        `trialCommand`, `trialCodeDirectory`, `trialGpuNumber` and `trainingService`, where given.
    """
    for name, owner in PLATFORM_SECTIONS.items():
        if owner != platform:
            _refuse_section(file, name, owner)
    trial = file.section("trial")
    trial.require("codeDir", "for example: .")
    fields = {"trialCodeDirectory": trial.path("codeDir"), **_CONVERTERS[platform](file, trial)}
    trial.finish()
    return without_nones(fields)


def _refuse_section(file: SectionReader, name: str, owner: str) -> None:
    if is_empty(file.raw(name)):
        return
    if name == "machineList":  # templates of schema v1 have one for every platform
        file.drop(name, "for remote only")
    else:
        rule = f"is only for trainingServicePlatform: {owner}"
        file.problem(name, rule, None, "leave the section out")


def _command(trial: SectionReader) -> dict[str, Any]:
    """Return command and GPUs of trials of one process; no GPUs unless some are requested."""
    trial.require("command", "for example: python3 trial.py")
    gpus = trial.integer("gpuNum")
    return {"trialCommand": trial.text("command"), "trialGpuNumber": 0 if gpus is None else gpus}


def _local(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    section = file.section("localConfig")
    service = {"platform": "local", **_gpu_fields(section)}
    section.finish()
    return {**_command(trial), "trainingService": service}


def _gpu_fields(section: SectionReader) -> dict[str, Any]:
    """Return how GPUs are shared; schema v2 needs `useActiveGpu` set explicitly."""
    return without_nones(
        {
            "useActiveGpu": section.flag("useActiveGpu") or False,
            "maxTrialNumberPerGpu": section.integer("maxTrialNumPerGpu", least=1),
            "gpuIndices": section.gpus("gpuIndices") or None,
        }
    )


def _remote(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    file.require("machineList", "for example: [{ip: 10.0.0.7, username: ann, sshKeyPath: key}]")
    section = file.section("remoteConfig")
    service = {
        "platform": "remote",
        "reuseMode": section.flag("reuse") or False,
        "machineList": [_machine(machine) for machine in file.sections("machineList")],
    }
    section.finish()
    return {**_command(trial), "trainingService": service}


def _machine(machine: SectionReader) -> dict[str, Any]:
    machine.require("ip")
    machine.require("username")
    machine.drop("preCommand", "pythonPath replaces it")
    fields = {
        "host": machine.text("ip"),
        "port": machine.integer("port", least=1, most=65535),
        "user": machine.text("username"),
        "password": machine.text("passwd", secret=True),
        "sshKeyFile": machine.path("sshKeyPath"),
        "sshPassphrase": machine.text("passphrase", secret=True),
        **_gpu_fields(machine),
        "pythonPath": machine.text("pythonPath"),
    }
    machine.finish()
    return without_nones(fields)


def _pai(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    section = file.section("paiConfig")
    for name in ("userName", "host"):
        section.require(name)
    for name in ("password", "passWord"):
        section.drop(name, "log in with a token")
    for name in ("authFile", "shmMB", "portList"):
        trial.drop(name, "write it in trainingService.openpaiConfig")
    service = {
        "platform": "openpai",
        "host": section.text("host"),
        "username": section.text("userName"),
        "token": section.text("token", secret=True),
        "reuseMode": section.flag("reuse") or False,
        "trialCpuNumber": trial.integer("cpuNum", least=1),
        "trialMemorySize": _memory(trial),
        "dockerImage": trial.text("image"),
        "virtualCluster": trial.text("virtualCluster"),
        "storageConfigName": trial.text("paiStorageConfigName"),
        "localStorageMountPoint": trial.path("nniManagerNFSMountPath"),
        "containerStorageMountPoint": trial.text("containerNFSMountPath"),
    }
    section.finish()
    return {**_command(trial), "trainingService": without_nones(service)}


def _memory(section: SectionReader) -> str | None:
    megabytes = section.integer("memoryMB", least=1, most=None)
    return None if megabytes is None else f"{megabytes}mb"


def _kubeflow(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    section = file.section("kubeflowConfig")
    section.require("operator", "tf-operator or pytorch-operator")
    trial.require("worker")
    roles = {name: _role(trial.section(name)) for name in ("worker", "ps", "master")}
    service = {
        "platform": "kubeflow",
        "reuseMode": False,
        "operator": section.choice("operator", ("tf-operator", "pytorch-operator")),
        "apiVersion": _api_version(section),
        "storage": _storage(section),
        **{name: role or None for name, role in roles.items()},
    }
    section.finish()
    return {
        "trialCommand": roles["worker"].get("command"),
        "trainingService": without_nones(service),
    }


def _api_version(section: SectionReader) -> str | None:
    """Return the API version unless it is one that operators do not have any more."""
    version = section.text("apiVersion")
    if version in {None, "v1"}:
        return version
    section.drop("apiVersion", "operators of today have v1")
    return None


def _role(role: SectionReader) -> dict[str, Any]:
    role.drop("privateRegistryAuthPath")
    fields = {
        "name": role.text("name"),
        "taskNumber": role.integer("taskNum", least=1),
        "replicas": role.integer("replicas", least=1),
        "command": role.text("command"),
        "codeDirectory": role.path("codeDir"),
        "gpuNumber": role.integer("gpuNum"),
        "cpuNumber": role.integer("cpuNum"),
        "memorySize": _memory(role),
        "dockerImage": role.text("image"),
        "frameworkAttemptCompletionPolicy": _completion_policy(role) or None,
    }
    role.finish()
    return without_nones(fields)


def _completion_policy(role: SectionReader) -> dict[str, Any]:
    policy = role.section("frameworkAttemptCompletionPolicy")
    if policy.given("minSucceededTaskCount") and policy.given("minSucceedTaskCount"):
        rule = "must not be given again as minSucceedTaskCount"
        policy.problem("minSucceededTaskCount", rule, None, "keep one")
    counts = [policy.integer("minSucceededTaskCount"), policy.integer("minSucceedTaskCount")]
    fields = {
        "minFailedTaskCount": policy.integer("minFailedTaskCount"),
        "minSucceedTaskCount": next((count for count in counts if count is not None), None),
    }
    policy.finish()
    return without_nones(fields)


def _frameworkcontroller(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    section = file.section("frameworkcontrollerConfig")
    if not section.given("configPath"):
        trial.require("taskRoles", "or frameworkcontrollerConfig.configPath")
    roles = [_role(role) for role in trial.sections("taskRoles")]
    service = {
        "platform": "frameworkcontroller",
        "reuseMode": False,
        "storage": _storage(section),
        "serviceAccountName": section.text("serviceAccountName"),
        "namespace": section.text("namespace"),
        "configPath": section.path("configPath"),
        "taskRoles": roles or None,
    }
    section.finish()
    return {
        "trialCommand": roles[0].get("command") if roles else None,
        "trainingService": without_nones(service),
    }


def _storage(section: SectionReader) -> dict[str, Any] | None:
    """Return the storage section, the named or only one; None after problems were reported.

    Source: some samples of NNI's documentation give the sections of Azure without the kind.
    """
    section.drop("uploadRetryCount")
    kind = section.choice("storage", _STORAGE_TYPES)
    given = [name for name in _STORAGE_TYPES if section.given(name)]
    if kind is None and len(given) == 1:
        kind = given[0]
    for name in given:
        if name != kind:
            rule = f"must not be given with storage: {kind}" if kind else "must be the only storage"
            section.problem(name, rule, None, f"leave out one of {', '.join(_STORAGE_TYPES)}")
    if kind is not None and kind not in given:
        section.problem(kind, f"must be given with storage: {kind}")
    if kind is None and not given:
        section.require("nfs", "or azureStorage with keyVault, or pvc")
    fields = [_nfs(section), _azure(section), _claim(section)]
    return None if kind is None else fields[_STORAGE_TYPES.index(kind)]


def _nfs(section: SectionReader) -> dict[str, Any]:
    nfs = section.section("nfs")
    fields = {"storageType": "nfs", "server": nfs.text("server"), "path": nfs.text("path")}
    nfs.finish()
    return without_nones(fields)


def _azure(section: SectionReader) -> dict[str, Any]:
    vault, account = section.section("keyVault"), section.section("azureStorage")
    if section.given("azureStorage"):
        section.require("keyVault")
    fields = {
        "storageType": "azureStorage",
        "azureAccount": account.text("accountName"),
        "azureShare": account.text("azureShare"),
        "keyVaultName": vault.text("vaultName"),
        "keyVaultKey": vault.text("name"),
    }
    vault.finish()
    account.finish()
    return without_nones(fields)


def _claim(section: SectionReader) -> dict[str, Any]:
    claim = section.section("pvc")
    fields = {"storageType": "pvc", "path": claim.text("path")}
    claim.finish()
    return without_nones(fields)


def _adl(_: SectionReader, trial: SectionReader) -> dict[str, Any]:
    for name in ("dataDir", "outputDir"):
        trial.drop(name)
    secrets = [secret.text("name") for secret in trial.sections("imagePullSecrets")]
    service = {
        "platform": "adl",
        "namespace": trial.text("namespace"),
        "adaptive": trial.flag("adaptive"),
        "dockerImage": trial.text("image"),
        "imagePullSecrets": [secret for secret in secrets if secret] or None,
        "trialCpuNumber": trial.integer("cpuNum"),
        "trialMemorySize": trial.text("memorySize"),
        "storage": _texts(trial.section("nfs"), ("server", "path", "containerMountPath")),
        "checkpoint": _texts(trial.section("checkpoint"), ("storageClass", "storageSize")),
    }
    return {**_command(trial), **_image_folder(trial), "trainingService": without_nones(service)}


def _texts(section: SectionReader, names: Sequence[str]) -> dict[str, Any] | None:
    fields = without_nones({name: section.text(name) for name in names})
    section.finish()
    return fields or None


def _image_folder(trial: SectionReader) -> dict[str, Any]:
    """Return a command that first enters an absolute codeDir of the image; else no fields.

    Agents run a trial in the folder with the code that they were sent, which is that of the file.
    """
    folder, command = trial.text("codeDir"), trial.text("command")
    if folder is None or command is None or not folder.startswith("/"):
        return {}
    directory = trial.findings.directory
    return {
        "trialCodeDirectory": "." if directory is None else str(directory),
        "trialCommand": f"cd {quote(folder)} && {command}",
    }


def _dlts(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    section = file.section("dltsConfig")
    service = {
        "platform": "dlts",
        "dockerImage": trial.text("image"),
        "dashboard": section.text("dashboard"),
    }
    section.finish()
    return {**_command(trial), "trainingService": without_nones(service)}


def _aml(file: SectionReader, trial: SectionReader) -> dict[str, Any]:
    section = file.section("amlConfig")
    for name in ("subscriptionId", "resourceGroup", "workspaceName", "computeTarget"):
        section.require(name)
    service = {
        "platform": "aml",
        "dockerImage": trial.text("image"),
        "subscriptionId": section.text("subscriptionId"),
        "resourceGroup": section.text("resourceGroup"),
        "workspaceName": section.text("workspaceName"),
        "computeTarget": section.text("computeTarget"),
        "maxTrialNumberPerGpu": section.integer("maxTrialNumPerGpu", least=1),
        "useActiveGpu": section.flag("useActiveGpu"),
    }
    section.finish()
    return {**_command(trial), "trainingService": without_nones(service)}


_CONVERTERS: Final[dict[str, Callable[[SectionReader, SectionReader], dict[str, Any]]]] = {
    "local": _local,
    "remote": _remote,
    "pai": _pai,
    "kubeflow": _kubeflow,
    "frameworkcontroller": _frameworkcontroller,
    "adl": _adl,
    "dlts": _dlts,
    "aml": _aml,
}
