"""Use cases on agents."""

from nni_proto.experiment.v1 import experiment_service_pb2
from nni_proto.runner.v1 import runner_service_pb2
from svc_common import subjects
from svc_common.errors import NotFoundError
from svc_common.messaging.ports import Signals
from svc_manager.agents.liveness import Agent, AgentMonitor
from svc_manager.agents.versions import fit
from svc_manager.converters.tasks import drain_to_bytes
from svc_manager.pagination import Page, page_behind
from svc_manager.pagination import page_size as sized


class AgentDirectory:
    """Use cases that list agents, find those of other versions, and drain them.

    Args:
        agents: monitor of the agents.
        signals: sends control messages.
    """

    def __init__(self, agents: AgentMonitor, signals: Signals) -> None:
        self._agents = agents
        self._signals = signals

    async def list(
        self, *, page_size: int = 0, page_token: str = ""
    ) -> Page[experiment_service_pb2.RunnerSummary]:
        """Return a page of the live agents' summaries, sorted by id; 100 if no size is given."""
        size = sized(page_size, default=100, limit=1000)
        agents = self._agents.living()
        page = page_behind(agents, lambda one: one.presence.runner_id, page_token, size, str)
        return Page([_summary(agent) for agent in page.items], page.next_token, page.total)

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
