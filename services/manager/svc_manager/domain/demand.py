"""Demand of an experiment for agents in its pool, from its state alone."""

from dataclasses import dataclass

from svc_manager.domain.agent_limits import NO_AGENT_LIMITS, AgentLimits
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState


@dataclass(frozen=True, slots=True)
class ExperimentDemand:
    """Attempts that an experiment's pool has to run, whether others may come, limits of agents."""

    waiting_count: int
    """Attempts that no agent has started."""
    running_count: int
    """Attempts that agents run, those of agents that have fallen silent included."""
    concurrency: int
    """Most trials at once."""
    closed: bool
    """True if no trial comes any more, unless the experiment is resumed."""
    limits: AgentLimits = NO_AGENT_LIMITS
    """Of its agents, if it has agents of its own."""


def demand_of(experiment: Experiment) -> ExperimentDemand:
    """Return an experiment's demand: attempts, concurrency, closed or not, limits of agents."""
    waiting = experiment.counts[TrialState.WAITING]
    # After an error live trials run to their ends and none is created.
    failed = experiment.state is ExperimentState.ERROR and not experiment.live
    return ExperimentDemand(
        waiting_count=waiting,
        running_count=len(experiment.live) - waiting,
        concurrency=experiment.budget.trial_concurrency,
        closed=failed or experiment.state in CLOSED_STATES,
        limits=experiment.budget.agents,
    )
