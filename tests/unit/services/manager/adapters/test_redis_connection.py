import asyncio

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, OutOfMemoryError

from svc_common.errors import PermissionDeniedError, ResourceExhaustedError, UnavailableError
from svc_manager.adapters.redis_connection import RedisConnection, raw

URL = "redis://user:hush@127.0.0.1:1/0"


@pytest.mark.parametrize(
    ("raised", "translated"),
    [
        (NoPermissionError("no"), PermissionDeniedError),
        (OutOfMemoryError("full"), ResourceExhaustedError),
        (RedisConnectionError("away"), UnavailableError),
    ],
)
async def test_errors_of_the_driver_are_translated_without_the_password(
    raised: Exception, translated: type[Exception]
) -> None:
    async with RedisConnection(URL) as redis:
        with pytest.raises(translated, match=r"Redis at 127\.0\.0\.1:1") as caught, redis.errors():
            raise raised

    assert "hush" not in str(caught.value)


async def test_a_cancelled_task_ends_even_if_the_driver_raises_a_time_out() -> None:
    async with RedisConnection(URL) as redis:

        async def call() -> None:
            task = asyncio.current_task()
            assert task is not None
            with redis.errors():
                task.cancel()
                raise RedisConnectionError("the driver hides the cancellation")

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(call(), name="cancelled")


def test_replies_are_bytes() -> None:
    assert raw("a") == raw(b"a") == b"a"
