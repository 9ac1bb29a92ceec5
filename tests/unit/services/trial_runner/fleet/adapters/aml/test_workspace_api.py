from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.aml.azure_requests import AmlRefusalError
from svc_trial_runner.fleet.adapters.aml.options import AmlOptions
from svc_trial_runner.fleet.adapters.aml.workspace_api import WorkspaceApi, origin_of
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.aml_server import (
    COMPUTE,
    CONTAINER,
    GROUP,
    PAGE,
    SUBSCRIPTION,
    WORKSPACE,
    AmlServer,
    Tokens,
    aml_server,
    workspace_path,
)

TAG = "nni-0123abcd"
IMAGE = "registry.example.org/trials:1"


@pytest.fixture
def server() -> Iterator[AmlServer]:
    with aml_server() as one:
        yield one


@pytest.fixture
def api(server: AmlServer) -> WorkspaceApi:
    options = AmlOptions(SUBSCRIPTION, GROUP, WORKSPACE, COMPUTE, endpoint=server.address)
    return WorkspaceApi(options, Tokens())


def put_job(server: AmlServer, name: str, **properties: Any) -> None:
    server.jobs[name] = {"name": name, "properties": {"status": "Queued", **properties}}


def test_tagged_jobs_of_all_pages_are_listed(server: AmlServer, api: WorkspaceApi) -> None:
    for number in range(PAGE * 2 + 1):
        put_job(server, f"job-{number}", tags={TAG: "pool"})
    put_job(server, "other", tags={})

    assert len(api.jobs(TAG)) == PAGE * 2 + 1


def test_next_page_at_another_host_gets_no_token(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = {"value": [], "nextLink": "https://example.org/jobs?page=2"}
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, page))

    with pytest.raises(PlatformError, match=r"at another address, example\.org"):
        api.jobs(TAG)


@pytest.mark.parametrize(
    ("link", "same"),
    [
        ("https://management.azure.com:443/jobs?page=2", True),
        ("https://MANAGEMENT.azure.com/jobs", True),
        ("https://management.azure.com:444/jobs", False),
        ("http://management.azure.com:443/jobs", False),
        ("https://management.azure.com.example.org/jobs", False),
        ("https://management.azure.com:x/jobs", False),
        ("https://management.azure.com@example.org/jobs", False),
    ],
)
def test_link_may_name_the_usual_port(link: str, same: bool) -> None:
    assert (origin_of(link) == origin_of("https://management.azure.com")) is same


@pytest.mark.parametrize("page", [{}, {"value": None}, {"value": [1]}, {"value": [{"name": "a"}]}])
def test_other_answer_is_no_empty_list_of_jobs(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch, page: Any
) -> None:
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, page))

    with pytest.raises(PlatformError, match="something else than a list of jobs"):
        api.jobs(TAG)


def test_properties_of_the_compute_target_are_read(server: AmlServer, api: WorkspaceApi) -> None:
    assert api.compute() == server.compute


def test_image_is_registered_once(server: AmlServer, api: WorkspaceApi) -> None:
    api.ensure_environment(IMAGE)
    server.refusals["PUT environments"] = (409, "Conflict", "immutable")
    api.ensure_environment(IMAGE)

    assert list(server.environments.values()) == [IMAGE]
    assert api.environment_id(IMAGE).endswith(next(iter(server.environments)))
    assert api.environment_id(IMAGE) != api.environment_id(f"{IMAGE}1")


def test_default_datastore_is_a_container_of_blobs(server: AmlServer, api: WorkspaceApi) -> None:
    location = api.default_store()

    assert (location.datastore, location.account) == ("workspaceblobstore", "account")
    assert (location.container, location.endpoint) == (CONTAINER, "core.windows.net")
    server.datastore["datastoreType"] = "AzureFile"
    with pytest.raises(PlatformError, match="has no default datastore of Azure Blob"):
        api.default_store()


@pytest.mark.parametrize("listed", [None, [], [1], {"name": "a"}])
def test_workspace_without_a_default_datastore_is_refused(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch, listed: object
) -> None:
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, {"value": listed}))

    with pytest.raises(PlatformError, match="has no default datastore of Azure Blob") as caught:
        api.default_store()

    assert caught.value.permanent


def test_first_of_several_datastores_is_taken_with_the_domain_of_its_cloud(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [
        {"name": name, "properties": {**server.datastore, "endpoint": f"{name}.example.org"}}
        for name in ("first", "second")
    ]
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, {"value": stores}))

    location = api.default_store()

    assert (location.datastore, location.endpoint) == ("first", "first.example.org")


def test_job_that_is_gone_may_be_deleted(api: WorkspaceApi) -> None:
    api.delete("nothing")

    assert api.job("nothing") is None


def test_live_job_is_not_deleted(server: AmlServer, api: WorkspaceApi) -> None:
    put_job(server, "live")

    with pytest.raises(AmlRefusalError, match="is active"):
        api.delete("live")


def test_job_is_cancelled_and_deleted(server: AmlServer, api: WorkspaceApi) -> None:
    put_job(server, "live")

    api.cancel("live")
    api.delete("live")

    assert server.jobs == {}


def test_list_whose_next_page_is_the_same_ends(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"name": "a", "properties": {}}
    page = {"value": [job], "nextLink": f"{server.address}{workspace_path()}/jobs?page=2"}
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, page))

    assert api.jobs(TAG) == [job]


def test_job_without_a_name_is_no_job(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    page: dict[str, object] = {"value": [{"properties": {}}]}
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, page))

    with pytest.raises(PlatformError, match="something else than a list of jobs"):
        api.jobs(TAG)


def test_refusal_is_not_taken_for_something_that_is_missing(
    server: AmlServer, api: WorkspaceApi
) -> None:
    for kind in ("GET jobs", "DELETE jobs", "GET environments"):
        server.refusals[kind] = (403, "AuthorizationFailed", "no right")

    for call in (api.job, api.delete, api.ensure_environment):
        with pytest.raises(AmlRefusalError, match="no right"):
            call("a")


def test_version_of_an_environment_is_a_hash_of_32_digits(api: WorkspaceApi) -> None:
    assert re.fullmatch("[0-9a-f]{32}", api.environment_id(IMAGE).rpartition("/")[2])


def test_address_of_another_host_is_shortened(
    server: AmlServer, api: WorkspaceApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = {"value": [], "nextLink": f"https://{'a' * 100}/jobs"}
    monkeypatch.setattr(server, "answer_workspace", lambda *_: (200, page))

    with pytest.raises(PlatformError, match=f"address, {'a' * 80}, which"):
        api.jobs(TAG)
