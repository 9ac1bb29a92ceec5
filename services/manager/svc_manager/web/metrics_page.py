"""`/metrics` on every listener, for Prometheus."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as HttpRoute

from svc_common.telemetry.metrics import CONTENT_TYPE
from svc_manager.telemetry.metrics import Instruments


def metrics_routes(instruments: Instruments | None) -> list[BaseRoute]:
    """Return the route of `/metrics`; none if nothing is counted."""
    if instruments is None:
        return []

    async def metrics(_request: Request) -> Response:
        return Response(
            instruments.registry.render(),
            media_type=CONTENT_TYPE,
            headers={"Cache-Control": "no-store"},
        )

    return [HttpRoute("/metrics", metrics, methods=["GET"])]
