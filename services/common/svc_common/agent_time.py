"""Time of the agents of a pool, which a wall clock measures between two processes of the fleet."""

from datetime import datetime, timedelta
from typing import Final

from nni_proto.runner.v1 import pool_pb2

SILENCE_LIMIT: Final = timedelta(minutes=10)
"""Longest silence of the fleet that counts as time of agents.

A longer one may be a step of the clock; the fleet starts again sooner, and while it runs it
publishes each minute.
"""


def counted_until(state: pool_pb2.PoolState, now: datetime) -> datetime:
    """Return the end of a pool's agent time so far: now, up to `SILENCE_LIMIT` after its report.

    That is now, but neither before the fleet published the state nor `SILENCE_LIMIT` after it.

    Args:
        state: as the fleet published it last.
        now: time of day; aware, UTC.
    """
    if not state.HasField("published_at"):
        return now  # of an earlier version
    published_at = state.published_at.ToDatetime(now.tzinfo)
    return published_at + min(max(now - published_at, timedelta()), SILENCE_LIMIT)
