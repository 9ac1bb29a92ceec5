from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.kubernetes.options import (
    given_options,
    option_problems,
    parse_options,
)
from svc_trial_runner.fleet.domain.agents import PlatformSection

NFS = {"nfs": {"server": "nas", "path": "/data"}, "mountPath": "/data"}


def fields(options: dict[str, Any]) -> list[str]:
    return [problem.field for problem in option_problems(options)]


def test_section_without_options_has_no_problem() -> None:
    assert option_problems({}) == []


def test_complete_section_has_no_problem() -> None:
    options = {
        "context": "lab",
        "namespace": "tuning",
        "image": "registry.example.org:5000/team/trials:1.2@sha256:" + "0" * 64,
        "imagePullSecrets": ["registry"],
        "cpus": 4,
        "memory": "16Gi",
        "gpus": 1,
        "volumes": [NFS, {"emptyDir": {"medium": "Memory"}, "mountPath": "/dev/shm"}],
        "secrets": [
            {"name": "wandb", "key": "token", "env": "WANDB_API_KEY"},
            {"name": "files", "mountPath": "/secrets"},
            {"name": "all-of-it"},
        ],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "podTemplate": {"spec": {"containers": [{"name": "agent", "tty": True}]}},
    }

    assert option_problems(options) == []


def test_labels_with_the_name_of_a_secret_are_in_the_objects() -> None:
    section = PlatformSection(
        "kubernetes",
        {"nodeSelector": {"zone": "a"}, "podTemplate": {"metadata": {"annotations": {}}}},
        {
            "nodeSelector.lab.org/auth": "yes",
            "podTemplate.metadata.annotations.vault/secret": "trials",
            "sharedStorage.accountKey": "hidden",
        },
    )

    options = given_options(section)

    assert options == {
        "nodeSelector": {"zone": "a", "lab.org/auth": "yes"},
        "podTemplate": {"metadata": {"annotations": {"vault/secret": "trials"}}},
    }
    assert parse_options(options).node_selector["lab.org/auth"] == "yes"


def test_number_of_cpus_is_read_as_a_quantity() -> None:
    assert parse_options({"cpus": 4}).cpus == "4"


def test_value_of_a_wrong_type_is_a_problem_and_not_an_option() -> None:
    assert fields({"gpus": "two"}) == ["gpus"]
    assert parse_options({"gpus": "two"}).gpus is None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"namespace": "Tuning"}, "namespace"),
        ({"image": "team/Trials:1"}, "image"),
        ({"image": "a b"}, "image"),
        ({"imagePullSecrets": ["_"]}, "imagePullSecrets[0]"),
        ({"imagePullPolicy": "Sometimes"}, "imagePullPolicy"),
        ({"podSecurity": "baseline"}, "podSecurity"),
        ({"runAsUser": 0}, "runAsUser"),
        ({"graceSeconds": 1}, "graceSeconds"),
        ({"graceSeconds": 121}, "graceSeconds"),
        ({"inCluster": True, "context": "lab"}, "inCluster"),
        ({"python": "a\nb"}, "python"),
        ({"cpus": "4 cores"}, "cpus"),
        ({"memory": "16GB"}, "memory"),
        ({"volumes": [{"mountPath": "/data"}]}, "volumes[0]"),
        ({"volumes": [{**NFS, "mountPath": "data"}]}, "volumes[0].mountPath"),
        ({"volumes": [{**NFS, "mountPath": "/nni/home"}]}, "volumes[0].mountPath"),
        ({"volumes": [NFS, NFS]}, "volumes[1].mountPath"),
        ({"volumes": [{**NFS, "mountpath": "/b"}]}, "volumes[0].mountpath"),
        (
            {"volumes": [{"persistentVolumeClaim": "data", "emptyDir": {}, "mountPath": "/data"}]},
            "volumes[0]",
        ),
        ({"volumes": [{"emptyDir": None, "mountPath": "/data"}]}, "volumes[0].emptyDir"),
        ({"secrets": [{"key": "token"}]}, "secrets[0].name"),
        ({"secrets": [{"name": "a", "env": "A", "mountPath": "/a"}]}, "secrets[0]"),
        ({"secrets": [{"name": "a", "env": "A"}]}, "secrets[0]"),
        ({"secrets": [{"name": "a", "env": "A-B", "key": "b"}]}, "secrets[0].env"),
        ({"podTemplate": {"spec": []}}, "podTemplate.spec"),
        ({"podTemplate": {"metadata": None}}, "podTemplate.metadata"),
        ({"podTemplate": {"metadata": {"labels": None}}}, "podTemplate.metadata.labels"),
        (
            {"podTemplate": {"spec": {"restartPolicy": "Always"}}},
            "podTemplate.spec.restartPolicy",
        ),
        ({"podTemplate": {"spec": {"containers": {}}}}, "podTemplate.spec.containers"),
        (
            {"podTemplate": {"spec": {"containers": [{"image": "a"}]}}},
            "podTemplate.spec.containers[0]",
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"name": "agent", "args": []}]}}},
            "podTemplate.spec.containers[0]",
        ),
    ],
)
def test_broken_rule_names_its_field(options: dict[str, Any], field: str) -> None:
    assert field in fields(options)


def test_memory_without_unit_is_refused_since_it_is_bytes() -> None:
    (problem,) = option_problems({"memory": 8192})

    assert "bytes" in problem.rule


@pytest.mark.parametrize(("memory", "problems"), [("16Mi", []), ("16383Ki", ["memory"])])
def test_least_memory_is_sixteen_mebibytes(memory: str, problems: list[str]) -> None:
    assert [problem.field for problem in option_problems({"memory": memory})] == problems


def test_value_of_a_secret_in_the_section_is_refused_and_not_repeated() -> None:
    (problem,) = option_problems({"secrets": [{"name": "a", "value": "hunter2"}]})

    assert problem.field == "secrets[0].value"
    assert "hunter2" not in str(problem)


def test_root_is_allowed_without_pod_security() -> None:
    assert option_problems({"runAsUser": 0, "podSecurity": "none"}) == []
