"""Demand for a fleet that is started only when a pool needs it."""

from collections.abc import Callable
from contextlib import aclosing

from nni_proto.runner.v1 import pool_pb2
from svc_common.messaging.ports import LastValues
from svc_common.subjects import ALL_POOL_NEEDS, ALL_POOL_STATES, pool_of_subject


async def demand_fleet(values: LastValues, demand: Callable[[], None]) -> None:
    """Call back once, when a pool is open, or closed and not removed from its platforms.

    Args:
        values: needs and states of pools.
        demand: starts the fleet.
    """
    cleaned = {}
    for value in await values.read(ALL_POOL_STATES):
        state = pool_pb2.PoolState.FromString(value.payload)
        if state.cleaned:
            cleaned[pool_of_subject(value.subject)] = state.log_sequence
    async with aclosing(values.follow(ALL_POOL_NEEDS)) as needs:
        async for value in needs:
            need = pool_pb2.PoolNeed.FromString(value.payload)
            pool = pool_of_subject(value.subject)
            if not (need.closed and cleaned.get(pool, -1) >= need.log_sequence):
                demand()
                return
