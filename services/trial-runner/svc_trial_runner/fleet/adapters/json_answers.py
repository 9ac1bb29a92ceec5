"""Typed access to the JSON responses of a platform's REST API."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from svc_trial_runner.fleet.ports import PlatformError

_SHOWN_CHARACTERS: Final = 80


class AnswerError(PlatformError):
    """Error of an answer with a field that is missing or has another type; another try may help."""


@dataclass(frozen=True, slots=True)
class JsonPart:
    """Part of a platform's answer, whose fields are read with their types."""

    source: str
    """Who has answered, in words: `OpenPAI at https://pai.example.org`."""
    value: object
    """Parsed JSON; None: it is null, missing, or no JSON."""
    path: str = ""
    """Of the part in the whole answer, as `data[0].name`; empty: it is the whole one."""

    def error(self, rule: str) -> AnswerError:
        """Return the error of this part, with source, path, rule and value.

        Args:
            rule: such as `must be a text`.
        """
        return AnswerError(
            f"{self.source} gave another answer than its API describes: "
            f"{self.path or 'the whole'} {rule}, got {repr(self.value)[:_SHOWN_CHARACTERS]}",
            "is it the address of the API, with no login page before it, and a version that NNI "
            "knows?",
        )

    def fields(self) -> dict[str, Any]:
        """Return this part as an object; raise AnswerError if it is none.

        Raises:
            AnswerError: the part is no object.
        """
        if not isinstance(self.value, dict):
            raise self.error("must be an object")
        return self.value

    def field(self, name: str) -> "JsonPart":
        """Return a field of an object, with the value None if it is missing.

        Raises:
            AnswerError: the part is no object.
        """
        path = f"{self.path}.{name}" if self.path else name
        return JsonPart(self.source, self.fields().get(name), path)

    def items(self) -> list["JsonPart"]:
        """Return the items of this part, a list; raise AnswerError if it is none.

        Raises:
            AnswerError: the part is no list.
        """
        if not isinstance(self.value, list):
            raise self.error("must be a list")
        return [
            JsonPart(self.source, one, f"{self.path}[{index}]")
            for index, one in enumerate(self.value)
        ]

    def integer(self) -> int | None:
        """Return this part as an integer; None: it is null or missing.

        Raises:
            AnswerError: the part has another type.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int | None):
            raise self.error("must be an integer")
        return self.value

    def checked(self, needed: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
        """Return this part as an object after a check that named fields are texts.

        Args:
            needed: names of texts that are not empty.
            optional: names of texts that may be empty, null or missing.

        Raises:
            AnswerError: the part is no object, or a field is missing or has another type.
        """
        for name in needed:
            if not isinstance((part := self.field(name)).value, str) or not part.value:
                raise part.error("must be a text that is not empty")
        for name in optional:
            if not isinstance((part := self.field(name)).value, str | None):
                raise part.error("must be a text")
        return self.fields()
