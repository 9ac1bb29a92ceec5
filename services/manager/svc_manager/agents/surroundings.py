"""What explanations of trials need beside the log: who is there."""

from svc_common.clock import Clock
from svc_manager.agents.liveness import AgentWatch
from svc_manager.domain.explanation import Around
from svc_manager.domain.trial import Trial


class Surroundings:
    """Looks around at the moment of a question.

    Args:
        agents: those that have been heard of.
        clock: tells the time.
    """

    def __init__(self, agents: AgentWatch, clock: Clock) -> None:
        self._agents = agents
        self._clock = clock

    def around(self, experiment_id: str, trial: Trial | None, bus_trouble: str) -> Around:
        """Give what surrounds a trial now.

        Args:
            experiment_id: whose trial.
            trial: None: one that does not exist yet.
            bus_trouble: why nothing can be stored; empty: it can.
        """
        return Around(
            now_ms=int(self._clock.now().timestamp() * 1000),
            agents=self._agents.facts(experiment_id, trial),
            bus_trouble=bus_trouble,
        )
