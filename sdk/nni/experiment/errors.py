"""Errors of the client side.

```
NniError
└── ExperimentError
    ├── ConfigError (ValueError)      a configuration, search space or argument breaks a rule
    ├── RefusedError                  port, disk, extra or folder forbids it; nothing was started
    ├── NotFoundError                 no experiment, trial or runner has this id
    ├── WrongStateError               it exists, but not in a state that allows this
    │   └── LeaseLapsedError          another process may have the trial by now
    ├── UnreachableError              the services are not up, or do not answer
    └── ServiceFailedError            a service failed at a legal request; its log says why
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nni.errors import NniError

_SHOWN_VALUE_CHARACTERS = 120
"""Longest part of an offending value that a message repeats."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Broken rule of a configuration: field, rule, offending value, remedy."""

    field: str
    """Path of the field as its author wrote it, e.g. `tuner.classArgs.optimize_mode`."""
    rule: str
    """Condition that is broken, as the end of a sentence: `must be an integer >= 1`."""
    value: object = None
    """The offending value; `None` if there is none to show."""
    remedy: str = ""
    """Advice how to mend it; empty if the rule says it."""

    def moved(self, path: str) -> Problem:
        """Return the same problem with ``path`` in front of its field."""
        joint = "." if path and self.field and not self.field.startswith("[") else ""
        return Problem(f"{path}{joint}{self.field}", self.rule, self.value, self.remedy)

    def __str__(self) -> str:
        """Return the problem as one line."""
        shown = "" if self.value is None else f", got {_short(self.value)}"
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{self.field} {self.rule}{shown}{remedy}"


def _short(value: object) -> str:
    text = repr(value)
    if len(text) > _SHOWN_VALUE_CHARACTERS:
        return text[: _SHOWN_VALUE_CHARACTERS - 3] + "..."
    return text


class ExperimentError(NniError):
    """Base class of the errors that managing experiments raises.

    Attributes:
        facts: details for a program; plain strings.
    """

    def __init__(self, message: str, facts: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.facts: dict[str, str] = dict(facts or {})


class ConfigError(ExperimentError, ValueError):
    """Error of a configuration that breaks one rule or several, listed in `problems`.

    Attributes:
        problems: the broken rules, at least one.
        source: the file it was read from; empty for one made in Python.
    """

    def __init__(self, problems: Sequence[Problem], source: str = "") -> None:
        lines = [str(problem) for problem in problems]
        if len(lines) > 1:
            lines.insert(0, f"{len(problems)} problems:")
        super().__init__((f"{source}: " if source else "") + "\n  ".join(lines))
        self.problems = tuple(problems)
        self.source = source

    def moved(self, path: str) -> ConfigError:
        """Return the same error with ``path`` in front of the fields."""
        return ConfigError([problem.moved(path) for problem in self.problems], self.source)

    def within(self, source: str) -> ConfigError:
        """Return the same error, naming the file it was read from."""
        return ConfigError(self.problems, source)


class RefusedError(ExperimentError):
    """Error: something outside the configuration forbids a start; nothing was started."""


class NotFoundError(ExperimentError):
    """Error: nothing of this kind has this id."""


class WrongStateError(ExperimentError):
    """Error: the object's state forbids the request; the message names the state that allows it."""


class LeaseLapsedError(WrongStateError):
    """Error: the lease of a shared study's trial has lapsed, so the trial takes no result."""


class UnreachableError(ExperimentError):
    """Error: the services of this installation are not up, or do not answer."""


class ServiceFailedError(ExperimentError):
    """Error: a service failed while it handled a valid request; its log has the cause."""
