"""Remarks of users on experiments and trials, and the rules that they keep."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from svc_common.errors import InvalidArgumentError

NOTE_LIMIT: Final = 4_000
"""Most characters of a note."""
TAGS_LIMIT: Final = 20
"""Most tags of an experiment or a trial."""
TAG_LIMIT: Final = 50
"""Most characters of a tag."""


@dataclass(frozen=True, slots=True)
class Remarks:
    """Note, tags and star of an experiment or a trial; without any effect on its execution."""

    note: str = ""
    tags: tuple[str, ...] = ()
    """In the order of the user, each once."""
    starred: bool = False

    def changed(
        self,
        *,
        note: str | None = None,
        tags: Iterable[str] | None = None,
        starred: bool | None = None,
    ) -> "Remarks":
        """Return a copy with the values that are not None; raise if one breaks its rule.

        Raises:
            InvalidArgumentError: a value breaks its rule.
        """
        return Remarks(
            self.note if note is None else _checked_note(note),
            self.tags if tags is None else _checked_tags(tags),
            self.starred if starred is None else starred,
        )


def _checked_note(note: str) -> str:
    if len(note) > NOTE_LIMIT:
        raise InvalidArgumentError(
            "note", f"must have at most {NOTE_LIMIT} characters", f"{len(note)} characters"
        )
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in note):
        # JSON can escape halves of surrogate pairs, which no event can hold.
        raise InvalidArgumentError("note", "must not contain NUL or half a surrogate pair")
    return note.strip()


def _checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(tag.strip() for tag in tags))
    if len(found) > TAGS_LIMIT:
        raise InvalidArgumentError("tags", f"must be at most {TAGS_LIMIT}", len(found))
    for tag in found:
        if not 1 <= len(tag) <= TAG_LIMIT or "," in tag or not tag.isprintable():
            rule = f"must be 1 to {TAG_LIMIT} printable characters without commas"
            raise InvalidArgumentError("tags", rule, tag[: TAG_LIMIT + 1])
    return found
