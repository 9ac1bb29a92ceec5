"""JSON forms of values of the standard library, in the shapes of json-tricks."""

import base64
import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

from nni.common.serializer.symbols import symbol_at, symbol_path

Form = dict[str, Any]
Encode = Callable[[Any, str], Any]
"""Function that encodes a part of a value, with the suffix of its path."""
_DATE = ("year", "month", "day")
_TIME = ("hour", "minute", "second", "microsecond")
_DELTA = ("days", "seconds", "microseconds")
_MOMENTS = (dt.datetime, dt.date, dt.time, dt.timedelta)
_OFFSET = re.compile(r"UTC([+-])(\d\d):(\d\d)")
_UTC = "UTC"


def standard_form(value: Any, encode: Encode) -> Form | None:  # noqa: ANN401 - any object
    """Return the JSON form of a standard-library value (path, date, set, enum, …); else None.

    Args:
        value: any object.
        encode: encodes elements of sets.

    Returns:
        None if it is no such value, or has a part that the form cannot express.
    """
    match value:
        case Path():  # pure paths may be those of another system
            return {"__pathlib__": str(value)}
        case Enum():
            return _enum_form(value)
        case dt.datetime() | dt.date() | dt.time() | dt.timedelta():
            return _moment_form(value)
        case complex():
            return {"__complex__": [value.real, value.imag]}
        case set():
            return {"__set__": [encode(one, f"{{{one!r}}}") for one in _sorted(value)]}
        case Decimal():
            return {"__decimal__": str(value)}
        case Fraction():
            parts = {"numerator": value.numerator, "denominator": value.denominator}
            return {"__fraction__": True, **parts}
        case slice():
            ends = {name: getattr(value, name) for name in ("start", "stop", "step")}
            return {"__slice__": True, **{key: encode(one, f".{key}") for key, one in ends.items()}}
        case bytes():
            return _bytes_form(value)
    return None


def _sorted(values: Iterable[Any]) -> list[Any]:
    """Return elements in an order that does not depend on hashes."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__qualname__, repr(value)))


def _enum_form(value: Enum) -> Form | None:
    # Several flags together have no member of their own.
    if symbol_path(type(value)) is None or value.name not in type(value).__members__:
        return None
    kind = [type(value).__module__, type(value).__qualname__]
    return {"__enum__": {"__enum_instance_type__": kind, "name": value.name}}


def _moment_form(value: dt.date | dt.time | dt.timedelta) -> Form | None:
    if type(value) not in _MOMENTS:
        return None  # a subclass has parts of its own, as the nanoseconds of pandas
    names: tuple[str, ...]
    match value:
        case dt.datetime():
            form, names = {"__datetime__": None}, (*_DATE, *_TIME)
        case dt.date():
            form, names = {"__date__": None}, _DATE
        case dt.time():
            form, names = {"__time__": None}, _TIME
        case dt.timedelta():
            form, names = {"__timedelta__": None}, _DELTA
    numbers = {name: getattr(value, name) for name in names}
    form |= {name: one for name, one in numbers.items() if one or name in _DATE}
    zone = getattr(value, "tzinfo", None)
    if zone is None:
        return form
    name = zone.key if isinstance(zone, zoneinfo.ZoneInfo) else str(zone)
    if _zone(name) != zone:
        return None
    return {**form, "tzinfo": name, "is_dst": bool(value.fold)}  # type: ignore[union-attr]


def _zone(name: str) -> dt.tzinfo | None:
    """Return the time zone of `UTC`, `UTC+02:00`, `Europe/Oslo` or the like; None: unknown."""
    if name == _UTC:
        return dt.UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        return dt.timezone(sign * dt.timedelta(hours=int(offset[2]), minutes=int(offset[3])))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None


def _bytes_form(value: bytes) -> Form:
    try:
        return {"__bytes_utf8__": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"__bytes_b64__": base64.b64encode(value).decode("ascii")}


def standard_value(form: Form) -> Any:  # noqa: ANN401 - any value
    """Return the value of a JSON form; the form itself if it is not one of this module.

    Args:
        form: object of a JSON document, its parts decoded.
    """
    for key, decode in _DECODERS.items():
        if key in form:
            return decode(form)
    return form


def _moment(form: Form) -> Any:  # noqa: ANN401 - a date, time or duration
    numbers = {name: form[name] for name in (*_DATE, *_TIME, *_DELTA) if name in form}
    if "__date__" in form:
        return dt.date(**numbers)
    if "__timedelta__" in form:
        return dt.timedelta(**numbers)
    zone = _zone(form["tzinfo"]) if "tzinfo" in form else None
    kind = dt.datetime if "__datetime__" in form else dt.time
    return kind(**numbers, tzinfo=zone, fold=int(form.get("is_dst", False)))


def _hashable(element: Any) -> Any:  # noqa: ANN401 - any element
    """Return an element of a set: a list, which was a tuple there, as a tuple."""
    return tuple(map(_hashable, element)) if isinstance(element, list) else element


def _enum(form: Form) -> Enum:
    module, name = form["__enum__"]["__enum_instance_type__"]
    member: Enum = symbol_at(f"{module}.{name}")[form["__enum__"]["name"]]
    return member


_DECODERS: dict[str, Callable[[Form], Any]] = {
    "__pathlib__": lambda form: Path(form["__pathlib__"]),
    "__enum__": _enum,
    "__datetime__": _moment,
    "__date__": _moment,
    "__time__": _moment,
    "__timedelta__": _moment,
    "__complex__": lambda form: complex(*form["__complex__"]),
    "__set__": lambda form: {_hashable(one) for one in form["__set__"]},
    "__decimal__": lambda form: Decimal(form["__decimal__"]),
    "__fraction__": lambda form: Fraction(form["numerator"], form["denominator"]),
    "__slice__": lambda form: slice(form["start"], form["stop"], form["step"]),
    "__bytes_utf8__": lambda form: form["__bytes_utf8__"].encode("utf-8"),
    "__bytes_b64__": lambda form: base64.b64decode(form["__bytes_b64__"]),
}
