"""REST records of agents and pools, with the field names of `nnictl runner list --json`."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from nni_proto.experiment.v1 import experiment_service_pb2
from nni_proto.runner.v1 import pool_pb2
from svc_manager.web.records.scalars import to_ms

_PREFIX: Final = "POOL_AGENT_STATE_"
_CONNECTED: Final = "CONNECTED"
"""State of an agent that no platform has started."""


def runner(message: experiment_service_pb2.RunnerSummary) -> dict[str, Any]:
    """Convert an agent's summary to JSON: platform, pool, state, slots, GPUs, trials."""
    return {
        "id": message.runner_id,
        "pool": message.pool,
        "platform": message.platform,
        "state": _state(message),
        "reason": message.reason,
        "slots": message.slots,
        "hostName": message.host_name,
        "trialCount": message.trial_count,
        "gpuCount": message.gpu_count,
        "draining": message.draining,
        "lastSeen": to_ms(message.last_seen_at) if message.HasField("last_seen_at") else None,
        "version": message.version,
        "trials": [
            {
                "experimentId": trial.experiment_id,
                "trialId": trial.trial_id,
                "attempt": trial.attempt,
            }
            for trial in message.trials
        ],
    }


def _state(message: experiment_service_pb2.RunnerSummary) -> str:
    if message.draining:
        return "DRAINING"
    if not message.state:
        return _CONNECTED
    return pool_pb2.PoolAgentState.Name(message.state).removeprefix(_PREFIX)


def pool(state: pool_pb2.PoolState) -> dict[str, Any]:
    """Convert the state of a pool to JSON: agents by state, platforms, why it does not grow."""
    names = pool_pb2.PoolAgentState.Name
    counts = Counter(names(agent.state).removeprefix(_PREFIX) for agent in state.agents)
    next_launch = to_ms(state.next_launch_at) if state.HasField("next_launch_at") else None
    return {
        "name": state.pool,
        "platforms": sorted({agent.platform for agent in state.agents if agent.platform}),
        "agentCounts": dict(counts),
        "reason": state.reason,
        "remedy": state.remedy,
        "nextLaunch": next_launch,
    }
