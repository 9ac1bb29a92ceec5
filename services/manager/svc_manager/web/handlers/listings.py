"""Long answers: whole lists as a stream of JSON, one page of a list with its Link header."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from svc_manager.pagination import Page
from svc_manager.web.records.encoding import to_json
from svc_manager.web.route import Call, json_answer

STREAM_PAGE_SIZE: Final = 250
"""Items that are converted before other work of the manager gets its turn: about 5 ms."""

Item = TypeVar("Item")
Fetch = Callable[[int, str], Awaitable[Page[Item]]]
"""Takes page size and token; gives that page."""


async def whole_list(fetch: Fetch[Item], record: Callable[[Item], Any]) -> Response:
    """Return a JSON array of all items, sent page by page.

    Errors of the first page become an error answer; a later one breaks the connection, so that
    a client never takes a part for the whole.
    """
    first = await fetch(STREAM_PAGE_SIZE, "")
    if not first.next_token:
        return json_answer([record(item) for item in first.items])
    return StreamingResponse(_array(first, fetch, record), media_type="application/json")


async def _array(
    page: Page[Item], fetch: Fetch[Item], record: Callable[[Item], Any]
) -> AsyncGenerator[str, None]:
    lead = "["
    while True:
        yield lead + ",".join(to_json(record(item)) for item in page.items)
        if not page.next_token:
            break
        lead = ","
        await asyncio.sleep(0)  # let trials go on: a long list is no urgent matter
        page = await fetch(STREAM_PAGE_SIZE, page.next_token)
    yield "]"


async def streamed(records: AsyncGenerator[Any, None]) -> Response:
    """Return a JSON array of records that are made one by one; errors are those of `whole_list`."""
    first = await _some(records)
    if len(first) < STREAM_PAGE_SIZE:
        return json_answer(first)
    return StreamingResponse(_chunks(first, records), media_type="application/json")


async def _chunks(
    chunk: list[Any], records: AsyncGenerator[Any, None]
) -> AsyncGenerator[str, None]:
    lead = "["
    while chunk:
        yield lead + ",".join(map(to_json, chunk))
        lead = ","
        chunk = await _some(records)
    yield "]"


async def _some(records: AsyncGenerator[Any, None]) -> list[Any]:
    """Return the next records, as many as one turn may take; fewer at the end."""
    chunk: list[Any] = []
    async for record in records:
        chunk.append(record)
        if len(chunk) == STREAM_PAGE_SIZE:
            break
    return chunk


async def one_page(
    call: Call, size: int, fetch: Fetch[Item], record: Callable[[Item], Any]
) -> Response:
    """Return a JSON array of one page; `Link` leads to the next, `X-Total-Count` counts all."""
    page = await fetch(size, str(call.query.get("cursor", "")))
    headers = {"X-Total-Count": str(page.total)}
    if page.next_token:
        headers["Link"] = f'<{next_address(call, page.next_token)}>; rel="next"'
    return json_answer([record(item) for item in page.items], headers=headers)


async def listing(
    call: Call, fetch: Fetch[Item], record: Callable[[Item], Any], default_size: int = 100
) -> Response:
    """Return one page if the request asks for pages, and the whole list if it does not."""
    if "limit" in call.query or "cursor" in call.query:
        return await one_page(call, call.query.get("limit", default_size), fetch, record)
    return await whole_list(fetch, record)


async def all_items(fetch: Fetch[Item]) -> AsyncGenerator[Item, None]:
    """Yield every item of a list, page by page."""
    page = await fetch(STREAM_PAGE_SIZE, "")
    while True:
        for item in page.items:
            yield item
        if not page.next_token:
            return
        await asyncio.sleep(0)
        page = await fetch(STREAM_PAGE_SIZE, page.next_token)


def next_address(call: Call, token: str) -> str:
    """Return the address of the page that ``token`` names, with all else as it was asked."""
    query: Mapping[str, Any] = {**call.query, "cursor": token}
    written = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in query.items()
    }
    return f"{call.url_path}?{urlencode(written)}"
