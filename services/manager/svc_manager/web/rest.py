"""From an HTTP request to the handler of its route, and from errors to answers."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as HttpRoute

from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.logs import get_logger
from svc_manager.web.errors import BodyTooLargeError, error_response, text_response
from svc_manager.web.json_text import from_json
from svc_manager.web.openapi import document
from svc_manager.web.route import Call, Installation, Route, Scope, json_answer
from svc_manager.web.security import AccessPolicy, RequestHead

API_ROOT: Final = "/api/v1/nni"
_LONGEST_REQUEST_ID: Final = 200


@dataclass(frozen=True, slots=True)
class Listener:
    """What one listener serves, and to whom."""

    installation: Installation
    policy: AccessPolicy
    until_stopped: Callable[[], Awaitable[None]]
    """Waits until the listener closes."""
    experiment_id: str = ""
    """What paths without an id mean; empty on the base listener."""


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


def head_of(request: Request, policy: AccessPolicy) -> RequestHead:
    """Return what the access rules look at."""
    headers = request.headers
    return RequestHead(
        method=request.method,
        host=headers.get("host", ""),
        origin=headers.get("origin", ""),
        content_type=headers.get("content-type", ""),
        has_body=headers.get("content-length", "0") != "0" or "transfer-encoding" in headers,
        authorization=headers.get("authorization", ""),
        cookie_token=request.cookies.get(policy.cookie_name, ""),
        is_page=API_ROOT not in request.url.path,
    )


def _endpoint(
    listener: Listener, methods: Mapping[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = methods[request.method]
        try:
            return await _answer(listener, route, request)
        except ServiceError as error:
            return error_response(error)
        except ClientDisconnect:  # nobody is there to read the answer
            return Response(status_code=400)
        except Exception:  # noqa: BLE001 - a rim: what no route foresaw is logged here, once
            get_logger().exception("request failed", method=route.method, path=route.path)
            return text_response(500, "the manager failed to answer; its log says why")

    return endpoint


async def _answer(listener: Listener, route: Route, request: Request) -> Response:
    policy = listener.policy
    path: dict[str, str] = dict(request.path_params)
    experiment_id = path.pop("experiment_id", listener.experiment_id)
    if route.scope is Scope.EXPERIMENT and not experiment_id:
        raise FailedPreconditionError(
            f"this address serves no single experiment; use {API_ROOT}/experiments/<id>{route.path}"
        )
    call = Call(
        installation=listener.installation,
        experiment_id=experiment_id,
        path=path,
        query=route.parse_query(request.query_params),
        body=from_json(await _body(request, route)) if route.body is not None else None,
        request_id=request.headers.get("idempotency-key", "")[:_LONGEST_REQUEST_ID]
        or uuid.uuid4().hex,
        url_path=request.url.path,
        until_stopped=listener.until_stopped,
        last_event_id=request.headers.get("last-event-id", ""),
        knows_token=policy.knows_token(head_of(request, policy)),
    )
    return await route.handler(call)


async def _body(request: Request, route: Route) -> bytes:
    """Read the body, but never more than the route takes.

    Raises:
        BodyTooLargeError: it is longer.
    """
    limit = route.body_limit_bytes
    declared: Any = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise BodyTooLargeError(limit)
    pieces = bytearray()
    async for piece in request.stream():
        pieces += piece
        if len(pieces) > limit:
            raise BodyTooLargeError(limit)
    return bytes(pieces)
