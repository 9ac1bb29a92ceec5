"""Conversion of a configuration's section `search` between protobuf and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.web.records.scalars import value_from, value_of

_LIMITS: Final = {
    "noImprovement": "no_improvement",
    "target": "target",
    "regretBound": "regret_bound",
}


def search_to_json(search: config_pb2.SearchConfig) -> dict[str, Any]:
    """Convert the proto `search` section to JSON in schema v2, without unset fields and samples."""
    out: dict[str, Any] = {
        "duplicates": search.duplicates,
        "enqueue": [value_of(item) for item in search.enqueue],
        "warmStartFrom": list(search.warm_start_from),
        "warmStartBy": search.warm_start_by,
        "stop": {
            key: getattr(search.stop, name)
            for key, name in _LIMITS.items()
            if search.stop.HasField(name)  # type: ignore[arg-type] # a name of this table
        },
    }
    return {key: value for key, value in out.items() if value}


def search_from_json(given: Mapping[str, Any]) -> config_pb2.SearchConfig:
    """Convert the JSON `search` section to its proto message; raise for unknown fields.

    Raises:
        InvalidArgumentError: a field is unknown or of the wrong type.
    """
    search = config_pb2.SearchConfig()
    for key, value in given.items():
        writer = _WRITERS.get(key)
        if writer is None:
            raise InvalidArgumentError(f"search.{key}", "is not a field of the section")
        if value is not None:
            writer(search, value)
    return search


def _write_duplicates(search: config_pb2.SearchConfig, value: object) -> None:
    search.duplicates = str(value)


def _write_enqueue(search: config_pb2.SearchConfig, value: object) -> None:
    for item in _list(value, "search.enqueue"):
        search.enqueue.append(value_from(item, "search.enqueue"))


def _write_warm_start(search: config_pb2.SearchConfig, value: object) -> None:
    search.warm_start_from.extend(map(str, _list(value, "search.warmStartFrom")))


def _write_warm_start_by(search: config_pb2.SearchConfig, value: object) -> None:
    search.warm_start_by = str(value)


def _write_stop(search: config_pb2.SearchConfig, value: object) -> None:
    if not isinstance(value, Mapping):
        raise InvalidArgumentError("search.stop", "must be an object", value)
    for key, number in value.items():
        if key not in _LIMITS:
            raise InvalidArgumentError(f"search.stop.{key}", "is not a field of the section")
        try:
            setattr(search.stop, _LIMITS[key], number)
        except (TypeError, ValueError):
            raise InvalidArgumentError(f"search.stop.{key}", "must be a number", number) from None


def _list(value: object, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidArgumentError(field, "must be a list", value)
    return value


_WRITERS: Final[Mapping[str, Callable[[config_pb2.SearchConfig, object], None]]] = {
    "duplicates": _write_duplicates,
    "enqueue": _write_enqueue,
    "warmStartFrom": _write_warm_start,
    "warmStartBy": _write_warm_start_by,
    "stop": _write_stop,
}
