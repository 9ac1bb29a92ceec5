from __future__ import annotations

from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.dlc.options import (
    CONTAINER_FOLDER,
    LOCAL_FOLDER,
    option_problems,
    parse_options,
)
from svc_trial_runner.fleet.domain.section_values import POLL_S

SECTION: dict[str, Any] = {
    "image": "i",
    "ecsSpec": "ecs.c6.large",
    "region": "cn-hangzhou",
    "nasDataSourceId": "d",
    "accessKeyId": "id",
}
SECRETS = {"accessKeySecret": "hidden"}


def test_usable_section_has_no_problem() -> None:
    assert option_problems(SECTION, SECRETS) == []


def test_api_is_that_of_the_region_unless_another_one_is_given() -> None:
    own = {**SECTION, "endpoint": "https://pai-dlc-vpc.cn-hangzhou.aliyuncs.com/"}

    assert parse_options(SECTION).address == "https://pai-dlc.cn-hangzhou.aliyuncs.com"
    assert parse_options(own).address == "https://pai-dlc-vpc.cn-hangzhou.aliyuncs.com"


def test_options_of_a_section_are_read_and_the_others_are_those_of_a_simple_job() -> None:
    given = {
        **SECTION,
        "type": "Master",
        "jobType": "PyTorchJob",
        "workspaceId": "w",
        "localStorageMountPoint": "/mnt/nas",
        "containerStorageMountPoint": "/nas",
    }

    simple, chosen = parse_options(SECTION), parse_options(given)

    assert (simple.role, simple.job_type, simple.workspace) == ("Worker", "TFJob", "")
    assert (simple.local_folder, simple.container_folder) == (LOCAL_FOLDER, CONTAINER_FOLDER)
    assert (chosen.role, chosen.job_type, chosen.workspace) == ("Master", "PyTorchJob", "w")
    assert (chosen.local_folder, chosen.container_folder) == ("/mnt/nas", "/nas")


@pytest.mark.parametrize("given", [float("nan"), float("inf"), 10**400, True, "1"])
def test_interval_that_is_no_number_is_the_default_one(given: object) -> None:
    assert parse_options({**SECTION, "pollIntervalSeconds": given}).agent.poll_interval_s == POLL_S


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"image": ""}, "image"),
        ({"nasDataSourceId": None}, "nasDataSourceId"),
        ({"jobType": "MPIJob"}, "jobType"),
        ({"podCount": 2}, "podCount"),
        ({"podCount": [1]}, "podCount"),
        ({"region": "example.org/"}, "region"),
        ({"endpoint": "ftp://a"}, "endpoint"),
        ({"containerStorageMountPoint": "data"}, "containerStorageMountPoint"),
        ({"pollIntervalSeconds": 0}, "pollIntervalSeconds"),
        ({"pythonPath": 3}, "pythonPath"),
    ],
)
def test_broken_rule_is_named(changes: dict[str, Any], field: str) -> None:
    (problem,) = option_problems({**SECTION, **changes}, SECRETS)

    assert problem.field == field


def test_secret_is_asked_for_and_never_shown() -> None:
    (problem,) = option_problems(SECTION, {})

    assert (problem.field, problem.value) == ("accessKeySecret", "")


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("jobType", "a" * 100, "a" * 80),
        ("podCount", "a" * 100, f"'{'a' * 79}"),
        ("region", "A" * 100, "A" * 80),
        ("endpoint", "a" * 100, "a" * 80),
        ("localStorageMountPoint", "a" * 100, "a" * 80),
    ],
)
def test_long_value_is_shown_by_its_first_80_characters(field: str, value: str, shown: str) -> None:
    (problem,) = option_problems({**SECTION, field: value}, SECRETS)

    assert (problem.field, problem.value) == (field, shown)


def test_path_that_no_system_opens_is_refused() -> None:
    (problem,) = option_problems({**SECTION, "localStorageMountPoint": "/a\0b"}, SECRETS)

    assert problem.field == "localStorageMountPoint"


def test_one_pod_and_another_endpoint_are_allowed() -> None:
    section = {**SECTION, "podCount": 1, "endpoint": "https://pai-dlc-vpc.example.org"}

    assert option_problems(section, SECRETS) == []


def test_all_options_of_a_section_are_read() -> None:
    options = parse_options({**SECTION, "endpoint": " https://a// ", "reuseMode": False})

    assert (options.image, options.instance_type, options.region) == (
        "i", "ecs.c6.large", "cn-hangzhou"
    )  # fmt: skip
    assert (options.data_source, options.key_id) == ("d", "id")
    assert (options.endpoint, options.agent.reuse_mode) == ("https://a", False)
    assert (LOCAL_FOLDER, CONTAINER_FOLDER) == ("/home/admin/workspace/", "/root/data/")


@pytest.mark.parametrize(
    ("changes", "rule", "remedy"),
    [
        ({"jobType": "x"}, "must be one of TFJob, PyTorchJob", ""),
        ({"podCount": 2},
         "must be 1: a pod is an agent, and trials over several pods are not supported",
         "use maxAgents"),
        ({"region": "-a"}, "must be the id of a region, such as cn-hangzhou", ""),
        ({"region": "a_b"}, "must be the id of a region, such as cn-hangzhou", ""),
        ({"endpoint": "http://a"}, "must be https://host", ""),
        ({"localStorageMountPoint": "a"}, "must be an absolute path", ""),
        ({"ecsSpec": 7}, "must be given", ""),
        ({"accessKeyId": ""}, "must be given", ""),
    ],
)  # fmt: skip
def test_broken_rule_is_explained(changes: dict[str, Any], rule: str, remedy: str) -> None:
    (problem,) = option_problems({**SECTION, **changes}, SECRETS)

    assert (problem.rule, problem.remedy) == (rule, remedy)
