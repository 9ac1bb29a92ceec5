from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.testing import INSTALLATION, POOL
from tests.support.aml_server import AmlServer, Tokens, aml_adapter, aml_server

OTHER_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def server() -> Iterator[AmlServer]:
    with aml_server() as one:
        yield one


async def problem_of(
    server: AmlServer, folder: Path, tokens: Tokens | None = None, **options: Any
) -> PlatformProblem:
    (problem,) = await aml_adapter(server, folder, POOL, INSTALLATION, tokens, **options).check()
    assert server.jobs == {}
    assert server.blobs == {}
    assert server.environments == {}
    return problem


@pytest.mark.parametrize(
    ("options", "field", "rule"),
    [
        ({"subscriptionId": OTHER_SUBSCRIPTION}, "subscriptionId", "of your login"),
        ({"resourceGroup": "other"}, "resourceGroup", "must be a resource group"),
        ({"workspaceName": "other"}, "workspaceName", "must be a workspace of"),
        ({"computeTarget": "other"}, "computeTarget", "must be a compute target of"),
        ({"endpoint": "http://127.0.0.1:1"}, "endpoint", "cannot be reached"),
        ({"subscriptionId": "x"}, "subscriptionId", "must be the id"),
    ],
)
async def test_wrong_field_is_named(
    server: AmlServer, tmp_path: Path, options: dict[str, Any], field: str, rule: str
) -> None:
    problem = await problem_of(server, tmp_path, **options)

    assert problem.field == field
    assert rule in problem.rule
    assert problem.value == next(iter(options.values()))


async def test_missing_login_says_how_to_log_in(server: AmlServer, tmp_path: Path) -> None:
    problem = await problem_of(server, tmp_path, Tokens("no credential was found"))

    assert problem.field == "subscriptionId"
    assert problem.rule == "needs a login to Azure: no credential was found"
    assert "az login" in problem.remedy
    assert not problem.permanent


@pytest.mark.parametrize(
    ("refused", "field", "remedy"),
    [
        ("GET workspaces", "workspaceName", "AzureML Data Scientist"),
        ("GET computes", "computeTarget", "AzureML Data Scientist"),
        ("GET datastores", "workspaceName", "AzureML Data Scientist"),
        ("GET blobs", "workspaceName", "Storage Blob Data Contributor"),
    ],
)
async def test_missing_right_names_the_role(
    server: AmlServer, tmp_path: Path, refused: str, field: str, remedy: str
) -> None:
    server.refusals[refused] = (403, "AuthorizationFailed", "The client has no authorization.")

    problem = await problem_of(server, tmp_path)

    assert problem.field == field
    assert "no authorization" in problem.rule
    assert remedy in problem.remedy
    assert not problem.permanent


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"computeType": "DataFactory"}, "is of type DataFactory"),
        ({"provisioningState": "Failed"}, "provisioning has failed"),
        ({"properties": {"scaleSettings": {"maxNodeCount": 0}}}, "its maximum is 0"),
    ],
)
async def test_compute_that_runs_no_jobs_is_refused(
    server: AmlServer, tmp_path: Path, changes: dict[str, Any], rule: str
) -> None:
    server.compute.update(changes)

    problem = await problem_of(server, tmp_path)

    assert problem.field == "computeTarget"
    assert rule in problem.rule


async def test_datastore_of_another_kind_is_refused(server: AmlServer, tmp_path: Path) -> None:
    server.datastore["datastoreType"] = "AzureFile"

    problem = await problem_of(server, tmp_path)

    assert "no default datastore of Azure Blob" in problem.rule


@pytest.mark.parametrize(
    "changes",
    [
        {"properties": {"scaleSettings": {"maxNodeCount": 1}}},
        {"computeType": "ComputeInstance", "properties": {"scaleSettings": {"maxNodeCount": 0}}},
    ],
)
async def test_compute_that_may_have_nodes_is_accepted(
    server: AmlServer, tmp_path: Path, changes: dict[str, Any]
) -> None:
    server.compute.update(changes)

    assert await aml_adapter(server, tmp_path, POOL, INSTALLATION).check() == []


async def test_refusal_of_the_compute_target_is_shown_as_it_is(
    server: AmlServer, tmp_path: Path
) -> None:
    server.refusals["GET computes"] = (400, "UserError", "bad request")

    problem = await problem_of(server, tmp_path)

    assert (problem.field, problem.rule) == ("computeTarget", "UserError: bad request")
    assert problem.permanent
