"""Typed reader of the sections of a schema v1 file that collects problems."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from nni.experiment.config.quantities import duration_seconds, gpu_indices
from nni.experiment.errors import Problem

_NUMBER_MAX: Final = 99999
"""Upper bound that schema v1 has for its numbers."""


class ConversionFindings:
    """Problems and dropped fields of one file, shared by the readers of all its sections."""

    def __init__(self, directory: PurePath | None = None) -> None:
        self.directory = directory
        """Folder that relative paths are joined to; `None`: they stay as written."""
        self.problems: list[Problem] = []
        """Broken rules, in the order found."""
        self.dropped: list[str] = []
        """Fields that are given and have no meaning in schema v2, in the order found."""


class SectionReader:
    """Reader of one mapping: each method returns the value of a field, `None` if it is not given.

    A value of a wrong type becomes a problem and is returned as `None`. After the last field
    `finish` must be called; it reports fields that were never asked for.
    """

    def __init__(self, fields: object, place: str, findings: ConversionFindings) -> None:
        self.place = place
        """Path of the section in the file; empty for the file itself."""
        self.findings = findings
        self._known: list[str] = []
        self._fields: Mapping[object, object] = {}
        if isinstance(fields, Mapping):
            self._fields = fields
        elif fields is not None:
            rule = "must be a mapping of fields to values"
            findings.problems.append(Problem(place or "the file", rule, fields))

    def problem(self, name: str, rule: str, value: object = None, remedy: str = "") -> None:
        """Record a broken rule of the field ``name``."""
        self.findings.problems.append(Problem(self._path(name), rule, value, remedy))

    def given(self, name: str) -> bool:
        """Return True if the section has the field, and it is not null."""
        return self._fields.get(name) is not None

    def raw(self, name: str) -> Any:  # noqa: ANN401 - any YAML value
        """Return the field as it is, and mark it as known for `finish`."""
        if name not in self._known:
            self._known.append(name)
        return self._fields.get(name)

    def require(self, name: str, remedy: str = "") -> None:
        """Record a problem if the field is not given."""
        if not self.given(name):
            self.problem(name, "must be given", None, remedy)

    def text(self, name: str, *, secret: bool = False) -> str | None:
        """Return a non-empty text; None if not given, or for others, which become a problem."""
        value = self.raw(name)
        if value is None or (isinstance(value, str) and value):
            return value
        shown, remedy = (None, "quote it") if secret else (value, "")
        self.problem(name, "must be a text", shown, remedy)
        return None

    def integer(self, name: str, *, least: int = 0, most: int | None = _NUMBER_MAX) -> int | None:
        """Return an integer from ``least`` to ``most``; None for others, recorded as a problem."""
        value = self.raw(name)
        if value is None:
            return None
        in_range = isinstance(value, int) and value >= least and (most is None or value <= most)
        if in_range and not isinstance(value, bool):
            return int(value)
        limits = f">= {least}" if most is None else f"from {least} to {most}"
        self.problem(name, f"must be an integer {limits}", value)
        return None

    def flag(self, name: str) -> bool | None:
        """Return true or false; None if not given, or recorded as a problem."""
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return value
        self.problem(name, "must be true or false", value)
        return None

    def duration(self, name: str) -> str | None:
        """Return a checked duration text such as `10m`; None if it is not given."""
        value = self.text(name)
        return None if value is None else self._checked(name, value, duration_seconds)

    def gpus(self, name: str) -> list[int] | None:
        """Return the GPUs that a text such as `0,1` names; an empty text names none."""
        value = self.raw(name)
        checked = None if value is None else self._checked(name, value, gpu_indices)
        return gpu_indices(checked) if checked is not None else None

    def path(self, name: str) -> str | None:
        """Return a path, joined to the folder of the findings if they have one."""
        value = self.text(name)
        if value is None or self.findings.directory is None or value.startswith("~"):
            return value
        return str(self.findings.directory / value)

    def choice(self, name: str, options: Sequence[str]) -> str | None:
        """Return a value of the options as text; None if not given, or for others, a problem."""
        value = self.raw(name)
        if value is None or value in options:
            return None if value is None else str(value)
        close = difflib.get_close_matches(str(value), options, n=1)
        remedy = f"did you mean {close[0]}?" if close else ""
        self.problem(name, f"must be one of {', '.join(options)}", value, remedy)
        return None

    def section(self, name: str) -> SectionReader:
        """Return a reader of the section ``name``; of an empty one if it is not given."""
        return SectionReader(self.raw(name), self._path(name), self.findings)

    def sections(self, name: str) -> list[SectionReader]:
        """Return a reader per section of a list; empty if not given, or (a problem) no list."""
        value = self.raw(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.problem(name, "must be a list", value)
            return []
        return [
            SectionReader(
                {} if item is None else item, f"{self._path(name)}[{index}]", self.findings
            )
            for index, item in enumerate(value)
        ]

    def drop(self, name: str, reason: str = "") -> None:
        """Record that the field, if it is given, has no meaning any more."""
        self.raw(name)
        if self.given(name):
            note = f" ({reason})" if reason else ""
            self.findings.dropped.append(f"{self._path(name)}{note}")

    def finish(self, remedies: Mapping[str, str] | None = None) -> None:
        """Record a problem, with a remedy, for each field that no caller has read.

        Args:
            remedies: advice by the name of an unknown field; others get the closest known name.
        """
        for key in self._fields:
            name = str(key)
            if name in self._known:
                continue
            close = difflib.get_close_matches(name, self._known, n=1)
            known = "known are: " + ", ".join(sorted(self._known))
            remedy = (remedies or {}).get(name) or (f"did you mean {close[0]}?" if close else known)
            self.problem(name, "is no field of schema v1", None, remedy)

    def _checked(self, name: str, value: object, parse: Callable[[Any], object]) -> Any:  # noqa: ANN401 - the value itself
        try:
            parse(value)
        except ValueError as error:
            self.problem(name, str(error), value)
            return None
        return value

    def _path(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name


def is_empty(value: object) -> bool:
    """Return True for null, and for a mapping or list that holds nothing but null."""
    if isinstance(value, Mapping):
        return all(map(is_empty, value.values()))
    if isinstance(value, list):
        return all(map(is_empty, value))
    return value is None


def without_nones(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return a new dict of the fields whose value is not None."""
    return {name: value for name, value in fields.items() if value is not None}
