"""Separation of the secret values of platforms from a configuration, which is logged."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from svc_common.pool_secrets import secrets_id_of
from svc_manager.converters.agent_limits import Section
from svc_manager.converters.secret_names import last_word, names_secret, variable_name

_NAMES_OF_PLACES: Final = frozenset({"file", "path", "directory", "folder", "id", "name"})
"""Last words of names such as `sshKeyFile`, whose values tell where a secret is, or whose."""
_MEASURES: Final = frozenset(
    {
        *("count", "days", "hours", "length", "limit", "minutes", "ms", "number", "port"),
        *("retries", "s", "seconds", "size", "version"),
    }
)
"""Last words of names such as `tokenExpirationSeconds`, whose numbers are no secrets."""
_SECRET_SECTIONS: Final = ("openpaiConfig.secrets.",)
"""Beginnings of paths of values that are secret whatever their names are."""


def take_secrets(config: config_pb2.ExperimentConfig) -> list[dict[str, str]]:
    """Move secret values out of a configuration's platforms, in place; return a map for each.

    Secret are the texts at the paths that the client names, and those whose names tell so; a number
    such as `password: 1234` counts as its text. The paths of all of them stay in the configuration.

    Args:
        config: changed in place.

    Returns:
        Per platform, the values by path: `machineList[0].password`.
    """
    return take_secrets_of(config.training_services)


def take_secrets_of(services: Iterable[Section]) -> list[dict[str, str]]:
    """Move secret values out of platform sections, in place; return a map by path for each."""
    taken = []
    for service in services:
        found: dict[str, str] = {}
        _take(service.options, "", frozenset(service.secret_paths), found)
        service.secret_paths[:] = sorted(found)
        taken.append(found)
    return taken


def _take(
    value: value_pb2.Value, path: str, secret_paths: Collection[str], found: dict[str, str]
) -> None:
    kind = value.WhichOneof("kind")
    if kind == "map_value":
        entries = list(value.map_value.entries)
        variable = variable_name({entry.key: _text(entry.value) for entry in entries})
        kept = []
        for entry in entries:
            inner = f"{path}.{entry.key}" if path else entry.key
            text = _text(entry.value)
            is_number = entry.value.WhichOneof("kind") != "string_value"
            name = variable if variable and entry.key == "value" else entry.key
            if text and (
                inner in secret_paths
                or inner.startswith(_SECRET_SECTIONS)
                or _is_secret(name, is_number=is_number)
            ):
                found[inner] = text
            else:
                _take(entry.value, inner, secret_paths, found)
                kept.append(entry)
        if len(kept) < len(entries):
            copies = value_pb2.MapValue(entries=kept)
            value.map_value.CopyFrom(copies)
    elif kind == "list_value":
        for index, item in enumerate(value.list_value.items):
            _take(item, f"{path}[{index}]", secret_paths, found)


def _text(value: value_pb2.Value) -> str:
    """Return a text, or a number as the text that was meant; empty: it is neither."""
    kind = value.WhichOneof("kind")
    if kind == "float_value":
        number = value.float_value
        return str(int(number)) if number.is_integer() else str(number)
    if kind in {"string_value", "int_value", "big_int_value"}:
        return str(getattr(value, kind))
    return ""


def _is_secret(name: str, *, is_number: bool) -> bool:
    word = last_word(name)
    is_measure = is_number and word in _MEASURES
    return names_secret(name) and word not in _NAMES_OF_PLACES and not is_measure


def required_secrets(config: config_pb2.ExperimentConfig, pool: str) -> Iterator[tuple[str, str]]:
    """Yield (secrets id, path) of each secret value that a configuration was created with."""
    for index, service in enumerate(config.training_services):
        for path in service.secret_paths:
            yield secrets_id_of(pool, index), path


def put_secrets(
    config: config_pb2.ExperimentConfig, pool: str, by_id: Mapping[str, Mapping[str, str]]
) -> None:
    """Put secret values back into a configuration, in place, where `take_secrets` found them.

    Args:
        config: changed in place.
        pool: the pool whose values they are.
        by_id: values by path, by the id of `required_secrets`.
    """
    for index, service in enumerate(config.training_services):
        _put(service.options, "", by_id.get(secrets_id_of(pool, index), {}))


def _put(value: value_pb2.Value, path: str, secrets: Mapping[str, str]) -> None:
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        for index, item in enumerate(value.list_value.items):
            _put(item, f"{path}[{index}]", secrets)
    elif kind == "map_value":
        for entry in value.map_value.entries:
            _put(entry.value, f"{path}.{entry.key}" if path else entry.key, secrets)
        start = f"{path}." if path else ""
        inner = [mark for entry in value.map_value.entries for mark in _starts(entry.key)]
        for full, text in secrets.items():
            name = full.removeprefix(start)
            # A key may contain dots; what is deeper begins with a key that is still here.
            if full.startswith(start) and not name.startswith(tuple(inner)):
                entry = value.map_value.entries.add(key=name)
                entry.value.string_value = text


def _starts(key: str) -> tuple[str, str]:
    """Return the beginnings of all paths inside of the value of a key."""
    return f"{key}.", f"{key}["
