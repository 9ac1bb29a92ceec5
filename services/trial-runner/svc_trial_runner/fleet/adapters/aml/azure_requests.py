"""Requests to Azure with a bearer token, and its refusals as errors."""

import http.client
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from svc_trial_runner.fleet.adapters.http_requests import (
    CLIENT_ERRORS,
    REDIRECTIONS,
    SERVER_ERRORS,
    TOO_MANY,
    exchange,
)
from svc_trial_runner.fleet.ports import PlatformError

_ANSWER_LIMIT_BYTES: Final = 16 * 1024 * 1024
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_SHOWN_CHARACTERS: Final = 400
_XML: Final = re.compile(r"<(Code|Message)>([^<]*)</\1>")
"""Parts of an error of Azure Storage."""


class LoginError(PlatformError):
    """Error of a login to Azure that is missing or has ended; a person can log in again."""


class TokenSource(Protocol):
    """Interface of a login to Azure."""

    def token(self, scope: str) -> str:
        """Return a valid bearer token for a resource. Blocks; threads may call it.

        Args:
            scope: of the resource: `https://management.azure.com/.default`.

        Raises:
            LoginError: there is no login, or it has ended.
        """
        ...


class AmlRefusalError(PlatformError):
    """Error of a request that Azure has refused.

    Attributes:
        status: of HTTP.
        code: of Azure: `ResourceGroupNotFound`; empty: none.
        denied: True if the user lacks a right.
    """

    def __init__(self, status: int, code: str, message: str, remedy: str = "") -> None:
        refused = REDIRECTIONS <= status < SERVER_ERRORS and status != TOO_MANY
        denied = status in {_UNAUTHORIZED, _FORBIDDEN}
        # A login can be renewed and a role assigned while the experiment waits.
        super().__init__(message, remedy, permanent=refused and not denied)
        self.status = status
        self.code = code
        self.denied = denied


class AzureRequests:
    """Blocking client of one resource of Azure; each request has a connection of its own.

    Redirections are refused: the token goes to the given address only.

    Args:
        address: `https://host`.
        scope: for which tokens are requested.
        tokens: login.
        remedy: for a request that is denied.
    """

    def __init__(self, address: str, scope: str, tokens: TokenSource, remedy: str) -> None:
        self.address = address
        self._scope = scope
        self._tokens = tokens
        self._remedy = remedy

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Send a request; return the body of the response.

        Args:
            method: of HTTP.
            target: path and query.
            body: None: none.
            headers: besides the token.

        Raises:
            PlatformError: there is no login, Azure cannot be reached, or it refuses.
        """
        given = {"Authorization": f"Bearer {self._tokens.token(self._scope)}", **(headers or {})}
        try:
            status, content = exchange(
                self.address, method, target, body, given, _ANSWER_LIMIT_BYTES
            )
        except (OSError, http.client.HTTPException) as error:
            raise PlatformError(
                f"Azure at {self.address} cannot be reached: {str(error)[:300]}",
                "can this machine open HTTPS connections to that address?",
            ) from error
        text = content.decode("utf-8", "replace")
        if status >= REDIRECTIONS:
            raise self._refusal(status, text)
        return text

    def send_json(
        self, method: str, target: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request with a JSON body, if one is given; return the JSON of the response.

        Raises:
            PlatformError: as `send`, or the response is no JSON object.
        """
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        content = None if body is None else json.dumps(body).encode()
        text = self.send(method, target, content, headers)
        if not text:
            return {}
        answer = _parsed(text)
        if answer is None:
            # An empty list would mean that all agents have ended.
            raise PlatformError(
                f"{self.address} answered {method} {urlsplit(target).path} without JSON",
                "is endpoint that of Azure Resource Manager, with no proxy's page before it?",
            )
        return answer

    def _refusal(self, status: int, text: str) -> AmlRefusalError:
        if status < CLIENT_ERRORS:
            return AmlRefusalError(status, "", f"{self.address} redirects to another address")
        answer = (_parsed(text) or {}).get("error")
        if isinstance(answer, dict):
            code, words = str(answer.get("code") or ""), str(answer.get("message") or "")
        else:
            found = dict(_XML.findall(text))
            code, words = found.get("Code", ""), found.get("Message", text)
        message = " ".join(f"{code}: {words}".split())[:_SHOWN_CHARACTERS].strip(": ")
        denied = status in {_UNAUTHORIZED, _FORBIDDEN}
        remedy = self._remedy if denied else ""
        return AmlRefusalError(status, code, message or f"HTTP status {status}", remedy)


def mapping(value: object) -> dict[str, Any]:
    """Return a part of a response if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
