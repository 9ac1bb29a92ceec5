"""What a route says about itself: enough to check a request, to answer it and to document it."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import Response

from nni_wire.limits import METRIC_LIMIT_BYTES
from svc_common.access.permissions import ADMINISTERS
from svc_common.access.roles import Rule
from svc_common.errors import InvalidArgumentError
from svc_manager.web.dependencies import Installation
from svc_manager.web.records.encoding import to_json_bytes
from svc_manager.web.records.schemas import Schema

_LONGEST_TEXT: Final = 10_000
"""Longest value of a parameter; a longer one is no honest request."""


class Scope(enum.Enum):
    """What a path is about."""

    EXPERIMENT = enum.auto()
    """One experiment: that of the listener, or the one that the path names."""
    INSTALLATION = enum.auto()
    """All experiments of this manager."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query string."""

    name: str
    description: str
    kind: type[str] | type[int] | type[bool] = str
    minimum: int = 0
    maximum: int = 2**53
    """For numbers: largest value; JavaScript is exact up to here."""
    choices: tuple[str, ...] = ()
    """For text: what it may be; empty: anything."""

    def parse(self, text: str) -> str | int | bool:
        """Return the value that ``text`` means.

        Raises:
            InvalidArgumentError: it means none.
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
    """One request, checked as far as its route can tell."""

    installation: Installation
    experiment_id: str
    """Empty for routes of the installation on the base listener."""
    path: Mapping[str, str]
    """Values of the names in the route's path."""
    query: Mapping[str, Any]
    """Values of the parameters that were given."""
    body: Any
    """The JSON value of the body; None if the route takes none."""
    request_id: str
    """Names a changing request, so that a repeated one has no further effect."""
    url_path: str
    """Path as the client asked for it."""
    until_stopped: Callable[[], Awaitable[None]]
    """Waits until the listener closes; answers without an end end then."""
    last_event_id: str = ""
    """Where a broken event stream is taken up again."""
    knows_token: bool = False
    """Whether the client may change things."""


Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    """Below `/api/v1/nni`; names of path parameters in braces."""
    handler: Handler
    summary: str
    answer: Schema
    rule: Rule = ADMINISTERS
    """Role that a caller needs, and whether the request is audited.

    The default keeps a route without a rule closed.
    """
    scope: Scope = Scope.EXPERIMENT
    query: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_limit_bytes: int = METRIC_LIMIT_BYTES
    media_type: str = "application/json"
    tags: tuple[str, ...] = field(default=())

    def parse_query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of the parameters that this route knows; others are ignored.

        Raises:
            InvalidArgumentError: a value breaks the rule of its parameter.
        """
        return {
            parameter.name: parameter.parse(given[parameter.name])
            for parameter in self.query
            if parameter.name in given
        }


def json_answer(
    data: Any,  # noqa: ANN401 - any JSON value
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return ``data`` as the answer to a request."""
    return Response(
        to_json_bytes(data), status_code=status, media_type="application/json", headers=headers
    )
