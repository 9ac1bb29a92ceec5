from __future__ import annotations

from typing import Any

import pytest

from nni.experiment.config.schema_v1_platforms import platform_fields
from nni.experiment.config.section_reader import ConversionFindings, SectionReader

TRIAL = {"command": "python3 trial.py", "codeDir": "."}
ROLE = {"replicas": 2, "command": "run", "gpuNum": 1, "cpuNum": 2, "memoryMB": 512, "image": "i"}
NFS = {"server": "10.0.0.1", "path": "/nfs"}
AZURE = {
    "keyVault": {"vaultName": "vault", "name": "key"},
    "azureStorage": {"accountName": "account", "azureShare": "share"},
}
AZURE_V2 = {
    "storageType": "azureStorage",
    "azureAccount": "account",
    "azureShare": "share",
    "keyVaultName": "vault",
    "keyVaultKey": "key",
}


def converted(platform: str, **sections: Any) -> tuple[dict[str, Any], ConversionFindings]:
    findings = ConversionFindings()
    file = SectionReader({"trial": TRIAL, **sections}, "", findings)
    return platform_fields(file, platform), findings


def service(platform: str, **sections: Any) -> dict[str, Any]:
    fields, findings = converted(platform, **sections)
    assert findings.problems == []
    found: dict[str, Any] = fields["trainingService"]
    return found


def problems(platform: str, **sections: Any) -> list[str]:
    return list(map(str, converted(platform, **sections)[1].problems))


def test_trials_get_no_gpu_unless_they_ask_for_one() -> None:
    fields, _ = converted("local")

    assert fields == {
        "trialCommand": "python3 trial.py",
        "trialCodeDirectory": ".",
        "trialGpuNumber": 0,
        "trainingService": {"platform": "local", "useActiveGpu": False},
    }


def test_local_section_is_converted() -> None:
    section = {"gpuIndices": "0,1", "maxTrialNumPerGpu": 2, "useActiveGpu": True}

    assert service("local", localConfig=section) == {
        "platform": "local",
        "useActiveGpu": True,
        "maxTrialNumberPerGpu": 2,
        "gpuIndices": [0, 1],
    }


def test_machines_are_converted_and_reuse_is_off_unless_given() -> None:
    machine = {
        "ip": "h",
        "port": 2222,
        "username": "u",
        "passwd": "p",
        "sshKeyPath": "key",
        "passphrase": "w",
        "gpuIndices": 1,
        "maxTrialNumPerGpu": 3,
        "useActiveGpu": True,
        "pythonPath": "/py",
    }

    assert service("remote", machineList=[machine]) == {
        "platform": "remote",
        "reuseMode": False,
        "machineList": [
            {
                "host": "h",
                "port": 2222,
                "user": "u",
                "password": "p",
                "sshKeyFile": "key",
                "sshPassphrase": "w",
                "gpuIndices": [1],
                "maxTrialNumberPerGpu": 3,
                "useActiveGpu": True,
                "pythonPath": "/py",
            }
        ],
    }


@pytest.mark.parametrize(
    ("platform", "section"),
    [("remote", "remoteConfig"), ("pai", "paiConfig")],
)
def test_reuse_is_kept(platform: str, section: str) -> None:
    sections = {
        "machineList": [{"ip": "h", "username": "u"}] if platform == "remote" else None,
        section: {"reuse": True}
        if platform == "remote"
        else {"userName": "u", "host": "h", "reuse": True},
    }

    assert service(platform, **sections)["reuseMode"] is True


def test_preparing_command_of_a_machine_has_no_meaning() -> None:
    machine = {"ip": "h", "username": "u", "preCommand": "conda activate"}

    _, findings = converted("remote", machineList=[machine])

    assert findings.dropped == ["machineList[0].preCommand (pythonPath replaces it)"]


def test_password_of_the_wrong_type_is_not_shown() -> None:
    machine = {"ip": "h", "username": "u", "passwd": 123456}

    assert problems("remote", machineList=[machine]) == [
        "machineList[0].passwd must be a text (quote it)"
    ]


def test_openpai_is_converted() -> None:
    trial = {
        **TRIAL,
        "gpuNum": 4,
        "cpuNum": 2,
        "memoryMB": 10000,
        "image": "i",
        "virtualCluster": "v",
        "paiStorageConfigName": "s",
        "nniManagerNFSMountPath": "/local",
        "containerNFSMountPath": "/container",
    }
    section = {"userName": "u", "token": "t", "host": "h"}

    assert service("pai", trial=trial, paiConfig=section) == {
        "platform": "openpai",
        "host": "h",
        "username": "u",
        "token": "t",
        "reuseMode": False,
        "trialCpuNumber": 2,
        "trialMemorySize": "10000mb",
        "dockerImage": "i",
        "virtualCluster": "v",
        "storageConfigName": "s",
        "localStorageMountPoint": "/local",
        "containerStorageMountPoint": "/container",
    }


@pytest.mark.parametrize("spelling", ["password", "passWord"])
def test_password_of_openpai_and_its_job_fields_have_no_meaning(spelling: str) -> None:
    trial = {**TRIAL, "authFile": "a", "shmMB": 1, "portList": []}
    section = {"userName": "u", "host": "h", spelling: "secret"}

    fields, findings = converted("pai", trial=trial, paiConfig=section)

    assert findings.dropped == [
        f"paiConfig.{spelling} (log in with a token)",
        *(
            f"trial.{name} (write it in trainingService.openpaiConfig)"
            for name in ("authFile", "shmMB", "portList")
        ),
    ]
    assert "secret" not in str(fields)


def test_roles_of_kubeflow_are_converted_and_the_command_is_that_of_the_worker() -> None:
    trial = {"codeDir": ".", "worker": ROLE, "ps": {**ROLE, "command": "serve"}}
    section = {"operator": "tf-operator", "apiVersion": "v1", "nfs": NFS}
    role = {
        "replicas": 2,
        "command": "run",
        "gpuNumber": 1,
        "cpuNumber": 2,
        "memorySize": "512mb",
        "dockerImage": "i",
    }

    fields, findings = converted("kubeflow", trial=trial, kubeflowConfig=section)

    assert findings.problems == []
    assert fields == {
        "trialCommand": "run",
        "trialCodeDirectory": ".",
        "trainingService": {
            "platform": "kubeflow",
            "reuseMode": False,
            "operator": "tf-operator",
            "apiVersion": "v1",
            "storage": {"storageType": "nfs", **NFS},
            "worker": role,
            "ps": {**role, "command": "serve"},
        },
    }


@pytest.mark.parametrize(
    ("section", "storage"),
    [
        ({"nfs": NFS}, {"storageType": "nfs", **NFS}),
        ({"storage": "nfs", "nfs": NFS}, {"storageType": "nfs", **NFS}),
        (AZURE, AZURE_V2),
        ({"storage": "azureStorage", **AZURE}, AZURE_V2),
        ({"storage": "pvc", "pvc": {"path": "/d"}}, {"storageType": "pvc", "path": "/d"}),
    ],
)
def test_storage_is_of_the_kind_that_is_named_or_given(
    section: dict[str, Any], storage: dict[str, Any]
) -> None:
    trial = {"codeDir": ".", "taskRoles": [{"name": "w", "command": "c"}]}

    found = service("frameworkcontroller", trial=trial, frameworkcontrollerConfig=section)

    assert found["storage"] == storage


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({}, "nfs must be given (or azureStorage with keyVault, or pvc)"),
        ({"storage": "nfs"}, "nfs must be given with storage: nfs"),
        ({"nfs": NFS, "pvc": {"path": "/d"}}, "nfs must be the only storage"),
        ({"storage": "nfs", "nfs": NFS, "pvc": {}}, "pvc must not be given with storage: nfs"),
        ({"storage": "hdfs", "nfs": NFS}, "storage must be one of nfs, azureStorage, pvc"),
        ({"azureStorage": AZURE["azureStorage"]}, "keyVault must be given"),
        ({"nfs": {"sever": "h"}}, "nfs.sever is no field of schema v1 (did you mean server?)"),
    ],
)
def test_storage_in_conflict_is_refused(section: dict[str, Any], problem: str) -> None:
    trial = {"codeDir": ".", "worker": ROLE}
    kubeflow = {"operator": "tf-operator", **section}

    found = problems("kubeflow", trial=trial, kubeflowConfig=kubeflow)

    assert found[0].startswith(f"kubeflowConfig.{problem}")


@pytest.mark.parametrize("spelling", ["minSucceededTaskCount", "minSucceedTaskCount"])
def test_task_roles_are_converted_with_either_spelling_of_their_policy(spelling: str) -> None:
    policy = {"minFailedTaskCount": 1, spelling: 2}
    role = {"name": "w", "taskNum": 3, "command": "c", "frameworkAttemptCompletionPolicy": policy}

    found = service(
        "frameworkcontroller",
        trial={"codeDir": ".", "taskRoles": [role]},
        frameworkcontrollerConfig={"serviceAccountName": "a", "namespace": "n", "nfs": NFS},
    )

    assert found["taskRoles"] == [
        {
            "name": "w",
            "taskNumber": 3,
            "command": "c",
            "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceedTaskCount": 2},
        }
    ]
    assert (found["serviceAccountName"], found["namespace"]) == ("a", "n")


def test_policy_in_both_spellings_is_refused() -> None:
    policy = {"minSucceededTaskCount": 1, "minSucceedTaskCount": 1}
    role = {"name": "w", "frameworkAttemptCompletionPolicy": policy}

    found = problems(
        "frameworkcontroller",
        trial={"codeDir": ".", "taskRoles": [role]},
        frameworkcontrollerConfig={"nfs": NFS},
    )

    assert len(found) == 1
    assert "must not be given again as minSucceedTaskCount" in found[0]


def test_template_replaces_task_roles() -> None:
    found = service(
        "frameworkcontroller",
        trial={"codeDir": "."},
        frameworkcontrollerConfig={"configPath": "t.yml", "storage": "pvc", "pvc": {"path": "/d"}},
    )

    assert found["configPath"] == "t.yml"
    assert "taskRoles" not in found


def test_aml_is_converted() -> None:
    section = {
        "subscriptionId": "s",
        "resourceGroup": "r",
        "workspaceName": "w",
        "computeTarget": "c",
        "maxTrialNumPerGpu": 2,
        "useActiveGpu": True,
    }
    kept = {name: section[name] for name in list(section)[:4]}

    assert service("aml", trial={**TRIAL, "image": "i"}, amlConfig=section) == {
        "platform": "aml",
        "dockerImage": "i",
        **kept,
        "maxTrialNumberPerGpu": 2,
        "useActiveGpu": True,
    }


def test_platform_without_a_successor_is_converted_for_the_refusal_that_follows() -> None:
    trial = {**TRIAL, "image": "i"}

    assert service("dlts", trial=trial, dltsConfig={"dashboard": "d"}) == {
        "platform": "dlts",
        "dockerImage": "i",
        "dashboard": "d",
    }


def test_adaptdl_is_converted() -> None:
    trial = {
        **TRIAL,
        "image": "i",
        "memorySize": "8Gi",
        "adaptive": True,
        "imagePullSecrets": [{"name": "registry"}],
        "nfs": {**NFS, "containerMountPath": "/nfs"},
        "checkpoint": {"storageClass": "dfs", "storageSize": "1Gi"},
    }

    assert service("adl", trial=trial) == {
        "platform": "adl",
        "adaptive": True,
        "dockerImage": "i",
        "imagePullSecrets": ["registry"],
        "trialMemorySize": "8Gi",
        "storage": {**NFS, "containerMountPath": "/nfs"},
        "checkpoint": {"storageClass": "dfs", "storageSize": "1Gi"},
    }


def test_code_in_the_image_of_adaptdl_is_the_folder_of_the_command() -> None:
    trial = {**TRIAL, "codeDir": "/my code", "command": "python main.py"}

    fields, findings = converted("adl", trial=trial)

    assert findings.problems == []
    assert fields["trialCommand"] == "cd '/my code' && python main.py"
    assert fields["trialCodeDirectory"] == "."


@pytest.mark.parametrize(("version", "kept"), [("v1", "v1"), ("v1alpha2", None)])
def test_only_the_api_version_of_today_is_kept(version: str, kept: str | None) -> None:
    section = {"operator": "tf-operator", "apiVersion": version, "nfs": NFS}

    fields, findings = converted(
        "kubeflow", trial={"codeDir": ".", "worker": ROLE}, kubeflowConfig=section
    )

    assert fields["trainingService"].get("apiVersion") == kept
    dropped = "kubeflowConfig.apiVersion (operators of today have v1)"
    assert findings.dropped == ([] if kept else [dropped])


@pytest.mark.parametrize(
    ("platform", "sections", "expected"),
    [
        ("local", {"trial": None}, {"trial.command", "trial.codeDir"}),
        ("remote", {}, {"machineList"}),
        ("remote", {"machineList": [{}]}, {"machineList[0].ip", "machineList[0].username"}),
        ("pai", {}, {"paiConfig.userName", "paiConfig.host"}),
        (
            "kubeflow",
            {"trial": {"codeDir": "."}},
            {"kubeflowConfig.operator", "kubeflowConfig.nfs", "trial.worker"},
        ),
        (
            "frameworkcontroller",
            {"trial": {"codeDir": "."}},
            {"frameworkcontrollerConfig.nfs", "trial.taskRoles"},
        ),
        (
            "aml",
            {},
            {
                *("amlConfig.subscriptionId", "amlConfig.resourceGroup"),
                *("amlConfig.workspaceName", "amlConfig.computeTarget"),
            },
        ),
    ],
)
def test_missing_fields_are_named(
    platform: str, sections: dict[str, Any], expected: set[str]
) -> None:
    _, findings = converted(platform, **sections)

    assert {problem.field for problem in findings.problems} == expected
    assert {problem.rule for problem in findings.problems} == {"must be given"}


@pytest.mark.parametrize(
    ("section", "owner"),
    [
        ("localConfig", "local"),
        ("remoteConfig", "remote"),
        ("kubeflowConfig", "kubeflow"),
        ("frameworkcontrollerConfig", "frameworkcontroller"),
        ("dltsConfig", "dlts"),
        ("amlConfig", "aml"),
    ],
)
def test_section_of_another_platform_is_refused(section: str, owner: str) -> None:
    paid = {"userName": "u", "host": "h"}

    assert problems("pai", paiConfig=paid, **{section: {"a": 1}}) == [
        f"{section} is only for trainingServicePlatform: {owner} (leave the section out)"
    ]


def test_machines_of_a_local_file_have_no_meaning_and_empty_ones_are_those_of_a_template() -> None:
    _, empty = converted("local", machineList=[{"ip": None, "port": None}])
    _, filled = converted("local", machineList=[{"ip": "h"}])

    assert (empty.problems, empty.dropped) == ([], [])
    assert (filled.problems, filled.dropped) == ([], ["machineList (for remote only)"])


def test_unknown_fields_are_named_with_the_closest_known_one() -> None:
    trial = {**TRIAL, "gpuNumber": 1}

    assert problems("local", trial=trial, localConfig={"useActivGpu": True}) == [
        "localConfig.useActivGpu is no field of schema v1 (did you mean useActiveGpu?)",
        "trial.gpuNumber is no field of schema v1 (did you mean gpuNum?)",
    ]
