"""Requests to the REST API (v2) of an OpenPAI cluster."""

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import yaml

from svc_trial_runner.fleet.adapters.http_requests import (
    CLIENT_ERRORS,
    NOT_FOUND,
    REDIRECTIONS,
    SERVER_ERRORS,
    TOO_MANY,
    exchange,
)
from svc_trial_runner.fleet.adapters.json_answers import JsonPart
from svc_trial_runner.fleet.adapters.openpai.options import OpenpaiOptions
from svc_trial_runner.fleet.ports import PlatformError

ANSWER_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Longest answer: a list of tens of thousands of jobs."""
CONFLICT: Final = 409
_UNAUTHORIZED: Final = 401
_TEXTS_OF_A_JOB: Final = ("username", "state", "subState", "executionType", "virtualCluster")
"""Fields of a job's summary that are read, beside its name."""
_SHOWN_CHARACTERS: Final = 400


class OpenpaiRefusalError(PlatformError):
    """Error of a request that OpenPAI has refused.

    Attributes:
        status: of HTTP.
        code: of OpenPAI: `NoJobError`, `NoVirtualClusterError`; empty: none.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        remedy, permanent = "", REDIRECTIONS <= status < SERVER_ERRORS and status != TOO_MANY
        if status == _UNAUTHORIZED:
            remedy = "give a new token, from My profile of OpenPAI's portal"
            permanent = False  # tokens expire, and can be renewed while the experiment waits
        super().__init__(message, remedy, permanent=permanent)
        self.status = status
        self.code = code


class OpenpaiApi:
    """Blocking connection to one cluster; each call runs in a thread, on a connection of its own.

    Redirections are refused: the token goes to the host of the section only.

    Args:
        options: of the section.
        token: of the user.
    """

    def __init__(self, options: OpenpaiOptions, token: str) -> None:
        self._options = options
        self._token = token

    def jobs(self, installation: str) -> list[dict[str, Any]]:
        """Return the summaries of the user's jobs that an installation has submitted.

        Raises:
            PlatformError: the cluster cannot be reached, refuses, or answers otherwise.
        """
        prefix = f"nni-{installation}-"
        query = {"username": self._options.username, "keyword": prefix}
        answer = self._request("GET", f"/jobs?{urlencode(query)}")
        listed = answer.field("data") if isinstance(answer.value, dict) else answer
        # Without a list there is an error: an empty one would mean that all agents have ended.
        jobs = [one.checked(("name",), _TEXTS_OF_A_JOB) for one in listed.items()]
        return [
            one
            for one in jobs
            if one["name"].startswith(prefix)
            and one.get("username") in {None, self._options.username}
        ]

    def job_status(self, name: str) -> JsonPart:
        """Return the field `jobStatus` of the details of a job.

        Raises:
            PlatformError: the cluster cannot be reached, refuses, or answers otherwise.
        """
        status = self._request("GET", self._path(name)).field("jobStatus")
        status.fields()
        return status

    def submit(self, job: Mapping[str, Any]) -> None:
        """Submit a job.

        Raises:
            PlatformError: the cluster cannot be reached, refuses, or answers otherwise.
        """
        text = yaml.safe_dump(dict(job), sort_keys=False)
        self._request("POST", "/jobs", text.encode(), "text/yaml").fields()

    def stop(self, name: str) -> None:
        """Stop a job; do nothing if there is none.

        Raises:
            PlatformError: the cluster cannot be reached, refuses, or answers otherwise.
        """
        body = json.dumps({"value": "STOP"}).encode()
        try:
            path = f"{self._path(name)}/executionType"
            self._request("PUT", path, body, "application/json").fields()
        except OpenpaiRefusalError as error:
            if error.status != NOT_FOUND:
                raise

    def virtual_cluster(self, name: str) -> dict[str, Any]:
        """Return a virtual cluster.

        Raises:
            PlatformError: the cluster cannot be reached, refuses, or answers otherwise.
        """
        return self._request("GET", f"/virtual-clusters/{quote(name, safe='')}").fields()

    def storages(self) -> list[str]:
        """Return the names of the storages that the user may mount.

        Raises:
            PlatformError: the cluster cannot be reached, refuses, or answers otherwise.
        """
        found = self._request("GET", "/storages").field("storages")
        return [one.checked(("name",))["name"] for one in found.items()]

    def _path(self, job: str) -> str:
        user = quote(self._options.username, safe="")
        return f"/jobs/{user}~{quote(job, safe='')}"

    def _request(
        self, method: str, path: str, body: bytes | None = None, kind: str = ""
    ) -> JsonPart:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if kind:
            headers["Content-Type"] = kind
        target = f"/rest-server/api/v2{path}"
        try:
            status, content = exchange(
                self._options.host, method, target, body, headers, ANSWER_LIMIT_BYTES
            )
        except (OSError, http.client.HTTPException) as error:
            raise PlatformError(
                f"OpenPAI at {self._options.host} cannot be reached: {str(error)[:300]}",
                "is host the address of the portal? http:// has to be written if it has no TLS",
            ) from error
        answer = _parsed(content)
        if status >= REDIRECTIONS:
            raise _refusal(status, answer, content)
        return JsonPart(f"OpenPAI at {self._options.host}", answer)


def _parsed(content: bytes) -> object:
    try:
        answer: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return answer


def _refusal(status: int, answer: object, content: bytes) -> OpenpaiRefusalError:
    if status < CLIENT_ERRORS:
        return OpenpaiRefusalError(status, "", "OpenPAI redirects to another address; give that")
    if isinstance(answer, dict) and answer.get("message"):
        words = " ".join(str(answer["message"]).split())[:_SHOWN_CHARACTERS]
        return OpenpaiRefusalError(status, str(answer.get("code", "")), words)
    words = " ".join(content.decode("utf-8", "replace").split())[:_SHOWN_CHARACTERS] or "no message"
    return OpenpaiRefusalError(status, "", f"HTTP status {status}: {words}")
