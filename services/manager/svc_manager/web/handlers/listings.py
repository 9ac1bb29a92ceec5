"""Responses with lists: a complete list as streamed JSON, or one page with its Link header."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from svc_manager.pagination import Page
from svc_manager.web.records.encoding import to_json
from svc_manager.web.route import Call, json_response

STREAM_PAGE_SIZE: Final = 250
"""Items to convert before yielding to other tasks of the manager: about 5 ms."""

Item = TypeVar("Item")
Fetch = Callable[[int, str], Awaitable[Page[Item]]]
"""Takes page size and token; returns that page."""


async def whole_list(fetch: Fetch[Item], record: Callable[[Item], Any]) -> Response:
    """Respond with all items of a paged list as one JSON array, streamed page by page.

    An error of the first page becomes an error response; a later error breaks the connection, so
    that a client never mistakes a part for the complete list.
    """
    first = await fetch(STREAM_PAGE_SIZE, "")
    if not first.next_token:
        return json_response([record(item) for item in first.items])
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
        await asyncio.sleep(0)  # other tasks of the manager come first
        page = await fetch(STREAM_PAGE_SIZE, page.next_token)
    yield "]"


async def streamed_list(records: AsyncGenerator[Any, None]) -> Response:
    """Respond with all records of an async generator as one JSON array, streamed if long."""
    first = await _next_chunk(records)
    if len(first) < STREAM_PAGE_SIZE:
        return json_response(first)
    return StreamingResponse(_chunks(first, records), media_type="application/json")


async def _chunks(
    chunk: list[Any], records: AsyncGenerator[Any, None]
) -> AsyncGenerator[str, None]:
    lead = "["
    while chunk:
        yield lead + ",".join(map(to_json, chunk))
        lead = ","
        chunk = await _next_chunk(records)
    yield "]"


async def _next_chunk(records: AsyncGenerator[Any, None]) -> list[Any]:
    """Return the next records of an async generator, up to `STREAM_PAGE_SIZE`; fewer at its end."""
    chunk: list[Any] = []
    async for record in records:
        chunk.append(record)
        if len(chunk) == STREAM_PAGE_SIZE:
            break
    return chunk


async def one_page(
    call: Call, size: int, fetch: Fetch[Item], record: Callable[[Item], Any]
) -> Response:
    """Respond with one page as JSON; header `Link` has the next page, `X-Total-Count` the total."""
    page = await fetch(size, str(call.query.get("cursor", "")))
    headers = {"X-Total-Count": str(page.total)}
    if page.next_token:
        headers["Link"] = f'<{next_address(call, page.next_token)}>; rel="next"'
    return json_response([record(item) for item in page.items], headers=headers)


async def listing(
    call: Call, fetch: Fetch[Item], record: Callable[[Item], Any], default_size: int = 100
) -> Response:
    """Respond with one page if the query has `limit` or `cursor`, else with the whole list."""
    if "limit" in call.query or "cursor" in call.query:
        return await one_page(call, call.query.get("limit", default_size), fetch, record)
    return await whole_list(fetch, record)


async def all_items(fetch: Fetch[Item]) -> AsyncGenerator[Item, None]:
    """Fetch a list page by page and yield every item."""
    page = await fetch(STREAM_PAGE_SIZE, "")
    while True:
        for item in page.items:
            yield item
        if not page.next_token:
            return
        await asyncio.sleep(0)
        page = await fetch(STREAM_PAGE_SIZE, page.next_token)


def next_address(call: Call, token: str) -> str:
    """Return the URL of the next page: the request's query with ``token`` as its cursor."""
    query: Mapping[str, Any] = {**call.query, "cursor": token}
    written = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in query.items()
    }
    return f"{call.url_path}?{urlencode(written)}"
