"""Snapshot of the folded state of an experiment, so that a long log need not be folded again.

A snapshot may be lost or refused at any time: the log is authoritative. It is JSON, never a
pickle; it carries the version of its format, and a reader of another version folds the log instead.
"""

import copy
import dataclasses
import enum
import json
import operator
import types
import typing
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin, get_type_hints

from svc_common.experiment_events.causes import EndReason
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial
from svc_manager.event_log.reader import FoldedExperiment

FORM: Final = 3
"""Version of the format; incremented whenever a field of the state changes its meaning."""
_TRIALS_AT_ONCE: Final = 200
"""Trials that are encoded in one call that blocks other threads: about 2 ms."""

_values_of_trial: Final = operator.attrgetter(*(one.name for one in dataclasses.fields(Trial)))
"""Takes a fifth of the time of `copy.copy`, and there may be 10,000 live trials."""

Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""Pair of functions to JSON and back."""


class SnapshotError(ValueError):
    """Error: the bytes are not a snapshot that this version can read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Frozen copy of an experiment's state and log position, which a thread can encode."""

    head: Mapping[str, Any]
    """The state without the trials, as JSON."""
    trials: Sequence[Trial]
    """In order of creation; live trials may have converted since."""
    live: Mapping[str, Trial]
    """Copies of the trials that were live."""

    def encode(self) -> bytes:
        """Encode the snapshot as compressed JSON lines: the state, then the trials in blocks.

        Takes seconds for 100,000 trials and may run in another thread; it holds the interpreter for
        milliseconds at a time only.
        """
        write, _ = _codec(Trial)
        packer = zlib.compressobj(1)
        pieces = [packer.compress(_json_bytes(self.head) + b"\n")]
        for start in range(0, len(self.trials), _TRIALS_AT_ONCE):
            some = self.trials[start : start + _TRIALS_AT_ONCE]
            rows = [write(self.live.get(trial.id, trial)) for trial in some]
            pieces.append(packer.compress(_json_bytes(rows) + b"\n"))
        pieces.append(packer.flush())
        return b"".join(pieces)


def take_snapshot(folded: FoldedExperiment) -> Snapshot:
    """Return a copy of the current state, made in milliseconds: live trials copied, ended shared.

    An ended trial never changes, so only live trials are copied.
    """
    experiment = folded.experiment
    rest = copy.copy(experiment)
    rest.trials, rest.live = {}, {}
    write, _ = _codec(Experiment)
    head = {
        "form": FORM,
        "fields": _fingerprint(),
        "sequence": folded.sequence,
        "epoch": folded.epoch,
        "inbox_sequence": folded.inbox_sequence,
        "live": list(experiment.live),
        "experiment": write(rest),
    }
    live = {key: Trial(*_values_of_trial(trial)) for key, trial in experiment.live.items()}
    return Snapshot(head, list(experiment.trials.values()), live)


def encode_snapshot(folded: FoldedExperiment) -> bytes:
    """Return a state and its log position as compressed bytes; blocks as long as `encode` takes."""
    return take_snapshot(folded).encode()


def decode_snapshot(data: bytes) -> FoldedExperiment:
    """Decode a snapshot to experiment and log position; raise if damaged or of another format.

    Raises:
        SnapshotError: the bytes are damaged, or of another version.
    """
    try:
        lines = zlib.decompress(data).decode("utf-8", "surrogatepass").split("\n")
        head = json.loads(lines[0])
        if (head["form"], head["fields"]) != (FORM, _fingerprint()):
            raise SnapshotError("the snapshot has another format")
        _, read = _codec(Experiment)
        experiment: Experiment = read(head["experiment"])
        _, read_trial = _codec(Trial)
        for line in lines[1:-1]:
            for row in json.loads(line):
                trial: Trial = read_trial(row)
                experiment.trials[trial.id] = trial
        # Live trials must be the same objects as in the whole list, which JSON cannot express.
        experiment.live = {key: experiment.trials[key] for key in head["live"]}
        return FoldedExperiment(experiment, head["sequence"], head["epoch"], head["inbox_sequence"])
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"no readable snapshot: {error}") from error


def _json_bytes(data: Any) -> bytes:  # noqa: ANN401 - any JSON value
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


# `Any` throughout: the types of the state's fields drive what is read and written.

_codecs: dict[Any, Codec] = {}


def _codec(kind: Any) -> Codec:  # noqa: ANN401 - a type expression
    known = _codecs.get(kind)
    if known is None:
        # A class that holds itself, such as a cause with an earlier cause, finds this one.
        _codecs[kind] = _later_codec(kind)
        known = _codecs[kind] = _make_codec(kind)
    return known


def _later_codec(kind: Any) -> Codec:  # noqa: ANN401 - a type expression
    """Return a codec that looks up its type's codec when called, for recursive types."""

    def write(value: Any) -> Any:  # noqa: ANN401 - an instance of `kind`
        return _codecs[kind][0](value)

    def read(data: Any) -> Any:  # noqa: ANN401 - what `write` gave
        return _codecs[kind][1](data)

    return write, read


def _make_codec(kind: Any) -> Codec:  # noqa: ANN401 - a type expression
    if kind in {int, str, bool, float}:
        return _same, _same
    if kind is bytes:
        return _BYTES
    if isinstance(kind, type) and issubclass(kind, enum.IntEnum):
        members = {member.value: member for member in kind}
        return _same, members.__getitem__  # JSON writes an `IntEnum` as its number
    if dataclasses.is_dataclass(kind):
        return _dataclass_codec(kind)
    return _generic_codec(get_origin(kind), get_args(kind))


def _same(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return value


_BYTES: Final[Codec] = (
    operator.methodcaller("decode", "latin-1"),
    operator.methodcaller("encode", "latin-1"),
)
"""Each byte is a character: faster than any other text."""


def _dataclass_codec(kind: Any) -> Codec:  # noqa: ANN401 - a dataclass
    """Return a codec between a dataclass and the JSON list of its fields' values; None is null.

    A trial has more fields than any loop over functions is fast for, and most of them are plain or
    None: one call takes all of them, and only values that need a converter are replaced.
    """
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    codecs = [_codec(_without_none(hints[name])) for name in names]
    writers = [(place, write) for place, (write, _) in enumerate(codecs) if write is not _same]
    readers = [(place, read) for place, (_, read) in enumerate(codecs) if read is not _same]
    values_of = operator.attrgetter(*names)
    single = len(names) == 1
    count = len(names)

    def write(value: Any) -> list[Any]:  # noqa: ANN401 - an instance of `kind`
        row = [values_of(value)] if single else list(values_of(value))
        for place, to_json in writers:
            if (part := row[place]) is not None:
                row[place] = to_json(part)
        return row

    def read(row: Any) -> Any:  # noqa: ANN401 - what `write` gave
        if len(row) != count:
            raise SnapshotError(f"a {kind.__name__} has {count} fields, found {len(row)}")
        for place, from_json in readers:
            if (part := row[place]) is not None:
                row[place] = from_json(part)
        return kind(*row)

    return write, _sharing(read) if kind is EndReason else read


def _sharing(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a reader of frozen values that returns the last one again for an equal row.

    Most trials of an experiment end alike, and a frozen dataclass takes longer than its trial.
    """
    last: tuple[Any, Any] = (None, None)

    def read_shared(row: Any) -> Any:  # noqa: ANN401 - what `write` gave
        nonlocal last
        known, value = last
        if row != known:
            known = list(row)  # `read` replaces the parts of the row
            value = read(row)
            last = (known, value)
        return value

    return read_shared


def _without_none(kind: Any) -> Any:  # noqa: ANN401 - type expressions
    """Return the type `X` of `X | None`, and any other type as it is."""
    some = [one for one in get_args(kind) if one is not type(None)]
    union = get_origin(kind) in {typing.Union, types.UnionType}
    return some[0] if union and len(some) == 1 else kind


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
        lambda value: list(map(write, value)),
        lambda data: container(map(read, data)),
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
    """Return a union's JSON codec: [type index, value]; bare for a single type; None as null."""
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
    """Return a checksum of the fields of the state's classes, which snapshots must match."""
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
