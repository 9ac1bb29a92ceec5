"""Use case: removal of what the installation has left on platforms, without a pool that owns it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from weakref import WeakValueDictionary

from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.leftovers import Leftover, unused, well_named
from svc_trial_runner.fleet.domain.needs import PoolPlatform
from svc_trial_runner.fleet.ports import (
    CredentialStore,
    PlatformAdapter,
    PlatformCleaner,
    PlatformError,
    PlatformOpener,
)

CLOSE_LIMIT_S: Final = 10.0
"""Longest close of an adapter: what waits for the removal of leftovers must not wait for it."""
LivingPools = Callable[[], Awaitable[Collection[str]]]
"""Returns the names of all pools that exist, those that are being removed included."""


class LeftoverRemoval:
    """Use case that finds leftovers of no pool on a platform and removes them.

    The platform is asked before the pools: a pool that is made meanwhile has nothing in the list.
    The pools are asked again before each removal: a pool with the name of a removed one, or that of
    a resumed experiment, may be there since. One that comes later waits for the end of the removal
    (`wait_removed`) before it starts an agent.

    Args:
        opener: opens adapters.
        credentials: of agents, revoked with them.
        living_pools: reads the pools that exist.
    """

    def __init__(
        self, opener: PlatformOpener, credentials: CredentialStore, living_pools: LivingPools
    ) -> None:
        self._opener = opener
        self._credentials = credentials
        self._living_pools = living_pools
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def wait_removed(self, pool: str) -> None:
        """Wait without limit until no removal of a pool's leftovers is in progress.

        Args:
            pool: that `living_pools` returns from now on, so that no other removal begins.
        """
        async with self._lock(pool):
            pass

    async def clean(
        self, pool: str, key: str, section: PoolPlatform, *, dry_run: bool
    ) -> list[Leftover]:
        """Return the installation's leftovers on a platform; unless dry, remove those of no pool.

        May be repeated after a failure.

        Args:
            pool: name under which the platform is opened to be asked; no pool has it.
            key: of the section.
            section: of the platform.
            dry_run: True if nothing is removed.

        Raises:
            PlatformError: the platform cannot be reached, or its adapter cannot be asked.
        """
        asked = await self._open(pool, key, section)
        try:
            if not isinstance(asked, PlatformCleaner):
                raise PlatformError(
                    f"the adapter of platform {section.platform} cannot find what is left there",
                    "ask the authors of its package for the methods of PlatformCleaner",
                    permanent=True,
                )
            found = well_named(await asked.leftovers())
            removable = unused(found, await self._living_pools())
            removed: list[Leftover] = []
            if not dry_run:
                removed = await self._remove_all(removable, key, section)
                await asked.clean_rest()
                removable = removed
            return [
                replace(one, in_use=one not in removable, removed=one in removed) for one in found
            ]
        finally:
            await close_adapter(asked)

    async def _remove_all(
        self, leftovers: Sequence[Leftover], key: str, section: PoolPlatform
    ) -> list[Leftover]:
        """Remove leftovers that still belong to no pool, one by one; return the removed ones."""
        removed = []
        for one in leftovers:
            async with self._lock(one.pool):
                if unused([one], await self._living_pools()):
                    await self._remove(one, key, section)
                    removed.append(one)
        return removed

    async def _remove(self, leftover: Leftover, key: str, section: PoolPlatform) -> None:
        key = leftover.key or key
        adapter = await self._open(leftover.pool, key, section)
        try:
            await adapter.clean()
        finally:
            await close_adapter(adapter)
        await self._opener.forget(leftover.pool, key)
        await self._revoke(leftover.own_agents)
        get_logger().info("leftovers removed", pool=leftover.pool, platform=section.platform)

    def _lock(self, pool: str) -> asyncio.Lock:
        """Return the lock of a pool's removals; create it at the first use."""
        return self._locks.setdefault(pool, asyncio.Lock())

    async def _open(self, pool: str, key: str, section: PoolPlatform) -> PlatformAdapter:
        return await self._opener.open(
            pool, key, section.platform, section.options, section.secrets_id
        )

    async def _revoke(self, names: list[AgentName]) -> None:
        try:
            await self._credentials.revoke(names)
        except ServiceError as error:
            get_logger().warning("credentials not revoked", error=error.message)


async def close_adapter(adapter: PlatformAdapter) -> None:
    """Close an adapter whose work is done, within `CLOSE_LIMIT_S`; ignore its errors."""
    with suppress(Exception):  # an adapter may be of others
        async with asyncio.timeout(CLOSE_LIMIT_S):
            await adapter.aclose()
