"""What is noted of requests: figures, ids in log lines and answers."""

from __future__ import annotations

from svc_common.telemetry.metrics import CONTENT_TYPE
from tests.unit.services.manager.web.conftest import API, Site


async def test_an_answer_names_the_request(site: Site) -> None:
    given = await site.stranger.get(f"{API}/version", headers={"X-Request-Id": "mine-1"})
    drawn = await site.stranger.get(f"{API}/version")

    assert given.headers["x-request-id"] == "mine-1"
    assert len(drawn.headers["x-request-id"]) == 8


async def test_a_request_id_cannot_forge_headers(site: Site) -> None:
    answer = await site.stranger.get(f"{API}/version", headers={"X-Request-Id": "a\tb" + "c" * 100})

    assert answer.headers["x-request-id"] == "ab" + "c" * 62


async def test_requests_are_counted_by_route_and_status(site: Site) -> None:
    await site.stranger.get(f"{API}/trials/tria1/why")
    await site.stranger.get(f"{API}/trials/nobody/why")

    answer = await site.stranger.get("/metrics")

    assert answer.headers["content-type"] == CONTENT_TYPE
    counted = 'nni_http_requests_total{method="GET",route="/trials/{trial_id}/why",status="%d"} 1'
    assert counted % 200 in answer.text
    assert counted % 404 in answer.text
    assert 'nni_build_info{service="manager"' in answer.text
