"""The folded state of an experiment as bytes, so that a long log need not be folded again.

A snapshot may be lost or refused at any time: the log is the truth. It is JSON, never a pickle; it
names the version of its form and whoever cannot read it folds the log instead.
"""

import base64
import dataclasses
import enum
import json
import types
import typing
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_origin, get_type_hints

from svc_manager.domain.state import Experiment
from svc_manager.loading import Folded

FORM: Final = 1
"""Of the bytes. Grows whenever a field of the state changes its meaning."""

Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""To JSON and back."""


class SnapshotError(ValueError):
    """The bytes are no snapshot that this version can read."""


def encode_snapshot(folded: Folded) -> bytes:
    """Return the state and its place in the log as bytes."""
    write, _ = _codec(Experiment)
    data = {
        "form": FORM,
        "fields": _fingerprint(),
        "sequence": folded.sequence,
        "epoch": folded.epoch,
        "inbox_sequence": folded.inbox_sequence,
        "experiment": write(folded.experiment),
    }
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 1)


def decode_snapshot(data: bytes) -> Folded:
    """Return what `encode_snapshot` was given.

    Raises:
        SnapshotError: it was written by another version, or is damaged.
    """
    try:
        loaded = json.loads(zlib.decompress(data))
        if (loaded["form"], loaded["fields"]) != (FORM, _fingerprint()):
            raise SnapshotError("the snapshot has another form")
        _, read = _codec(Experiment)
        experiment: Experiment = read(loaded["experiment"])
        # Live trials are the same objects as those of the whole list; JSON knows no such thing.
        experiment.live = {key: experiment.trials[key] for key in experiment.live}
        return Folded(
            experiment,
            loaded["sequence"],
            loaded["epoch"],
            loaded["inbox_sequence"],
        )
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"no readable snapshot: {error}") from error


# `Any` throughout: the types of the state's fields drive what is read and written.

_codecs: dict[Any, Codec] = {}


def _codec(kind: Any) -> Codec:  # noqa: ANN401 - a type expression
    known = _codecs.get(kind)
    if known is None:
        known = _codecs[kind] = _make_codec(kind)
    return known


def _make_codec(kind: Any) -> Codec:  # noqa: ANN401 - a type expression
    if kind in {int, str, bool, float}:
        return _same, _same
    if kind is bytes:
        return _bytes_to_text, base64.b85decode
    if isinstance(kind, type) and issubclass(kind, enum.IntEnum):
        members = {member.value: member for member in kind}
        return int, members.__getitem__
    if dataclasses.is_dataclass(kind):
        return _dataclass_codec(kind)
    return _generic_codec(get_origin(kind), get_args(kind))


def _same(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return value


def _bytes_to_text(value: bytes) -> str:
    return base64.b85encode(value).decode()


def _dataclass_codec(kind: Any) -> Codec:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind)
    fields = [(field.name, *_codec(hints[field.name])) for field in dataclasses.fields(kind)]

    def write(value: Any) -> list[Any]:  # noqa: ANN401 - an instance of `kind`
        return [to_json(getattr(value, name)) for name, to_json, _ in fields]

    def read(data: Any) -> Any:  # noqa: ANN401 - what `write` gave
        return kind(
            *[from_json(item) for (_, _, from_json), item in zip(fields, data, strict=True)]
        )

    return write, read


def _generic_codec(origin: Any, arguments: tuple[Any, ...]) -> Codec:  # noqa: ANN401 - type expressions
    if origin in {typing.Union, types.UnionType}:
        return _union_codec(arguments)
    if origin in {dict, Mapping} or origin is typing.get_origin(Mapping[str, int]):
        return _dict_codec(arguments)
    if origin is Counter:
        write, read = _dict_codec((arguments[0], int))
        return write, lambda data: Counter(read(data))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return _sequence_codec(tuple, arguments[0])
    if origin is tuple:
        return _tuple_codec(arguments)
    if origin in {list, set}:
        return _sequence_codec(origin, arguments[0])
    raise TypeError(f"the state has a field of type {origin}{arguments}, which has no codec")


def _sequence_codec(container: Any, item: Any) -> Codec:  # noqa: ANN401 - type expressions
    write, read = _codec(item)
    return (
        lambda value: [write(one) for one in value],
        lambda data: container([read(one) for one in data]),
    )


def _tuple_codec(items: tuple[Any, ...]) -> Codec:
    codecs = [_codec(item) for item in items]
    return (
        lambda value: [w(one) for (w, _), one in zip(codecs, value, strict=True)],
        lambda data: tuple([r(one) for (_, r), one in zip(codecs, data, strict=True)]),
    )


def _dict_codec(arguments: tuple[Any, ...]) -> Codec:
    (key_to, key_from), (value_to, value_from) = (_codec(kind) for kind in arguments)
    return (
        lambda value: [[key_to(key), value_to(item)] for key, item in value.items()],
        lambda data: {key_from(key): value_from(item) for key, item in data},
    )


def _union_codec(kinds: tuple[Any, ...]) -> Codec:
    """Write a value as [number of its kind, value]; None as null."""
    some = [kind for kind in kinds if kind is not type(None)]
    codecs = [_codec(kind) for kind in some]
    if len(some) == 1:
        ((write, read),) = codecs
        return (
            lambda value: None if value is None else write(value),
            lambda data: None if data is None else read(data),
        )
    tests = [get_origin(kind) or kind for kind in some]

    def write_union(value: Any) -> Any:  # noqa: ANN401 - one of the kinds
        if value is None:
            return None
        number = next(n for n, kind in enumerate(tests) if isinstance(value, kind))
        return [number, codecs[number][0](value)]

    def read_union(data: Any) -> Any:  # noqa: ANN401 - what `write_union` gave
        return None if data is None else codecs[data[0]][1](data[1])

    return write_union, read_union


_fingerprints: list[int] = []


def _fingerprint() -> int:
    """Return a number that differs between versions whose state has other fields."""
    if not _fingerprints:
        text: list[str] = []
        _describe(Experiment, text, set())
        _fingerprints.append(zlib.crc32("\n".join(text).encode()))
    return _fingerprints[0]


def _describe(kind: Any, text: list[str], seen: set[Any]) -> None:  # noqa: ANN401 - a type expression
    if kind in seen:
        return
    seen.add(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            text.append(f"{kind}.{field.name}: {hints[field.name]}")
            _describe(hints[field.name], text, seen)
    for argument in get_args(kind):
        _describe(argument, text, seen)
