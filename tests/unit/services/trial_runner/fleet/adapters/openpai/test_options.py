from __future__ import annotations

from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.openpai.options import PLUGINS, option_problems, parse_options

SECTION: dict[str, Any] = {
    "host": "pai.example.org",
    "username": "ann",
    "trialCpuNumber": 2,
    "trialMemorySize": "8gb",
}
SECRETS = {"token": "secret"}


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("pai.example.org", "https://pai.example.org"),
        ("http://10.0.0.1", "http://10.0.0.1"),
        ("https://pai.example.org:8443/portal/", "https://pai.example.org:8443"),
        ("ftp://pai.example.org", ""),
        ("https://pai.example.org:port", ""),
        ("", ""),
    ],
)
def test_host_is_reached_by_https_unless_http_is_written(given: str, host: str) -> None:
    assert parse_options({"host": given}).host == host


def test_memory_is_megabytes_for_openpai() -> None:
    assert parse_options(SECTION).memory_mb == 8192


def test_usable_section_has_no_problem() -> None:
    assert option_problems(SECTION, SECRETS) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"host": "ftp://pai"}, "host"),
        ({"username": ""}, "username"),
        ({"trialCpuNumber": None}, "trialCpuNumber"),
        ({"trialMemorySize": "8Gi"}, "trialMemorySize"),
        ({"dockerImage": "msranni/nni:latest"}, "dockerImage"),
        ({"pollIntervalSeconds": 0}, "pollIntervalSeconds"),
        ({"reuseMode": "no"}, "reuseMode"),
        ({"openpaiConfig": {"name": "a"}}, "openpaiConfig.taskRoles"),
        ({"openpaiConfig": {"taskRoles": {"a": 1}}}, "openpaiConfig.taskRoles.a"),
        (
            {"openpaiConfig": {"taskRoles": {"a": {}}, "prerequisites": [1]}},
            "openpaiConfig.prerequisites",
        ),
        ({"openpaiConfig": {"taskRoles": {"a": {}}, "extras": 1}}, "openpaiConfig.extras"),
        (
            {"openpaiConfig": {"taskRoles": {"a": {"resourcePerInstance": 1}}}},
            "openpaiConfig.taskRoles.a.resourcePerInstance",
        ),
        (
            {"openpaiConfig": {"taskRoles": {"a": {}}, "extras": {PLUGINS: [1]}}},
            f"openpaiConfig.extras.{PLUGINS}",
        ),
        ({"trialCpuNumber": float("inf")}, "trialCpuNumber"),
        ({"trialCpuNumber": 1.5}, "trialCpuNumber"),
        ({"trialCpuNumber": 0, "openpaiConfig": {"taskRoles": {"a": {}}}}, "trialCpuNumber"),
        ({"trialMemorySize": 8192}, "trialMemorySize"),
        ({"trialMemorySize": f"{10**400}tb"}, "trialMemorySize"),
    ],
)
def test_broken_rule_is_named(changes: dict[str, Any], field: str) -> None:
    (problem,) = option_problems({**SECTION, **changes}, SECRETS)

    assert problem.field == field


def test_wrong_number_is_shown_with_its_rule() -> None:
    (problem,) = option_problems({**SECTION, "trialCpuNumber": 1.5}, SECRETS)

    assert (problem.rule, problem.value) == ("must be a whole number of at least 1", "1.5")


def test_token_is_asked_for_and_never_shown() -> None:
    (problem,) = option_problems(SECTION, {})

    assert (problem.field, problem.value) == ("token", "")


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"host": "ftp://" + "a" * 100}, "ftp://" + "a" * 74),
        ({"trialMemorySize": "a" * 100}, f"'{'a' * 79}"),
    ],
)
def test_long_value_is_shown_by_its_first_80_characters(
    changes: dict[str, Any], value: str
) -> None:
    (problem,) = option_problems({**SECTION, **changes}, SECRETS)

    assert problem.value == value


@pytest.mark.parametrize(
    "protocol",
    [
        {"taskRoles": {"a": {}}},
        {"taskRoles": {"a": {"resourcePerInstance": {}}}, "prerequisites": [{}], "secrets": {}},
        {"taskRoles": {"a": {}}, "extras": {PLUGINS: [{}]}, "defaults": {}},
    ],
)
def test_given_job_needs_no_resources_of_the_section(protocol: dict[str, Any]) -> None:
    section = {"host": "pai.example.org", "username": "ann", "openpaiConfig": protocol}

    assert option_problems(section, SECRETS) == []


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("secrets", 1),
        ("defaults", []),
        ("prerequisites", {}),
        ("taskRoles", []),
        ("taskRoles", {}),
        ("taskRoles", "worker"),
    ],
)
def test_part_of_a_given_job_has_its_type(part: str, value: object) -> None:
    protocol = {"taskRoles": {"a": {}}, part: value}

    (problem,) = option_problems({**SECTION, "openpaiConfig": protocol}, SECRETS)

    assert problem.field == f"openpaiConfig.{part}"


def test_plugins_of_a_given_job_are_a_list() -> None:
    protocol: dict[str, object] = {"taskRoles": {"a": {}}, "extras": {PLUGINS: {}}}

    (problem,) = option_problems({**SECTION, "openpaiConfig": protocol}, SECRETS)

    assert problem.field == f"openpaiConfig.extras.{PLUGINS}"


def test_memory_below_a_megabyte_is_none() -> None:
    assert parse_options({**SECTION, "trialMemorySize": "1mb"}).memory_mb == 1
    assert parse_options({**SECTION, "trialMemorySize": "1023kb"}).memory_mb is None


def test_options_of_a_section_are_read() -> None:
    options = parse_options(
        {
            **SECTION,
            "dockerImage": " team/a ",
            "virtualCluster": "gpus",
            "storageConfigName": "data",
            "openpaiConfig": {"a": 1},
            "reuseMode": False,
        }
    )

    assert (options.host, options.username, options.cpus) == ("https://pai.example.org", "ann", 2)
    assert (options.image, options.virtual_cluster, options.storage) == ("team/a", "gpus", "data")
    assert options.protocol == {"a": 1}
    assert not options.agent.reuse_mode
    assert parse_options({"openpaiConfig": [1]}).protocol == {}


@pytest.mark.parametrize(
    ("changes", "rule", "remedy"),
    [
        ({"host": "ftp://a"},
         "must be the address of the cluster, such as https://pai.example.org", ""),
        ({"trialCpuNumber": None},
         "must be given, or openpaiConfig: a whole number of at least 1", ""),
        ({"trialMemorySize": None}, "must be given, or openpaiConfig: a size such as 8gb", ""),
        ({"trialMemorySize": "x"}, "must be a size such as 8gb", ""),
        ({"openpaiConfig": {"a": 1}}, "must be given", ""),
        ({"openpaiConfig": {"taskRoles": {"a": 1}}}, "must be a mapping", ""),
    ],
)  # fmt: skip
def test_broken_rule_is_explained(changes: dict[str, Any], rule: str, remedy: str) -> None:
    (problem,) = option_problems({**SECTION, **changes}, SECRETS)

    assert (problem.rule, problem.remedy) == (rule, remedy)


def test_missing_token_has_a_remedy() -> None:
    (problem,) = option_problems(SECTION, {"token": ""})

    assert (problem.rule, problem.remedy) == (
        "must be given", "copy it from My profile of OpenPAI's portal"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "host"),
    [("PAI.example.org:80", "https://pai.example.org:80"), ("http://", ""),
     ("http://a:99999", ""), ("http://[::1", ""), ("  pai  ", "https://pai")],
)  # fmt: skip
def test_host_has_a_name_and_a_port_at_most(given: str, host: str) -> None:
    assert parse_options({"host": given}).host == host
