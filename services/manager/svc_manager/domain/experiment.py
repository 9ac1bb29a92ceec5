"""States of an experiment, their transitions, and its settings and budgets."""

from dataclasses import dataclass
from enum import IntEnum

from nni_wire.pools import LOCAL_POOL
from svc_manager.domain.agent_limits import NO_AGENT_LIMITS, AgentLimits
from svc_manager.domain.values import DEFAULT_METRIC, OptimizeMode

DEFAULT_TRIAL_RETRIES = 2
"""Default number of retries of a trial that is lost with its agent."""


class ExperimentState(IntEnum):
    """States of an experiment, INITIALIZED to STOPPED or VIEWED; numbers of the proto contract."""

    INITIALIZED = 1
    RUNNING = 2
    NO_MORE_TRIAL = 3
    TUNER_NO_MORE_TRIAL = 4
    DONE = 5
    ERROR = 6
    STOPPING = 7
    STOPPED = 8
    VIEWED = 9


_S = ExperimentState

TICKING_STATES = frozenset({_S.RUNNING, _S.NO_MORE_TRIAL, _S.TUNER_NO_MORE_TRIAL})
"""States in which time counts against the maximum duration."""

TUNING_STATES = TICKING_STATES | {_S.DONE}
"""States that follow from trials and budgets alone, see `budget.target_state`."""

CLOSED_STATES = frozenset({_S.STOPPED, _S.VIEWED})
"""States in which nothing happens until the experiment is resumed."""

TRANSITIONS: dict[ExperimentState, frozenset[ExperimentState]] = {
    _S.INITIALIZED: frozenset({_S.RUNNING, _S.ERROR, _S.STOPPING}),
    _S.RUNNING: frozenset(
        {_S.NO_MORE_TRIAL, _S.TUNER_NO_MORE_TRIAL, _S.DONE, _S.ERROR, _S.STOPPING}
    ),
    _S.NO_MORE_TRIAL: frozenset(
        {_S.RUNNING, _S.TUNER_NO_MORE_TRIAL, _S.DONE, _S.ERROR, _S.STOPPING}
    ),
    _S.TUNER_NO_MORE_TRIAL: frozenset(
        {_S.RUNNING, _S.NO_MORE_TRIAL, _S.DONE, _S.ERROR, _S.STOPPING}
    ),
    # A budget was raised, or the space or the data changed.
    _S.DONE: frozenset({_S.RUNNING, _S.ERROR, _S.STOPPING}),
    _S.ERROR: frozenset({_S.STOPPING}),
    _S.STOPPING: frozenset({_S.STOPPED}),
    _S.STOPPED: frozenset({_S.INITIALIZED, _S.VIEWED}),
    _S.VIEWED: frozenset({_S.STOPPED, _S.INITIALIZED}),
}
"""All transitions that a log may contain; creation sets INITIALIZED."""


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """Fixed settings of an experiment that decisions need: pool, retries, objective, debug."""

    pool: str = LOCAL_POOL
    """Pool of agents for its trials."""
    platforms: tuple[str, ...] = ()
    """Platforms that feed the pool, each once."""
    max_trial_retries: int = DEFAULT_TRIAL_RETRIES
    retry_failed_trials: int = 0
    include_intermediate_results: bool = False
    objective: str = DEFAULT_METRIC
    """Metric name of the first objective."""
    optimize_mode: OptimizeMode = OptimizeMode.MAXIMIZE
    limits: tuple[tuple[str, float], ...] = ()
    """Metrics with their largest feasible value; a result beyond one is never the best."""
    debug: bool = False
    """Whether debug lines go to the experiment's log."""
    algorithm_service: str = ""
    """Service that answers requests for parameters; empty: the dispatcher."""
    least_concurrency: int = 1
    """Least concurrency that a change may set; 0 pauses an exploration."""
    lease_ms: int = 0
    """Lease of a trial that a caller runs; 0: agents run the trials."""

    @property
    def has_callers(self) -> bool:
        """Whether callers run the trials, instead of agents."""
        return self.lease_ms > 0


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of an experiment that updates may change: concurrency, trials, duration, agents."""

    trial_concurrency: int = 1
    """Maximum live trials, >= 1; 0 is the pause of an exploration."""
    max_trial_number: int | None = None
    """Maximum trials ever created; None: no limit."""
    max_duration_ms: int | None = None
    """Maximum time RUNNING or with live trials; None: no limit."""
    agents: AgentLimits = NO_AGENT_LIMITS
    """Of the agents of its own; as the sections of its platforms give them at first."""
