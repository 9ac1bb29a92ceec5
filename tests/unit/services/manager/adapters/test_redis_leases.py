"""`RedisLeases` without a server; the conformance tests run it with one."""

import pytest

from svc_common.errors import UnavailableError
from svc_manager.adapters.redis_connection import RedisConnection
from svc_manager.adapters.redis_leases import RedisLeases
from svc_manager.domain.lease import Lease

CLOSED_PORT = "redis://127.0.0.1:1/0"


async def test_leases_cannot_be_used_while_the_server_is_away() -> None:
    async with RedisConnection(CLOSED_PORT) as redis:
        leases = RedisLeases(redis)

        with pytest.raises(UnavailableError, match=r"Redis at 127\.0\.0\.1:1"):
            await leases.acquire("e1", "one", 3.0)
        with pytest.raises(UnavailableError):
            await leases.renew([Lease("e1", "one", 1)], 3.0)
        with pytest.raises(UnavailableError):
            await leases.holders()
