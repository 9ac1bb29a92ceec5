"""ASGI application of one listener: REST API, metrics and page behind the access policy."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc_common.access.roles import READER
from svc_common.errors import ServiceError
from svc_common.telemetry.metrics import CONTENT_TYPE
from svc_manager.telemetry.metrics import Instruments
from svc_manager.web.listeners.compression import CompressionMiddleware
from svc_manager.web.listeners.connection_limits import ConnectionLimits
from svc_manager.web.listeners.endpoints import EndpointContext, head_of, http_routes
from svc_manager.web.listeners.error_page import http_error, refusal
from svc_manager.web.listeners.page import page_routes
from svc_manager.web.listeners.route_table import ROUTES
from svc_manager.web.security import SECURITY_HEADERS, AccessPolicy

_HIDDEN: Final = "/api/"


def create_site(context: EndpointContext, url_prefix: str = "") -> ASGIApp:
    """Build the ASGI application of a listener: API, metrics and page, behind access checks.

    Args:
        context: dependencies and limits of the endpoints.
        url_prefix: path prefix of a reverse proxy, without slashes at its ends. The root serves
            the same paths, for programs on this machine.
    """
    routes: list[BaseRoute] = [
        *http_routes(context, ROUTES),
        *_metrics_routes(context.dependencies.instruments),
        *page_routes(context.policy),
    ]
    if url_prefix:
        routes.append(Mount(f"/{url_prefix}", routes=list(routes)))
    site = Starlette(routes=routes, exception_handlers={HTTPException: _http_error})
    return AccessMiddleware(CompressionMiddleware(site), context.policy, context.limits)


def _metrics_routes(instruments: Instruments | None) -> list[BaseRoute]:
    """Return a route `/metrics` with the Prometheus text; empty list without instruments."""
    if instruments is None:
        return []

    async def metrics(_request: Request) -> Response:
        return Response(
            instruments.registry.render(),
            media_type=CONTENT_TYPE,
            headers={"Cache-Control": "no-store"},
        )

    return [HttpRoute("/metrics", metrics, methods=["GET"])]


async def _http_error(request: Request, error: Exception) -> Response:
    """Return an error of Starlette, such as an unknown path, as JSON or as a page."""
    assert isinstance(error, HTTPException)
    return http_error(request, error.status_code, error.detail, dict(error.headers or {}))


class AccessMiddleware:
    """ASGI middleware that admits or refuses each request and adds the security headers.

    Args:
        site: the protected application.
        policy: the access policy.
        limits: limits of requests without credentials.
    """

    def __init__(self, site: ASGIApp, policy: AccessPolicy, limits: ConnectionLimits) -> None:
        self._site = site
        self._policy = policy
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request's access; refuse it with an error, or pass it on with its caller."""
        if scope["type"] != "http":  # the site has no web sockets
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if _HIDDEN in scope["path"]:
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope, receive)
        try:
            head = head_of(request, self._policy)
            caller = request.state.caller = self._policy.check(head)
            with ExitStack() as served:
                if caller == READER:
                    served.enter_context(self._limits.anonymous_request(head.address))
                await self._site(scope, receive, send_with_headers)
        except ServiceError as error:  # of the two checks: the site answers its own errors
            await refusal(request, error)(scope, receive, send_with_headers)
