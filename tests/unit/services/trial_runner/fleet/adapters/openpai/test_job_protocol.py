from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.openpai.job_protocol import SETTINGS_SECRET, job_of
from svc_trial_runner.fleet.adapters.openpai.options import parse_options
from svc_trial_runner.fleet.domain.agents import AgentCredentials, AgentOrder
from svc_trial_runner.fleet.testing import agent_name

SETTINGS = b'{"bus_password": "hidden"}'
SECTION: dict[str, Any] = {"trialCpuNumber": 2, "trialMemorySize": "8gb"}
PROTOCOL: dict[str, Any] = {
    "name": "mine",
    "prerequisites": [{"name": "own", "type": "dockerimage", "uri": "team/trials:1"}],
    "taskRoles": {
        "worker": {
            "instances": 2,
            "dockerImage": "own",
            "resourcePerInstance": {"cpu": 8, "memoryMB": 1024, "gpu": 4},
            "commands": ["python3 train.py"],
        },
        "ps": {"dockerImage": "own", "commands": ["python3 serve.py"]},
    },
    "extras": {"hivedScheduler": {}},
}


def job(*, gpus: int | None = None, slots: int = 1, **changes: Any) -> dict[str, Any]:
    credentials = AgentCredentials("user", "hidden", "token")
    order = AgentOrder(agent_name(1), credentials, slots, None, gpus)
    return job_of(parse_options({**SECTION, **changes}), order, SETTINGS, "4.0")


@pytest.mark.claim("platform", 82)
def test_job_has_name_image_resources_and_storage_of_the_section() -> None:
    found = job(gpus=1, slots=2, dockerImage="team/trials:2", storageConfigName="datasets")

    (role,) = found["taskRoles"].values()
    assert found["name"] == str(agent_name(1))
    assert found["prerequisites"][0]["uri"] == "team/trials:2"
    assert role["resourcePerInstance"] == {"cpu": 4, "memoryMB": 16384, "gpu": 2}
    assert found["extras"]["com.microsoft.pai.runtimeplugin"] == [
        {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["datasets"]}}
    ]


def test_settings_of_the_agent_are_a_secret_and_in_no_command() -> None:
    found = job()

    assert base64.b64decode(found["secrets"][SETTINGS_SECRET]) == SETTINGS
    assert "hidden" not in str(found["taskRoles"])
    assert f"$secrets.{SETTINGS_SECRET}" in found["taskRoles"]["agent"]["commands"][1]


def test_job_is_not_tried_again() -> None:
    found = job()

    assert found["jobRetryCount"] == 0
    assert found["taskRoles"]["agent"]["taskRetryCount"] == 0


def test_image_is_that_of_the_version_by_default() -> None:
    found = job()

    (image,) = found["prerequisites"]
    assert (image["type"], image["uri"]) == ("dockerimage", "nni/trial-runner:4.0")
    assert found["taskRoles"]["agent"]["dockerImage"] == image["name"]


def test_trials_that_ask_for_no_gpus_get_none() -> None:
    role = job()["taskRoles"]["agent"]

    assert role["resourcePerInstance"] == {"cpu": 2, "memoryMB": 8192, "gpu": 0}
    assert (role["instances"], role["completion"]) == (
        1,
        {"minFailedInstances": 1, "minSucceededInstances": 1},
    )


def test_agent_of_one_trial_asks_for_the_resources_of_one() -> None:
    (role,) = job(gpus=1, slots=2, reuseMode=False)["taskRoles"].values()

    assert role["resourcePerInstance"] == {"cpu": 2, "memoryMB": 8192, "gpu": 1}


def test_agent_takes_the_first_role_of_a_given_job() -> None:
    section: dict[str, Any] = {"trialCpuNumber": None, "trialMemorySize": None}

    found = job(openpaiConfig=PROTOCOL, **section)

    assert list(found["taskRoles"]) == ["worker"]
    worker = found["taskRoles"]["worker"]
    assert (worker["instances"], worker["dockerImage"]) == (1, "own")
    assert worker["resourcePerInstance"] == {"cpu": 8, "memoryMB": 1024, "gpu": 4}
    assert "svc_trial_runner" in worker["commands"][-1]
    assert found["name"] == str(agent_name(1))
    assert found["extras"]["hivedScheduler"] == {}


def test_other_roles_stay_in_the_job_of_one_trial() -> None:
    found = job(openpaiConfig=PROTOCOL, reuseMode=False)

    assert list(found["taskRoles"]) == ["worker", "ps"]
    assert found["taskRoles"]["ps"] == PROTOCOL["taskRoles"]["ps"]


def test_fields_of_the_section_win_over_those_of_the_job() -> None:
    found = job(openpaiConfig=PROTOCOL, virtualCluster="gpus", dockerImage="team/trials:3")

    assert found["taskRoles"]["worker"]["resourcePerInstance"]["cpu"] == 2
    assert found["taskRoles"]["worker"]["dockerImage"] == "nni_image"
    assert found["defaults"] == {"virtualCluster": "gpus"}
    assert {one["name"]: one["uri"] for one in found["prerequisites"] if one["name"] != "own"} == {
        "nni_image": "team/trials:3"
    }


def test_given_role_without_resources_gets_no_gpu() -> None:
    protocol = {"taskRoles": {"worker": {"dockerImage": "own"}}}

    found = job(openpaiConfig=protocol, trialCpuNumber=None, trialMemorySize=None)

    assert found["taskRoles"]["worker"]["resourcePerInstance"] == {"gpu": 0}
    assert "defaults" not in found
    assert found["protocolVersion"] == 2


def test_storage_of_the_section_replaces_that_of_the_job_and_keeps_other_plugins() -> None:
    plugins = [{"plugin": "teamwise_storage", "parameters": {}}, {"plugin": "ssh"}]
    protocol = {**PROTOCOL, "extras": {"com.microsoft.pai.runtimeplugin": plugins}}

    found = job(openpaiConfig=protocol, storageConfigName="data")["extras"]

    ssh, storage = found["com.microsoft.pai.runtimeplugin"]
    assert ssh == {"plugin": "ssh"}
    assert storage["parameters"] == {"storageConfigNames": ["data"]}
    assert job(openpaiConfig=protocol)["extras"]["com.microsoft.pai.runtimeplugin"] == plugins


def test_secrets_and_defaults_of_a_given_job_stay() -> None:
    protocol = {**PROTOCOL, "secrets": {"data": "x"}, "defaults": {"a": 1, "virtualCluster": "b"}}

    found = job(openpaiConfig=protocol, virtualCluster="c")

    assert found["secrets"]["data"] == "x"
    assert found["defaults"] == {"a": 1, "virtualCluster": "c"}


def test_job_of_an_agent_without_options_is_this_one() -> None:
    assert job() == {
        "protocolVersion": 2,
        "name": str(agent_name(1)),
        "type": "job",
        "jobRetryCount": 0,
        "prerequisites": [
            {"name": "nni_image", "type": "dockerimage", "uri": "nni/trial-runner:4.0"}
        ],
        "secrets": {"nni_settings": base64.b64encode(SETTINGS).decode()},
        "taskRoles": {
            "agent": {
                "instances": 1,
                "completion": {"minFailedInstances": 1, "minSucceededInstances": 1},
                "taskRetryCount": 0,
                "dockerImage": "nni_image",
                "resourcePerInstance": {"cpu": 2, "memoryMB": 8192, "gpu": 0},
                "commands": [
                    'mkdir -p -m 700 "$HOME/.nni-agent"',
                    (
                        "(umask 077; printf %s '<% $secrets.nni_settings %>' | base64 -d"
                        ' >"$HOME/.nni-agent"/settings.json)'
                    ),
                    (
                        "exec python3 -P -m svc_trial_runner --settings"
                        ' "$HOME/.nni-agent"/settings.json'
                    ),
                ],
            }
        },
        "extras": {"submitFrom": "nni"},
    }


def test_interpreter_with_a_blank_is_one_word() -> None:
    role = job(python="/opt/a python")["taskRoles"]["agent"]

    assert role["commands"][-1].startswith("exec '/opt/a python' -P -m svc_trial_runner ")


def test_given_job_is_not_changed() -> None:
    before = copy.deepcopy(PROTOCOL)

    job(openpaiConfig=PROTOCOL, dockerImage="team/trials:3", storageConfigName="data")

    assert before == PROTOCOL


def test_gpus_of_no_trial_are_none() -> None:
    protocol = {"taskRoles": {"worker": {"resourcePerInstance": {"gpu": 4}}}}

    found = job(gpus=0, openpaiConfig=protocol)["taskRoles"]["worker"]

    assert found["resourcePerInstance"]["gpu"] == 0
