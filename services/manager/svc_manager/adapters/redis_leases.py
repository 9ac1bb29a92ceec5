"""`ports.Leases` in Redis: each step one script, so that no other manager can come between.

`nni:lease:{<name>}` holds `<epoch> <owner>` and expires by itself; `nni:epoch:{<name>}` holds the
last epoch and stays, so that the next owner counts on from there. The braces put both on one node
of a cluster.
"""

from typing import Final

from svc_manager.adapters.redis_connection import EPOCH_KEY, LEASE_KEY, RedisConnection, raw
from svc_manager.domain.lease import Lease

_ACQUIRE: Final = """
local held = redis.call('GET', KEYS[1])
local epoch = nil
if held then
  local space = string.find(held, ' ', 1, true)
  if string.sub(held, space + 1) ~= ARGV[1] then return false end
  epoch = tonumber(string.sub(held, 1, space - 1))
end
local above = tonumber(ARGV[3])
if epoch == nil or epoch <= above then
  epoch = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), above) + 1
  redis.call('SET', KEYS[2], string.format('%d', epoch))
end
redis.call('SET', KEYS[1], string.format('%d', epoch) .. ' ' .. ARGV[1], 'PX', ARGV[2])
return epoch
"""
_RENEW: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0
"""


class RedisLeases:
    """`ports.Leases` in Redis.

    Args:
        connection: open.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        commands = connection.commands
        self._acquire = commands.register_script(_ACQUIRE)
        self._renew = commands.register_script(_RENEW)
        self._release = commands.register_script(_RELEASE)

    async def acquire(self, name: str, owner: str, ttl_s: float, above: int = 0) -> Lease | None:
        """See `ports.Leases.acquire`."""
        with self._connection.errors():
            epoch = await self._acquire(
                keys=[_key(name), f"{EPOCH_KEY}{{{name}}}"], args=[owner, _ms(ttl_s), above]
            )
        return None if epoch is None else Lease(name, owner, int(epoch))

    async def renew(self, lease: Lease, ttl_s: float) -> bool:
        """See `ports.Leases.renew`."""
        with self._connection.errors():
            renewed = await self._renew(keys=[_key(lease.name)], args=[_text(lease), _ms(ttl_s)])
        return bool(renewed)

    async def release(self, lease: Lease) -> None:
        """See `ports.Leases.release`."""
        with self._connection.errors():
            await self._release(keys=[_key(lease.name)], args=[_text(lease)])

    async def holder(self, name: str) -> Lease | None:
        """See `ports.Leases.holder`."""
        with self._connection.errors():
            held = await self._connection.commands.get(_key(name))
        if held is None:
            return None
        epoch, _, owner = raw(held).decode().partition(" ")
        return Lease(name, owner, int(epoch))


def _key(name: str) -> str:
    return f"{LEASE_KEY}{{{name}}}"


def _text(lease: Lease) -> str:
    return f"{lease.epoch} {lease.owner}"


def _ms(duration_s: float) -> int:
    return max(1, round(duration_s * 1000))
