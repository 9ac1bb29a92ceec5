"""Requests to a workspace by the REST API of Azure Machine Learning (version 2023-10-01)."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from svc_trial_runner.fleet.adapters.aml.azure_requests import (
    AmlRefusalError,
    AzureRequests,
    TokenSource,
    mapping,
)
from svc_trial_runner.fleet.adapters.aml.options import AmlOptions
from svc_trial_runner.fleet.adapters.http_requests import NOT_FOUND
from svc_trial_runner.fleet.ports import PlatformError

VERSION: Final = "2023-10-01"
ENVIRONMENT: Final = "nni-agent"
"""Name of the environments, one version for each image."""
_BLOB: Final = "AzureBlob"
_RIGHTS: Final = "the user needs the role AzureML Data Scientist of the workspace"


@dataclass(frozen=True, slots=True)
class BlobStoreLocation:
    """Default datastore of a workspace: its name, and the container of Azure Storage behind it."""

    datastore: str
    account: str
    container: str
    endpoint: str
    """Domain of the cloud's storage: `core.windows.net`."""


class WorkspaceApi:
    """Blocking client of one workspace; callers use threads.

    Args:
        options: of the section.
        tokens: login.
    """

    def __init__(self, options: AmlOptions, tokens: TokenSource) -> None:
        self._options = options
        scope = f"{options.endpoint}/.default"
        self._requests = AzureRequests(options.endpoint, scope, tokens, _RIGHTS)

    def check_workspace(self) -> None:
        """Raise PlatformError unless the workspace exists and can be read."""
        self._send("GET", "")

    def compute(self) -> dict[str, Any]:
        """Return the properties of the compute target.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        path = self._options.compute_id.removeprefix(self._options.workspace_id)
        return mapping(self._send("GET", path).get("properties"))

    def default_store(self) -> BlobStoreLocation:
        """Return name, account and container of the workspace's default datastore.

        Raises:
            PlatformError: Azure cannot be reached or refuses, or the datastore is no blob store.
        """
        listed = self._send("GET", "/datastores", {"isDefault": "true"}).get("value")
        first = mapping(listed[0]) if isinstance(listed, list) and listed else {}
        given = mapping(first.get("properties"))
        if given.get("datastoreType") != _BLOB:
            raise PlatformError(
                f"workspace {self._options.workspace} has no default datastore of Azure Blob",
                "make one of its datastores of type Azure Blob the default in the studio",
                permanent=True,
            )
        return BlobStoreLocation(
            str(first.get("name")),
            str(given.get("accountName")),
            str(given.get("containerName")),
            str(given.get("endpoint") or "core.windows.net"),
        )

    def ensure_environment(self, image: str) -> None:
        """Register an image as an environment, unless it is registered.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        path = _environment_path(image)
        try:
            self._send("GET", path)
        except AmlRefusalError as error:
            if error.status != NOT_FOUND:
                raise
            properties = {"image": image, "isAnonymous": True, "osType": "Linux"}
            self._send("PUT", path, body={"properties": properties})

    def jobs(self, tag: str) -> list[dict[str, Any]]:
        """Return the command jobs that have a tag, of all pages.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        query = {"jobType": "Command", "tag": tag, "listViewType": "ActiveOnly"}
        page = self._send("GET", "/jobs", query)
        found: dict[str, dict[str, Any]] = {}
        seen: set[str] = set()
        while True:
            found |= {job["name"]: job for job in self._listed(page)}
            link = str(page.get("nextLink") or "")
            if not link or link in seen:
                return list(found.values())
            seen.add(link)
            page = self._requests.send_json("GET", self._target(link))

    def job(self, name: str) -> dict[str, Any] | None:
        """Return a job; None: there is none.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        try:
            return self._send("GET", _job_path(name))
        except AmlRefusalError as error:
            if error.status != NOT_FOUND:
                raise
        return None

    def submit(self, name: str, properties: Mapping[str, Any]) -> None:
        """Submit a job.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        self._send("PUT", _job_path(name), body={"properties": properties})

    def cancel(self, name: str) -> None:
        """Request the cancellation of a job.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        self._send("POST", f"{_job_path(name)}/cancel")

    def delete(self, name: str) -> None:
        """Delete a job that is over; do nothing if there is none.

        Raises:
            PlatformError: Azure cannot be reached, or refuses.
        """
        try:
            self._send("DELETE", _job_path(name))
        except AmlRefusalError as error:
            if error.status != NOT_FOUND:
                raise

    def environment_id(self, image: str) -> str:
        """Return the id of the environment of an image."""
        return f"{self._options.workspace_id}{_environment_path(image)}"

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        given = urlencode({"api-version": VERSION, **(query or {})})
        target = f"{self._options.workspace_id}{path}?{given}"
        return self._requests.send_json(method, target, body)

    def _listed(self, page: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the jobs of a response page; raise PlatformError if it is no list of jobs.

        An empty list would mean that all agents have ended.
        """
        jobs = page.get("value")
        if isinstance(jobs, list) and all(map(_is_job, jobs)):
            return jobs
        raise PlatformError(
            f"{self._options.endpoint} answered with something else than a list of jobs",
            "is endpoint that of Azure Resource Manager?",
        )

    def _target(self, link: str) -> str:
        """Return path and query of a link to a next page; raise if it leads elsewhere."""
        parts = urlsplit(link)
        if origin_of(link) != origin_of(self._options.endpoint):
            raise PlatformError(
                f"the list of jobs of {self._options.endpoint} goes on at another address, "
                f"{parts.netloc[:80]}, which gets no token"
            )
        return f"{parts.path}?{parts.query}"


def origin_of(address: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port; Azure writes the port into links, also the usual one."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:  # no number
        return parts.scheme, None, None
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, parts.hostname, usual if port is None else port


def _is_job(value: object) -> bool:
    job = mapping(value)
    return isinstance(job.get("name"), str) and isinstance(job.get("properties"), dict)


def _job_path(name: str) -> str:
    return f"/jobs/{quote(name, safe='')}"


def _environment_path(image: str) -> str:
    # An environment's version is immutable, so it names its image.
    return f"/environments/{ENVIRONMENT}/versions/{sha256(image.encode()).hexdigest()[:32]}"
