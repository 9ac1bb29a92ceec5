"""`RedisViews` without a server; the conformance tests run it with one."""

import pytest

from svc_common.errors import UnavailableError
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_views import RedisViews

CLOSED_PORT = "redis://127.0.0.1:1/0"


async def test_views_cannot_be_used_while_the_server_is_away() -> None:
    async with RedisConnection(CLOSED_PORT) as redis:
        views = RedisViews(redis)

        with pytest.raises(UnavailableError, match=r"Redis at 127\.0\.0\.1:1"):
            await views.put("e1", 1, b"view")
        with pytest.raises(UnavailableError):
            await views.get(["e1"])


async def test_no_question_needs_no_server() -> None:
    async with RedisConnection(CLOSED_PORT) as redis:
        assert await RedisViews(redis).get([]) == {}
