from __future__ import annotations

from typing import Any

import pytest

from nni.experiment.config.legacy import refuse_legacy
from nni.experiment.config.training_services import REMOVED_PLATFORMS
from nni.experiment.errors import ConfigError

OLD: dict[object, Any] = {
    "authorName": "a",
    "trialConcurrency": 1,
    "maxExecDuration": "1h",
    "maxTrialNum": 10,
    "trainingServicePlatform": "remote",
    "searchSpacePath": "s.json",
    "logDir": "d",
    "tuner": {"builtinTunerName": "TPE", "classArgs": {}, "gpuIndices": "0"},
    "trial": {"command": "c", "codeDir": ".", "gpuNum": 0},
    "machineList": [{"ip": "h", "username": "u", "passwd": "p"}],
    "remoteConfig": {"reuse": True},
}


def test_every_old_field_is_named_with_its_new_one() -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_legacy(OLD)

    named = {problem.field: problem.rule for problem in raised.value.problems}
    assert named["maxTrialNum"] == "is now maxTrialNumber"
    assert named["trial.codeDir"] == "is now trialCodeDirectory"
    assert named["tuner.builtinTunerName"] == "is now tuner.name"
    assert named["tuner.gpuIndices"] == "is now tunerGpuIndices"
    assert named["machineList[].ip"] == "is now trainingService.machineList[].host"
    assert named["remoteConfig.reuse"] == "is now trainingService.reuseMode"
    assert named["authorName"] == "has no counterpart; leave it out"


def test_fields_that_kept_their_name_are_not_named() -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_legacy(OLD)

    fields = {problem.field for problem in raised.value.problems}
    assert not fields & {"trialConcurrency", "tuner.classArgs"}


def test_both_schemas_in_one_file_are_refused() -> None:
    with pytest.raises(ConfigError, match="mixes the old schema"):
        refuse_legacy({**OLD, "trainingService": {"platform": "local"}})


def test_fields_of_the_old_schema_without_its_platform_are_refused() -> None:
    with pytest.raises(ConfigError, match="without trainingServicePlatform; add it, or rename"):
        refuse_legacy({"trialConcurrency": 1, "trial": {"command": "c"}})


def test_new_schema_passes() -> None:
    document: dict[object, object] = {"trialCommand": "c", "trainingService": {"platform": "local"}}

    refuse_legacy(document)

    assert set(document) == {"trialCommand", "trainingService"}


V2: dict[object, Any] = {"trialCommand": "c", "trainingService": {"platform": "local"}}
REMOVED = "has no counterpart; leave it out"
ONE_BY_ONE: list[tuple[str, object, str]] = [
    ("authorName", "a", REMOVED),
    ("maxExecDuration", "1h", "is now maxExperimentDuration"),
    ("maxTrialNum", 1, "is now maxTrialNumber"),
    ("trainingServicePlatform", "local", "is now trainingService.platform"),
    ("trainingServicePlatform", "pai", "is now trainingService.platform (write openpai)"),
    (
        "trainingServicePlatform",
        "dlts",
        f"is now trainingService.platform ({REMOVED_PLATFORMS['dlts']})",
    ),
    ("searchSpacePath", "s.json", "is now searchSpaceFile"),
    ("logDir", "d", "is now experimentWorkingDirectory"),
    ("versionCheck", False, REMOVED),
    ("multiThread", True, REMOVED),
    ("multiPhase", True, REMOVED),
    ("logCollection", "http", REMOVED),
    ("machineList", [], "is now trainingService.machineList"),
    ("tuner.builtinTunerName", "TPE", "is now tuner.name"),
    ("tuner.codeDir", ".", "is now tuner.codeDirectory"),
    ("tuner.classFileName", "a.py", "is now tuner.className (module.Class)"),
    ("tuner.gpuIndices", "0", "is now tunerGpuIndices"),
    ("tuner.includeIntermediateResults", True, "is now includeIntermediateResults"),
    ("assessor.builtinAssessorName", "Medianstop", "is now assessor.name"),
    ("assessor.codeDir", ".", "is now assessor.codeDirectory"),
    ("assessor.classFileName", "a.py", "is now assessor.className (module.Class)"),
    ("advisor.builtinAdvisorName", "BOHB", "is now advisor.name"),
    ("advisor.codeDir", ".", "is now advisor.codeDirectory"),
    ("advisor.classFileName", "a.py", "is now advisor.className (module.Class)"),
    ("advisor.gpuIndices", "0", "is now tunerGpuIndices"),
    ("trial.command", "c", "is now trialCommand"),
    ("trial.codeDir", ".", "is now trialCodeDirectory"),
    ("trial.gpuNum", 0, "is now trialGpuNumber"),
    ("trial.cpuNum", 1, "is now trainingService.trialCpuNumber"),
    ("trial.memoryMB", 1, "is now trainingService.trialMemorySize"),
    ("trial.memorySize", "8Gi", "is now trainingService.trialMemorySize"),
    ("trial.image", "i", "is now trainingService.dockerImage"),
    ("trial.virtualCluster", "v", "is now trainingService.virtualCluster"),
    ("trial.paiStorageConfigName", "s", "is now trainingService.storageConfigName"),
    ("trial.nniManagerNFSMountPath", "/m", "is now trainingService.localStorageMountPoint"),
    ("trial.containerNFSMountPath", "/m", "is now trainingService.containerStorageMountPoint"),
    ("trial.authFile", "f", "is now trainingService.openpaiConfig"),
    ("trial.shmMB", 1, "is now trainingService.openpaiConfig"),
    ("trial.portList", [], "is now trainingService.openpaiConfig"),
    ("trial.worker", {}, "is now trainingService.worker"),
    ("trial.ps", {}, "is now trainingService.ps"),
    ("trial.master", {}, "is now trainingService.master"),
    ("trial.taskRoles", [], "is now trainingService.taskRoles"),
    ("trial.namespace", "n", "is now trainingService.namespace"),
    ("trial.nfs", {}, "is now trainingService.storage"),
    ("trial.adaptive", True, "is now trainingService.adaptive"),
    ("trial.imagePullSecrets", [], "is now trainingService.imagePullSecrets"),
    ("trial.checkpoint", {}, "is now trainingService.checkpoint"),
    ("trial.dataDir", "d", REMOVED),
    ("trial.outputDir", "d", REMOVED),
    ("localConfig", {}, "is now trainingService"),
    ("localConfig.gpuIndices", "0", "is now trainingService.gpuIndices"),
    ("localConfig.maxTrialNumPerGpu", 2, "is now trainingService.maxTrialNumberPerGpu"),
    ("localConfig.useActiveGpu", True, "is now trainingService.useActiveGpu"),
    ("remoteConfig.reuse", True, "is now trainingService.reuseMode"),
    ("paiConfig.userName", "u", "is now trainingService.username"),
    ("paiConfig.passWord", "p", REMOVED),
    ("paiConfig.token", "t", "is now trainingService.token"),
    ("paiConfig.host", "h", "is now trainingService.host"),
    ("paiConfig.reuse", True, "is now trainingService.reuseMode"),
    ("kubeflowConfig.operator", "tf-operator", "is now trainingService.operator"),
    ("kubeflowConfig.apiVersion", "v1", "is now trainingService.apiVersion"),
    ("kubeflowConfig.storage", "nfs", "is now trainingService.storage.storageType"),
    ("kubeflowConfig.nfs", {}, "is now trainingService.storage"),
    (
        "kubeflowConfig.keyVault",
        {},
        "is now trainingService.storage.keyVaultName and keyVaultKey",
    ),
    (
        "kubeflowConfig.azureStorage",
        {},
        "is now trainingService.storage.azureAccount and azureShare",
    ),
    ("kubeflowConfig.uploadRetryCount", 3, REMOVED),
    ("frameworkcontrollerConfig.pvc", {}, "is now trainingService.storage"),
    (
        "frameworkcontrollerConfig.serviceAccountName",
        "a",
        "is now trainingService.serviceAccountName",
    ),
    ("frameworkcontrollerConfig.namespace", "n", "is now trainingService.namespace"),
    ("frameworkcontrollerConfig.configPath", "p", "is now trainingService.configPath"),
    ("frameworkcontrollerConfig.uploadRetryCount", 3, REMOVED),
    ("dltsConfig.dashboard", "u", REMOVED),
    ("amlConfig.subscriptionId", "s", "is now trainingService.subscriptionId"),
    ("amlConfig.resourceGroup", "r", "is now trainingService.resourceGroup"),
    ("amlConfig.workspaceName", "w", "is now trainingService.workspaceName"),
    ("amlConfig.computeTarget", "c", "is now trainingService.computeTarget"),
    ("amlConfig.maxTrialNumPerGpu", 1, "is now trainingService.maxTrialNumberPerGpu"),
    ("amlConfig.useActiveGpu", True, "is now trainingService.useActiveGpu"),
]
"""Every field of schema v1 that has another name or none, and its refusal."""


@pytest.mark.parametrize(
    ("field", "value", "refusal"), ONE_BY_ONE, ids=[f"{one[0]}={one[1]}" for one in ONE_BY_ONE]
)
def test_one_old_field_in_a_file_of_schema_v2_is_refused_with_its_new_name(
    field: str, value: object, refusal: str
) -> None:
    section, _, key = field.partition(".")

    with pytest.raises(ConfigError) as raised:
        refuse_legacy({**V2, section: {key: value} if key else value})

    head, *problems = map(str, raised.value.problems)
    assert "rename its fields" in head
    assert f"{field} {refusal}" in problems


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gpuNum", "gpuNumber"),
        ("cpuNum", "cpuNumber"),
        ("memoryMB", "memorySize"),
        ("image", "dockerImage"),
        ("taskNum", "taskNumber"),
        ("codeDir", "codeDirectory"),
    ],
)
def test_old_fields_of_roles_are_refused_with_their_new_names(old: str, new: str) -> None:
    trial = {"worker": {old: 1}, "taskRoles": [{"name": "w"}, {old: 1}]}

    with pytest.raises(ConfigError) as raised:
        refuse_legacy({"trial": trial})

    named = {problem.field: problem.rule for problem in raised.value.problems}
    assert named[f"trial.worker.{old}"] == f"is now trainingService.worker.{new}"
    assert named[f"trial.taskRoles[].{old}"] == f"is now trainingService.taskRoles[].{new}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ip", "host"),
        ("username", "user"),
        ("passwd", "password"),
        ("sshKeyPath", "sshKeyFile"),
        ("passphrase", "sshPassphrase"),
        ("maxTrialNumPerGpu", "maxTrialNumberPerGpu"),
        ("preCommand", "pythonPath"),
    ],
)
@pytest.mark.parametrize("list_name", ["machineList", "machine_list"])
def test_old_fields_of_a_machine_are_refused_in_both_schemas(
    old: str, new: str, list_name: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        refuse_legacy({"trainingService": {"platform": "remote", list_name: [{old: 1}]}})

    problems = list(map(str, raised.value.problems))
    assert f"trainingService.machineList[].{old} is now {new}" in problems
