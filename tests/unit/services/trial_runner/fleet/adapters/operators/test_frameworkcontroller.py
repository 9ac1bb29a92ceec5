from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.manifests import SETTINGS_FILE, labels_of_pool
from svc_trial_runner.fleet.adapters.operators.frameworkcontroller import (
    RUN_TASK,
    FrameworkWorkload,
)
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order

LABELS = labels_of_pool(INSTALLATION, POOL, "frameworkcontroller")
POLICY = {"minFailedTaskCount": 1, "minSucceedTaskCount": 2}
WORKER: dict[str, Any] = {
    "name": "worker",
    "taskNumber": 2,
    "command": "python3 /app/train.py",
    "dockerImage": "team/trials:1",
    "frameworkAttemptCompletionPolicy": POLICY,
}
SERVER: dict[str, Any] = {
    "name": "ps",
    "command": "python3 /app/serve.py",
    "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceededTaskCount": -1},
}
SECTION: dict[str, Any] = {"taskRoles": [WORKER, SERVER]}
ONE_TRIAL: dict[str, Any] = {**SECTION, "reuseMode": False}


def task_of_template(image: str, command: str) -> dict[str, Any]:
    container = {"name": "main", "image": image, "command": ["sh", "-c", command]}
    return {"pod": {"spec": {"containers": [container], "hostNetwork": True}}}


TEMPLATE: dict[str, Any] = {
    "apiVersion": "frameworkcontroller.microsoft.com/v1",
    "kind": "Framework",
    "metadata": {"name": "mine"},
    "spec": {
        "taskRoles": [
            {"name": "worker", "taskNumber": 1, "task": task_of_template("team/trials:2", "a b")},
            {"name": "ps", "taskNumber": 1, "task": task_of_template("team/ps:2", "serve")},
        ]
    },
}


def framework(section: dict[str, Any]) -> dict[str, Any]:
    return FrameworkWorkload(section).manifest(agent_order(agent_name(1)), LABELS, "4.0")


def roles(section: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = framework(section)["spec"]["taskRoles"]
    return found


def container(role: dict[str, Any]) -> dict[str, Any]:
    (found,) = role["task"]["pod"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_agent_is_the_only_task_of_a_reused_framework() -> None:
    (role,) = roles(SECTION)

    assert (role["name"], role["taskNumber"]) == ("worker", 1)
    assert container(role)["image"] == "team/trials:1"
    assert "svc_trial_runner" in container(role)["command"]


@pytest.mark.claim("platform", 82)
def test_framework_of_one_trial_has_the_documented_roles_and_policies() -> None:
    worker, servers = roles(ONE_TRIAL)

    assert (worker["taskNumber"], servers["taskNumber"]) == (2, 1)
    assert worker["frameworkAttemptCompletionPolicy"] == {
        "minFailedTaskCount": 1, "minSucceededTaskCount": 2
    }  # fmt: skip
    assert servers["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"] == -1
    assert container(servers)["command"] == ["/bin/sh", "-c", "python3 /app/serve.py"]


def test_agent_runs_in_the_first_task_and_the_others_remove_its_settings() -> None:
    command = container(roles(ONE_TRIAL)[0])["command"]

    assert command[:6] == [
        "/bin/sh", "-c", RUN_TASK, "agent", SETTINGS_FILE, "python3 /app/train.py"
    ]  # fmt: skip
    assert command[6:9] == ["python3", "-P", "-m"]


def test_name_of_a_framework_has_letters_and_digits_only_and_is_of_one_agent() -> None:
    workload = FrameworkWorkload(SECTION)
    names = {
        workload.object_name(AgentName(INSTALLATION, pool, number))
        for pool in ("exp-a", "exp-a1", "expa")
        for number in (1, 11, 17)
    }

    assert len(names) == 9
    assert all(re.fullmatch("[a-z0-9]{1,63}", name) for name in names)


def test_pod_of_the_agent_is_task_0_of_the_first_role() -> None:
    workload = FrameworkWorkload(ONE_TRIAL)

    def is_agent(index: str, **labels: str) -> bool:
        annotations = {"FC_TASK_INDEX": index}
        metadata = {"annotations": annotations, "labels": labels}
        return workload.is_agent_pod({"metadata": metadata})

    assert is_agent("0")
    assert not is_agent("1")
    assert not is_agent("0", **{"nni-role": "ps"})


def test_template_keeps_its_fields_and_gets_the_agent() -> None:
    worker, servers = roles({"framework": TEMPLATE, "reuseMode": False})

    own = container(worker)
    assert (own["name"], own["image"]) == ("agent", "team/trials:2")
    assert "svc_trial_runner" in own["command"]
    pod = worker["task"]["pod"]
    assert pod["spec"]["hostNetwork"] is True
    assert pod["spec"]["initContainers"][0]["image"] == "team/trials:2"
    assert pod["metadata"]["labels"].items() >= LABELS.items()
    assert container(servers)["command"] == ["sh", "-c", "serve"]
    assert servers["task"]["pod"]["metadata"]["labels"].items() >= LABELS.items()


def test_template_is_one_pod_in_reuse_mode() -> None:
    assert [role["name"] for role in roles({"framework": TEMPLATE})] == ["worker"]


def test_service_account_is_that_of_the_pods() -> None:
    (role,) = roles({**SECTION, "serviceAccountName": "controller"})

    assert role["task"]["pod"]["spec"]["serviceAccountName"] == "controller"


def with_pod(spec: dict[str, Any], **role: Any) -> dict[str, Any]:
    return {"spec": {"taskRoles": [{**role, "task": {"pod": {"spec": spec}}}]}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"taskRoles": []}, "taskRoles"),
        ({"taskRoles": [{"name": "my-role"}]}, "taskRoles[0].name"),
        ({"taskRoles": [WORKER, {**SERVER, "command": ""}]}, "taskRoles[1].command"),
        ({"taskRoles": [{**WORKER, "taskNumber": 0}]}, "taskRoles[0].taskNumber"),
        ({"framework": {"spec": {}}}, "configPath"),
        ({"framework": {**TEMPLATE, "kind": "Job"}}, "configPath"),
        ({"framework": {"spec": {"taskRoles": [{"name": "a"}]}}}, "configPath"),
        ({"framework": {"spec": {"taskRoles": ["a"]}}}, "configPath"),
        ({"framework": {"spec": {"taskRoles": [{"task": {"pod": "a"}}]}}}, "configPath"),
        ({"framework": with_pod({"containers": ["a"]})}, "configPath"),
        ({"framework": with_pod({"containers": [{}], "initContainers": 1})}, "configPath"),
        ({"framework": with_pod({"containers": [{}]}, taskNumber="two")}, "configPath"),
        ({"taskRoles": [{**WORKER, "dockerImage": "Not An Image"}]}, "taskRoles[0].dockerImage"),
    ],
)
def test_broken_rule_is_named(changes: dict[str, Any], field: str) -> None:
    (problem,) = FrameworkWorkload({**ONE_TRIAL, **changes}).problems()

    assert problem.field == field


def test_roles_of_one_name_are_refused() -> None:
    found = FrameworkWorkload({"taskRoles": [WORKER, WORKER]}).problems()

    assert {problem.rule for problem in found} == {"must not be given twice"}


def test_completed_framework_has_ended_with_the_words_of_the_controller() -> None:
    completion = {
        "phrase": "PodExternalDeleted", "diagnostics": "gone", "type": {"name": "Failed"}
    }  # fmt: skip
    status = {"state": "Completed", "attemptStatus": {"completionStatus": completion}}
    workload = FrameworkWorkload(SECTION)

    end = workload.end({"status": status})

    assert end is not None
    assert (end.failed, end.words) == (True, "PodExternalDeleted: gone")
    assert workload.end({"status": {"state": "AttemptRunning"}}) is None
    assert workload.end({"status": None}) is None
