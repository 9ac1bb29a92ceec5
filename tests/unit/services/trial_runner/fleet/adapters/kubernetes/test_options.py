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


def test_long_value_is_shown_by_its_first_80_characters() -> None:
    claim = "a" * 100

    (problem,) = [
        one
        for one in option_problems({"volumes": [{"emptyDir": claim, "mountPath": "/data"}]})
        if one.field == "volumes[0].emptyDir"
    ]

    assert problem.value == f"'{claim[:79]}"


@pytest.mark.parametrize(
    "options",
    [
        {"graceSeconds": 4},
        {"graceSeconds": 120},
        {"runAsUser": 1},
        {"gpus": 0},
        {"inCluster": True},
        {"inCluster": False, "context": "lab", "kubeconfig": "/config"},
        {"cpus": "1"},  # the least size is one of memory
        {"volumes": [{**NFS, "mountPath": "/nnix"}]},
        {"volumes": [NFS, {**NFS, "mountPath": "/data/more"}]},
        {"volumes": [{**NFS, "name": "data", "readOnly": True, "subPath": "a"}]},
        {"namespace": "a" * 63},
        {"podTemplate": {"metadata": {}, "spec": {}}},
        {"podTemplate": {"spec": {"containers": [{"name": "proxy", "args": []}]}}},
        {"setupLines": "module load cuda"},
    ],
)
def test_value_at_a_limit_has_no_problem(options: dict[str, Any]) -> None:
    assert option_problems(options) == []


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"graceSeconds": 3}, "graceSeconds"),
        ({"gpus": -1}, "gpus"),
        ({"gpus": True}, "gpus"),
        ({"cpus": True}, "cpus"),
        ({"reuseMode": "no"}, "reuseMode"),
        ({"labels": ["a"]}, "labels"),
        ({"tolerations": ["a"]}, "tolerations"),
        ({"tolerations": "a"}, "tolerations"),
        ({"ephemeralStorage": "16383Ki"}, "ephemeralStorage"),
        ({"cpus": "0"}, "cpus"),
        ({"inCluster": True, "kubeconfig": "/config"}, "inCluster"),
        ({"pythonPath": "a\nb"}, "pythonPath"),
        ({"namespace": "a" * 64}, "namespace"),
        ({"serviceAccount": "_"}, "serviceAccount"),
        ({"volumes": [{**NFS, "mountPath": "/nni"}]}, "volumes[0].mountPath"),
        ({"volumes": [{**NFS, "mountPath": "/a:b"}]}, "volumes[0].mountPath"),
        ({"volumes": [{**NFS, "mountPath": 7}]}, "volumes[0].mountPath"),
        ({"secrets": [{"name": "a", "key": "b"}]}, "secrets[0]"),
        ({"secrets": [{"name": "a", "mountPath": "a"}]}, "secrets[0].mountPath"),
        (
            {"secrets": [{"name": name, "mountPath": "/a"} for name in "ab"]},
            "secrets[1].mountPath",
        ),
        ({"podTemplate": {"metadata": {"annotations": None}}}, "podTemplate.metadata.annotations"),
        ({"podTemplate": {"spec": {"containers": "agent"}}}, "podTemplate.spec.containers"),
        ({"podTemplate": {"spec": {"containers": ["a"]}}}, "podTemplate.spec.containers[0]"),
        (
            {"podTemplate": {"spec": {"containers": [{"name": "agent", "command": []}]}}},
            "podTemplate.spec.containers[0]",
        ),
    ],
)
def test_broken_rule_is_the_only_problem(options: dict[str, Any], field: str) -> None:
    assert fields(options) == [field]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"gpus": "a" * 100}, f"'{'a' * 79}"),
        ({"python": "\n" * 100}, "'" + "\\n" * 39 + "\\"),
    ],
)
def test_wrong_value_is_shown_by_its_first_80_characters(
    options: dict[str, Any], value: str
) -> None:
    (problem,) = option_problems(options)

    assert problem.value == value
    assert len(problem.value) == 80


def test_several_secrets_and_lists_are_read() -> None:
    options = parse_options(
        {"tolerations": ({"key": "gpu"},), "gpus": 0, "reuseMode": False, "inCluster": False}
    )

    assert options.tolerations == ({"key": "gpu"},)
    assert (options.gpus, options.reuse_mode, options.in_cluster) == (0, False, False)


def test_agents_have_half_a_minute_and_their_jobs_are_kept_for_a_day() -> None:
    options = parse_options({})

    assert (options.grace_seconds, options.ttl_seconds_after_finished) == (30, 24 * 3600)
