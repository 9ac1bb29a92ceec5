"""OpenAPI 3.1 document of the REST API, generated from the route table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from svc_manager.web.records.schemas import COMPONENTS, Schema, component
from svc_manager.web.route import QueryParameter, Route, Scope

_PATH_NAME: Final = re.compile(r"{(\w+)}")
_PATH_NAMES: Final = {
    "experiment_id": "Id of the experiment.",
    "trial_id": "Id of the trial.",
    "name": "Name of the file.",
    "first": "Smallest sequence id.",
    "last": "Largest sequence id.",
    "task_id": "Id of the TensorBoard.",
}
_CREATED: Final = frozenset({"create", "add_trial", "start_tensorboard"})


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """Return the OpenAPI document of the REST API as a dictionary, built from route declarations.

    Args:
        routes: all routes; routes of one experiment appear a second time, below its id.
        version: version of NNI.
    """
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for route in routes:
        paths[route.path][route.method.lower()] = _operation(route, route.path, "")
        if route.scope is Scope.EXPERIMENT:
            path = f"/experiments/{{experiment_id}}{route.path}"
            paths[path][route.method.lower()] = _operation(route, path, "_of_experiment")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "NNI",
            "version": version,
            "description": (
                "REST API of the manager. Paths without an experiment id mean the experiment of "
                "the listener. Reading is open on loopback; changing needs the token."
            ),
        },
        "servers": [{"url": "."}],  # paths are relative to the folder of this document
        "paths": dict(paths),
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, path: str, suffix: str) -> dict[str, Any]:
    success = "201" if route.handler.__name__ in _CREATED else "200"
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__ + suffix,
        "summary": route.summary,
        "parameters": [*_path_parameters(path), *map(_query_parameter, route.query)],
        "responses": {
            success: _content("Success.", route.media_type, route.response),
            "default": _content("An error.", "application/json", component("Error")),
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": route.body}},
        }
    if route.method != "GET":
        operation["security"] = [{"token": []}]
    return operation


def _content(description: str, media_type: str, schema: Schema) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _path_parameters(path: str) -> Iterable[dict[str, Any]]:
    for name in _PATH_NAME.findall(path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_NAMES[name],
            "schema": {"type": "string"},
        }


def _query_parameter(parameter: QueryParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if parameter.kind is bool:
        schema = {"type": "boolean"}
    elif parameter.kind is int:
        schema = {"type": "integer", "minimum": parameter.minimum, "maximum": parameter.maximum}
    elif parameter.choices:
        schema["enum"] = list(parameter.choices)
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "schema": schema,
    }
