"""Uses of NNI 2.5 and 3.0 that their documentation shows: command lines, algorithms, platforms.

Words and names only; the configurations around them are written here.
"""

from __future__ import annotations

from typing import Any, Final

COMMAND_LINES: Final = (
    "create --config config.yml",
    "create -c config.yml -p 8088 -d",
    "create --config config.yml --port 8088 --debug",
    "create --config config.yml --foreground",
    "create -c config.yml -f",
    "create --config config.yml --url_prefix path",
    "resume abcd1234 --port 8088",
    "resume abcd1234 -p 8088 -d -f -e folder",
    "resume abcd1234 --experiment_dir folder",
    "view abcd1234 --port 8088",
    "view abcd1234 -p 8088 -e folder",
    "view abcd1234 --experiment_dir folder",
    "stop",
    "stop abcd1234",
    "stop abcd*",
    "stop --port 8080",
    "stop -p 8080",
    "stop --all",
    "stop -a",
    "update searchspace abcd1234 --filename search_space.json",
    "update searchspace abcd1234 -f search_space.json",
    "update concurrency abcd1234 --value 2",
    "update concurrency abcd1234 -v 2",
    "update duration abcd1234 --value 2h",
    "update duration abcd1234 -v 2h",
    "update trialnum abcd1234 --value 20",
    "update trialnum abcd1234 -v 20",
    "update debug abcd1234 --debug True",
    "trial ls",
    "trial ls abcd1234",
    "trial ls --head 10",
    "trial ls --tail 10",
    "trial kill abcd1234 --trial_id aBcDe",
    "trial kill abcd1234 -T aBcDe",
    "trial codegen abcd1234 --trial_id aBcDe",
    "top",
    "top abcd1234 --time 1",
    "top -t 1",
    "experiment show",
    "experiment show abcd1234",
    "experiment status",
    "experiment list",
    "experiment list --all",
    "experiment delete abcd1234",
    "experiment delete --all",
    "experiment export abcd1234 --filename file.json --type json --intermediate",
    "experiment export abcd1234 -f file.csv -t csv -i",
    "experiment import abcd1234 --filename data.json",
    "experiment import abcd1234 -f data.json",
    "experiment save abcd1234 --saveCodeDir",
    "experiment save abcd1234 --path folder",
    "experiment load --path file.zip --codeDir code",
    "experiment load --path file.zip --codeDir code --logDir logs --searchSpacePath space.json",
    "config show",
    "log stdout",
    "log stdout abcd1234 --tail 20",
    "log stdout -h 20",
    "log stdout --path",
    "log stderr abcd1234 --head 20",
    "log trial abcd1234 --trial_id aBcDe",
    "log trial --trial_id=aBcDe",
    "log trial -T aBcDe",
    "webui url",
    "webui url abcd1234",
    "algo register --meta meta.yml",
    "algo register --meta_path meta.yml",
    "algo list",
    "algo unregister demotuner",
    "algo unreg demotuner",
    "algo show demotuner",
    "package list",
    "ss_gen --trial_command=command --trial_dir=./ --file=space.json",
    "ss_gen -t command -d ./ -f space.json",
    "tensorboard start abcd1234",
    "tensorboard start abcd1234 --trial_id aBcDe --port 8081",
    "tensorboard stop abcd1234",
    "trainingservice list",
    "jupyter-extension install",
    "hello",
)
"""Arguments of `nnictl`, with every documented option in both spellings."""

TUNERS: Final = (
    *("TPE", "Random", "Anneal", "Evolution", "SMAC", "Batch", "BatchTuner", "GridSearch"),
    *("NetworkMorphism", "Metis", "MetisTuner", "GP", "GPTuner", "PBT", "PBTTuner", "DNGO"),
    *("DNGOTuner", "PPOTuner", "BOHB", "Hyperband", "random"),
)
ASSESSORS: Final = ("Medianstop", "Curvefitting")
ADVISORS: Final = ("Hyperband", "BOHB")

_MACHINE: Final = {"host": "10.0.0.1", "user": "bob", "password": "secret"}
_STORAGE: Final = {
    "storageType": "NFS",
    "server": "10.0.0.1",
    "path": "/data",
}
_ROLE: Final[dict[str, Any]] = {
    "command": "python3 trial.py",
    "codeDirectory": ".",
    "dockerImage": "image",
    "gpuNumber": 0,
    "cpuNumber": 1,
    "memorySize": "4gb",
}
_WORKER: Final = {**_ROLE, "replicas": 1}

PLATFORMS: Final[dict[str, Any]] = {
    "local": {"platform": "local", "useActiveGpu": True, "maxTrialNumberPerGpu": 2},
    "remote": {"platform": "remote", "reuseMode": False, "machineList": [_MACHINE]},
    "openpai": {
        "platform": "openpai",
        "host": "https://10.0.0.1",
        "username": "bob",
        "token": "token",
        "trialCpuNumber": 1,
        "trialMemorySize": "4gb",
        "storageConfigName": "storage",
        "dockerImage": "image",
        "localStorageMountPoint": "/mnt/storage",
        "containerStorageMountPoint": "/mnt/storage",
    },
    "aml": {
        "platform": "aml",
        "subscriptionId": "id",
        "resourceGroup": "group",
        "workspaceName": "workspace",
        "computeTarget": "target",
        "dockerImage": "image",
    },
    "dlc": {
        "platform": "dlc",
        "type": "Worker",
        "image": "image",
        "podCount": 1,
        "ecsSpec": "ecs.c6.large",
        "region": "cn-hangzhou",
        "nasDataSourceId": "id",
        "accessKeyId": "key",
        "accessKeySecret": "secret",
        "localStorageMountPoint": "/mnt/storage",
        "containerStorageMountPoint": "/mnt/storage",
    },
    "kubeflow": {
        "platform": "kubeflow",
        "operator": "tf-operator",
        "apiVersion": "v1",
        "storage": _STORAGE,
        "worker": _WORKER,
    },
    "frameworkcontroller": {
        "platform": "frameworkcontroller",
        "storage": _STORAGE,
        "taskRoles": [{**_ROLE, "name": "worker", "taskNumber": 1}],
    },
    "adl": {"platform": "adl"},
    "list of local and remote": [
        {"platform": "local"},
        {"platform": "remote", "machineList": [_MACHINE]},
    ],
}
"""Sections `trainingService` by what they show."""
