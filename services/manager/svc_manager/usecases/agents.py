"""Use cases on agents."""

from collections.abc import Sequence

from nni_proto.experiment.v1 import experiment_service_pb2
from nni_proto.runner.v1 import pool_pb2, runner_service_pb2
from svc_common import subjects
from svc_common.errors import NotFoundError
from svc_common.messaging.ports import Signals
from svc_manager.agents.liveness import Agent, AgentMonitor
from svc_manager.agents.pool_states import PoolStates
from svc_manager.agents.versions import fit
from svc_manager.converters.tasks import drain_to_bytes
from svc_manager.pagination import Page, page_behind
from svc_manager.pagination import page_size as sized


class AgentDirectory:
    """Use cases that list agents, find those of other versions, and drain them.

    Args:
        agents: monitor of the agents.
        pools: agents of platforms, those included that are not connected yet.
        signals: sends control messages.
    """

    def __init__(self, agents: AgentMonitor, pools: PoolStates, signals: Signals) -> None:
        self._agents = agents
        self._pools = pools
        self._signals = signals

    async def list(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[experiment_service_pb2.RunnerSummary]:
        """Return a page of connected and platform-started agents' summaries by id; default 100.

        They are the agents that are connected, and those that platforms have or are asked for.
        """
        size = sized(page_size, default=100, limit=1000)
        summaries = {agent.presence.runner_id: _summary(agent) for agent in self._agents.living()}
        for pool, ordered in self._pools.agents():
            found = summaries.setdefault(ordered.name, _named(ordered.name, pool))
            _add_platform(found, ordered)
        rows = [summary for _, summary in sorted(summaries.items())]
        return page_behind(rows, lambda one: one.runner_id, page_token, size, str)

    def pool_states(self) -> Sequence[pool_pb2.PoolState]:
        """Return the last known states of all pools, by name."""
        return sorted(self._pools.states(), key=lambda state: state.pool)

    def other_versions(self, version: str) -> dict[str, str]:
        """Return {agent id: version} of live agents with an incompatible version."""
        return {
            agent.presence.runner_id: agent.presence.version
            for agent in self._agents.living()
            if not fit(agent.presence.version, version)
        }

    async def drain(self, runner_id: str, request_id: str = "") -> None:
        """Send an agent the order to pull no more tasks and to end after its last trial.

        Raises:
            NotFoundError: there is no such agent.
        """
        del request_id
        if self._agents.get(runner_id) is None:
            raise NotFoundError("runner", runner_id)
        self._signals.publish(subjects.control_subject(runner_id), drain_to_bytes())


def _named(runner_id: str, pool: str) -> experiment_service_pb2.RunnerSummary:
    return experiment_service_pb2.RunnerSummary(runner_id=runner_id, pool=pool)


def _add_platform(summary: experiment_service_pb2.RunnerSummary, agent: pool_pb2.PoolAgent) -> None:
    """Write platform, state, slots, reason and machine of a platform's agent into its summary."""
    summary.platform = agent.platform
    summary.state = agent.state
    summary.slots = agent.slots
    summary.reason = agent.reason
    summary.host_name = summary.host_name or agent.machine


def _summary(agent: Agent) -> experiment_service_pb2.RunnerSummary:
    presence = agent.presence
    summary = experiment_service_pb2.RunnerSummary(
        runner_id=presence.runner_id,
        pool=presence.pool,
        host_name=presence.host_name,
        grpc_address=presence.grpc_address,
        trial_count=len(presence.trials),
        gpu_count=presence.gpu_count,
        draining=presence.draining,
        version=presence.version,
        trials=[
            runner_service_pb2.RunnerTrial(
                experiment_id=held.experiment_id, trial_id=held.trial_id, attempt=held.attempt
            )
            for held in presence.trials
        ],
    )
    summary.last_seen_at.FromMilliseconds(agent.seen_at_ms)
    return summary
