"""Search of a log with bounded work."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from svc_manager.usecases.log_searches import search_lines


async def pieces() -> AsyncGenerator[pb.FollowLogsResponse, None]:
    for number in range(4):
        yield pb.FollowLogsResponse(data=f"word {number}\n".encode(), offset=7 * number)


async def test_whole_log_is_searched_within_limit_and_budget() -> None:
    search, complete = await search_lines(pieces(), "word", limit=9)

    assert [line.offset for line in search.found] == [0, 7, 14, 21]
    assert complete


async def test_search_ends_early_by_its_budget_and_by_its_limit() -> None:
    by_budget, ended = await search_lines(pieces(), "word", limit=9, budget_bytes=10)
    by_limit, found_all = await search_lines(pieces(), "word", limit=3)

    assert (by_budget.searched_to, ended) == (14, False)
    assert (by_limit.searched_to, found_all) == (21, False)
