"""Removal of the pool of a deleted experiment: its need, state, queue and secrets."""

import asyncio
from contextlib import aclosing
from datetime import timedelta
from typing import Final

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2
from nni_wire.pools import experiment_pool
from svc_common import subjects
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValues, TaskQueue
from svc_manager.ports import SecretStore

CLEANING_LIMIT: Final = timedelta(seconds=30)
"""Longest wait for the fleet to remove a pool from its platforms: a machine may be gone for ever.
Clients wait for a deletion for longer."""


class PoolRemover:
    """Remover of an experiment's pool, once the fleet has removed it from its platforms.

    The fleet needs the secrets to reach the platforms, so they are deleted last.

    Args:
        last_values: needs and states.
        tasks: queue of the pool.
        secrets: secret values of the pool.
        limit: longest wait for the fleet.
    """

    def __init__(
        self,
        last_values: LastValues,
        tasks: TaskQueue,
        secrets: SecretStore,
        limit: timedelta = CLEANING_LIMIT,
    ) -> None:
        self._last_values = last_values
        self._tasks = tasks
        self._secrets = secrets
        self._limit = limit

    async def remove(self, experiment_id: str) -> None:
        """Wait, within a limit, for the fleet to remove a pool; delete messages, queue, secrets."""
        pool = experiment_pool(experiment_id)
        need_subject = subjects.pool_need_subject(pool)
        state_subject = subjects.pool_state_subject(pool)
        needs = await self._last_values.read(need_subject)
        if needs:
            sequence = _need_sequence(needs[-1].payload)
            if await self._last_values.read(state_subject):  # else there is no fleet
                await self._wait_cleaned(pool, sequence)
            await self._last_values.delete(need_subject)
            await self._last_values.delete(state_subject)
            await self._last_values.delete(subjects.pool_invitations_subject(pool))
            await self._last_values.delete(subjects.pool_front_subject(pool))
            await self._tasks.close_pool(pool)
        await self._secrets.remove_pool(pool)

    async def _wait_cleaned(self, pool: str, log_sequence: int) -> None:
        """Wait, within a limit, until the fleet has removed the pool; log if it has not."""
        state = pool_pb2.PoolState()
        try:
            async with (
                asyncio.timeout(self._limit.total_seconds()),
                aclosing(self._last_values.follow(subjects.pool_state_subject(pool))) as states,
            ):
                async for value in states:
                    state = pool_pb2.PoolState.FromString(value.payload)
                    if state.cleaned and state.log_sequence >= log_sequence:
                        return
        except (TimeoutError, DecodeError):
            get_logger().warning(
                "pool is deleted before its platforms are clean",
                pool=pool,
                reason=state.reason,
                machines=sorted({agent.machine for agent in state.agents})[:20],
            )


def _need_sequence(payload: bytes) -> int:
    return pool_pb2.PoolNeed.FromString(payload).log_sequence
