"""`Leases` in Redis: each operation is one atomic script.

The hash `nni:{lease}s` holds `<expiry, ms since 1970> <epoch> <owner>` by name, so that one command
reads all leases; expiry is judged by the clock of the server alone.
`nni:{lease}:epoch:<name>` holds the last epoch, from which the next owner counts on; it is kept for
a day after the last owner, longer than any writer can be delayed. The braces put all keys on one
node of a cluster.
"""

from collections.abc import Collection
from typing import Final

from svc_manager.adapters.redis_connection import EPOCH_KEY, LEASES_KEY, RedisConnection, raw
from svc_manager.domain.lease import Lease

_EPOCH_KEPT_S: Final = 24 * 3600
_READ: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function held(name)
  local text = redis.call('HGET', KEYS[1], name)
  if not text then return nil end
  local space = string.find(text, ' ', 1, true)
  if tonumber(string.sub(text, 1, space - 1)) <= now then return nil end
  return string.sub(text, space + 1)
end
local function hold(name, ttl, lease)
  redis.call('HSET', KEYS[1], name, string.format('%d', now + ttl) .. ' ' .. lease)
end
"""
_ACQUIRE: Final = f"""{_READ}
local lease = held(ARGV[1])
local epoch = nil
if lease then
  local space = string.find(lease, ' ', 1, true)
  if string.sub(lease, space + 1) ~= ARGV[2] then return false end
  epoch = tonumber(string.sub(lease, 1, space - 1))
end
local above = tonumber(ARGV[4])
if epoch == nil or epoch <= above then
  epoch = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), above) + 1
end
redis.call('SET', KEYS[2], string.format('%d', epoch), 'EX', {_EPOCH_KEPT_S})
hold(ARGV[1], tonumber(ARGV[3]), string.format('%d', epoch) .. ' ' .. ARGV[2])
return epoch
"""
_RENEW: Final = f"""{_READ}
local lost = {{}}
for index = 2, #ARGV, 2 do
  if held(ARGV[index]) == ARGV[index + 1] then
    hold(ARGV[index], tonumber(ARGV[1]), ARGV[index + 1])
  else
    table.insert(lost, index)
  end
end
return lost
"""
_RELEASE: Final = f"""{_READ}
if held(ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
"""
_HOLDER: Final = f"""{_READ}
return held(ARGV[1])
"""
_HOLDERS: Final = f"""{_READ}
local found = {{}}
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  local lease = held(name)
  if lease then
    table.insert(found, name)
    table.insert(found, lease)
  else
    redis.call('HDEL', KEYS[1], name)
  end
end
return found
"""


class RedisLeases:
    """Adapter of `Leases` as entries of Redis hashes, changed atomically by Lua scripts.

    Args:
        connection: open.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        commands = connection.commands
        self._acquire = commands.register_script(_ACQUIRE)
        self._renew = commands.register_script(_RENEW)
        self._release = commands.register_script(_RELEASE)
        self._holder = commands.register_script(_HOLDER)
        self._holders = commands.register_script(_HOLDERS)

    async def acquire(self, name: str, owner: str, ttl_s: float, above: int = 0) -> Lease | None:
        """Acquire or extend a lease in Redis by a script; return it; None if another holds it."""
        with self._connection.errors():
            epoch = await self._acquire(
                keys=[LEASES_KEY, EPOCH_KEY + name], args=[name, owner, _ms(ttl_s), above]
            )
        return None if epoch is None else Lease(name, owner, int(epoch))

    async def renew(self, leases: Collection[Lease], ttl_s: float) -> list[Lease]:
        """Extend leases in Redis by one script; return those that were lost."""
        asked = list(leases)
        pairs = [text for lease in asked for text in (lease.name, _text(lease))]
        with self._connection.errors():
            lost = await self._renew(keys=[LEASES_KEY], args=[_ms(ttl_s), *pairs])
        return [asked[int(index) // 2 - 1] for index in lost]

    async def release(self, lease: Lease) -> None:
        """Release a lease; do nothing if it is not held any more."""
        with self._connection.errors():
            await self._release(keys=[LEASES_KEY], args=[lease.name, _text(lease)])

    async def holder(self, name: str) -> Lease | None:
        """Return the unexpired lease of this name from Redis; None: no owner holds it."""
        with self._connection.errors():
            held = await self._holder(keys=[LEASES_KEY], args=[name])
        return None if held is None else _lease(name, raw(held).decode())

    async def holders(self) -> dict[str, Lease]:
        """Return all unexpired leases in Redis as {name: lease}; delete the expired ones."""
        with self._connection.errors():
            found = await self._holders(keys=[LEASES_KEY])
        texts = [raw(text).decode() for text in found]
        return {
            name: _lease(name, held) for name, held in zip(texts[::2], texts[1::2], strict=True)
        }


def _lease(name: str, text: str) -> Lease:
    epoch, _, owner = text.partition(" ")
    return Lease(name, owner, int(epoch))


def _text(lease: Lease) -> str:
    return f"{lease.epoch} {lease.owner}"


def _ms(duration_s: float) -> int:
    return max(1, round(duration_s * 1000))
