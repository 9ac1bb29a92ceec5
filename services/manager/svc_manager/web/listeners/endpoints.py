"""From an HTTP request to the handler of its route, and from errors to answers."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as HttpRoute

from svc_common.access.audit import AuditRecord
from svc_common.access.delegation import ON_BEHALF_KEY
from svc_common.access.roles import Caller, Role
from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.logs import get_logger
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.web.dependencies import Installation
from svc_manager.web.errors import (
    BodyTooLargeError,
    SlowBodyError,
    error_response,
    text_response,
)
from svc_manager.web.listeners.openapi import document
from svc_manager.web.listeners.request_telemetry import noted_request
from svc_manager.web.records.encoding import from_json
from svc_manager.web.route import Call, Route, Scope, json_answer
from svc_manager.web.security import CERTIFICATE_NAME, AccessPolicy, RequestHead

API_ROOT: Final = "/api/v1/nni"
_LONGEST_REQUEST_ID: Final = 200
BODY_TIMEOUT_S: Final = 60.0
"""How long a client may take for the body of a request: 50 MB at 1 MB/s fit."""
_METRICS: Final = "metrics"
_FORBIDDEN: Final = 403
_FIRST_ERROR: Final = 400


@dataclass(frozen=True, slots=True)
class Listener:
    """What one listener serves, and to whom."""

    installation: Installation
    policy: AccessPolicy
    until_stopped: Callable[[], Awaitable[None]]
    """Waits until the listener closes."""
    experiment_id: str = ""
    """What paths without an id mean; empty on the base listener."""
    body_timeout_s: float = BODY_TIMEOUT_S
    """How long a client may take for the body of a request, in seconds."""


def http_routes(listener: Listener, routes: Sequence[Route]) -> list[HttpRoute]:
    """Return what Starlette serves: each path for the listener's experiment and for any other."""
    by_path: dict[str, dict[str, Route]] = defaultdict(dict)
    for route in routes:
        by_path[API_ROOT + route.path][route.method] = route
        if route.scope is Scope.EXPERIMENT:
            by_path[f"{API_ROOT}/experiments/{{experiment_id}}{route.path}"][route.method] = route
    made = [_http_route(path, listener, methods) for path, methods in by_path.items()]
    openapi = document(routes, listener.installation.version)

    async def describe(_request: Request) -> Response:
        return json_answer(openapi)

    return [*made, HttpRoute(f"{API_ROOT}/openapi.json", describe)]


def _http_route(path: str, listener: Listener, methods: Mapping[str, Route]) -> HttpRoute:
    made = HttpRoute(path, _endpoint(listener, methods), methods=list(methods))
    # Starlette adds HEAD to GET; here it could only hang on answers without an end.
    assert made.methods is not None
    made.methods.discard("HEAD")
    return made


def is_page(path: str) -> bool:
    """Return whether a path is one of the page, which holds nothing of anybody.

    What is neither below the API nor known to tell figures can only be the page's, or nothing.
    """
    return API_ROOT not in path and _METRICS not in path.split("/")


def head_of(request: Request, policy: AccessPolicy) -> RequestHead:
    """Return what the access rules look at."""
    headers = request.headers
    # Never `request.url`, which is made with the Host header: that is the caller's to choose.
    path: str = request.scope["path"]
    return RequestHead(
        method=request.method,
        host=headers.get("host", ""),
        origin=headers.get("origin", ""),
        content_type=headers.get("content-type", ""),
        has_body=headers.get("content-length", "0") != "0" or "transfer-encoding" in headers,
        authorization=headers.get("authorization", ""),
        cookie_token=request.cookies.get(policy.cookie_name, ""),
        is_page=is_page(path),
        address=request.client.host if request.client else "",
        certificate_name=request.scope.get("state", {}).get(CERTIFICATE_NAME, ""),
        path=path,
        on_behalf_of=headers.get(ON_BEHALF_KEY, ""),
    )


def _endpoint(
    listener: Listener, methods: Mapping[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = methods[request.method]
        with noted_request(listener.installation.instruments, route, request) as noted:
            answer = await _answer_or_error(listener, route, request)
            noted.answered(answer)
        _note(listener, route, request, answer)
        return answer

    return endpoint


async def _answer_or_error(listener: Listener, route: Route, request: Request) -> Response:
    try:
        return await _answer(listener, route, request)
    except OwnedElsewhereError as moved:
        return await _elsewhere(listener, request, moved)
    except ServiceError as error:
        return error_response(error)
    except ClientDisconnect:  # nobody is there to read the answer
        return Response(status_code=400)
    except Exception:  # noqa: BLE001 - a rim: what no route foresaw is logged here, once
        get_logger().exception("request failed", method=route.method, path=route.path)
        return text_response(500, "the manager failed to answer; its log says why")


def _note(listener: Listener, route: Route, request: Request, answer: Response) -> None:
    """Write down who changed something, or was not allowed to."""
    authenticator = listener.policy.authenticator
    if authenticator is None or not (route.rule.audited or answer.status_code == _FORBIDDEN):
        return
    caller: Caller = request.state.caller
    path = request.path_params
    authenticator.trail.record(
        AuditRecord(
            caller=caller.name,
            role=caller.role.word,
            by=caller.by,
            peer=request.client.host if request.client else "",
            what=f"{route.method} {API_ROOT}{route.path}",
            outcome="OK" if answer.status_code < _FIRST_ERROR else str(answer.status_code),
            experiment=path.get("experiment_id", listener.experiment_id),
            trial=path.get("trial_id", ""),
            request=request.headers.get("idempotency-key", ""),
        )
    )


async def _elsewhere(listener: Listener, request: Request, moved: OwnedElsewhereError) -> Response:
    """Let the manager that has the experiment answer."""
    forwarding = listener.installation.forwarding
    try:
        # An experiment's own listener is open at its owner only, or about to close.
        if forwarding is None or listener.experiment_id:
            raise moved
        return await forwarding.pass_on(request, request.state.body, moved, listener.until_stopped)
    except ServiceError as error:
        response = error_response(error)
        response.headers["Retry-After"] = "1"
        return response


async def _answer(listener: Listener, route: Route, request: Request) -> Response:
    caller: Caller = request.state.caller
    caller.check(route.rule, f"{route.method} {API_ROOT}{route.path}")
    path: dict[str, str] = dict(request.path_params)
    experiment_id = path.pop("experiment_id", listener.experiment_id)
    if route.scope is Scope.EXPERIMENT and not experiment_id:
        raise FailedPreconditionError(
            f"this address serves no single experiment; use {API_ROOT}/experiments/<id>{route.path}"
        )
    body = await _body(request, route, listener.body_timeout_s) if route.body is not None else b""
    request.state.body = body  # it can be read once only, and may have to be passed on
    call = Call(
        installation=listener.installation,
        experiment_id=experiment_id,
        path=path,
        query=route.parse_query(request.query_params),
        body=from_json(body) if route.body is not None else None,
        request_id=request.headers.get("idempotency-key", "")[:_LONGEST_REQUEST_ID]
        or uuid.uuid4().hex,
        url_path=request.scope["path"],
        until_stopped=listener.until_stopped,
        last_event_id=request.headers.get("last-event-id", ""),
        knows_token=caller.role >= Role.USER,
    )
    return await route.handler(call)


async def _body(request: Request, route: Route, timeout_s: float) -> bytes:
    """Read the body, but never more than the route takes.

    Raises:
        BodyTooLargeError: it is longer.
        SlowBodyError: it does not come to its end.
    """
    limit = route.body_limit_bytes
    declared: Any = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise BodyTooLargeError(limit)
    pieces = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for piece in request.stream():
                pieces += piece
                if len(pieces) > limit:
                    raise BodyTooLargeError(limit)
    except TimeoutError as error:
        raise SlowBodyError(timeout_s) from error
    return bytes(pieces)
