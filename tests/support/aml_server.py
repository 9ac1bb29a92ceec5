"""Small Azure: the paths of Azure ML's REST API (2023-10-01) and of Azure Storage that `aml` uses.

The shapes are those of the documentation of Azure; jobs run nothing.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from svc_trial_runner.fleet.adapters.aml.adapter import AmlAdapter
from svc_trial_runner.fleet.adapters.aml.azure_requests import LoginError
from svc_trial_runner.fleet.adapters.aml.options import AmlOptions
from svc_trial_runner.fleet.adapters.aml.settings_blobs import SCOPE
from svc_trial_runner.fleet.domain.agents import PlatformSection
from tests.support.json_server import JsonHandler, JsonServer, serving
from tests.support.local_platforms import front_context

SUBSCRIPTION = "34adfa4f-cedf-4dc0-ba29-b6d1a69ab345"
GROUP = "tuning"
WORKSPACE = "trials"
COMPUTE = "gpus"
CONTAINER = "azureml-blobstore"
PAGE = 2
"""Jobs and blobs of a page."""
_OVER = {"Completed", "Failed", "Canceled"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}\Z")


class Tokens:
    """Login whose tokens name their scope, as the server wants them.

    Args:
        missing: why there is no login; empty: there is one.
    """

    def __init__(self, missing: str = "") -> None:
        self._missing = missing

    def token(self, scope: str) -> str:
        """Return the token of a scope."""
        if self._missing:
            raise LoginError(self._missing, "run az login")
        return f"token of {scope}"


class _RefusedError(Exception):
    """Refusal as Azure answers it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class AmlServer(JsonServer):
    """One workspace and its storage account on a free port of loopback.

    Attributes:
        jobs: by name, as they are listed; a change of `properties.status` is one of the job.
        blobs: content by path in the container.
        environments: images by version.
        compute: properties of the compute target.
        datastore: properties of the default datastore.
        waits: True: new jobs stay in the queue.
        ends_slowly: True: a cancelled job is about to end until its state is changed.
        hides: True: the list lacks all jobs, as it may for a moment after a submission.
        refusals: status, code and message with which a method and kind of path is refused, by
            `PUT jobs`, `DELETE jobs`, `GET blobs`.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.lock = threading.Lock()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.blobs: dict[str, bytes] = {}
        self.environments: dict[str, str] = {}
        self.compute: dict[str, Any] = {
            "computeType": "AmlCompute",
            "provisioningState": "Succeeded",
            "properties": {
                "scaleSettings": {"maxNodeCount": 4, "minNodeCount": 0},
                "allocationState": "Resizing",
                "currentNodeCount": 1,
                "targetNodeCount": 2,
                "errors": None,
            },
        }
        self.datastore = {
            "datastoreType": "AzureBlob",
            "accountName": "account",
            "containerName": CONTAINER,
            "endpoint": "core.windows.net",
            "protocol": "https",
        }
        self.waits = False
        self.ends_slowly = False
        self.hides = False
        self.refusals: dict[str, tuple[int, str, str]] = {}

    def set_status(self, name: str, status: str) -> None:
        """Change the state of a job."""
        self.jobs[name]["properties"]["status"] = status

    def refuse(self, method: str, kind: str) -> None:
        """Raise _RefusedError if that kind of request is to be refused."""
        if f"{method} {kind}" in self.refusals:
            raise _RefusedError(*self.refusals[f"{method} {kind}"])

    def answer_workspace(
        self, method: str, path: list[str], query: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        """Return status and answer of a request to a path of the workspace.

        Raises:
            _RefusedError: it is refused.
        """
        if query.get("api-version") != "2023-10-01":
            raise _RefusedError(400, "MissingApiVersionParameter", "The api-version is required.")
        self.refuse(method, path[0] if path else "workspaces")
        match method, path:
            case "GET", []:
                return 200, {"name": WORKSPACE, "properties": {}}
            case "GET", ["computes", name] if name == COMPUTE:
                return 200, {"name": COMPUTE, "properties": self.compute}
            case "GET", ["datastores"]:
                assert query["isDefault"] == "true"
                return 200, {
                    "value": [{"name": "workspaceblobstore", "properties": self.datastore}]
                }
            case _, ["environments", "nni-agent", "versions", version]:
                return self._environment(method, version, body)
            case "GET", ["jobs"]:
                return 200, self._list(query)
            case _, ["jobs", name, *rest]:
                return self._job(method, name, rest, body)
            case _:
                raise _RefusedError(404, "ResourceNotFound", f"{'/'.join(path)} is not found.")

    def _environment(self, method: str, version: str, body: bytes) -> tuple[int, Any]:
        if method == "PUT":
            self.environments[version] = json.loads(body)["properties"]["image"]
        if version not in self.environments:
            raise _RefusedError(404, "UserError", f"version {version} is not found.")
        return 200, {"properties": {"image": self.environments[version]}}

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        for job in self.jobs.values():
            if job["properties"]["status"] == "Queued" and not self.waits:
                job["properties"]["status"] = "Running"
        found = [one for one in self.jobs.values() if query["tag"] in one["properties"]["tags"]]
        begin = int(query.get("$skip", 0))
        page: dict[str, Any] = {"value": [] if self.hides else found[begin : begin + PAGE]}
        if begin + PAGE < len(found):
            path = f"{self.address}{workspace_path()}/jobs?api-version=2023-10-01"
            page["nextLink"] = f"{path}&tag={query['tag']}&$skip={begin + PAGE}"
        return page

    def _job(self, method: str, name: str, rest: list[str], body: bytes) -> tuple[int, Any]:
        if method == "PUT" and name not in self.jobs:
            properties = json.loads(body)["properties"]
            self._check_job(name, properties)
            self.jobs[name] = {"name": name, "properties": {**properties, "status": "Queued"}}
            return 201, self.jobs[name]
        if name not in self.jobs:
            raise _RefusedError(404, "UserError", f"Job {name} is not found.")
        job = self.jobs[name]
        over = job["properties"]["status"] in _OVER
        match method, rest:
            case "GET" | "PUT", []:
                return 200, job
            case "POST", ["cancel"]:
                if over:
                    raise _RefusedError(400, "UserError", f"Job {name} is in a final state.")
                self.set_status(name, "CancelRequested" if self.ends_slowly else "Canceled")
                return 202, None
            case "DELETE", []:
                if not over:
                    raise _RefusedError(409, "UserError", f"Job {name} is active.")
                del self.jobs[name]
                return 202, None
            case _:
                raise _RefusedError(405, "MethodNotAllowed", f"{method} is not allowed.")

    def _check_job(self, name: str, job: Mapping[str, Any]) -> None:
        """Raise _RefusedError unless a job has what the documentation requires."""
        version = str(job.get("environmentId", "")).rpartition("/")[2]
        path = str(job["inputs"]["settings"]["uri"]).partition("/paths/")[2]
        broken = [
            field
            for field, holds in (
                ("name", _NAME.match(name)),
                ("jobType", job.get("jobType") == "Command"),
                ("command", job.get("command")),
                ("environmentId", version in self.environments),
                ("computeId", job.get("computeId") == f"{workspace_path()}/computes/{COMPUTE}"),
                ("inputs", path in self.blobs),
            )
            if not holds
        ]
        if broken:
            raise _RefusedError(400, "UserError", f"invalid: {', '.join(broken)}")

    def answer_storage(
        self, method: str, path: str, query: Mapping[str, str], body: bytes
    ) -> tuple[int, str]:
        """Return status and XML of a request to the container.

        Raises:
            _RefusedError: it is refused.
        """
        self.refuse(method, "blobs")
        match method:
            case "GET":
                return 200, self._blob_page(query)
            case "PUT":
                self.blobs[path] = body
                return 201, ""
            case "DELETE" if path in self.blobs:
                del self.blobs[path]
                return 202, ""
            case _:
                raise _RefusedError(404, "BlobNotFound", "The specified blob does not exist.")

    def _blob_page(self, query: Mapping[str, str]) -> str:
        after = query.get("marker", "")
        found = [one for one in sorted(self.blobs) if one.startswith(query["prefix"])]
        left = [one for one in found if one > after]
        names = "".join(f"<Blob><Name>{one}</Name></Blob>" for one in left[:PAGE])
        marker = left[PAGE - 1] if len(left) > PAGE else ""
        blobs = f"<Blobs>{names}</Blobs><NextMarker>{marker}</NextMarker>"
        return f"<EnumerationResults>{blobs}</EnumerationResults>"


class _Handler(JsonHandler):
    server: AmlServer

    def respond(self, method: str) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        body = self.body()
        if parts.path.startswith(f"/{CONTAINER}"):
            path = unquote(parts.path).removeprefix(f"/{CONTAINER}").strip("/")
            self._respond_as_storage(method, path, query, body)
            return
        try:
            self._admit(f"{self.server.address}/.default")
            with self.server.lock:
                rest = _path_in_workspace(unquote(parts.path))
                status, answer = self.server.answer_workspace(method, rest, query, body)
        except _RefusedError as error:
            answer = {"error": {"code": error.code, "message": error.message}}
            self.send_json(error.status, answer)
            return
        if answer is None:
            self._send_text(status, "")
        else:
            self.send_json(status, answer)

    def _respond_as_storage(
        self, method: str, path: str, query: Mapping[str, str], body: bytes
    ) -> None:
        try:
            self._admit(SCOPE)
            with self.server.lock:
                status, text = self.server.answer_storage(method, path, query, body)
        except _RefusedError as error:
            status = error.status
            code = f"<Code>{error.code}</Code>"
            text = f"<Error>{code}<Message>{error.message}</Message></Error>"
        self._send_text(status, text)

    def _admit(self, scope: str) -> None:
        if self.headers.get("Authorization") != f"Bearer token of {scope}":
            raise _RefusedError(401, "InvalidAuthenticationToken", "The access token is invalid.")

    def _send_text(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def workspace_path() -> str:
    """Return the path of the server's workspace."""
    return AmlOptions(SUBSCRIPTION, GROUP, WORKSPACE).workspace_id


def _path_in_workspace(path: str) -> list[str]:
    """Return the parts of a path after that of the workspace; raise if it is of another one."""
    _, _, subscription, _, group, _, _, _, workspace, *rest = path.split("/")
    if subscription != SUBSCRIPTION:
        words = f"The subscription '{subscription}' could not be found."
        raise _RefusedError(404, "SubscriptionNotFound", words)
    if group != GROUP:
        words = f"Resource group '{group}' could not be found."
        raise _RefusedError(404, "ResourceGroupNotFound", words)
    if workspace != WORKSPACE:
        raise _RefusedError(404, "ResourceNotFound", f"The Resource {workspace} was not found.")
    return rest


@contextmanager
def aml_server() -> Iterator[AmlServer]:
    """Serve a workspace without jobs in a thread."""
    with serving(AmlServer(), "aml") as server:
        yield server


def aml_adapter(
    server: AmlServer,
    folder: Path,
    pool: str,
    installation: str,
    tokens: Tokens | None = None,
    end_limit_s: float = 60.0,
    **options: object,
) -> AmlAdapter:
    """Return a new adapter of a pool, with further options."""
    section = {
        "subscriptionId": SUBSCRIPTION,
        "resourceGroup": GROUP,
        "workspaceName": WORKSPACE,
        "computeTarget": COMPUTE,
        "dockerImage": "registry.example.org/trials:1",
        "endpoint": server.address,
        "pollIntervalSeconds": 0.05,
        **options,
    }
    context = front_context(folder / "aml", installation, pool, PlatformSection("aml", section))
    return AmlAdapter(context, tokens or Tokens(), lambda _: server.address, end_limit_s)
