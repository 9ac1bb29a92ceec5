"""HTTP endpoints of the REST routes: checks, handler calls, forwarding and error responses."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as HttpRoute

from svc_common.access.audit import AuditRecord
from svc_common.access.current_call import CurrentCall, serving
from svc_common.access.delegation import ON_BEHALF_KEY
from svc_common.access.roles import Caller, Role
from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.large_work import off_loop
from svc_common.logs import get_logger
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.web.dependencies import WebDependencies
from svc_manager.web.errors import (
    BodyTooLargeError,
    SlowBodyError,
    error_response,
    text_response,
)
from svc_manager.web.listeners.connection_limits import ConnectionLimits, ConnectionQuota
from svc_manager.web.listeners.openapi import document
from svc_manager.web.listeners.request_telemetry import measured_request
from svc_manager.web.records.encoding import from_json
from svc_manager.web.route import Call, Route, Scope, json_response
from svc_manager.web.security import CERTIFICATE_NAME, AccessPolicy, RequestHead

API_ROOT: Final = "/api/v1/nni"
_LONGEST_REQUEST_ID: Final = 200
BODY_TIMEOUT_S: Final = 60.0
"""Time limit for the body of a request: enough for 17 MB at 300 kB/s."""
_METRICS: Final = "metrics"
_FORBIDDEN: Final = 403
_FIRST_ERROR: Final = 400


@dataclass(frozen=True, slots=True)
class EndpointContext:
    """Use cases, access policy, stop signal and limits that a listener's endpoints share."""

    dependencies: WebDependencies
    policy: AccessPolicy
    until_stopped: Callable[[], Awaitable[None]]
    """Waits until the listener closes."""
    experiment_id: str = ""
    """Experiment of paths without an id; empty on the base listener."""
    body_timeout_s: float = BODY_TIMEOUT_S
    """Time limit for the body of a request, in seconds."""
    limits: ConnectionLimits = field(
        default_factory=lambda: ConnectionLimits(ConnectionQuota.of_descriptors(1_024))
    )
    """Limits of requests without credentials, shared by all listeners."""


def http_routes(context: EndpointContext, routes: Sequence[Route]) -> list[HttpRoute]:
    """Build a listener's routes, those of an experiment also below its id, and the OpenAPI file."""
    by_path: dict[str, dict[str, Route]] = defaultdict(dict)
    for route in routes:
        by_path[API_ROOT + route.path][route.method] = route
        if route.scope is Scope.EXPERIMENT:
            by_path[f"{API_ROOT}/experiments/{{experiment_id}}{route.path}"][route.method] = route
    endpoints = [_http_route(path, context, methods) for path, methods in by_path.items()]
    openapi = document(routes, context.dependencies.version)

    async def serve_openapi(_request: Request) -> Response:
        return json_response(openapi)

    return [*endpoints, HttpRoute(f"{API_ROOT}/openapi.json", serve_openapi)]


def _http_route(path: str, context: EndpointContext, methods: Mapping[str, Route]) -> HttpRoute:
    route = HttpRoute(path, _endpoint(context, methods), methods=list(methods))
    # Starlette adds HEAD to GET; a HEAD of a streaming route would hang.
    assert route.methods is not None
    route.methods.discard("HEAD")
    return route


def is_page(path: str) -> bool:
    """Return whether a path is of the web page: neither API nor metrics, so without user data.

    Every path that is neither below the API nor that of the metrics is the page's or unknown.
    """
    return API_ROOT not in path and _METRICS not in path.split("/")


def head_of(request: Request, policy: AccessPolicy) -> RequestHead:
    """Extract from a request what the access policy needs: headers, cookie, path, address."""
    headers = request.headers
    # Never `request.url`: it contains the Host header, which the client chooses.
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
    context: EndpointContext, methods: Mapping[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = methods[request.method]
        with serving(request.state.caller) as call:
            with measured_request(context.dependencies.instruments, route, request) as record:
                response = await _response_or_error(context, route, request)
                record.complete(response)
            _audit(context, route, request, response, call)
        return response

    return endpoint


async def _response_or_error(context: EndpointContext, route: Route, request: Request) -> Response:
    try:
        return await _call_handler(context, route, request)
    except OwnedElsewhereError as moved:
        return await _forward(context, request, moved)
    except ServiceError as error:
        return error_response(error)
    except ClientDisconnect:  # the response has no reader
        return Response(status_code=400)
    except Exception:  # noqa: BLE001 - a rim: unexpected errors of handlers are logged here, once
        get_logger().exception("request failed", method=route.method, path=route.path)
        return text_response(500, "the manager failed on this request; its log contains the cause")


def _audit(
    context: EndpointContext,
    route: Route,
    request: Request,
    response: Response,
    call: CurrentCall,
) -> None:
    """Append a request to the audit trail if its route is audited or it was forbidden."""
    authenticator = context.policy.authenticator
    status = response.status_code
    if authenticator is None or not (route.rule.audited or status == _FORBIDDEN):
        return
    caller = call.caller
    path = request.path_params
    authenticator.trail.record(
        AuditRecord(
            caller=caller.name,
            role=caller.role.word,
            by=caller.by,
            peer=request.client.host if request.client else "",
            what=f"{route.method} {API_ROOT}{route.path}",
            outcome="OK" if status < _FIRST_ERROR else str(status),
            experiment=path.get("experiment_id", context.experiment_id),
            trial=path.get("trial_id", ""),
            request=request.headers.get("idempotency-key", ""),
            folder=", ".join(call.folders),
        )
    )


async def _forward(
    context: EndpointContext, request: Request, moved: OwnedElsewhereError
) -> Response:
    """Forward a request to the experiment's owner; respond with its response or an error."""
    forwarder = context.dependencies.forwarder
    try:
        # The listener of an experiment is open at its owner only, or about to close.
        if forwarder is None or context.experiment_id:
            raise moved
        return await forwarder.forward(request, request.state.body, moved, context.until_stopped)
    except ServiceError as error:
        response = error_response(error)
        response.headers["Retry-After"] = "1"
        return response


async def _call_handler(context: EndpointContext, route: Route, request: Request) -> Response:
    caller: Caller = request.state.caller
    caller.check(route.rule, f"{route.method} {API_ROOT}{route.path}")
    path: dict[str, str] = dict(request.path_params)
    experiment_id = path.pop("experiment_id", context.experiment_id)
    if route.scope is Scope.EXPERIMENT and not experiment_id:
        raise FailedPreconditionError(
            f"this address serves no single experiment; use {API_ROOT}/experiments/<id>{route.path}"
        )
    timeout_s = context.body_timeout_s
    body = await _read_body(request, route, timeout_s) if route.body is not None else b""
    request.state.body = body  # a stream is read once, and forwarding needs the body again
    call = Call(
        dependencies=context.dependencies,
        experiment_id=experiment_id,
        path=path,
        query=route.parse_query(request.query_params),
        body=await off_loop(len(body), from_json, body) if route.body is not None else None,
        body_bytes=len(body),
        request_id=request.headers.get("idempotency-key", "")[:_LONGEST_REQUEST_ID]
        or uuid.uuid4().hex,
        url_path=request.scope["path"],
        until_stopped=context.until_stopped,
        range_header=request.headers.get("range", ""),
        last_event_id=request.headers.get("last-event-id", ""),
        can_change=caller.role >= Role.USER,
    )
    return await route.handler(call)


async def _read_body(request: Request, route: Route, timeout_s: float) -> bytes:
    """Return a request's body; raise if it exceeds the route's size or the time limit.

    Raises:
        BodyTooLargeError: it is larger than the route allows.
        SlowBodyError: it is not complete after ``timeout_s`` seconds.
    """
    limit = route.body_limit_bytes
    declared: Any = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise BodyTooLargeError(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise BodyTooLargeError(limit)
    except TimeoutError as error:
        raise SlowBodyError(timeout_s) from error
    return bytes(body)
