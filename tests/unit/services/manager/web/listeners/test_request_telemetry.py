"""Telemetry of requests: metrics, and ids in log lines and responses."""

from __future__ import annotations

from svc_common.telemetry.metrics import CONTENT_TYPE
from tests.unit.services.manager.web.conftest import API, Site


async def test_response_has_the_request_id(site: Site) -> None:
    given = await site.anonymous.get(f"{API}/version", headers={"X-Request-Id": "mine-1"})
    drawn = await site.anonymous.get(f"{API}/version")

    assert given.headers["x-request-id"] == "mine-1"
    assert len(drawn.headers["x-request-id"]) == 8


async def test_request_id_is_sanitised(site: Site) -> None:
    answer = await site.anonymous.get(
        f"{API}/version", headers={"X-Request-Id": "a\tb" + "c" * 100}
    )

    assert answer.headers["x-request-id"] == "ab" + "c" * 62


async def test_requests_are_counted_by_route_and_status(site: Site) -> None:
    await site.anonymous.get(f"{API}/trials/tria1/why")
    await site.anonymous.get(f"{API}/trials/unknown/why")

    answer = await site.anonymous.get("/metrics")

    assert answer.headers["content-type"] == CONTENT_TYPE
    counted = 'nni_http_requests_total{method="GET",route="/trials/{trial_id}/why",status="%d"} 1'
    assert counted % 200 in answer.text
    assert counted % 404 in answer.text
    assert 'nni_build_info{service="manager"' in answer.text
