"""Messages of pools and values of the domain, both ways."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2, task_pb2
from nni_wire.values import from_value
from svc_common.errors import InvalidArgumentError
from svc_trial_runner.fleet.domain.agents import AgentName, parse_agent_name
from svc_trial_runner.fleet.domain.needs import IDLE_S, PoolLimits, PoolNeed, PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import (
    PresenceReceived,
    RestoredAgent,
    StateRestored,
)
from svc_trial_runner.fleet.domain.pool_states import AgentStatus, PoolAgent, PoolState

_STATES: Final = {
    AgentStatus.LAUNCHING: pool_pb2.POOL_AGENT_STATE_LAUNCHING,
    AgentStatus.PENDING: pool_pb2.POOL_AGENT_STATE_PENDING,
    AgentStatus.STARTING: pool_pb2.POOL_AGENT_STATE_STARTING,
    AgentStatus.RUNNING: pool_pb2.POOL_AGENT_STATE_RUNNING,
    AgentStatus.SILENT: pool_pb2.POOL_AGENT_STATE_SILENT,
    AgentStatus.DRAINING: pool_pb2.POOL_AGENT_STATE_DRAINING,
}


def need_from_bytes(payload: bytes) -> PoolNeed:
    """Return the need in a message of the manager.

    Raises:
        InvalidArgumentError: the message is damaged, or the options of a platform are no map.
    """
    message = pool_pb2.PoolNeed()
    _parse(message, payload)
    limits = message.limits
    return PoolNeed(
        pool=message.pool,
        waiting=message.waiting_count,
        running=message.running_count,
        concurrency=message.concurrency,
        gpus_per_trial=message.gpus_per_trial if message.HasField("gpus_per_trial") else None,
        platforms=tuple(map(_platform, message.platforms)),
        limits=PoolLimits(
            limits.min_agents,
            limits.max_agents or None,
            limits.idle.ToTimedelta().total_seconds() if limits.HasField("idle") else IDLE_S,
        ),
        closed=message.closed,
        log_sequence=message.log_sequence,
    )


def _platform(message: pool_pb2.PoolPlatform) -> PoolPlatform:
    options: Any = from_value(message.options) if message.HasField("options") else {}
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(f"options of {message.platform}", "must be a map")
    return PoolPlatform(message.platform, options, message.secrets_id)


def state_to_bytes(state: PoolState, now: datetime, now_s: float) -> bytes:
    """Return the message of a pool's state.

    Args:
        state: of the pool.
        now: time of day.
        now_s: the same instant by the clock of the state.
    """
    message = pool_pb2.PoolState(
        pool=state.pool,
        agents=[_agent(agent, now, now_s) for agent in state.agents],
        reason=state.reason,
        remedy=state.remedy,
        cleaned=state.cleaned,
        log_sequence=state.log_sequence,
        last_number=state.last_number,
    )
    if state.next_launch_s is not None:
        message.next_launch_at.FromDatetime(now + timedelta(seconds=state.next_launch_s - now_s))
    return message.SerializeToString(deterministic=True)


def _agent(agent: PoolAgent, now: datetime, now_s: float) -> pool_pb2.PoolAgent:
    message = pool_pb2.PoolAgent(
        name=str(agent.name),
        platform=agent.platform,
        state=_STATES[agent.status],
        machine=agent.machine,
        reason=agent.reason,
        slots=agent.slots,
    )
    message.launched_at.FromDatetime(now + timedelta(seconds=agent.ordered_s - now_s))
    return message


def restored_from_bytes(payload: bytes) -> StateRestored:
    """Return the event of a new process from the message of the last one's state.

    Raises:
        InvalidArgumentError: the message is damaged.
    """
    message = pool_pb2.PoolState()
    _parse(message, payload)
    agents = []
    for agent in message.agents:
        name = parse_agent_name(agent.name)
        if name is not None:
            launching = agent.state == pool_pb2.POOL_AGENT_STATE_LAUNCHING
            agents.append(RestoredAgent(name, agent.platform, max(1, agent.slots), launching))
    return StateRestored(tuple(agents), message.last_number, message.cleaned, message.log_sequence)


def presence_from_bytes(name: AgentName, payload: bytes) -> PresenceReceived:
    """Return the presence of an agent whose name its subject has.

    Raises:
        InvalidArgumentError: the message is damaged.
    """
    message = task_pb2.RunnerPresence()
    _parse(message, payload)
    return PresenceReceived(name, len(message.trials), message.draining, message.leaving)


def drain_to_bytes() -> bytes:
    """Return the order to an agent to take no more trials."""
    return task_pb2.RunnerControl(drain_runner=task_pb2.DrainRunner()).SerializeToString()


def _parse(
    message: pool_pb2.PoolNeed | pool_pb2.PoolState | task_pb2.RunnerPresence, payload: bytes
) -> None:
    try:
        message.ParseFromString(payload)
    except DecodeError as error:
        raise InvalidArgumentError(type(message).__name__, "must be a proto message") from error
