"""Requests to the API of PAI-DLC (version 2020-12-03)."""

import hashlib
import http.client
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit

from svc_trial_runner.fleet.adapters.dlc.options import DlcOptions
from svc_trial_runner.fleet.adapters.dlc.signature import (
    AccessKey,
    authorization,
    canonical_query,
)
from svc_trial_runner.fleet.adapters.http_requests import (
    NOT_FOUND,
    REDIRECTIONS,
    SERVER_ERRORS,
    TOO_MANY,
    exchange,
)
from svc_trial_runner.fleet.adapters.json_answers import JsonPart
from svc_trial_runner.fleet.ports import PlatformError

VERSION: Final = "2020-12-03"
PAGE: Final = 50
_ANSWER_LIMIT_BYTES: Final = 16 * 1024 * 1024
_DENIED: Final = frozenset({401, 403})
_SHOWN_CHARACTERS: Final = 400
_TEXTS_OF_A_JOB: Final = ("DisplayName", "Status", "ReasonCode", "ReasonMessage")
"""Fields of a job that are read, beside its id."""


class DlcRefusalError(PlatformError):
    """Error of a request that PAI-DLC has refused: HTTP status, code, whether access is denied.

    Attributes:
        status: of HTTP.
        code: of Alibaba Cloud: `InvalidAccessKeyId.NotFound`; empty: none.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        refused = REDIRECTIONS <= status < SERVER_ERRORS
        permanent = refused and status not in _DENIED and status != TOO_MANY
        denied = status in _DENIED or "AccessKey" in code or "Signature" in code
        remedy = "look at accessKeyId, accessKeySecret and the rights of that user"
        super().__init__(message, remedy if denied else "", permanent=permanent)
        self.status = status
        self.code = code
        self.denied = denied


class DlcApi:
    """Blocking client of PAI-DLC in one region, a connection per request; callers use threads.

    Args:
        options: of the section.
        key_secret: of the access key.
    """

    def __init__(self, options: DlcOptions, key_secret: str) -> None:
        self._options = options
        self._key = AccessKey(options.key_id, key_secret)

    def jobs(self, prefix: str) -> list[dict[str, Any]]:
        """Return the jobs whose display name begins with a prefix, of all pages.

        Raises:
            PlatformError: the service cannot be reached, refuses, or answers otherwise.
        """
        found: dict[str, dict[str, Any]] = {}
        number = 1
        while True:
            query = {
                "DisplayName": prefix,
                "PageNumber": str(number),
                "PageSize": str(PAGE),
                "SortBy": "GmtCreateTime",
                "Order": "desc",
            }
            if self._options.workspace:
                query["WorkspaceId"] = self._options.workspace
            answer = self._request("ListJobs", "GET", "/api/v1/jobs", query)
            if not answer:
                # An empty list would mean that all agents have ended.
                raise PlatformError(
                    f"{self._options.address} answered with something else than a list of jobs",
                    "is endpoint that of PAI-DLC, with no login page before it?",
                )
            page = self._page(answer)
            new = {job["JobId"]: job for job in page if job["JobId"] not in found}
            found |= new
            if len(page) < PAGE or not new:
                break
            number += 1
        return [job for job in found.values() if (job.get("DisplayName") or "").startswith(prefix)]

    def _page(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the jobs of one page of a list."""
        jobs = self._part(answer).field("Jobs")
        if jobs.value is None and answer.get("TotalCount") == 0:
            return []
        return [one.checked(("JobId",), _TEXTS_OF_A_JOB) for one in jobs.items()]

    def submit(self, job: Mapping[str, Any]) -> None:
        """Submit a job.

        Raises:
            PlatformError: the service cannot be reached, refuses, or answers otherwise.
        """
        self._part(self._request("CreateJob", "POST", "/api/v1/jobs", {}, job)).checked(("JobId",))

    def stop(self, job_id: str) -> None:
        """Stop a job; do nothing if there is none.

        Raises:
            PlatformError: the service cannot be reached, refuses, or answers otherwise.
        """
        self._unless_gone("StopJob", "POST", f"/api/v1/jobs/{quote(job_id, safe='')}/stop")

    def delete(self, job_id: str) -> None:
        """Delete a job that is over; do nothing if there is none.

        Raises:
            PlatformError: the service cannot be reached, refuses, or answers otherwise.
        """
        self._unless_gone("DeleteJob", "DELETE", f"/api/v1/jobs/{quote(job_id, safe='')}")

    def _part(self, answer: Mapping[str, Any]) -> JsonPart:
        return JsonPart(f"PAI-DLC at {self._options.address}", answer)

    def _unless_gone(self, action: str, method: str, path: str) -> None:
        try:
            self._part(self._request(action, method, path, {})).checked(("JobId",))
        except DlcRefusalError as error:
            if error.status != NOT_FOUND:
                raise

    def _request(
        self,
        action: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        parts = urlsplit(self._options.address)
        headers = {
            "host": parts.netloc,
            "x-acs-action": action,
            "x-acs-content-sha256": hashlib.sha256(content).hexdigest(),
            "x-acs-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "x-acs-signature-nonce": secrets.token_hex(16),
            "x-acs-version": VERSION,
        }
        if content:
            headers["content-type"] = "application/json"
        headers["Authorization"] = authorization(self._key, method, path, query, headers)
        target = f"{path}?{canonical_query(query)}" if query else path
        status, answer, text = self._exchange(method, target, content, headers)
        if status >= REDIRECTIONS:
            code = str(answer.get("Code", ""))
            words = " ".join(str(answer.get("Message") or text).split())[:_SHOWN_CHARACTERS]
            raise DlcRefusalError(status, code, words or f"HTTP status {status}")
        return answer

    def _exchange(
        self, method: str, target: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any], str]:
        try:
            status, data = exchange(
                self._options.address, method, target, content or None, headers, _ANSWER_LIMIT_BYTES
            )
        except (OSError, http.client.HTTPException) as error:
            raise PlatformError(
                f"PAI-DLC at {self._options.address} cannot be reached: {str(error)[:300]}",
                "is region right, and is this machine in the network of that endpoint?",
            ) from error
        text = data.decode("utf-8", "replace")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = {}
        return status, answer if isinstance(answer, dict) else {}, text
