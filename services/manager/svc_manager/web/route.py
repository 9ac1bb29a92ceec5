"""Declaration of a REST route, and the checked request that its handler gets."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from nni_wire.limits import METRIC_LIMIT_BYTES
from svc_common.access.permissions import ADMINISTERS
from svc_common.access.roles import Rule
from svc_common.errors import InvalidArgumentError
from svc_manager.web.dependencies import WebDependencies
from svc_manager.web.records.encoding import to_json_bytes
from svc_manager.web.records.schemas import Schema

_LONGEST_TEXT: Final = 10_000
"""Longest value of a query parameter, in characters."""


class Scope(enum.Enum):
    """Subject of a route's path: one experiment, or the whole installation."""

    EXPERIMENT = enum.auto()
    """One experiment: the listener's, or the one named by the path."""
    INSTALLATION = enum.auto()
    """All experiments of this manager."""


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """Declaration of a route's query parameter: name, description, type, range, choices."""

    name: str
    description: str
    kind: type[str] | type[int] | type[bool] = str
    minimum: int = 0
    maximum: int = 2**53
    """Largest number; JavaScript is exact up to the default."""
    choices: tuple[str, ...] = ()
    """Allowed texts; empty: any text."""

    def parse(self, text: str) -> str | int | bool:
        """Parse a query parameter's text by its type; raise InvalidArgumentError if invalid.

        Raises:
            InvalidArgumentError: the text is not of the parameter's kind, range or choices.
        """
        if self.kind is bool:
            if text.lower() in {"true", "1", ""}:
                return True
            if text.lower() in {"false", "0"}:
                return False
            raise InvalidArgumentError(self.name, "must be true or false", text[:80])
        if self.kind is int:
            return self._parse_number(text)
        if len(text) > _LONGEST_TEXT:
            raise InvalidArgumentError(self.name, f"must have at most {_LONGEST_TEXT} characters")
        if self.choices and text not in self.choices:
            rule = "must be one of " + ", ".join(self.choices)
            raise InvalidArgumentError(self.name, rule, text[:80])
        return text

    def _parse_number(self, text: str) -> int:
        rule = f"must be an integer from {self.minimum} to {self.maximum}"
        # 20 digits: beyond any maximum, and short enough for int() to be cheap.
        if not (text.isascii() and text.isdigit() and len(text) <= 20):  # noqa: PLR2004
            raise InvalidArgumentError(self.name, rule, text[:80])
        number = int(text)
        if not self.minimum <= number <= self.maximum:
            raise InvalidArgumentError(self.name, rule, number)
        return number


@dataclass(frozen=True, slots=True)
class Call:
    """Parsed request that a handler gets: path, query, body, request id and dependencies."""

    dependencies: WebDependencies
    experiment_id: str
    """Empty for routes of the installation on the base listener."""
    path: Mapping[str, str]
    """Values of the path parameters."""
    query: Mapping[str, Any]
    """Values of the query parameters in the request."""
    body: Any
    """JSON value of the body; None for routes without a body."""
    body_bytes: int
    """Size of the body."""
    request_id: str
    """Idempotency key: a repeated changing request has no further effect."""
    url_path: str
    """Path of the request as received."""
    until_stopped: Callable[[], Awaitable[None]]
    """Waits until the listener closes, which ends streaming responses."""
    range_header: str = ""
    """Header `Range`; empty: the whole content is wanted."""
    last_event_id: str = ""
    """Id after which a reconnected event stream resumes."""
    can_change: bool = False
    """True if the caller has the role to change experiments."""


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """Declaration of a REST route: method, path, handler, schemas, role, query parameters."""

    method: str
    path: str
    """Path below `/api/v1/nni`; names of path parameters in braces."""
    handler: Handler
    summary: str
    response: Schema
    rule: Rule = ADMINISTERS
    """Role that a caller needs, and whether the request is audited.

    The default closes a route whose declaration names no rule.
    """
    scope: Scope = Scope.EXPERIMENT
    query: tuple[QueryParameter, ...] = ()
    body: Schema | None = None
    """Schema of the request body; None: the route reads none."""
    body_limit_bytes: int = METRIC_LIMIT_BYTES
    media_type: str = "application/json"
    """Media type of the response."""

    def parse_query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return {name: parsed value} of declared query parameters, ignoring others; or raise.

        Raises:
            InvalidArgumentError: a value is invalid for its parameter.
        """
        return {
            parameter.name: parameter.parse(given[parameter.name])
            for parameter in self.query
            if parameter.name in given
        }


def json_response(
    data: Any,  # noqa: ANN401 - any JSON value
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    size_bytes: int = 0,
) -> Response:
    """Return an HTTP response with ``data`` as its JSON body; see `to_json_bytes` for the size."""
    return Response(
        to_json_bytes(data, size_bytes),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )
