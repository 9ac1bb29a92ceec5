from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.api import KubernetesApi
from svc_trial_runner.fleet.adapters.kubernetes.checks import broken_quotas, cluster_problems
from svc_trial_runner.fleet.adapters.kubernetes.options import parse_options
from tests.support.kubernetes.api_server import api_server

if TYPE_CHECKING:
    from svc_trial_runner.fleet.domain.agents import PlatformProblem
    from tests.support.kubernetes.api_server import ApiServer

JOB = {"metadata": {"name": "nni-00000000-check-0"}, "spec": {}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as one:
        yield one


def problems(server: ApiServer, folder: Path, **options: Any) -> list[PlatformProblem]:
    given = {"kubeconfig": str(server.kubeconfig(folder)), **options}
    parsed = parse_options(given)
    api = KubernetesApi(parsed)
    try:
        return cluster_problems(api, parsed, given, JOB)
    finally:
        api.close()


def quota(**hard: str) -> dict[str, Any]:
    return {"metadata": {"name": "team"}, "spec": {"hard": hard}}


def test_usable_section_has_no_problem_and_leaves_nothing(
    server: ApiServer, tmp_path: Path
) -> None:
    assert problems(server, tmp_path) == []
    assert server.objects.list("jobs")[0] == []


def test_unknown_namespace_is_named(server: ApiServer, tmp_path: Path) -> None:
    (problem,) = problems(server, tmp_path, namespace="no-such")

    assert (problem.field, problem.value) == ("namespace", "no-such")


def test_namespace_that_may_not_be_looked_at_is_accepted(server: ApiServer, tmp_path: Path) -> None:
    server.denied |= {("get", "namespaces"), ("list", "resourcequotas")}

    assert problems(server, tmp_path) == []


def test_missing_rights_are_listed(server: ApiServer, tmp_path: Path) -> None:
    server.denied |= {("create", "secrets"), ("watch", "pods")}

    found = problems(server, tmp_path)

    assert ["watch pods" in one.rule or "create secrets" in one.rule for one in found] == [True] * 2
    assert not any(one.permanent for one in found)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"secrets": [{"name": "a"}]}, "secrets[0].name"),
        ({"imagePullSecrets": ["a"]}, "imagePullSecrets[0]"),
        ({"serviceAccount": "a"}, "serviceAccount"),
        ({"priorityClass": "a"}, "priorityClass"),
        ({"queue": "a"}, "queue"),
        (
            {"volumes": [{"persistentVolumeClaim": {"claimName": "a"}, "mountPath": "/a"}]},
            "volumes[0].persistentVolumeClaim.claimName",
        ),
        (
            {"volumes": [{"configMap": {"name": "a"}, "mountPath": "/a"}]},
            "volumes[0].configMap.name",
        ),
    ],
)
def test_name_that_the_cluster_does_not_have_is_a_problem(
    server: ApiServer, tmp_path: Path, options: dict[str, Any], field: str
) -> None:
    assert [one.field for one in problems(server, tmp_path, **options)] == [field]


def test_job_that_the_server_refuses_names_the_option(server: ApiServer, tmp_path: Path) -> None:
    server.invalid = ("spec.template.spec.tolerations[0].effect", "Unsupported value")

    (problem,) = problems(server, tmp_path)

    assert problem.field == "tolerations"
    assert "Unsupported value" in problem.rule


def test_request_beyond_a_quota_is_refused() -> None:
    options = parse_options({"memory": "32Gi", "gpus": 2})
    hard = {"requests.memory": "16Gi", "requests.nvidia.com/gpu": "1"}

    found = broken_quotas(options, [quota(**hard)])

    assert [(one.field, one.value) for one in found] == [("memory", "32Gi"), ("gpus", "2")]


def test_quota_of_a_resource_asks_for_a_request() -> None:
    (problem,) = broken_quotas(parse_options({}), [quota(cpu="8")])

    assert problem.field == "cpus"
    assert "must be given" in problem.rule


def test_quota_of_some_pods_only_is_left_to_the_server() -> None:
    scoped = quota(cpu="8")
    scoped["spec"]["scopes"] = ["BestEffort"]

    assert broken_quotas(parse_options({"cpus": 16}), [scoped]) == []


@pytest.mark.parametrize(
    ("given", "hard", "field"),
    [
        ({"memory": "16Gi"}, {"memory": "16Gi"}, []),
        ({"memory": "17Gi"}, {"memory": "16Gi"}, ["memory"]),
        ({"ephemeralStorage": "2Gi"}, {"limits.ephemeral-storage": "1Gi"}, ["ephemeralStorage"]),
        ({"gpus": 1}, {"nvidia.com/gpu": "1"}, []),
        ({"gpus": 2}, {"nvidia.com/gpu": "1"}, ["gpus"]),
        ({}, {"nvidia.com/gpu": "1"}, []),  # an agent without GPUs needs none
        ({"cpus": 2}, {"cpu": "many"}, []),
        ({"cpus": 2}, {"pods": "1"}, []),
    ],
)
def test_quota_is_the_most_that_a_section_may_ask_for(
    given: dict[str, Any], hard: dict[str, str], field: list[str]
) -> None:
    found = broken_quotas(parse_options(given), [quota(**hard)])

    assert [problem.field for problem in found] == field


def test_quotas_after_one_of_some_pods_are_looked_at() -> None:
    scoped = quota(cpu="8")
    scoped["spec"]["scopeSelector"] = {"matchExpressions": []}

    found = broken_quotas(parse_options({"cpus": 16}), [scoped, quota(cpu="9")])

    assert [problem.rule for problem in found] == ["must be <= 9, as the quota team allows"]


@pytest.mark.parametrize(
    ("field", "given", "names"),
    [
        ("cpus", "9", ("requests.cpu", "cpu", "limits.cpu")),
        ("memory", "9Gi", ("requests.memory", "memory", "limits.memory")),
        ("ephemeralStorage", "9Gi", ("requests.ephemeral-storage", "limits.ephemeral-storage")),
        ("gpus", 9, ("requests.nvidia.com/gpu", "nvidia.com/gpu")),
    ],
)
def test_each_name_of_a_quota_limits_its_option(
    field: str, given: object, names: tuple[str, ...]
) -> None:
    for name in names:
        (problem,) = broken_quotas(parse_options({field: given}), [quota(**{name: "8"})])

        assert (problem.field, problem.value) == (field, str(given))
        assert problem.rule == "must be <= 8, as the quota team allows"


def test_missing_request_names_the_quota() -> None:
    (problem,) = broken_quotas(parse_options({}), [quota(**{"limits.memory": "8Gi"})])

    assert (problem.field, problem.value) == ("memory", "")
    assert problem.rule == "must be given: the quota team of the namespace asks so"


def test_gpus_of_another_kind_have_a_quota_of_their_own() -> None:
    options = parse_options({"gpus": 2, "gpuResource": "amd.com/gpu"})

    assert broken_quotas(options, [quota(**{"nvidia.com/gpu": "1"})]) == []
    assert len(broken_quotas(options, [quota(**{"requests.amd.com/gpu": "1"})])) == 1


def test_quota_without_limits_allows_all() -> None:
    options = parse_options({"cpus": 2})

    assert broken_quotas(options, [{}, {"spec": {}}, {"spec": {"hard": {}}}]) == []


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (("create", "jobs"), "create jobs"), (("delete", "jobs"), "delete jobs"),
        (("deletecollection", "jobs"), "deletecollection jobs"), (("list", "jobs"), "list jobs"),
        (("list", "pods"), "list pods"), (("watch", "pods"), "watch pods"),
        (("create", "secrets"), "create secrets"), (("delete", "secrets"), "delete secrets"),
        (("deletecollection", "secrets"), "deletecollection secrets"),
        (("list", "secrets"), "list secrets"), (("patch", "secrets"), "patch secrets"),
        (("list", "events"), "list events"),
    ],
)  # fmt: skip
def test_each_right_that_is_needed_is_asked_for(
    server: ApiServer, tmp_path: Path, right: tuple[str, str], words: str
) -> None:
    server.denied.add(right)

    (problem,) = problems(server, tmp_path)

    assert (problem.field, problem.value) == ("namespace", "tuning")
    assert problem.rule == f"must be one in which you may {words}"
    assert problem.remedy == (
        "docs/platforms/kubernetes.md has a Role with the rights that NNI needs"
    )


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"secrets": [{"name": "a"}]}, "must be a Secret of the namespace"),
        ({"imagePullSecrets": ["a"]}, "must be a Secret of the namespace"),
        ({"serviceAccount": "a"}, "must be a service account of the namespace"),
        ({"priorityClass": "a"}, "must be a priority class of the cluster"),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "a"}, "mountPath": "/a"}]},
         "must be a claim of the namespace"),
        ({"volumes": [{"configMap": {"name": "a"}, "mountPath": "/a"}]},
         "must be a ConfigMap of the namespace"),
    ],
)  # fmt: skip
def test_missing_object_is_named_with_its_kind(
    server: ApiServer, tmp_path: Path, options: dict[str, Any], rule: str
) -> None:
    (problem,) = problems(server, tmp_path, **options)

    assert (problem.rule, problem.value) == (rule, "a")


def test_missing_namespace_has_a_remedy(server: ApiServer, tmp_path: Path) -> None:
    (problem,) = problems(server, tmp_path, namespace="no-such")

    assert problem.rule == "must be a namespace of the cluster"
    assert problem.remedy == "kubectl create namespace no-such, or choose another one"
