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


SOURCES_RULE = (
    "must have exactly one of nfs, persistentVolumeClaim, hostPath, emptyDir, configMap, secret"
)
TEXTS = {
    "context": "context", "namespace": "namespace", "kubeconfig": "kubeconfig", "image": "image",
    "imagePullPolicy": "image_pull_policy", "cpus": "cpus", "memory": "memory",
    "ephemeralStorage": "ephemeral_storage", "gpuResource": "gpu_resource",
    "priorityClass": "priority_class", "queue": "queue", "serviceAccount": "service_account",
    "podSecurity": "pod_security", "python": "python", "pythonPath": "python_path",
}  # fmt: skip
NUMBERS = {
    "gpus": "gpus", "runAsUser": "run_as_user", "graceSeconds": "grace_seconds",
    "ttlSecondsAfterFinished": "ttl_seconds_after_finished",
}  # fmt: skip
MAPPINGS = {
    "nodeSelector": "node_selector", "podTemplate": "pod_template", "labels": "labels",
    "annotations": "annotations",
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), TEXTS.items())
def test_text_is_read_into_its_option(name: str, field: str) -> None:
    assert getattr(parse_options({name: "a"}), field) == "a"
    assert [one.rule for one in option_problems({name: ["a"]})] == ["must be text"]


@pytest.mark.parametrize(("name", "field"), NUMBERS.items())
def test_number_is_read_into_its_option(name: str, field: str) -> None:
    assert getattr(parse_options({name: 7}), field) == 7
    assert [one.rule for one in option_problems({name: -1})] == [
        "must be a whole number of at least 0"
    ]


@pytest.mark.parametrize(("name", "field"), MAPPINGS.items())
def test_mapping_is_read_into_its_option(name: str, field: str) -> None:
    assert getattr(parse_options({name: {"a": {}}}), field) == {"a": {}}
    assert [one.rule for one in option_problems({name: 7})] == [
        "must be a mapping of names to values"
    ]


@pytest.mark.parametrize("name", ["inCluster", "reuseMode"])
def test_flag_is_true_or_false(name: str) -> None:
    assert [one.rule for one in option_problems({name: 1})] == ["must be true or false"]


@pytest.mark.parametrize("name", ["volumes", "secrets", "tolerations"])
def test_list_of_mappings_is_one(name: str) -> None:
    assert option_problems({name: [{}, 7]})[0].rule == "must be a list of mappings"


@pytest.mark.parametrize("name", ["imagePullSecrets", "setupLines"])
def test_list_of_texts_is_one(name: str) -> None:
    assert [one.rule for one in option_problems({name: [7]})] == ["must be a list of texts"]


@pytest.mark.parametrize(
    ("options", "rule", "remedy"),
    [
        ({"imagePullPolicy": "No"}, "must be one of Always, IfNotPresent, Never", ""),
        ({"podSecurity": "no"}, "must be restricted or none", ""),
        ({"runAsUser": 0}, "must not be 0, which is root",
         "choose another user, or podSecurity: none"),
        ({"graceSeconds": 3}, "must be >= 4 and <= 120", ""),
        ({"memory": "1m"},
         "must be at least 16Mi: a number without unit is bytes, and m are thousandths",
         "16Gi are 16 gibibytes"),
        ({"cpus": "two"}, "must be a quantity of Kubernetes, such as 2, 500m or 16Gi", ""),
        ({"volumes": [{"mountPath": "/a"}]}, SOURCES_RULE, "others go into podTemplate"),
        ({"volumes": [{**NFS, "odd": 1}]}, "is not known", "is it misspelled?"),
        ({"volumes": [{"emptyDir": 1, "mountPath": "/a"}]}, "must be a mapping",
         "the fields are those of Kubernetes; without any, write {}"),
        ({"volumes": [{**NFS, "mountPath": "/nni/a"}]},
         "must not be in /nni, which is the agent's", ""),
        ({"secrets": [{"name": "_"}]}, "must be the name of a Secret of the namespace", ""),
        ({"secrets": [{"name": "a", "env": "1A", "key": "b"}]},
         "must be the name of a variable", ""),
    ],
)  # fmt: skip
def test_broken_rule_is_explained(options: dict[str, Any], rule: str, remedy: str) -> None:
    (problem,) = option_problems(options)

    assert (problem.rule, problem.remedy) == (rule, remedy)


@pytest.mark.parametrize(
    "image",
    ["trials", "team/trials", "a-b/c.d_e:1", "registry:5000/a", "Registry.example.org/a:v1",
     "a:" + "b" * 128, "a@sha256:" + "0" * 64],
)  # fmt: skip
def test_name_of_an_image_is_accepted(image: str) -> None:
    assert option_problems({"image": image}) == []


@pytest.mark.parametrize(
    "image",
    ["trials:", "/trials", "a//b:", "a:" + "b" * 129, "a@sha256:" + "0" * 63, "a\n", "a:-1",
     "https://registry/a"],
)  # fmt: skip
def test_name_of_an_image_that_no_registry_has_is_refused(image: str) -> None:
    assert fields({"image": image}) == ["image"]


@pytest.mark.parametrize("name", ["a.b-c", "a" * 253, "1"])
def test_name_of_an_object_is_accepted(name: str) -> None:
    assert option_problems({"serviceAccount": name, "queue": name, "priorityClass": name}) == []


@pytest.mark.parametrize("name", ["a.", "-a", "a" * 254, "A", "a\n"])
def test_name_that_no_object_has_is_refused(name: str) -> None:
    assert fields({"priorityClass": name}) == ["priorityClass"]
