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
