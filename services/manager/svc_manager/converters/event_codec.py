"""Codec of events, made from their declarations.

A class of `domain.events` and the message of the same name in `event.proto` have the same fields.
The message may have more: texts of older versions, from which `old_texts` makes causes.
The codec of a class is built once from the types of both. Rules: `x_ms` is the timestamp or
duration `x`; an enum is an `IntEnum` (older versions wrote the name of some); bytes are an encoded
message.
An event that needs more than these rules has a codec of its own in `_SPECIAL`.
"""

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from svc_common.experiment_events.causes import (
    EndReason,
    ExperimentReason,
    IgnoreCause,
    LossReason,
    StopReason,
    WaitReason,
)
from svc_manager.converters.agent_limits import agent_limits_from, write_agent_limits
from svc_manager.converters.creation import created_event
from svc_manager.converters.event_functions import (
    FieldCodec,
    Read,
    Write,
    compile_reader,
    compile_writer,
)
from svc_manager.converters.old_texts import (
    old_end,
    old_experiment_reason,
    old_ignore,
    old_loss,
    old_stop,
    old_wait,
)
from svc_manager.converters.reasons import (
    end_from,
    experiment_reason_from,
    ignore_cause_from,
    loss_from,
    stop_from,
    wait_from,
    write_end,
    write_experiment_reason,
    write_loss,
    write_stop,
    write_wait,
)
from svc_manager.converters.reports import (
    checkpoint_from,
    parameters_from,
    report_from,
    trial_checkpoint_from,
    write_checkpoint,
    write_parameters,
    write_report,
    write_trial_checkpoint,
)
from svc_manager.converters.scalars import metric_from, set_ms, to_ms, write_metric
from svc_manager.domain import events
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.values import Metric, Parameters

_NAMES_OF_ENUMS: Final = {
    "old_state": "from_state",
    "new_state": "to_state",
    "final_state": "state",
}
"""Fields of enums to the fields of their names, which older versions wrote and read."""


@dataclass(frozen=True, slots=True)
class EventCodec:
    """Name of an event class's proto field, with the functions that read and write it."""

    kind: str
    """Name of the field of `Event.kind`."""
    read: Callable[[Any], events.Event | None]
    """Makes an event of the field's message."""
    write: Callable[[event_pb2.Event, Any], None]
    """Writes an event into a message whose field this is."""


def write_event(message: event_pb2.Event, event: events.Event) -> None:
    """Write a domain event into the proto message's field for its class."""
    CODECS[type(event)].write(message, event)


def event_from(message: event_pb2.Event | inbox_pb2.InboxMessage) -> events.Event | None:
    """Return the domain event of a proto message; None: this version does not know its kind."""
    kind = message.WhichOneof("kind")
    return None if kind is None else _READERS[kind](getattr(message, kind))


def _codec_of(event_type: type[events.Event]) -> EventCodec:
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", event_type.__name__).lower()
    special = _SPECIAL.get(event_type)
    if special is not None:
        return EventCodec(kind, *special)
    descriptor = event_pb2.Event.DESCRIPTOR.fields_by_name[kind].message_type
    assert descriptor is not None
    hints = typing.get_type_hints(event_type)
    codecs = {
        field.name: _field_codec(field.name, hints[field.name], descriptor.fields_by_name)
        for field in fields(event_type)
    }
    return EventCodec(kind, compile_reader(event_type, codecs), compile_writer(kind, codecs))


def _field_codec(
    name: str,
    hint: Any,  # noqa: ANN401 - a type expression
    messages: Mapping[str, FieldDescriptor],
) -> FieldCodec:
    """Return the converters of an event's field, chosen by name and type hint."""
    optional = type(None) in typing.get_args(hint)
    if optional:
        (hint,) = (one for one in typing.get_args(hint) if one is not type(None))
    if name.endswith("_ms"):
        return _submessage(name.removesuffix("_ms"), to_ms, set_ms, optional=optional)
    origin = typing.get_origin(hint)
    if hint is IgnoreCause:
        return _IGNORE_CAUSE
    if hint in _CAUSES:
        return _reason(name, *_CAUSES[hint])
    if hint in _VALUES:
        return _submessage(name, *_VALUES[hint], optional=optional)
    if origin is tuple:
        return _repeated(name, _VALUES.get(typing.get_args(hint)[0]))
    if origin is Mapping:
        return FieldCodec(name, dict, name, lambda part, value: part.update(value))
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return _enumeration(name, hint, optional=optional)
    return _scalar(messages[name], optional=optional)


def _scalar(field: FieldDescriptor, *, optional: bool) -> FieldCodec:
    name = field.name
    if not optional:
        return FieldCodec(name, None, name, None)
    return FieldCodec(
        "",
        lambda message: getattr(message, name) if message.HasField(name) else None,
        "",
        lambda message, value: None if value is None else setattr(message, name, value),
    )


def _submessage(name: str, read: Read, write: Write, *, optional: bool) -> FieldCodec:
    if not optional:
        return FieldCodec(name, read, name, write)

    def write_some(message: Any, value: Any) -> None:  # noqa: ANN401 - see above
        if value is not None:
            part = getattr(message, name)
            part.SetInParent()
            write(part, value)

    return FieldCodec(
        "",
        lambda message: read(getattr(message, name)) if message.HasField(name) else None,
        "",
        write_some,
    )


def _reason(name: str, read: Read, write: Write, read_old: Read) -> FieldCodec:
    """Return converters for a field with a cause; reading falls back to an old event's text."""
    return FieldCodec(
        "",
        lambda message: (
            read(getattr(message, name)) if message.HasField(name) else read_old(message)
        ),
        name,
        write,
    )


def _repeated(name: str, value: tuple[Read, Write] | None) -> FieldCodec:
    if value is None:
        return FieldCodec(name, tuple, name, lambda part, items: part.extend(items))
    read, write = value

    def write_items(part: Any, items: Any) -> None:  # noqa: ANN401 - see above
        for item in items:
            write(part.add(), item)

    return FieldCodec(name, lambda part: tuple(map(read, part)), name, write_items)


def _enumeration(name: str, members: type[IntEnum], *, optional: bool) -> FieldCodec:
    """Return converters between an `IntEnum` and a proto field; old events name it by text."""
    by_number: dict[int, IntEnum | None] = {int(member): member for member in members}
    if optional:
        by_number[0] = None
    text = _NAMES_OF_ENUMS.get(name, "")
    if not text and not optional:
        return FieldCodec(name, by_number.__getitem__, name, None)
    if not text:
        return FieldCodec(
            name,
            by_number.__getitem__,
            "",
            lambda message, value: setattr(message, name, int(value or 0)),
        )

    def read(message: Any) -> Any:  # noqa: ANN401 - see above
        number = getattr(message, name)
        if not number and getattr(message, text):
            return members[getattr(message, text)]
        return by_number[number]

    def write(message: Any, value: Any) -> None:  # noqa: ANN401 - see above
        setattr(message, name, int(value or 0))
        if value:
            setattr(message, text, value.name)

    return FieldCodec("", read, "", write)


def _encoded(message: Message) -> bytes:
    return message.SerializeToString()


def _merge(message: Message, value: bytes) -> None:
    message.SetInParent()
    message.MergeFromString(value)


def _position(message: event_pb2.EventPosition) -> tuple[int, int]:
    return (message.sequence, message.index)


def _write_position(message: event_pb2.EventPosition, position: tuple[int, int]) -> None:
    message.sequence, message.index = position


_VALUES: Final[Mapping[Any, tuple[Read, Write]]] = {
    AgentLimits: (agent_limits_from, write_agent_limits),
    Metric: (metric_from, write_metric),
    Parameters: (parameters_from, write_parameters),
    SavedCheckpoint: (checkpoint_from, write_checkpoint),
    TrialCheckpoint: (trial_checkpoint_from, write_trial_checkpoint),
    bytes: (_encoded, _merge),
    tuple[int, int]: (_position, _write_position),
}
"""Converters of the values that events hold."""


_CAUSES: Final[Mapping[Any, tuple[Read, Write, Read]]] = {
    EndReason: (end_from, write_end, old_end),
    StopReason: (stop_from, write_stop, old_stop),
    LossReason: (loss_from, write_loss, old_loss),
    WaitReason: (wait_from, write_wait, old_wait),
    ExperimentReason: (experiment_reason_from, write_experiment_reason, old_experiment_reason),
}
"""Converters of causes: of the message of one, and of an event of an older version."""
_IGNORE_CAUSE: Final = FieldCodec(
    "",
    lambda message: ignore_cause_from(message.cause) if message.cause else old_ignore(message),
    "",
    lambda message, value: setattr(message, "cause", int(value)),
)


def _read_created(message: event_pb2.ExperimentCreated) -> events.ExperimentCreated:
    return created_event(
        message.experiment_id,
        message.config,
        environment_sha256=message.environment_sha256,
        interpreter=message.interpreter,
        nni_version=message.nni_version,
        resolved_mode=message.optimize_mode,
    )


def _write_created(whole: event_pb2.Event, event: events.ExperimentCreated) -> None:
    message = whole.experiment_created
    message.experiment_id = event.experiment_id
    message.config.MergeFromString(event.config)
    message.environment_sha256 = event.environment_sha256
    message.interpreter = event.interpreter
    message.nni_version = event.nni_version
    message.optimize_mode = event.optimize_mode or 0  # type: ignore[assignment] # the contract's numbers


def _read_deferred(message: event_pb2.ReportDeferred) -> events.ReportDeferred | None:
    report = report_from(message.runner_id, message.report)
    return None if report is None else events.ReportDeferred(report)


def _write_deferred(whole: event_pb2.Event, event: events.ReportDeferred) -> None:
    message = whole.report_deferred
    message.runner_id = event.report.runner_id
    write_report(message.report, event.report)


_SPECIAL: Final[Mapping[type[Any], tuple[Read, Write]]] = {
    events.ExperimentCreated: (_read_created, _write_created),  # part of it follows from `config`
    events.ReportDeferred: (_read_deferred, _write_deferred),  # its sender stands beside the report
}


def _all_codecs() -> Iterator[tuple[type[events.Event], EventCodec]]:
    for event_type in typing.get_args(events.Event):
        yield event_type, _codec_of(event_type)


CODECS: Final[Mapping[type[events.Event], EventCodec]] = dict(_all_codecs())
"""By the class of the event."""
_READERS: Final = {codec.kind: codec.read for codec in CODECS.values()}
