from datetime import UTC, datetime

import pytest

from nni_proto.runner.v1 import pool_pb2, task_pb2
from nni_wire.values import to_value
from svc_common.errors import InvalidArgumentError
from svc_trial_runner.fleet.converters import (
    drain_to_bytes,
    need_from_bytes,
    presence_from_bytes,
    restored_from_bytes,
    state_to_bytes,
)
from svc_trial_runner.fleet.domain.needs import IDLE_S, PoolLimits, PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import PresenceReceived
from svc_trial_runner.fleet.domain.pool_states import AgentStatus, PoolAgent, PoolState
from tests.support.fleet_pools import POOL, agent

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_need_is_read() -> None:
    message = pool_pb2.PoolNeed(
        pool=POOL,
        waiting_count=3,
        running_count=2,
        concurrency=8,
        gpus_per_trial=0,
        closed=True,
        log_sequence=7,
    )
    message.platforms.add(platform="slurm", options=to_value({"slots": 2}), secrets_id="s1")
    message.limits.max_agents = 4
    message.limits.idle.FromSeconds(5)

    need = need_from_bytes(message.SerializeToString())

    assert (need.pool, need.waiting, need.running, need.concurrency) == (POOL, 3, 2, 8)
    assert (need.gpus_per_trial, need.closed, need.log_sequence) == (0, True, 7)
    assert need.platforms == (PoolPlatform("slurm", {"slots": 2}, "s1"),)
    assert need.limits == PoolLimits(0, 4, 5.0)


def test_unset_fields_of_a_need_have_their_defaults() -> None:
    message = pool_pb2.PoolNeed(pool=POOL, platforms=[pool_pb2.PoolPlatform(platform="local")])

    need = need_from_bytes(message.SerializeToString())

    assert need.gpus_per_trial is None
    assert need.limits == PoolLimits(0, None, IDLE_S)
    assert need.platforms == (PoolPlatform("local", {}),)


def test_damaged_need_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="PoolNeed"):
        need_from_bytes(b"\xff\xff")


def test_options_that_are_no_map_are_refused() -> None:
    message = pool_pb2.PoolNeed(pool=POOL)
    message.platforms.add(platform="slurm", options=to_value([1]))

    with pytest.raises(InvalidArgumentError, match="options of slurm"):
        need_from_bytes(message.SerializeToString())


@pytest.mark.parametrize("status", list(AgentStatus))
def test_state_is_taken_over_by_the_next_process(status: AgentStatus) -> None:
    one = PoolAgent(agent(3), "slurm", status, slots=2, ordered_s=90.0)
    state = PoolState(POOL, (one,), cleaned=True, last_number=5)

    assert restored_from_bytes(state_to_bytes(state, NOW, 100.0)) == state.restored()


def test_times_of_a_state_are_times_of_day() -> None:
    one = PoolAgent(agent(3), "slurm", AgentStatus.PENDING, 1, ordered_s=90.0, reason="Priority")
    state = PoolState(POOL, (one,), reason="no", next_launch_s=130.0)

    message = pool_pb2.PoolState.FromString(state_to_bytes(state, NOW, 100.0))

    assert message.agents[0].launched_at.ToDatetime(UTC) == NOW.replace(
        hour=11, minute=59, second=50
    )
    assert message.next_launch_at.ToDatetime(UTC) == NOW.replace(second=30)
    assert message.agents[0].reason == "Priority"


def test_foreign_names_in_a_state_are_ignored() -> None:
    message = pool_pb2.PoolState(agents=[pool_pb2.PoolAgent(name="runner-x")])

    assert restored_from_bytes(message.SerializeToString()).agents == ()


def test_presence_is_read() -> None:
    message = task_pb2.RunnerPresence(draining=True, trials=[task_pb2.HeldTrial()])

    found = presence_from_bytes(agent(1), message.SerializeToString())

    assert found == PresenceReceived(agent(1), 1, draining=True)


def test_order_to_drain_is_a_control_message() -> None:
    message = task_pb2.RunnerControl.FromString(drain_to_bytes())

    assert message.WhichOneof("kind") == "drain_runner"
