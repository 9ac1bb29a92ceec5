from __future__ import annotations

from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.kubernetes.options import parse_options
from svc_trial_runner.fleet.adapters.operators.sections import (
    PodRole,
    base_options,
    base_problems,
    parse_role,
    pod_problems,
    role_options,
    role_problems,
    storage_problems,
    storage_volume,
)

NFS = {"storageType": "nfs", "server": "nas", "path": "/export"}


@pytest.mark.parametrize(
    ("size", "quantity"),
    [(8192, "8192Mi"), (8192.0, "8192Mi"), ("8gb", "8192Mi"), ("8GB", "8192Mi"), ("1kb", "1Mi")],
)
def test_memory_is_megabytes_or_has_a_unit(size: object, quantity: str) -> None:
    assert parse_role("worker", {"memorySize": size}).memory == quantity


def test_numbers_of_a_message_are_floats() -> None:
    role = parse_role("worker", {"replicas": 2.0, "cpuNumber": 4.0, "gpuNumber": 1.0})

    assert (role.count, role.cpus, role.gpus) == (2, "4", 1)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"replicas": 0}, "worker.replicas"),
        ({"replicas": 1.5}, "worker.replicas"),
        ({"memorySize": "8Gi"}, "worker.memorySize"),
        ({"memorySize": True}, "worker.memorySize"),
        ({"cpuNumber": -1}, "worker.cpuNumber"),
        ({"gpuNumber": "one"}, "worker.gpuNumber"),
        ({"gpuNumber": 0.5}, "worker.gpuNumber"),
        ({"gpuNumber": float("inf")}, "worker.gpuNumber"),
        ({"cpuNumber": float("nan")}, "worker.cpuNumber"),
        ({"replicas": float("inf")}, "worker.replicas"),
        ({"memorySize": f"{10**400}tb"}, "worker.memorySize"),
        ({"dockerImage": "msranni/nni:latest"}, "worker.dockerImage"),
    ],
)
def test_broken_field_of_a_role_is_named(given: dict[str, Any], field: str) -> None:
    (problem,) = role_problems("worker", given)

    assert problem.field == field
    assert parse_role("worker", given).field == "worker"


def test_no_processor_is_as_if_none_was_given() -> None:
    assert list(role_problems("worker", {"cpuNumber": 0})) == []
    assert parse_role("worker", {"cpuNumber": 0}).cpus == ""


def test_pods_of_a_role_have_its_image_and_resources() -> None:
    role = parse_role("ps", {"dockerImage": "team/ps", "cpuNumber": 2, "memorySize": "1gb"})

    options = role_options(base_options({"image": "other", "namespace": "tuning"}), role)

    assert (options.image, options.cpus, options.memory) == ("team/ps", "2", "1024Mi")
    assert options.namespace == "tuning"


@pytest.mark.parametrize(
    ("storage", "source"),
    [
        (NFS, {"nfs": {"server": "nas", "path": "/export"}}),
        (
            {"storageType": "azureStorage", "azureShare": "share", "secretName": "key"},
            {"azureFile": {"secretName": "key", "shareName": "share"}},
        ),
        (
            {"storageType": "pvc", "path": "/data", "claimName": "c"},
            {"persistentVolumeClaim": {"claimName": "c"}},
        ),
    ],
)
def test_storage_is_a_volume_of_the_pods(storage: dict[str, str], source: dict[str, Any]) -> None:
    found = storage_volume(storage)

    assert found is not None
    assert found[0] == {"name": "nni-storage", **source}
    assert found[1]["mountPath"] == storage.get(
        "path" if "claimName" in storage else "", "/mnt/nni"
    )


def test_claim_of_a_template_is_mounted_by_the_template() -> None:
    assert storage_volume({"storageType": "pvc", "path": "/data"}) is None


@pytest.mark.parametrize(
    ("storage", "field"),
    [
        ({"storageType": "hdfs"}, "storage.storageType"),
        ({"storageType": "nfs", "server": "nas"}, "storage.path"),
        ({"storageType": "azureStorage", "azureShare": "s"}, "storage.secretName"),
        ("nfs", "storage"),
    ],
)
def test_broken_storage_is_named(storage: object, field: str) -> None:
    (problem,) = storage_problems(storage)

    assert problem.field == field


def test_options_of_the_cluster_are_checked_too() -> None:
    (problem,) = base_problems({"podSecurity": "some", "storage": NFS})

    assert problem.field == "podSecurity"


@pytest.mark.parametrize(("given", "name"), [({"name": "ps"}, "ps"), ({}, "worker")])
def test_role_without_a_name_has_that_of_its_field(given: dict[str, Any], name: str) -> None:
    assert parse_role("worker", given).name == name


def test_role_is_one_pod_by_default() -> None:
    assert parse_role("worker", {}).count == 1


@pytest.mark.parametrize("field", ["replicas", "memorySize", "cpuNumber", "gpuNumber"])
def test_long_value_of_a_role_is_shown_by_its_first_80_characters(field: str) -> None:
    (problem,) = role_problems("worker", {field: "a" * 100})

    assert problem.value == f"'{'a' * 79}"


def test_long_type_of_a_storage_is_shown_by_its_first_80_characters() -> None:
    (problem,) = storage_problems({"storageType": "a" * 100})

    assert problem.value == f"'{'a' * 79}"


def test_pods_of_a_role_without_an_image_have_that_of_the_section() -> None:
    options = role_options(base_options({"podSecurity": "none"}), parse_role("ps", {}))

    assert (options.image, options.gpus, options.more_volumes) == ("", None, ())


def test_place_of_a_claim_is_its_mount_path_before_its_path() -> None:
    claim = {"storageType": "pvc", "path": "/data", "claimName": "c"}

    found = storage_volume({**claim, "mountPath": "/mnt/data"})

    assert found is not None
    assert found[1] == {"name": "nni-storage", "mountPath": "/mnt/data"}


def test_azure_share_without_a_secret_is_not_mounted() -> None:
    assert storage_volume({"storageType": "azureStorage", "azureShare": "share"}) is None
    assert storage_volume("nfs") is None


def test_problems_of_pods_have_the_names_of_the_role() -> None:
    role = parse_role("worker", {})
    options = parse_options({"image": "A", "cpus": "x", "memory": "y", "queue": "_"})

    fields = [problem.field for problem in pod_problems(options, role)]

    assert sorted(fields) == [
        "queue", "worker.cpuNumber", "worker.dockerImage", "worker.memorySize"
    ]  # fmt: skip


def test_role_has_all_of_its_fields() -> None:
    given = {
        "name": "ps", "taskNumber": 3, "command": "serve", "dockerImage": "team/ps",
        "cpuNumber": 0.5, "memorySize": "1.5gb", "gpuNumber": 2,
    }  # fmt: skip

    assert parse_role("taskRoles[1]", given, "taskNumber") == PodRole(
        "taskRoles[1]", "ps", 3, "serve", "team/ps", "0.5", "1536Mi", 2
    )


def test_fields_of_a_wrong_type_are_as_if_missing() -> None:
    given = {
        "name": 7, "replicas": "two", "command": ["serve"], "dockerImage": 7, "cpuNumber": "one",
        "memorySize": [], "gpuNumber": -1,
    }  # fmt: skip

    assert parse_role("worker", given) == PodRole("worker", "worker", 1, "", "", "", "", None)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"replicas": 0}, "must be a whole number of at least 1"),
        (
            {"memorySize": 0},
            "must be megabytes, or a number followed by kb, mb, gb or tb, such as 8gb",
        ),
        ({"cpuNumber": -0.5}, "must be a number of at least 0"),
        ({"gpuNumber": -1}, "must be a whole number of at least 0"),
    ],
)
def test_broken_rule_of_a_role_is_explained(given: dict[str, Any], rule: str) -> None:
    (problem,) = role_problems("worker", given)

    assert problem.rule == rule


def test_number_of_pods_has_the_name_of_its_platform() -> None:
    (problem,) = role_problems("taskRoles[0]", {"taskNumber": 0}, "taskNumber")

    assert problem.field == "taskRoles[0].taskNumber"
    assert list(role_problems("worker", {"taskNumber": 0})) == []


@pytest.mark.parametrize(
    ("storage", "rule", "remedy"),
    [
        (7, "must be a mapping with storageType", ""),
        ({"storageType": "x"}, "must be one of nfs, azureStorage, pvc", ""),
        ({"storageType": "pvc"}, "must be given with pvc", ""),
        ({"storageType": "nfs", "path": "/a", "server": 7}, "must be given with nfs", ""),
        (
            {"storageType": "azureStorage", "azureShare": "s"},
            "must be given with azureStorage",
            (
                "name a Secret of the namespace with azurestorageaccountname and "
                "azurestorageaccountkey; NNI does not log in to key vaults"
            ),
        ),
    ],
)
def test_broken_rule_of_a_storage_is_explained(storage: object, rule: str, remedy: str) -> None:
    (problem,) = storage_problems(storage)

    assert (problem.rule, problem.remedy) == (rule, remedy)


@pytest.mark.parametrize("storage", [None, NFS, {"storageType": "pvc", "path": "/a"}])
def test_usable_storage_has_no_problem(storage: object) -> None:
    assert storage_problems(storage) == []


def test_storage_is_mounted_at_the_usual_place_unless_another_one_is_given() -> None:
    for storage, path in ((NFS, "/mnt/nni"), ({**NFS, "mountPath": "/a"}, "/a")):
        found = storage_volume(storage)
        assert found is not None
        assert found[1]["mountPath"] == path


def test_options_that_roles_have_are_not_those_of_the_section() -> None:
    section = {"image": "A B", "cpus": "x", "memory": "y", "gpus": "z", "namespace": "tuning"}

    assert base_problems(section) == []
    options = base_options(section)
    assert (options.image, options.cpus, options.memory, options.gpus) == ("", "", "", None)
    assert options.namespace == "tuning"


@pytest.mark.parametrize(
    ("size", "quantity"), [("1025kb", "2Mi"), ("1tb", "1048576Mi"), (0.5, "1Mi")]
)
def test_memory_is_rounded_up_to_mebibytes(size: object, quantity: str) -> None:
    assert parse_role("worker", {"memorySize": size}).memory == quantity
