"""The OpenAPI document and the guide agree with the route table."""

from __future__ import annotations

import re
from pathlib import Path

from svc_manager.web.listeners.route_table import ROUTES
from tests.unit.services.manager.web.conftest import API, Site


async def test_openapi_document_lists_every_route(site: Site) -> None:
    document = (await site.anonymous.get(f"{API}/openapi.json")).json()

    described = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert {(route.method, route.path) for route in ROUTES} <= described
    identities = [
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
    ]
    assert len(identities) == len(set(identities))


def test_guide_to_rest_names_only_paths_that_exist() -> None:
    text = (Path(__file__).parents[6] / "docs" / "rest.md").read_text("utf-8")

    named = set(re.findall(r"127\.0\.0\.1:8080/api/v1/nni(/[\w/.-]+)", text))
    patterns = [re.sub(r"{\w+}", "[^/]+", route.path) for route in ROUTES]

    assert len(named) >= 6
    assert [
        path for path in named if not any(re.fullmatch(pattern, path) for pattern in patterns)
    ] == []
