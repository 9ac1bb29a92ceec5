"""Demand for a fleet that is started only when a pool needs it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValue, LastValues
from svc_common.subjects import (
    ALL_POOL_STATES,
    ALL_POOLS,
    pool_check_subject,
    pool_definition_subject,
    pool_need_subject,
    pool_of_subject,
)


async def demand_fleet(values: LastValues, demand: Callable[[], None]) -> None:
    """Wait without limit for a pool message that needs the fleet; then call `demand` once.

    Args:
        values: messages of pools.
        demand: starts the fleet.
    """
    cleaned = {}
    for value in await values.read(ALL_POOL_STATES):
        with _unreadable_skipped(value):
            state = pool_pb2.PoolState.FromString(value.payload)
            if state.cleaned:
                cleaned[pool_of_subject(value.subject)] = state.log_sequence
    async with aclosing(values.follow(ALL_POOLS)) as messages:
        async for value in messages:
            with _unreadable_skipped(value):
                if _needs_fleet(value, cleaned):
                    demand()
                    return


@contextmanager
def _unreadable_skipped(value: LastValue) -> Iterator[None]:
    """Log a DecodeError of the block instead of raising it."""
    try:
        yield
    except DecodeError as error:
        get_logger().warning("message cannot be read", subject=value.subject, error=str(error))


def _needs_fleet(value: LastValue, cleaned: Mapping[str, int]) -> bool:
    """Return whether a pool's need, definition or check still requires work of the fleet.

    Args:
        value: the message.
        cleaned: by pool, the sequence of the need after which nothing of it was left.
    """
    pool = pool_of_subject(value.subject)
    if value.subject == pool_need_subject(pool):
        need = pool_pb2.PoolNeed.FromString(value.payload)
        if need.closed and need.pool not in {"", pool}:
            return False  # the used pool has a definition
        return not (need.closed and cleaned.get(pool, -1) >= need.log_sequence)
    if value.subject == pool_definition_subject(pool):
        definition = pool_pb2.PoolDefinition.FromString(value.payload)
        return not (definition.removed and cleaned.get(pool, -1) >= definition.revision)
    if value.subject == pool_check_subject(pool):
        check = pool_pb2.PoolCheck.FromString(value.payload)
        return check.deadline.ToDatetime(UTC) > datetime.now(UTC)
    return False
