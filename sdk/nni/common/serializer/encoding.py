"""Encoder of `nni.dump`: an object becomes values that JSON has."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nni.common.serializer.array_values import array_form
from nni.common.serializer.payload_size import check_size
from nni.common.serializer.pickles import as_text, pickled
from nni.common.serializer.record import is_traceable, unwrapped_symbol
from nni.common.serializer.standard_values import standard_form
from nni.common.serializer.symbols import symbol_path

PATH, BYTES = "path:", "bytes:"
SYMBOL, ARGS, KWARGS = "__symbol__", "__args__", "__kwargs__"
SYMBOL_ONLY, INSTANCE, PICKLE = "__nni_type__", "__instance_type__", "__nni_obj__"
DEFAULT_LIMIT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encoder of objects to JSON forms, with rules for records and pickles.

    Examples:
        >>> Encoder().encode({"size": (3, 3)})
        {'size': [3, 3]}
    """

    use_trace: bool = True
    """Write traced objects as calls; otherwise they are pickled."""
    pickle_size_limit: int = DEFAULT_LIMIT_BYTES
    """Largest pickle of one object, in bytes; 0 or less for no limit."""
    never_pickled: tuple[type, ...] = ()
    """Classes whose objects are refused unless they were traced."""
    _open: list[int] = field(default_factory=list)
    """Identities of the objects that enclose the present one."""

    def encode(self, value: Any, path: str = "") -> Any:  # noqa: ANN401 - any object
        """Return the JSON form of an object; raise ValueError if it contains itself.

        Args:
            value: any object.
            path: where it stands in the document, for errors.

        Raises:
            PayloadTooLarge: an object without a record is too large.
            ValueError: an object contains itself, or must be traced and is not; or two keys of a
                dict have one text.
            TypeError: a key of a dict is no string, number, bool or None.
        """
        if value is None or type(value) in {str, bool, int, float}:
            return value
        with self._entered(value, path):
            return self._encode(value, path)

    @contextmanager
    def _entered(self, value: object, path: str) -> Iterator[None]:
        if id(value) in self._open:
            raise ValueError(f"{path or 'the object'} contains itself; a document cannot")
        self._open.append(id(value))
        try:
            yield
        finally:
            self._open.pop()

    def _encode(self, value: Any, path: str) -> Any:  # noqa: ANN401 - any object
        if self.use_trace and is_traceable(value, must_be_instance=True):
            return self._call(value, path)

        def part(one: Any, suffix: str) -> Any:  # noqa: ANN401 - any object
            return self.encode(one, path + suffix)

        array = array_form(value, part)
        if array is not None:
            return array[0]
        if isinstance(value, str | int | float):
            return value  # also enums that are strings or numbers
        form = standard_form(value, part)
        if form is not None:
            return form
        if isinstance(value, list | tuple):
            return [self.encode(one, f"{path}[{index}]") for index, one in enumerate(value)]
        if isinstance(value, dict):
            return self._members(value, path)
        return self._object(value, path)

    def _members(self, value: dict[Any, Any], path: str) -> dict[Any, Any]:
        for key in value:
            if key is not None and not isinstance(key, str | int | float):
                raise TypeError(
                    f"keys of {path or 'the dict'} must be strings, numbers, bools or None, "
                    f"got {key!r}"
                )
        _check_distinct(value, path)
        return {key: self.encode(one, joined(path, str(key))) for key, one in value.items()}

    def _call(self, value: Any, path: str) -> dict[str, Any]:  # noqa: ANN401 - a traced object
        form: dict[str, Any] = {SYMBOL: self._symbol(value.trace_symbol, path)}
        if value.trace_args:
            form[ARGS] = [
                self.encode(one, f"{path}[{index}]") for index, one in enumerate(value.trace_args)
            ]
        if value.trace_kwargs:
            form[KWARGS] = self._members(value.trace_kwargs, path)
        return form

    def _symbol(self, symbol: Any, path: str) -> str:  # noqa: ANN401 - any class or function
        importable = symbol_path(symbol)
        if importable is not None:
            return PATH + importable
        data = pickled(symbol)
        check_size(data, self.pickle_size_limit, path, unwrapped_symbol(symbol))
        return BYTES + as_text(data)

    def _object(self, value: Any, path: str) -> dict[str, Any]:  # noqa: ANN401 - any object
        kind = type(value)
        if not isinstance(value, type) and hasattr(kind, "_dump") and hasattr(kind, "_load"):
            return {INSTANCE: self._symbol(kind, path), **self._members(value._dump(), path)}  # noqa: SLF001 - the hook
        if isinstance(value, type) or hasattr(value, "__qualname__"):
            return {SYMBOL_ONLY: self._symbol(value, path)}
        if isinstance(value, self.never_pickled):
            raise ValueError(  # noqa: TRY004 - as other payloads that are refused
                f"{path or 'the object'} is an untraced {kind.__qualname__}: data sets, loaders "
                "and trainers travel as calls only, never as pickles; make it by "
                f"nni.trace({kind.__qualname__})(...)"
            )
        data = pickled(value)
        check_size(data, self.pickle_size_limit, path, value)
        return {PICKLE: as_text(data)}


def _check_distinct(value: dict[Any, Any], path: str) -> None:
    """Raise ValueError if two keys of a dict have one text: the document would lose a value."""
    if all(type(key) is str for key in value):
        return
    texts: dict[str, Any] = {}
    for key in value:
        # The text of a key that json.dumps writes.
        text = str(key) if isinstance(key, str) else json.dumps(key)
        if text in texts:
            raise ValueError(
                f"keys of {path or 'the dict'} must have distinct texts, which JSON writes, got "
                f"{texts[text]!r} and {key!r}; rename one"
            )
        texts[text] = key


def joined(path: str, name: str) -> str:
    """Return the path of a member.

    Args:
        path: that of the object; empty for the root.
        name: attribute, argument or key.

    Examples:
        >>> joined("trainer", "callbacks"), joined("", "trainer")
        ('trainer.callbacks', 'trainer')
    """
    return f"{path}.{name}" if path else name
