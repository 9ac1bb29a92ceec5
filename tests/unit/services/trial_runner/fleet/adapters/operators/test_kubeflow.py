from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.manifests import labels_of_pool
from svc_trial_runner.fleet.adapters.operators.kubeflow import KubeflowWorkload, kubeflow_adapter
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, agent_name, agent_order
from tests.support.kubernetes.agents import IMAGE, KubernetesCluster, sleeping_cluster
from tests.support.kubernetes.objects import OVER

LABELS = labels_of_pool(INSTALLATION, POOL, "kubeflow")
ROLE = {"replicas": 2, "command": "python3 /app/train.py", "dockerImage": IMAGE, "gpuNumber": 1}
SERVERS = {**ROLE, "command": "python3 /app/serve.py", "gpuNumber": 0, "memorySize": 4096}
TENSORFLOW: dict[str, Any] = {"operator": "tf-operator", "worker": ROLE, "ps": SERVERS}
PYTORCH: dict[str, Any] = {"operator": "pytorch-operator", "worker": ROLE, "master": {}}


def job(section: dict[str, Any]) -> dict[str, Any]:
    return KubeflowWorkload(section).manifest(agent_order(agent_name(1)), LABELS, "4.0")


def replicas(section: dict[str, Any]) -> dict[str, Any]:
    spec = job(section)["spec"]
    found: dict[str, Any] = spec.get("tfReplicaSpecs") or spec["pytorchReplicaSpecs"]
    return found


def container(replica: dict[str, Any]) -> dict[str, Any]:
    (found,) = replica["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubernetesCluster]:
    with sleeping_cluster(tmp_path) as one:
        yield one


@pytest.mark.parametrize(
    ("section", "kind", "chief", "name"),
    [
        (TENSORFLOW, "TFJob", "Chief", "tensorflow"),
        (PYTORCH, "PyTorchJob", "Master", "pytorch"),
    ],
)
def test_agent_is_the_only_pod_of_a_reused_job(
    section: dict[str, Any], kind: str, chief: str, name: str
) -> None:
    found = replicas(section)

    assert job(section)["kind"] == kind
    assert list(found) == [chief]
    assert found[chief]["replicas"] == 1
    assert container(found[chief])["name"] == name
    assert "svc_trial_runner" in container(found[chief])["command"]


@pytest.mark.claim("platform", 82)
def test_job_of_one_trial_has_the_documented_roles() -> None:
    found = replicas({**TENSORFLOW, "reuseMode": False})

    assert {kind: one["replicas"] for kind, one in found.items()} == {
        "Chief": 1, "Worker": 1, "PS": 2
    }  # fmt: skip
    assert container(found["PS"])["command"] == ["/bin/sh", "-c", "python3 /app/serve.py"]
    assert container(found["PS"])["resources"]["limits"]["memory"] == "4096Mi"
    assert container(found["Worker"])["resources"]["limits"] == {"nvidia.com/gpu": "1"}


def test_master_is_not_one_of_the_workers() -> None:
    found = replicas({**PYTORCH, "reuseMode": False})

    assert {kind: one["replicas"] for kind, one in found.items()} == {"Master": 1, "Worker": 2}


def test_other_roles_do_not_get_the_settings_of_the_agent() -> None:
    found = replicas({**TENSORFLOW, "reuseMode": False})

    for kind in ("Worker", "PS"):
        spec = found[kind]["template"]["spec"]
        assert spec["initContainers"] == []
        assert [one["name"] for one in spec["volumes"]] == ["nni-home"]
        assert [one["name"] for one in container(found[kind])["volumeMounts"]] == ["nni-home"]


def test_failed_job_is_not_tried_again() -> None:
    spec = job(TENSORFLOW)["spec"]

    assert spec["runPolicy"]["backoffLimit"] == 0
    assert spec["tfReplicaSpecs"]["Chief"]["restartPolicy"] == "Never"


def test_queue_of_kueue_starts_the_job() -> None:
    found = job({**TENSORFLOW, "queue": "team"})

    assert found["spec"]["runPolicy"]["suspend"] is True
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"operator": "mpi-operator"}, "operator"),
        ({"apiVersion": "v1alpha2"}, "apiVersion"),
        ({"worker": None}, "worker"),
        ({"master": {}}, "master"),
        ({"worker": {"replicas": "two"}}, "worker.replicas"),
        ({"ps": {"command": " "}, "reuseMode": False}, "ps.command"),
        ({"podTemplate": {"spec": {"containers": [{"name": "tensorflow", "args": ["a"]}]}}},
         "podTemplate.spec.containers[0]"),
        ({"worker": {"dockerImage": "Not An Image"}}, "worker.dockerImage"),
    ],
)  # fmt: skip
def test_broken_rule_is_named(changes: dict[str, Any], field: str) -> None:
    (problem,) = KubeflowWorkload({**TENSORFLOW, **changes}).problems()

    assert problem.field == field


def test_usable_sections_have_no_problem() -> None:
    assert KubeflowWorkload({**TENSORFLOW, "reuseMode": False}).problems() == []
    assert KubeflowWorkload({**PYTORCH, "reuseMode": False}).problems() == []


def test_last_condition_of_a_job_is_its_end() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "PodFailed", "message": "exit code 1"}
    workload = KubeflowWorkload(TENSORFLOW)

    end = workload.end({"status": {"conditions": [failed]}})

    assert end is not None
    assert (end.failed, end.words) == (True, "PodFailed: exit code 1")
    assert workload.end({"status": {"conditions": [{"type": "Running", "status": "True"}]}}) is None


async def test_operator_that_is_not_installed_is_named(cluster: KubernetesCluster) -> None:
    cluster.server.operators.discard("kubeflow.org")
    adapter = kubeflow_adapter(
        cluster.context(POOL, INSTALLATION, "kubeflow", "kubeflow", TENSORFLOW)
    )

    (problem,) = await adapter.check()
    await adapter.aclose()

    assert problem.field == "platform"
    assert "training operator" in problem.rule
    assert not problem.permanent


async def test_missing_claim_of_the_storage_is_named(cluster: KubernetesCluster) -> None:
    storage = {"storageType": "pvc", "path": "/data", "claimName": "datasets"}
    section = {**TENSORFLOW, "storage": storage}
    adapter = kubeflow_adapter(cluster.context(POOL, INSTALLATION, "kubeflow", "kubeflow", section))

    (problem,) = await adapter.check()
    await adapter.aclose()

    assert (problem.field, problem.value) == ("storage.claimName", "datasets")


async def test_other_roles_of_an_agent_end_with_it(cluster: KubernetesCluster) -> None:
    section = {**TENSORFLOW, "reuseMode": False, "ps": {**SERVERS, "command": "exec sleep 1000"}}
    section["worker"] = {**ROLE, "command": "exec sleep 1000"}
    context = cluster.context(POOL, INSTALLATION, "kubeflow", "kubeflow", section)
    adapter = kubeflow_adapter(context)
    await adapter.prepare()
    assert await adapter.launch([agent_order(agent_name(1))]) == []
    started = cluster.server.objects.list("pods")[0]

    await adapter.terminate([agent_name(1)])
    await adapter.aclose()

    left = cluster.server.objects.list("pods")[0]
    assert len(started) == 4
    assert [one for one in left if one["status"]["phase"] not in OVER] == []


def test_job_of_no_queue_is_not_suspended() -> None:
    assert "suspend" not in job(TENSORFLOW)["spec"]["runPolicy"]


def test_worker_that_is_the_chief_has_no_pods_beside_it() -> None:
    section = {"operator": "tf-operator", "worker": {"replicas": 1}, "reuseMode": False}

    assert KubeflowWorkload(section).problems() == []
    assert {kind: one["replicas"] for kind, one in replicas(section).items()} == {"Chief": 1}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"master": {"replicas": 2}}, "must be 1"),
        ({"ps": {}}, "is no role of pytorch-operator"),
        ({"apiVersion": ["v1"]}, "must be v1, that of the training operator"),
        ({"operator": ["pytorch-operator"]}, "must be one of tf-operator, pytorch-operator"),
        ({"worker": {}, "reuseMode": False}, "must be given with reuseMode: false"),
        ({"gpuNumber": 1, "podSecurity": "x"}, "must be restricted or none"),
    ],
)
def test_broken_rule_of_a_pytorch_job_is_explained(changes: dict[str, Any], rule: str) -> None:
    problems = KubeflowWorkload({**PYTORCH, **changes}).problems()

    assert rule in [problem.rule for problem in problems]


def test_master_of_one_pod_in_the_given_version_is_allowed() -> None:
    section = {**PYTORCH, "master": {"replicas": 1}, "apiVersion": "v1"}

    assert KubeflowWorkload(section).problems() == []


@pytest.mark.parametrize("field", ["operator", "apiVersion"])
def test_long_value_is_shown_by_its_first_80_characters(field: str) -> None:
    (problem,) = KubeflowWorkload({**TENSORFLOW, field: "a" * 100}).problems()

    assert (problem.field, problem.value) == (field, f"'{'a' * 79}")


def test_pods_of_the_chief_are_those_of_the_master_else_of_a_worker() -> None:
    role = {"dockerImage": "team/master:1"}
    workers = {"operator": "pytorch-operator", "worker": {**ROLE, "dockerImage": "team/worker:1"}}

    for section, image in (({**workers, "master": role}, "team/master:1"),
                           (workers, "team/worker:1")):  # fmt: skip
        assert container(replicas(section)["Master"])["image"] == image


def test_object_of_a_reused_agent_is_this_one() -> None:
    found = job({**TENSORFLOW, "ttlSecondsAfterFinished": 60, "labels": {"team": "a"}})
    template = found["spec"]["tfReplicaSpecs"]["Chief"].pop("template")

    labels = {**LABELS, "nni-agent": str(agent_name(1)), "team": "a"}
    assert found == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": str(agent_name(1)), "labels": labels, "annotations": {}},
        "spec": {
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": 0,
                "ttlSecondsAfterFinished": 60,
            },
            "tfReplicaSpecs": {"Chief": {"replicas": 1, "restartPolicy": "Never"}},
        },
    }
    assert template["metadata"]["labels"] == labels
    limits = {"nvidia.com/gpu": "1"}
    assert template["spec"]["containers"][0]["resources"]["limits"] == limits


def test_pods_of_other_roles_have_the_label_of_their_role() -> None:
    found = replicas({**TENSORFLOW, "reuseMode": False})

    roles = {
        kind: one["template"]["metadata"]["labels"].get("nni-role") for kind, one in found.items()
    }
    assert roles == {"Chief": None, "Worker": "worker", "PS": "ps"}
    assert {one["restartPolicy"] for one in found.values()} == {"Never"}


@pytest.mark.parametrize(
    ("section", "path"),
    [(TENSORFLOW, "tfjobs"), (PYTORCH, "pytorchjobs"), ({"worker": ROLE}, "tfjobs")],
)
def test_objects_are_those_of_the_operator(section: dict[str, Any], path: str) -> None:
    workload = KubeflowWorkload(section)

    assert workload.kind.path == f"/apis/kubeflow.org/v1/namespaces/{{namespace}}/{path}"
    assert workload.kind.operator == "the training operator of Kubeflow (API v1)"
    assert workload.platform == "kubeflow"


def test_section_without_an_operator_names_those_that_there_are() -> None:
    (problem,) = KubeflowWorkload({"worker": ROLE}).problems()

    assert (problem.field, problem.value) == ("operator", "None")
    assert problem.rule == "must be one of tf-operator, pytorch-operator"


def test_number_of_masters_is_shown() -> None:
    (problem,) = KubeflowWorkload({**PYTORCH, "master": {"replicas": 2}}).problems()

    assert (problem.field, problem.value) == ("master.replicas", "2")


def test_job_of_a_section_without_roles_has_one_agent() -> None:
    found = replicas({"operator": "pytorch-operator"})

    assert list(found) == ["Master"]
    assert container(found["Master"])["image"] == "nni/trial-runner:4.0"
