"""Compiler of the functions that read and write the events of one class.

Each event is written once and read again by every manager that folds its log, which is thousands
of fields per second. A loop over the converters of the fields costs more than the conversions, so
the functions are compiled from the text that one would write by hand, as `dataclasses` does for
its classes. The text holds names of fields only, which come from the declarations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

# `Any` below: the type of a value is that of the field which a converter is made for.
Read: TypeAlias = Callable[[Any], Any]
"""Message of an event, or the value of a field of it, to the value of the event's field."""
Write: TypeAlias = Callable[[Any, Any], None]
"""Writes the value of an event's field into the event's message, or into a part of it."""

_NAME: Final = "convert"


@dataclass(frozen=True, slots=True)
class FieldCodec:
    """Converters between one field of an event and the message of the event."""

    source: str
    """Field of the message whose value `read` takes; empty: it takes the message."""
    read: Read | None
    """None: the value is the same."""
    target: str
    """Field of the message whose value `write` takes; empty: it takes the message."""
    write: Write | None
    """None: the value is the same, and is set."""


def compile_reader(event_type: type[Any], codecs: Mapping[str, FieldCodec]) -> Read:
    """Compile and return a function that makes an event of its proto message, field by field.

    Args:
        event_type: class of the event, whose arguments are its fields in order.
        codecs: converters by the name of the field, in the order of the fields.
    """
    names: dict[str, Any] = {"event_type": event_type}
    arguments = []
    for name, codec in codecs.items():
        value = f"message.{codec.source}" if codec.source else "message"
        if codec.read is not None:
            names[f"read_{name}"] = codec.read
            value = f"read_{name}({value})"
        arguments.append(value)
    return _compiled(f"def {_NAME}(message): return event_type({', '.join(arguments)})", names)


def compile_writer(kind: str, codecs: Mapping[str, FieldCodec]) -> Write:
    """Compile and return a function that writes an event into field ``kind`` of an `Event` message.

    Args:
        kind: field of the message for events of this class; it is set even if the event is empty.
        codecs: converters by the name of the event's field.
    """
    names: dict[str, Any] = {}
    lines = [f"def {_NAME}(message, event):", f"part = message.{kind}", "part.SetInParent()"]
    for name, codec in codecs.items():
        if codec.write is None:
            lines.append(f"part.{name} = event.{name}")
            continue
        names[f"write_{name}"] = codec.write
        part = f"part.{codec.target}" if codec.target else "part"
        lines.append(f"write_{name}({part}, event.{name})")
    return _compiled("\n ".join(lines), names)


def _compiled(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    exec(text, names)  # noqa: S102 - see the docstring of the module
    compiled: Callable[..., Any] = names[_NAME]
    return compiled
