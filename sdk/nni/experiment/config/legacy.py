"""Refusal of fields of schema v1 in a file of schema v2, with the v2 name of each field.

A file that has schema v1 as a whole is converted by `nni.experiment.config.schema_v1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nni.experiment.config.training_services import REMOVED_PLATFORMS
from nni.experiment.errors import ConfigError, Problem

_REMOVED: Final = "has no counterpart; leave it out"

_TOP: Final = {
    "authorName": _REMOVED,
    "maxExecDuration": "maxExperimentDuration",
    "maxTrialNum": "maxTrialNumber",
    "trainingServicePlatform": "trainingService.platform",
    "searchSpacePath": "searchSpaceFile",
    "logDir": "experimentWorkingDirectory",
    "versionCheck": _REMOVED,
    "multiThread": _REMOVED,
    "multiPhase": _REMOVED,
    "logCollection": _REMOVED,
    "machineList": "trainingService.machineList",
}

_SECTIONS: Final[dict[str, dict[str, str]]] = {
    "tuner": {
        "builtinTunerName": "tuner.name",
        "codeDir": "tuner.codeDirectory",
        "classFileName": "tuner.className (module.Class)",
        "gpuIndices": "tunerGpuIndices",
        "includeIntermediateResults": "includeIntermediateResults",
    },
    "assessor": {
        "builtinAssessorName": "assessor.name",
        "codeDir": "assessor.codeDirectory",
        "classFileName": "assessor.className (module.Class)",
    },
    "advisor": {
        "builtinAdvisorName": "advisor.name",
        "codeDir": "advisor.codeDirectory",
        "classFileName": "advisor.className (module.Class)",
        "gpuIndices": "tunerGpuIndices",
    },
    "trial": {
        "command": "trialCommand",
        "codeDir": "trialCodeDirectory",
        "gpuNum": "trialGpuNumber",
        "cpuNum": "trainingService.trialCpuNumber",
        "memoryMB": "trainingService.trialMemorySize",
        "image": "trainingService.dockerImage",
        "virtualCluster": "trainingService.virtualCluster",
        "paiStorageConfigName": "trainingService.storageConfigName",
        "nniManagerNFSMountPath": "trainingService.localStorageMountPoint",
        "containerNFSMountPath": "trainingService.containerStorageMountPoint",
        "authFile": "trainingService.openpaiConfig",
        "shmMB": "trainingService.openpaiConfig",
        "portList": "trainingService.openpaiConfig",
        "worker": "trainingService.worker",
        "ps": "trainingService.ps",
        "master": "trainingService.master",
        "taskRoles": "trainingService.taskRoles",
        "namespace": "trainingService.namespace",
        "memorySize": "trainingService.trialMemorySize",
        "nfs": "trainingService.storage",
        "adaptive": "trainingService.adaptive",
        "imagePullSecrets": "trainingService.imagePullSecrets",
        "checkpoint": "trainingService.checkpoint",
        "dataDir": _REMOVED,
        "outputDir": _REMOVED,
    },
    "localConfig": {
        "gpuIndices": "trainingService.gpuIndices",
        "maxTrialNumPerGpu": "trainingService.maxTrialNumberPerGpu",
        "useActiveGpu": "trainingService.useActiveGpu",
    },
    "remoteConfig": {"reuse": "trainingService.reuseMode"},
    "paiConfig": {
        "userName": "trainingService.username",
        "password": _REMOVED,
        "passWord": _REMOVED,
        "token": "trainingService.token",
        "host": "trainingService.host",
        "reuse": "trainingService.reuseMode",
    },
    "kubeflowConfig": {
        "operator": "trainingService.operator",
        "apiVersion": "trainingService.apiVersion",
        "storage": "trainingService.storage.storageType",
        "nfs": "trainingService.storage",
        "keyVault": "trainingService.storage.keyVaultName and keyVaultKey",
        "azureStorage": "trainingService.storage.azureAccount and azureShare",
        "uploadRetryCount": _REMOVED,
    },
    "frameworkcontrollerConfig": {
        "storage": "trainingService.storage.storageType",
        "nfs": "trainingService.storage",
        "keyVault": "trainingService.storage.keyVaultName and keyVaultKey",
        "azureStorage": "trainingService.storage.azureAccount and azureShare",
        "pvc": "trainingService.storage",
        "serviceAccountName": "trainingService.serviceAccountName",
        "namespace": "trainingService.namespace",
        "configPath": "trainingService.configPath",
        "uploadRetryCount": _REMOVED,
    },
    "dltsConfig": {"dashboard": _REMOVED},
    "amlConfig": {
        "subscriptionId": "trainingService.subscriptionId",
        "resourceGroup": "trainingService.resourceGroup",
        "workspaceName": "trainingService.workspaceName",
        "computeTarget": "trainingService.computeTarget",
        "maxTrialNumPerGpu": "trainingService.maxTrialNumberPerGpu",
        "useActiveGpu": "trainingService.useActiveGpu",
    },
}

_ALGORITHMS: Final = frozenset({"tuner", "assessor", "advisor"})
"""Sections that schema v2 has too."""

_MACHINE: Final = {
    "ip": "host",
    "username": "user",
    "passwd": "password",
    "sshKeyPath": "sshKeyFile",
    "passphrase": "sshPassphrase",
    "maxTrialNumPerGpu": "maxTrialNumberPerGpu",
    "preCommand": "pythonPath",
}

_ROLE: Final = {
    "gpuNum": "gpuNumber",
    "cpuNum": "cpuNumber",
    "memoryMB": "memorySize",
    "image": "dockerImage",
    "taskNum": "taskNumber",
    "codeDir": "codeDirectory",
    "privateRegistryAuthPath": _REMOVED,
}
"""Fields of a role of Kubeflow, or of a task role of FrameworkController."""

_ROLES: Final = ("worker", "ps", "master", "taskRoles")


def refuse_legacy(document: Mapping[object, object]) -> None:
    """Raise ConfigError if a document that is not of schema v1 as a whole has a field of it.

    Raises:
        ConfigError: one problem for each field that has another name now.
    """
    problems = list(_renamed(document))
    if not problems:
        return
    mixed = "trainingService" in document or "training_service" in document
    what = "mixes the old schema (v1) with v2; rename its fields"
    if not mixed:
        what = "has the old schema (v1) without trainingServicePlatform; add it, or rename all"
    head = Problem("the file", what)
    raise ConfigError([head, *problems])


def _problem(old: str, new: str, remedy: str = "") -> Problem:
    return Problem(old, new if new == _REMOVED else f"is now {new}", remedy=remedy)


def _renamed(document: Mapping[object, object]) -> Iterator[Problem]:
    for key, value in document.items():
        name = str(key)
        if name in _TOP:
            yield _problem(name, _TOP[name], _platform_remedy(name, value))
        if name == "machineList":
            yield from _renamed_machines(value, "machineList", "trainingService.machineList[].")
        elif name in {"trainingService", "training_service"} and isinstance(value, Mapping):
            machines = value.get("machineList", value.get("machine_list"))
            yield from _renamed_machines(machines, f"{name}.machineList", "")
        elif name in _SECTIONS:
            yield from _renamed_section(name, value)


def _platform_remedy(name: str, value: object) -> str:
    if name != "trainingServicePlatform":
        return ""
    return REMOVED_PLATFORMS.get(str(value), "write openpai" if value == "pai" else "")


def _renamed_section(name: str, value: object) -> Iterator[Problem]:
    known = _SECTIONS[name]
    keys = list(map(str, value)) if isinstance(value, Mapping) else []
    if name not in _ALGORITHMS and not known.keys() & keys:
        yield _problem(name, "trainingService" if name != "trial" else "trialCommand and others")
    if not isinstance(value, Mapping):
        return
    for key, inner in value.items():
        if key in known:
            yield _problem(f"{name}.{key}", known[str(key)])
        if name == "trial" and key in _ROLES:
            yield from _renamed_role(str(key), inner)


def _renamed_role(role: str, value: object) -> Iterator[Problem]:
    members = value if isinstance(value, list) else [value]
    found = {key for member in members if isinstance(member, Mapping) for key in member}
    place = f"{role}[]" if isinstance(value, list) else role
    for old, new in _ROLE.items():
        if old in found:
            home = new if new == _REMOVED else f"trainingService.{place}.{new}"
            yield _problem(f"trial.{place}.{old}", home)


def _renamed_machines(machines: object, place: str, home: str) -> Iterator[Problem]:
    if not isinstance(machines, list):
        return
    found = {key for machine in machines if isinstance(machine, Mapping) for key in machine}
    for old, new in _MACHINE.items():
        if old in found:
            yield _problem(f"{place}[].{old}", f"{home}{new}")
