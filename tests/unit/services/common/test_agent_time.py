"""Until when the time of agents counts, whatever is done to the clock."""

from datetime import UTC, datetime, timedelta

import pytest

from nni_proto.runner.v1 import pool_pb2
from svc_common.agent_time import SILENCE_LIMIT, counted_until

PUBLISHED_AT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("silence", "counted"),
    [
        (timedelta(minutes=1), timedelta(minutes=1)),
        (timedelta(hours=2), SILENCE_LIMIT),
        (timedelta(days=3650), SILENCE_LIMIT),
        (timedelta(hours=-2), timedelta()),
        (timedelta(days=-20_000), timedelta()),
    ],
)
def test_no_more_than_a_limit_of_a_silence_counts(silence: timedelta, counted: timedelta) -> None:
    state = pool_pb2.PoolState()
    state.published_at.FromDatetime(PUBLISHED_AT)

    assert counted_until(state, PUBLISHED_AT + silence) == PUBLISHED_AT + counted


def test_state_of_an_earlier_version_counts_until_now() -> None:
    assert counted_until(pool_pb2.PoolState(), PUBLISHED_AT) == PUBLISHED_AT
