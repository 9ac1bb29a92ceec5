from __future__ import annotations

from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.aml.options import ENDPOINT, option_problems, parse_options
from svc_trial_runner.fleet.domain.section_values import POLL_S

SECTION: dict[str, Any] = {
    "subscriptionId": "34adfa4f-cedf-4dc0-ba29-b6d1a69ab345",
    "resourceGroup": "tuning",
    "workspaceName": "trials",
    "computeTarget": "gpus",
}


def test_usable_section_has_no_problem() -> None:
    assert option_problems(SECTION) == []
    assert parse_options(SECTION).endpoint == ENDPOINT


def test_ids_are_paths_of_azure() -> None:
    options = parse_options({**SECTION, "resourceGroup": "a group"})

    assert options.compute_id == (
        "/subscriptions/34adfa4f-cedf-4dc0-ba29-b6d1a69ab345/resourceGroups/a%20group"
        "/providers/Microsoft.MachineLearningServices/workspaces/trials/computes/gpus"
    )


def test_gpu_rules_are_those_of_the_section() -> None:
    options = parse_options({**SECTION, "maxTrialNumberPerGpu": 2.0, "useActiveGpu": True})

    assert (options.trials_per_gpu, options.use_active_gpu) == (2, True)


@pytest.mark.parametrize("given", [float("nan"), float("inf"), 10**400, True, "1"])
def test_interval_that_is_no_number_is_the_default_one(given: object) -> None:
    assert parse_options({**SECTION, "pollIntervalSeconds": given}).agent.poll_interval_s == POLL_S


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"subscriptionId": ""}, "subscriptionId"),
        ({"subscriptionId": "Pay as you go"}, "subscriptionId"),
        ({"resourceGroup": None}, "resourceGroup"),
        ({"workspaceName": " "}, "workspaceName"),
        ({"computeTarget": 1}, "computeTarget"),
        ({"dockerImage": "msranni/nni:latest"}, "dockerImage"),
        ({"endpoint": "management.azure.com/x"}, "endpoint"),
        ({"maxTrialNumberPerGpu": 0}, "maxTrialNumberPerGpu"),
        ({"maxTrialNumberPerGpu": 1.5}, "maxTrialNumberPerGpu"),
        ({"maxTrialNumberPerGpu": float("nan")}, "maxTrialNumberPerGpu"),
        ({"pollIntervalSeconds": 0}, "pollIntervalSeconds"),
        ({"endpoint": "http://management.azure.com"}, "endpoint"),
        ({"useActiveGpu": "yes"}, "useActiveGpu"),
        ({"setupLines": [1]}, "setupLines"),
    ],
)
def test_broken_rule_is_named(changes: dict[str, Any], field: str) -> None:
    (problem,) = option_problems({**SECTION, **changes})

    assert problem.field == field


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("subscriptionId", "a" * 100, "a" * 80),
        ("endpoint", "a" * 100, "a" * 80),
        ("maxTrialNumberPerGpu", "a" * 100, f"'{'a' * 79}"),
        ("useActiveGpu", "a" * 100, f"'{'a' * 79}"),
    ],
)
def test_long_value_is_shown_by_its_first_80_characters(field: str, value: str, shown: str) -> None:
    (problem,) = option_problems({**SECTION, field: value})

    assert (problem.field, problem.value) == (field, shown)


@pytest.mark.parametrize(
    ("given", "trials"), [(1, 1), (1_000_000, 1_000_000), (1_000_001, None), (None, None)]
)
def test_trials_of_a_gpu_are_at_most_a_million(given: object, trials: int | None) -> None:
    assert parse_options({**SECTION, "maxTrialNumberPerGpu": given}).trials_per_gpu == trials


@pytest.mark.parametrize("active", [False, None])
def test_gpu_in_use_is_the_rule_of_the_section_or_none(active: bool | None) -> None:
    section = {**SECTION, "useActiveGpu": active}

    assert option_problems(section) == []
    assert parse_options(section).use_active_gpu is active


def test_all_options_of_a_section_are_read() -> None:
    options = parse_options({**SECTION, "dockerImage": "a", "endpoint": " https://b/ "})

    assert (options.resource_group, options.workspace, options.compute) == (
        "tuning", "trials", "gpus"
    )  # fmt: skip
    assert (options.image, options.endpoint) == ("a", "https://b")
    assert options.subscription == SECTION["subscriptionId"]


def test_names_in_ids_are_encoded_as_one_part() -> None:
    options = parse_options({**SECTION, "workspaceName": "a/b", "computeTarget": "c/d"})

    assert options.workspace_id.endswith("/workspaces/a%2Fb")
    assert options.compute_id.endswith("/workspaces/a%2Fb/computes/c%2Fd")
    assert options.datastores_uri == (
        f"azureml://subscriptions/{SECTION['subscriptionId']}/resourcegroups/tuning"
        "/workspaces/a%2Fb/datastores"
    )


@pytest.mark.parametrize(
    ("changes", "rule", "remedy"),
    [
        ({"subscriptionId": "a"}, "must be the id of a subscription, not its name",
         "az account list --output table shows the ids"),
        ({"subscriptionId": SECTION["subscriptionId"] + "0"},
         "must be the id of a subscription, not its name",
         "az account list --output table shows the ids"),
        ({"endpoint": "a"}, "must be https://host, the Azure Resource Manager of your cloud", ""),
        ({"maxTrialNumberPerGpu": 0}, "must be a whole number >= 1", ""),
        ({"useActiveGpu": 1}, "must be true or false", ""),
        ({"computeTarget": ""}, "must be given", ""),
    ],
)  # fmt: skip
def test_broken_rule_is_explained(changes: dict[str, Any], rule: str, remedy: str) -> None:
    (problem,) = option_problems({**SECTION, **changes})

    assert (problem.rule, problem.remedy) == (rule, remedy)
