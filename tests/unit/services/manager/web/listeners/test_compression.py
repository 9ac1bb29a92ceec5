"""Compression of responses: for which clients, of which types, and from which size."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from svc_manager.web.listeners.compression import (
    SMALLEST_BYTES,
    CompressionMiddleware,
    accepts_gzip,
)

LONG = "0123456789" * 1_000


async def _whole(request: Request) -> Response:
    length = int(request.query_params["length"])
    return Response(LONG[:length], media_type=request.query_params["type"])


async def _pieces(_request: Request) -> Response:
    async def pieces() -> AsyncGenerator[str, None]:
        yield "[1"
        yield ",2]"

    return StreamingResponse(pieces(), media_type="application/json")


async def _get(path: str, accepted: str = "gzip") -> httpx.Response:
    routes = [Route("/whole", _whole), Route("/pieces", _pieces)]
    transport = httpx.ASGITransport(CompressionMiddleware(Starlette(routes=routes)))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.get(path, headers={"Accept-Encoding": accepted})


@pytest.mark.parametrize(
    ("media_type", "length", "accepted", "compressed"),
    [
        ("application/json", SMALLEST_BYTES, "br, gzip", True),
        ("application/json", SMALLEST_BYTES - 1, "gzip", False),
        ("application/json", SMALLEST_BYTES, "br", False),
        ("application/json", SMALLEST_BYTES, "gzip;q=0", False),
        ("text/event-stream", SMALLEST_BYTES, "gzip", False),
        ("text/plain", SMALLEST_BYTES, "gzip", False),
        ("text/html", SMALLEST_BYTES, "gzip", True),
    ],
)
async def test_large_json_and_pages_are_compressed_for_who_accepts_it(
    media_type: str, length: int, accepted: str, compressed: bool
) -> None:
    answer = await _get(f"/whole?length={length}&type={media_type}", accepted)

    assert answer.text == LONG[:length]
    assert (answer.headers.get("content-encoding") == "gzip") is compressed


async def test_a_list_in_pieces_is_one_compressed_body() -> None:
    answer = await _get("/pieces")

    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.json() == [1, 2]


@pytest.mark.parametrize(
    ("accepted", "admits"),
    [
        ("", False),
        ("gzip", True),
        ("GZIP;q=0.5, br", True),
        ("x-gzip", False),
        ("gzip; q=0", False),
    ],
)
def test_header_admits_gzip(accepted: str, admits: bool) -> None:
    assert accepts_gzip(accepted) is admits
