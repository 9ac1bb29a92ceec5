from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.adapters.kubernetes.manifests import labels_of_pool
from svc_trial_runner.fleet.adapters.operators.adaptdl import (
    CHECKPOINT_PATH,
    AdaptDlWorkload,
    adl_adapter,
)
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.local_platforms import front_context

LABELS = labels_of_pool(INSTALLATION, POOL, "adl")
SECTION: dict[str, Any] = {
    "dockerImage": "team/trials:1",
    "trialCpuNumber": "1",
    "trialMemorySize": "8Gi",
    "imagePullSecrets": ["registry"],
    "storage": {"server": "nas", "path": "/", "containerMountPath": "/nfs"},
    "checkpoint": {"storageClass": "dfs", "storageSize": "1Gi"},
}


def job(section: dict[str, Any]) -> dict[str, Any]:
    return AdaptDlWorkload(section).manifest(agent_order(agent_name(1)), LABELS, "4.0")


@pytest.mark.claim("platform", 82)
def test_job_has_the_documented_fields() -> None:
    found = job(SECTION)
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert (found["apiVersion"], found["kind"]) == ("adaptdl.petuum.com/v1", "AdaptDLJob")
    assert container["image"] == "team/trials:1"
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "8Gi"}
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert {"name": "nni-storage", "nfs": {"server": "nas", "path": "/"}} in pod["volumes"]
    assert {"name": "nni-storage", "mountPath": "/nfs"} in container["volumeMounts"]
    assert {"name": "nni-checkpoint", "mountPath": CHECKPOINT_PATH} in container["volumeMounts"]


@pytest.mark.parametrize("adaptive", [True, False])
def test_job_has_one_pod_that_may_be_moved_if_it_is_adaptive(adaptive: bool) -> None:
    spec = job({**SECTION, "adaptive": adaptive})["spec"]

    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 1)
    assert spec["preemptible"] is adaptive


def test_namespace_is_the_documented_default() -> None:
    assert AdaptDlWorkload({}).options.namespace == "default"
    assert AdaptDlWorkload({"namespace": "tuning"}).options.namespace == "tuning"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"trialMemorySize": "8gb"}, "trialMemorySize"),
        ({"adaptive": "yes"}, "adaptive"),
        ({"dockerImage": "msranni/nni"}, "dockerImage"),
        ({"storage": {"server": "nas", "path": "/"}}, "storage.containerMountPath"),
        (
            {"storage": {"server": "nas", "path": "/", "containerMountPath": "nfs"}},
            "storage.containerMountPath",
        ),
        ({"checkpoint": {"storageSize": "1Gi"}}, "checkpoint.storageClass"),
        ({"checkpoint": "dfs"}, "checkpoint"),
    ],
)
def test_broken_rule_is_named(changes: dict[str, Any], field: str) -> None:
    (problem,) = AdaptDlWorkload({**SECTION, **changes}).problems()

    assert problem.field == field


def test_phase_of_a_job_is_its_end() -> None:
    workload = AdaptDlWorkload(SECTION)
    failed = {"phase": "Failed", "reason": "PodFailure", "message": "p-0-0 Failed"}

    end = workload.end({"status": failed})

    assert end is not None
    assert (end.failed, end.words) == (True, "PodFailure: p-0-0 Failed")
    assert workload.end({"status": {"phase": "Running"}}) is None
    succeeded = workload.end({"status": {"phase": "Succeeded"}})
    assert succeeded is not None
    assert not succeeded.failed


def test_section_that_keeps_the_rules_has_no_problem() -> None:
    assert AdaptDlWorkload(SECTION).problems() == []
    assert AdaptDlWorkload({"adaptive": False}).problems() == []


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"adaptive": "a" * 100}, f"'{'a' * 79}"),
        ({"storage": {**SECTION["storage"], "containerMountPath": "a" * 100}}, "a" * 80),
    ],
)
def test_long_value_is_shown_by_its_first_80_characters(
    changes: dict[str, Any], value: str
) -> None:
    (problem,) = AdaptDlWorkload({**SECTION, **changes}).problems()

    assert problem.value == value


@pytest.mark.parametrize("server", [7, ""])
def test_server_of_the_storage_is_a_text(server: object) -> None:
    storage = {**SECTION["storage"], "server": server}

    (problem,) = AdaptDlWorkload({**SECTION, "storage": storage}).problems()

    assert problem.field == "storage.server"


def test_job_without_storage_has_the_volumes_of_the_agent_alone() -> None:
    pod = job({"dockerImage": "team/trials:1"})["spec"]["template"]["spec"]

    assert [one["name"] for one in pod["volumes"]] == ["nni-home", "nni-settings", "nni-secret"]


def test_factory_makes_an_adapter_of_kubernetes(tmp_path: Path) -> None:
    context = front_context(tmp_path, INSTALLATION, POOL, PlatformSection("adl", SECTION))

    assert isinstance(adl_adapter(context), KubernetesAdapter)


def test_volumes_of_storage_and_checkpoint_are_these() -> None:
    pod = job(SECTION)["spec"]["template"]["spec"]

    assert pod["volumes"][-2:] == [
        {"name": "nni-storage", "nfs": {"server": "nas", "path": "/"}},
        {
            "name": "nni-checkpoint",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "dfs",
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            },
        },
    ]
    assert pod["containers"][0]["volumeMounts"][-2:] == [
        {"name": "nni-storage", "mountPath": "/nfs"},
        {"name": "nni-checkpoint", "mountPath": "/mnt/adaptdl/checkpoint"},
    ]


def test_job_is_moved_only_on_demand() -> None:
    found = job(SECTION)

    assert found["spec"]["preemptible"] is False
    assert set(found["spec"]) == {"minReplicas", "maxReplicas", "preemptible", "template"}
    assert found["metadata"]["name"] == str(agent_name(1))
    assert found["metadata"]["labels"] == {**LABELS, "nni-agent": str(agent_name(1))}
    assert AdaptDlWorkload(SECTION).kind.path == (
        "/apis/adaptdl.petuum.com/v1/namespaces/{namespace}/adaptdljobs"
    )


@pytest.mark.parametrize(
    ("changes", "field", "rule"),
    [
        ({"trialCpuNumber": "four"}, "trialCpuNumber",
         "must be a quantity of Kubernetes, such as 2, 500m or 16Gi"),
        ({"trialGpuNumber": "two"}, "trialGpuNumber", "must be a whole number of at least 0"),
        ({"storage": "nas"}, "storage", "must be a mapping with server, path, containerMountPath"),
        ({"checkpoint": []}, "checkpoint", "must be a mapping with storageClass, storageSize"),
        ({"checkpoint": {"storageClass": "a"}}, "checkpoint.storageSize", "must be given"),
        ({"storage": {**SECTION["storage"], "containerMountPath": "/a:b"}},
         "storage.containerMountPath", "must be an absolute path in the container"),
        ({"adaptive": 1}, "adaptive", "must be true or false"),
    ],
)  # fmt: skip
def test_broken_rule_is_explained_under_the_name_of_the_platform(
    changes: dict[str, Any], field: str, rule: str
) -> None:
    problems = AdaptDlWorkload({**SECTION, **changes}).problems()

    assert (field, rule) in [(one.field, one.rule) for one in problems]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Failed"}, ""),
        ({"phase": "Failed", "message": "a"}, "a"),
        ({"phase": "Failed", "reason": "b"}, "b"),
    ],
)
def test_words_of_a_failed_job_are_what_is_known(status: dict[str, str], words: str) -> None:
    end = AdaptDlWorkload(SECTION).end({"status": status})

    assert end is not None
    assert (end.failed, end.words) == (True, words)
    assert AdaptDlWorkload(SECTION).end({"status": None}) is None
