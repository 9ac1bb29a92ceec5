"""Pagination of long lists by opaque tokens."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from svc_common.errors import InvalidArgumentError

Item = TypeVar("Item")
Key = TypeVar("Key", int, str)
Place: TypeAlias = tuple[bool, float, int]
"""Sort key of an item: whether it lacks a value (those come last), the value, and the item's
number."""
_NUMBER: Final = re.compile(r"[-+]?(inf|[0-9]{1,20}(\.[0-9]{1,20})?(e[-+]?[0-9]{1,3})?)")
_INTEGER: Final = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list: items, token of the next page, and length of the whole list."""

    items: list[Item]
    next_token: str = ""
    """Token of the next page; empty: this is the last one."""
    total: int = 0
    """Length of the whole list."""


def page_size(asked: int, *, default: int, limit: int) -> int:
    """Return the page size: ``asked``, or ``default`` if 0, capped at ``limit``; raise if < 0.

    Raises:
        InvalidArgumentError: it is negative.
    """
    if asked < 0:
        raise InvalidArgumentError("page_size", "must be >= 0", asked)
    return min(asked or default, limit)


def page_behind(
    items: Sequence[Item],
    key: Callable[[Item], Key],
    token: str,
    size: int,
    read: Callable[[str], Key],
) -> Page[Item]:
    """Return the page of a key-sorted list after the key in ``token``; the first page if empty.

    Args:
        items: the whole list, sorted by key.
        key: unique key of an item; its text is the token.
        token: of the page before; empty: the first page.
        size: maximum items of the page.
        read: parses a key, see `number_of`.

    Raises:
        InvalidArgumentError: the token is invalid.
    """
    start = bisect_right(items, read(token), key=key) if token else 0
    rows = items[start : start + size]
    following = str(key(rows[-1])) if start + size < len(items) else ""
    return Page(list(rows), following, len(items))


def number_of(token: str) -> int:
    """Parse a page token of 1 to 15 digits to its number; raise for another text.

    Raises:
        InvalidArgumentError: it is not a number.
    """
    if not _INTEGER.fullmatch(token):
        raise InvalidArgumentError(
            "page_token", "must be one that an earlier page gave", token[:40]
        )
    return int(token)


def token_moment(token: str, now_ms: int) -> int:
    """Return the time at which the first page was requested, from the token; no token: now.

    Raises:
        InvalidArgumentError: the token is invalid.
    """
    return _read(token)[0] if token else now_ms


def page_after(
    ranked: Sequence[tuple[Place, Item]], token: str, size: int, moment_ms: int = 0
) -> Page[Item]:
    """Return the page of a ranked list after the sort key in ``token``; the first page if empty.

    Tokens name a sort key, not an index, so items that come, go or move between two calls shift no
    other item: each of the others is on exactly one page.

    Args:
        ranked: the whole list, sorted by place.
        token: of the page before; empty: the first page.
        size: maximum items of the page.
        moment_ms: see `token_moment`; 0 where the order does not depend on the time.

    Raises:
        InvalidArgumentError: the token is invalid.
    """
    start = bisect_right(ranked, _read(token)[1], key=lambda row: row[0]) if token else 0
    rows = ranked[start : start + size]
    more = start + size < len(ranked)
    following = _write(moment_ms, rows[-1][0]) if more else ""
    return Page([item for _, item in rows], following, len(ranked))


def _write(moment_ms: int, place: Place) -> str:
    keyless, key, number = place
    return f"{moment_ms}_{int(keyless)}_{float(key)!r}_{number}"


def _read(token: str) -> tuple[int, Place]:
    moment, keyless, key, number = (token.split("_") + [""] * 4)[:4]
    whole = all(_INTEGER.fullmatch(part) for part in (moment, number))
    if not whole or keyless not in {"0", "1"} or not _NUMBER.fullmatch(key):
        raise InvalidArgumentError(
            "page_token", "must be one that an earlier page gave", token[:40]
        )
    return int(moment), (keyless == "1", float(key), int(number))
