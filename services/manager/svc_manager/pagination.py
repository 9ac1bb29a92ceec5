"""One page of a long list."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from svc_common.errors import InvalidArgumentError

Item = TypeVar("Item")
Key = TypeVar("Key", int, str)
Place: TypeAlias = tuple[bool, float, int]
"""What a list is sorted by: without a key (those come last), the key, and which item it is."""
_NUMBER: Final = re.compile(r"[-+]?(inf|[0-9]{1,20}(\.[0-9]{1,20})?(e[-+]?[0-9]{1,3})?)")
_INTEGER: Final = re.compile(r"[0-9]{1,15}")


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


def page_behind(
    items: Sequence[Item],
    key: Callable[[Item], Key],
    token: str,
    size: int,
    read: Callable[[str], Key],
) -> Page[Item]:
    """Return the page behind the item whose key ``token`` is; items may come and go meanwhile.

    Args:
        items: the whole list, sorted by key.
        key: differs between all items; its text is their token.
        token: of the page before; empty: the first page.
        size: most items of the page.
        read: makes a key of its text, see `number_of`.

    Raises:
        InvalidArgumentError: no page was ever given this token.
    """
    start = bisect_right(items, read(token), key=key) if token else 0
    rows = items[start : start + size]
    following = str(key(rows[-1])) if start + size < len(items) else ""
    return Page(list(rows), following, len(items))


def number_of(token: str) -> int:
    """Return the number that a token is.

    Raises:
        InvalidArgumentError: it is none.
    """
    if not _INTEGER.fullmatch(token):
        raise InvalidArgumentError(
            "page_token", "must be one that an earlier page gave", token[:40]
        )
    return int(token)


def token_moment(token: str, now_ms: int) -> int:
    """Return the moment at which the list was asked for first: the same for all its pages.

    Raises:
        InvalidArgumentError: no page was ever given this token.
    """
    return _read(token)[0] if token else now_ms


def page_after(
    ranked: Sequence[tuple[Place, Item]], token: str, size: int, moment_ms: int = 0
) -> Page[Item]:
    """Return the page behind the item that ``token`` names.

    Tokens name a place and no count, so items that come, go or move between two calls shift no
    other: each of the others is on exactly one page.

    Args:
        ranked: the whole list, sorted by place.
        token: of the page before; empty: the first page.
        size: most items of the page.
        moment_ms: see `token_moment`; 0 where the order does not depend on the time.

    Raises:
        InvalidArgumentError: no page was ever given this token.
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
