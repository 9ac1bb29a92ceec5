"""Reference page of the REST API, made from its OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

from docs.generator.markdown import code, page, table
from nni.version import __version__
from svc_manager.web.listeners.openapi import document
from svc_manager.web.listeners.route_table import ROUTES

_INTRODUCTION: Final = (
    "Paths below `/api/v1/nni` of a listener. The same document is served as "
    "`/api/v1/nni/openapi.json`; the rules for callers stand in [REST](../rest.md)."
)


def rest_page() -> str:
    """Return the page: every path and method with its parameters and statuses."""
    blocks = ["# REST reference", _INTRODUCTION]
    for path, operations in sorted(document(ROUTES, __version__)["paths"].items()):
        for method, operation in operations.items():
            blocks += _section(path, method, operation)
    return page(*blocks)


def _section(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    blocks = [
        f"## {method.upper()} {path}",
        operation.get("summary", ""),
        operation.get("description", ""),
    ]
    parameters = operation.get("parameters", [])
    if parameters:
        rows = [[code(one["name"]), one["in"], one.get("description", "")] for one in parameters]
        blocks.append(table(["Parameter", "In", "Meaning"], rows))
    responses = operation.get("responses", {})
    rows = [[code(status), one.get("description", "")] for status, one in responses.items()]
    blocks.append(table(["Status", "Meaning"], rows))
    return blocks
