"""Conversion between protobuf messages of pools and domain values, both ways."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from nni_proto.runner.v1 import invitation_service_pb2, pool_pb2, task_pb2
from nni_wire.pools import LOCAL_POOL
from nni_wire.values import from_value
from svc_common.agent_time import counted_until
from svc_common.errors import InvalidArgumentError
from svc_common.messaging.decoding import decode_counted
from svc_common.rpc.message_parts import FEW_PARTS
from svc_trial_runner.enrolment import authority_fingerprint
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformProblem, parse_agent_name
from svc_trial_runner.fleet.domain.checks import CheckRequest
from svc_trial_runner.fleet.domain.invitations import Invitation
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.domain.needs import IDLE_S, PoolLimits, PoolNeed, PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import (
    PresenceReceived,
    RestoredAgent,
    StateRestored,
)
from svc_trial_runner.fleet.domain.pool_states import AgentStatus, PoolAgent, PoolState
from svc_trial_runner.fleet.domain.shared_pools import PoolDefinition
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError

_STATES: Final = {
    AgentStatus.LAUNCHING: pool_pb2.POOL_AGENT_STATE_LAUNCHING,
    AgentStatus.PENDING: pool_pb2.POOL_AGENT_STATE_PENDING,
    AgentStatus.STARTING: pool_pb2.POOL_AGENT_STATE_STARTING,
    AgentStatus.RUNNING: pool_pb2.POOL_AGENT_STATE_RUNNING,
    AgentStatus.SILENT: pool_pb2.POOL_AGENT_STATE_SILENT,
    AgentStatus.DRAINING: pool_pb2.POOL_AGENT_STATE_DRAINING,
}


def need_from_bytes(payload: bytes) -> PoolNeed:
    """Parse a `PoolNeed` message; raise InvalidArgumentError if damaged, or options are no map.

    Raises:
        InvalidArgumentError: the message is damaged, or the options of a platform are no map.
    """
    message = pool_pb2.PoolNeed()
    _parse(message, payload)
    return PoolNeed(
        pool=message.pool,
        waiting=message.waiting_count,
        running=message.running_count,
        concurrency=message.concurrency,
        gpus_per_trial=message.gpus_per_trial if message.HasField("gpus_per_trial") else None,
        platforms=tuple(map(_platform, message.platforms)),
        limits=_limits(message.limits),
        closed=message.closed,
        log_sequence=message.log_sequence,
    )


def _limits(message: pool_pb2.PoolLimits) -> PoolLimits:
    timed = message.HasField("max_agent_time")
    return PoolLimits(
        message.min_agents,
        message.max_agents or None,
        message.idle.ToTimedelta().total_seconds() if message.HasField("idle") else IDLE_S,
        message.max_agent_time.ToTimedelta().total_seconds() if timed else None,
        message.max_cost or None,
        message.cost_per_agent_hour or None,
    )


def _platform(message: pool_pb2.PoolPlatform) -> PoolPlatform:
    options: Any = from_value(message.options) if message.HasField("options") else {}
    if not isinstance(options, Mapping):
        raise InvalidArgumentError(f"options of {message.platform}", "must be a map")
    return PoolPlatform(message.platform, options, message.secrets_id)


def definition_from_bytes(payload: bytes) -> PoolDefinition:
    """Parse a `PoolDefinition` message, of a pool of the installation; raise if it is damaged.

    Raises:
        InvalidArgumentError: the message is damaged, or the options of a platform are no map.
    """
    message = pool_pb2.PoolDefinition()
    _parse(message, payload)
    return PoolDefinition(
        message.pool,
        tuple(map(_platform, message.platforms)),
        _limits(message.limits),
        draining=message.draining,
        removed=message.removed,
        revision=message.revision,
        created_at_ns=message.created_at.ToNanoseconds(),
    )


def check_from_bytes(payload: bytes) -> CheckRequest:
    """Parse a `PoolCheck` message, a request to check or clean platforms; raise if damaged.

    Raises:
        InvalidArgumentError: the message is damaged, or the options of a platform are no map.
    """
    message = pool_pb2.PoolCheck()
    _parse(message, payload)
    platforms = tuple(map(_platform, message.platforms))
    return CheckRequest(
        message.check_id,
        platforms,
        message.deadline.ToDatetime(UTC),
        cleans=message.HasField("cleaning"),
        dry_run=message.cleaning.dry_run,
    )


def problems_to_bytes(
    check_id: str,
    problems: Iterable[tuple[int, PlatformProblem]],
    leftovers: Iterable[tuple[int, Leftover]] = (),
) -> bytes:
    """Return a `PoolProblems` message, serialised: problems and leftovers by platform number.

    Args:
        check_id: of the request.
        problems: each with the number of its platform in the request.
        leftovers: as above; only of a cleaning.
    """
    found = [
        pool_pb2.PoolProblem(
            platform_index=index,
            field=one.field,
            rule=one.rule,
            value=one.value,
            remedy=one.remedy,
            permanent=one.permanent,
        )
        for index, one in problems
    ]
    left = [
        pool_pb2.PlatformLeftover(
            platform_index=index,
            pool=one.pool,
            agents=one.agents,
            in_use=one.in_use,
            removed=one.removed,
        )
        for index, one in leftovers
    ]
    answer = pool_pb2.PoolProblems(check_id=check_id, problems=found, leftovers=left)
    return answer.SerializeToString()


def invitations_from_bytes(payload: bytes) -> list[Invitation]:
    """Parse a `PoolInvitations` message to its invitations; raise if it is damaged.

    Raises:
        InvalidArgumentError: the message is damaged.
    """
    message = invitation_service_pb2.PoolInvitations()
    _parse(message, payload)
    return [
        Invitation(one.id, one.sha256, one.use_limit, one.expires_at.ToDatetime(UTC))
        for one in message.invitations
    ]


def front_to_bytes(
    pool: str, endpoint: FrontEndpoint | PlatformError, invitations: Iterable[Invitation]
) -> bytes:
    """Return a `PoolFront` message: address and fingerprint for enrolment, or why there is none.

    Args:
        pool: the pool.
        endpoint: of the open front, or why it is not open.
        invitations: that the fleet has read.
    """
    message = invitation_service_pb2.PoolFront(
        pool=pool, invitation_ids=[invitation.id for invitation in invitations]
    )
    if isinstance(endpoint, PlatformError):
        message.reason, message.remedy = endpoint.message, endpoint.remedy
    else:
        message.address = endpoint.address
        message.authority_sha256 = authority_fingerprint(endpoint.authority)
    return message.SerializeToString(deterministic=True)


def front_state_to_bytes(endpoint: FrontEndpoint | None) -> bytes:
    """Return a `PoolFront` message with the TLS front's address; without one if it is closed."""
    message = invitation_service_pb2.PoolFront(pool=LOCAL_POOL)
    if endpoint is not None:
        message.address = endpoint.address
        message.authority_sha256 = authority_fingerprint(endpoint.authority)
    return message.SerializeToString(deterministic=True)


def state_to_bytes(state: PoolState, now: datetime, now_s: float) -> bytes:
    """Return a pool's state as a `PoolState` message; seconds of a clock become times of day.

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
    message.ended_agent_time.FromTimedelta(timedelta(seconds=state.ended_agent_s))
    message.published_at.FromDatetime(now)
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
    if agent.counts_from_s is not None:
        message.started_at.FromDatetime(now + timedelta(seconds=agent.counts_from_s - now_s))
    return message


def restored_from_bytes(payload: bytes, now: datetime, now_s: float) -> StateRestored:
    """Parse the last process's `PoolState` message to the event that restores it; raise if damaged.

    Of the time since it was published no more than `SILENCE_LIMIT` counts as time of agents, until
    they are heard from.

    Args:
        payload: the message.
        now: time of day.
        now_s: the same instant by the clock of the process.

    Raises:
        InvalidArgumentError: the message is damaged.
    """
    message = pool_pb2.PoolState()
    _parse(message, payload)
    counted = counted_until(message, now)
    agents = []
    for agent in message.agents:
        name = parse_agent_name(agent.name)
        if name is not None:
            launching = agent.state == pool_pb2.POOL_AGENT_STATE_LAUNCHING
            counts_from_s = started_s = None
            if agent.HasField("started_at"):
                # A clock may have been set.
                started_at = agent.started_at.ToDatetime(now.tzinfo)
                counts_from_s = now_s - max(0.0, (counted - started_at).total_seconds())
                if counted < now:
                    started_s = now_s - (now - started_at).total_seconds()
            slots = max(1, agent.slots)
            agents.append(
                RestoredAgent(name, agent.platform, slots, launching, counts_from_s, started_s)
            )
    return StateRestored(
        tuple(agents),
        message.last_number,
        message.cleaned,
        message.log_sequence,
        message.ended_agent_time.ToTimedelta().total_seconds(),
    )


def presence_from_bytes(name: AgentName, payload: bytes) -> PresenceReceived:
    """Parse a `RunnerPresence` message of an agent named by its subject; raise if damaged.

    Raises:
        InvalidArgumentError: the message is damaged, or has too many parts.
    """
    try:
        message = decode_counted(task_pb2.RunnerPresence, payload, FEW_PARTS)
    except DecodeError as error:
        raise InvalidArgumentError(
            "RunnerPresence", "must be a proto message", remedy=str(error)
        ) from error
    return PresenceReceived(
        name,
        len(message.trials),
        message.draining,
        message.leaving,
        message.slots or None,
        message.uploads,
        message.running_time.ToTimedelta().total_seconds(),
    )


def drain_to_bytes() -> bytes:
    """Return the encoded order to an agent to take no more trials."""
    return task_pb2.RunnerControl(drain_runner=task_pb2.DrainRunner()).SerializeToString()


def slots_to_bytes(slots: int) -> bytes:
    """Return the encoded order to an agent to run another number of trials at once."""
    order = task_pb2.SetRunnerSlots(slots=slots)
    return task_pb2.RunnerControl(set_runner_slots=order).SerializeToString()


def _parse(message: Message, payload: bytes) -> None:
    try:
        message.ParseFromString(payload)
    except DecodeError as error:
        raise InvalidArgumentError(type(message).__name__, "must be a proto message") from error
