"""Use case that searches a log for lines with a word, with bounded work per request."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from nni_proto.experiment.v1 import experiment_service_pb2 as service_pb2
from svc_manager.domain.line_search import LineSearch

BUDGET_BYTES: Final = 64 * 1024 * 1024
"""Bytes that one request searches: about a second in a thread; the next one goes on there."""


async def search_lines(
    pieces: AsyncGenerator[service_pb2.FollowLogsResponse, None],
    word: str,
    *,
    limit: int,
    budget_bytes: int = BUDGET_BYTES,
) -> tuple[LineSearch, bool]:
    """Search a log in threads, within limits; return the search, and if the end was reached.

    Args:
        pieces: the log from some offset on; it is closed.
        word: text to find, in upper or lower case.
        limit: most lines to find.
        budget_bytes: bytes after which the search ends early.
    """
    search = LineSearch(word, limit)
    left = budget_bytes
    async with aclosing(pieces):
        async for piece in pieces:
            await asyncio.to_thread(search.feed, piece.data, piece.offset)
            left -= len(piece.data)
            if search.full or left <= 0:
                return search, False
    await asyncio.to_thread(search.finish)
    return search, not search.full
