"""One page of a long list."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from svc_common.errors import InvalidArgumentError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some items of a list, in its order."""

    items: list[Item]
    next_token: str = ""
    """Give this back for the next page; empty: this is the last one."""
    total: int = 0
    """How many items the whole list has."""


def page_size(asked: int, *, default: int, limit: int) -> int:
    """Return the size of a page: ``asked``, or ``default`` for 0, at most ``limit``.

    Raises:
        InvalidArgumentError: it is negative.
    """
    if asked < 0:
        raise InvalidArgumentError("page_size", "must be >= 0", asked)
    return min(asked or default, limit)


def cut(items: list[Item], token: str, size: int) -> Page[Item]:
    """Return the page of ``items`` that ``token`` names.

    Tokens count items from the start of the list, so the list must keep its order and only
    grow at its end between two calls.

    Raises:
        InvalidArgumentError: no page was ever given this token.
    """
    if token and not (token.isascii() and token.isdigit() and len(token) < 12):  # noqa: PLR2004 - digits of any real list
        raise InvalidArgumentError(
            "page_token", "must be one that an earlier page gave", token[:40]
        )
    start = int(token or 0)
    end = start + size
    return Page(items[start:end], str(end) if end < len(items) else "", len(items))
