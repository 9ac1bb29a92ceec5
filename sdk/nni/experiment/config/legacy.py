"""Refusal of schema v1 files, with the v2 name of each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

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
        "includeIntermediateResults": _REMOVED,
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

_MACHINE: Final = {
    "ip": "host",
    "username": "user",
    "passwd": "password",
    "sshKeyPath": "sshKeyFile",
    "passphrase": "sshPassphrase",
    "maxTrialNumPerGpu": "maxTrialNumberPerGpu",
    "preCommand": "pythonPath",
}

_MARKS: Final = frozenset(
    {"trainingServicePlatform", "maxTrialNum", "maxExecDuration", "searchSpacePath", "trial"}
)
"""Top-level fields that only the old schema has; one of them is enough."""


def refuse_legacy(document: Mapping[object, object]) -> None:
    """Return if the document is not of the old schema.

    Raises:
        ConfigError: it is; one problem for each field that has another name now.
    """
    if not _MARKS & document.keys():
        return
    mixed = "trainingService" in document or "training_service" in document
    what = "mixes the old schema (v1) with v2" if mixed else "has the old schema (v1)"
    head = Problem("the file", f"{what}, which is no longer read; rename its fields")
    problems = [Problem(old, _rule(new)) for old, new in _renamed(document)]
    raise ConfigError([head, *problems])


def _rule(new: str) -> str:
    return new if new == _REMOVED else f"is now {new}"


def _renamed(document: Mapping[object, object]) -> Iterator[tuple[str, str]]:
    for name, value in document.items():
        if name == "machineList":
            yield "machineList", _TOP["machineList"]
            yield from _renamed_machines(value)
        elif name in _TOP:
            yield str(name), _TOP[str(name)]
        elif name in _SECTIONS and isinstance(value, Mapping):
            for key in value:
                if key in _SECTIONS[str(name)]:
                    yield f"{name}.{key}", _SECTIONS[str(name)][str(key)]


def _renamed_machines(machines: object) -> Iterator[tuple[str, str]]:
    if not isinstance(machines, list):
        return
    found = {key for machine in machines if isinstance(machine, Mapping) for key in machine}
    for old, new in _MACHINE.items():
        if old in found:
            yield f"machineList[].{old}", f"trainingService.machineList[].{new}"
