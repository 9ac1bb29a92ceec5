from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.adapters.kubernetes.manifests import SETTINGS_FILE, labels_of_pool
from svc_trial_runner.fleet.adapters.operators.frameworkcontroller import (
    RUN_TASK,
    FrameworkWorkload,
    frameworkcontroller_adapter,
)
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformSection
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.local_platforms import front_context

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


@pytest.mark.parametrize(
    "section",
    [
        SECTION,
        ONE_TRIAL,
        {"taskRoles": [WORKER, {"name": "ps"}]},  # commands are of one-trial Frameworks
        {"taskRoles": [{"taskNumber": 1}, SERVER], "reuseMode": False},
        {"taskRoles": [{"name": "a" * 63}]},
        {"framework": TEMPLATE},
        {"framework": {"spec": TEMPLATE["spec"]}, "reuseMode": False},
        {"framework": TEMPLATE, "taskRoles": [WORKER, {"name": "ps"}], "reuseMode": False},
    ],
)
def test_usable_sections_have_no_problem(section: dict[str, Any]) -> None:
    assert FrameworkWorkload(section).problems() == []


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ({"taskRoles": [{"name": "a" * 64}]}, "taskRoles[0].name"),
        ({"taskRoles": [{"name": "Worker"}]}, "taskRoles[0].name"),
        ({"taskRoles": [{"name": "wörker"}]}, "taskRoles[0].name"),
        ({"taskRoles": [{"name": 7}]}, "taskRoles[0].name"),
        ({"taskRoles": "worker"}, "taskRoles"),
        ({"taskRoles": [{"name": "a", "taskNumber": 2}], "reuseMode": False},
         "taskRoles[0].command"),
        ({"framework": with_pod({"containers": [{}]}, taskNumber=0)}, "configPath"),
        ({"framework": with_pod({"containers": []})}, "configPath"),
    ],
)  # fmt: skip
def test_problem_of_a_role_names_its_field(section: dict[str, Any], field: str) -> None:
    (problem,) = FrameworkWorkload(section).problems()

    assert problem.field == field


@pytest.mark.parametrize(
    "section",
    [
        {"taskRoles": [{"name": "a_" * 50}]},
        {"framework": {**TEMPLATE, "kind": "a_" * 50}},
        {"framework": with_pod({"containers": [{}]}, taskNumber="a_" * 50)},
    ],
)
def test_long_value_is_shown_by_its_first_80_characters(section: dict[str, Any]) -> None:
    (problem,) = FrameworkWorkload(section).problems()

    assert problem.value == "'" + ("a_" * 50)[:79]


def test_role_without_a_name_is_numbered() -> None:
    nameless = [{"command": "a"}, {"command": "b"}]

    found = roles({"taskRoles": nameless, "reuseMode": False})

    assert [role["name"] for role in found] == ["role0", "role1"]
    assert [role["name"] for role in roles({"taskRoles": nameless})] == ["role0"]


def test_only_task_of_the_first_role_runs_the_agent_without_a_script() -> None:
    (worker,) = roles({"taskRoles": [{**WORKER, "taskNumber": 1}], "reuseMode": False})

    assert RUN_TASK not in container(worker)["command"]
    assert "svc_trial_runner" in container(worker)["command"]


def test_role_without_a_policy_ends_its_framework_with_the_first_task() -> None:
    (worker,) = roles({"taskRoles": [{"name": "worker"}], "reuseMode": False})

    assert worker["frameworkAttemptCompletionPolicy"] == {
        "minFailedTaskCount": 1, "minSucceededTaskCount": 1
    }  # fmt: skip


def test_count_of_a_wrong_type_is_as_if_it_was_not_given() -> None:
    policy = {"minFailedTaskCount": "two", "minSucceededTaskCount": 3}
    worker = {**WORKER, "frameworkAttemptCompletionPolicy": policy}

    (found,) = roles({"taskRoles": [worker], "reuseMode": False})

    assert found["frameworkAttemptCompletionPolicy"] == {
        "minFailedTaskCount": 1, "minSucceededTaskCount": 3
    }  # fmt: skip


def test_neither_framework_nor_task_is_tried_again() -> None:
    no_retry = {"fancyRetryPolicy": False, "maxRetryCount": 0}

    for section in (ONE_TRIAL, {"framework": TEMPLATE}):
        spec = framework(section)["spec"]
        assert spec["retryPolicy"] == no_retry
        assert spec["taskRoles"][0]["task"]["retryPolicy"] == no_retry


def test_pod_is_deleted_by_force_two_seconds_after_the_grace() -> None:
    (role,) = roles({**SECTION, "graceSeconds": 40})

    assert role["task"]["podGracefulDeletionTimeoutSec"] == 42
    assert role["task"]["pod"]["spec"]["terminationGracePeriodSeconds"] == 40


def test_name_of_a_framework_stays_that_of_its_agent() -> None:
    """A restarted fleet finds the Frameworks of an earlier one by their names."""
    name = FrameworkWorkload(SECTION).object_name(AgentName("0123abcd", "exp-a", 7))

    assert re.fullmatch("nni0123abcd[0-9a-f]{12}n7", name)


@pytest.mark.parametrize(
    ("metadata", "is_agent"),
    [
        ({}, True),
        ({"annotations": None, "labels": None}, True),
        ({"labels": {"FC_TASK_INDEX": "0"}}, True),
        ({"labels": {"FC_TASK_INDEX": "1"}}, False),
        ({"annotations": {"FC_TASK_INDEX": "0"}, "labels": {"FC_TASK_INDEX": "1"}}, True),
    ],
)
def test_task_of_a_pod_is_in_its_annotations_or_else_its_labels(
    metadata: dict[str, Any], *, is_agent: bool
) -> None:
    assert FrameworkWorkload(ONE_TRIAL).is_agent_pod({"metadata": metadata}) is is_agent


def template_of(container: dict[str, Any], **role: Any) -> dict[str, Any]:
    spec = with_pod({"containers": [container]}, name="worker", **role)
    return {"framework": spec, "reuseMode": False}


def test_other_tasks_of_a_template_run_its_command() -> None:
    main = {"name": "main", "command": ["sh", "-c", "a b"], "args": [1], "workingDir": "/code"}

    (role,) = roles(template_of(main, taskNumber=2))

    own = container(role)
    assert role["taskNumber"] == 2
    assert own["command"][:6] == [
        "/bin/sh", "-c", RUN_TASK, "agent", SETTINGS_FILE, "sh -c 'a b' 1"
    ]  # fmt: skip
    assert "args" not in own
    assert own.get("workingDir") != "/code"


def test_template_without_an_image_gets_that_of_the_version() -> None:
    (role,) = roles(template_of({"name": "main"}))

    spec = role["task"]["pod"]["spec"]
    assert container(role)["image"] == "nni/trial-runner:4.0"
    assert spec["initContainers"][0]["image"] == "nni/trial-runner:4.0"
    assert spec["restartPolicy"] == "Never"


@pytest.mark.parametrize("number", [{}, {"taskNumber": 1}])
def test_only_task_of_a_template_runs_the_agent_without_a_script(number: dict[str, Any]) -> None:
    (role,) = roles(template_of({"name": "main"}, **number))

    assert RUN_TASK not in container(role)["command"]


def test_agent_is_in_the_first_container_of_a_template_beside_the_others() -> None:
    main = {"name": "main", "image": "team/trials:2", "tty": True, "command": ["train"]}
    section = template_of(main)
    pod = section["framework"]["spec"]["taskRoles"][0]["task"]["pod"]
    beside = [{"name": name, "command": [name], "args": ["-v"]} for name in ("log", "proxy")]
    pod["spec"]["containers"] += beside
    pod["metadata"] = {"annotations": {"team": "vision"}}

    (role,) = roles(section)

    found = role["task"]["pod"]
    agent, *others = found["spec"]["containers"]
    assert (agent["name"], agent["image"], agent["tty"]) == ("agent", "team/trials:2", True)
    assert "train" not in agent["command"]
    assert others == beside
    assert found["metadata"]["annotations"] == {"team": "vision"}


def test_reused_framework_of_a_template_has_one_task() -> None:
    first, *_ = TEMPLATE["spec"]["taskRoles"]
    section = {"framework": {"spec": {"taskRoles": [{**first, "taskNumber": 3}]}}}

    (role,) = roles(section)

    assert role["taskNumber"] == 1


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


@pytest.mark.parametrize("status", [{"state": "Completed"}, {"state": "AttemptCompleted"}])
def test_framework_that_has_not_failed_has_no_words(status: dict[str, Any]) -> None:
    end = FrameworkWorkload(SECTION).end({"status": status})

    assert end is not None
    assert (end.failed, end.words) == (False, "")


def test_factory_makes_an_adapter_of_kubernetes(tmp_path: Path) -> None:
    section = PlatformSection("frameworkcontroller", SECTION)
    context = front_context(tmp_path, INSTALLATION, POOL, section)

    assert isinstance(frameworkcontroller_adapter(context), KubernetesAdapter)


def test_framework_of_a_reused_agent_is_this_one() -> None:
    found = framework(SECTION)
    pod = found["spec"]["taskRoles"][0]["task"].pop("pod")

    no_retry = {"fancyRetryPolicy": False, "maxRetryCount": 0}
    labels = {**LABELS, "nni-agent": str(agent_name(1))}
    name = FrameworkWorkload(SECTION).object_name(agent_name(1))
    assert found == {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": name, "labels": labels, "annotations": {}},
        "spec": {
            "executionType": "Start",
            "retryPolicy": no_retry,
            "taskRoles": [
                {
                    "name": "worker",
                    "taskNumber": 1,
                    "frameworkAttemptCompletionPolicy": {
                        "minFailedTaskCount": 1,
                        "minSucceededTaskCount": 1,
                    },
                    "task": {"retryPolicy": no_retry, "podGracefulDeletionTimeoutSec": 32},
                }
            ],
        },
    }
    assert pod["metadata"]["labels"] == labels


def test_frameworks_are_deleted_after_their_pods() -> None:
    kind = FrameworkWorkload(SECTION).kind

    assert (
        kind.path == "/apis/frameworkcontroller.microsoft.com/v1/namespaces/{namespace}/frameworks"
    )
    assert (kind.propagation, kind.operator) == ("Foreground", "FrameworkController")


def test_other_roles_have_their_own_image_and_the_label_of_their_role() -> None:
    server = {**SERVER, "dockerImage": "team/ps:1", "cpuNumber": 2, "taskNumber": 3}

    worker, servers = roles({"taskRoles": [WORKER, server], "reuseMode": False})

    assert servers["taskNumber"] == 3
    assert container(servers)["image"] == "team/ps:1"
    assert container(servers)["resources"]["limits"] == {"cpu": "2"}
    assert servers["task"]["pod"]["metadata"]["labels"]["nni-role"] == "ps"
    assert "nni-role" not in worker["task"]["pod"]["metadata"]["labels"]


def test_roles_of_a_template_beside_the_agent_have_its_labels_and_their_role() -> None:
    _, servers = roles({"framework": TEMPLATE, "reuseMode": False})

    assert servers["task"]["pod"]["metadata"]["labels"] == {
        **LABELS, "nni-agent": str(agent_name(1)), "nni-role": "ps"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("section", "rule"),
    [
        ({}, "must be given, or configPath"),
        ({"framework": {**TEMPLATE, "kind": "Job"}}, "must be a Framework"),
        ({"framework": {}}, "must have spec.taskRoles, a list of mappings"),
        ({"framework": with_pod({"containers": [{}]}, taskNumber=0)},
         "must have spec.taskRoles[0].taskNumber as a whole number of at least 1"),
        ({"framework": with_pod({})},
         "must have spec.taskRoles[0].task.pod.spec.containers, a list of mappings"),
        ({"framework": with_pod({"containers": [{}], "initContainers": {}})},
         "must have spec.taskRoles[0].task.pod.spec.initContainers as a list"),
        ({"taskRoles": [{"name": "A"}]}, "must be lower-case letters and digits, at most 63"),
        ({"taskRoles": [WORKER, {"name": "ps"}], "reuseMode": False},
         "must be given with reuseMode: false"),
    ],
)  # fmt: skip
def test_broken_rule_is_explained(section: dict[str, Any], rule: str) -> None:
    (problem,) = FrameworkWorkload(section).problems()

    assert problem.rule == rule


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ({"minFailedTaskCount": -1, "minSucceedTaskCount": 3.0}, (-1, 3)),
        ({"minSucceededTaskCount": 2, "minSucceedTaskCount": 5}, (1, 2)),
        ({"minFailedTaskCount": -2, "minSucceededTaskCount": 0}, (1, 0)),
        ("all", (1, 1)),
    ],
)
def test_counts_of_a_policy_are_whole_numbers_or_minus_one(
    policy: object, found: tuple[int, int]
) -> None:
    worker = {"name": "worker", "frameworkAttemptCompletionPolicy": policy}

    (role,) = roles({"taskRoles": [worker], "reuseMode": False})

    assert role["frameworkAttemptCompletionPolicy"] == {
        "minFailedTaskCount": found[0], "minSucceededTaskCount": found[1]
    }  # fmt: skip
