from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message

import pytest

from svc_trial_runner.fleet.adapters.aml.azure_requests import AmlRefusalError
from svc_trial_runner.fleet.adapters.aml.settings_blobs import SettingsBlobs, blob_address
from svc_trial_runner.fleet.adapters.aml.workspace_api import BlobStoreLocation
from svc_trial_runner.fleet.testing import INSTALLATION, OTHER_INSTALLATION
from tests.support.aml_server import CONTAINER, PAGE, AmlServer, Tokens, aml_server
from tests.support.json_server import JsonHandler, JsonServer, serving

LOCATION = BlobStoreLocation("workspaceblobstore", "account", CONTAINER, "core.windows.net")


@pytest.fixture
def server() -> Iterator[AmlServer]:
    with aml_server() as one:
        yield one


def blobs_of(server: AmlServer, installation: str = INSTALLATION) -> SettingsBlobs:
    return SettingsBlobs(LOCATION, installation, Tokens(), lambda _: server.address)


def test_settings_are_written_replaced_and_removed(server: AmlServer) -> None:
    blobs = blobs_of(server)

    blobs.write("one", b"old")
    blobs.write("one", b"new")

    assert server.blobs == {f"nni-agents-{INSTALLATION}/one.json": b"new"}
    blobs.remove("one")
    blobs.remove("one")
    assert server.blobs == {}


def test_names_of_all_pages_are_those_of_the_installation(server: AmlServer) -> None:
    names = [f"nni-{number}" for number in range(PAGE * 2 + 1)]
    for name in [*names, "other"]:
        blobs_of(server).write(name, b"")
    blobs_of(server, OTHER_INSTALLATION).write("nni-9", b"")

    assert blobs_of(server).names("nni-") == names


def test_missing_role_is_named(server: AmlServer) -> None:
    server.refusals["GET blobs"] = (403, "AuthorizationPermissionMismatch", "not authorized")

    with pytest.raises(AmlRefusalError, match="AuthorizationPermissionMismatch") as caught:
        blobs_of(server).check()

    assert "Storage Blob Data Contributor" in caught.value.remedy
    assert "account" in caught.value.remedy


def test_storage_is_reached_with_tls() -> None:
    assert blob_address(LOCATION) == "https://account.blob.core.windows.net"


def test_refused_removal_is_an_error(server: AmlServer) -> None:
    server.refusals["DELETE blobs"] = (403, "AuthorizationFailed", "no right")

    with pytest.raises(AmlRefusalError, match="no right"):
        blobs_of(server).remove("one")


def test_list_whose_next_page_is_the_same_ends(
    server: AmlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "<Name>folder/one.json</Name><NextMarker>a&amp;b</NextMarker>"
    monkeypatch.setattr(server, "answer_storage", lambda *_: (200, page))

    assert blobs_of(server).names("") == ["one", "one"]


def test_settings_are_in_the_folder_of_the_installation(server: AmlServer) -> None:
    blobs = blobs_of(server)

    blobs.write("a b/c", b"{}")

    assert blobs.path("a b/c") == f"nni-agents-{INSTALLATION}/a b/c.json"
    assert list(server.blobs) == [f"nni-agents-{INSTALLATION}/a b/c.json"]
    blobs.check()


class StorageServer(JsonServer):
    """Storage that takes every request and notes its headers."""

    def __init__(self) -> None:
        super().__init__(StorageHandler)
        self.seen: list[Message] = []


class StorageHandler(JsonHandler):
    server: StorageServer

    def respond(self, method: str) -> None:
        del method
        self.server.seen.append(self.headers)
        self.body()
        self.send_json(200, {})


def test_requests_have_date_version_and_kind_as_the_storage_wants_them() -> None:
    with serving(StorageServer(), "storage") as server:
        blobs = SettingsBlobs(LOCATION, INSTALLATION, Tokens(), lambda _: server.address)
        blobs.write("one", b"{}")
        blobs.check()
        blobs.remove("one")

    for headers in server.seen:
        assert headers["x-ms-date"].endswith(" GMT")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", headers["x-ms-version"])
    assert [headers.get("x-ms-blob-type") for headers in server.seen] == ["BlockBlob", None, None]
    assert server.seen[0]["Content-Type"] == "application/json"
