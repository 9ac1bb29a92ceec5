"""The states of an experiment, the one table of their changes, and its fixed settings."""

from dataclasses import dataclass
from enum import IntEnum

from svc_manager.domain.values import DEFAULT_METRIC, OptimizeMode

DEFAULT_TRIAL_RETRIES = 2
"""How often a trial that was lost with its agent is run again."""


class ExperimentState(IntEnum):
    """The life of an experiment; the numbers are those of the contract."""

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
"""States in which time counts against the longest duration."""

TUNING_STATES = TICKING_STATES | {_S.DONE}
"""States that follow from trials and budgets alone; `budget.target_state` tells which."""

CLOSED_STATES = frozenset({_S.STOPPED, _S.VIEWED})
"""States in which nothing happens until somebody resumes it."""

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
"""Every change of state that a log may tell of; creation goes to INITIALIZED from nothing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What decisions need of the configuration; the part that no update changes."""

    pools: tuple[str, ...] = ("local",)
    """Pools of agents that take its trials, in turn."""
    max_trial_retries: int = DEFAULT_TRIAL_RETRIES
    retry_failed_trials: int = 0
    include_intermediate_results: bool = False
    objective: str = DEFAULT_METRIC
    """Name of the first objective's metric."""
    optimize_mode: OptimizeMode = OptimizeMode.MAXIMIZE
    debug: bool = False
    """Debug lines go to the experiment's log."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What updates may change."""

    trial_concurrency: int = 1
    """Most trials live at once, >= 1."""
    max_trial_number: int | None = None
    """Most trials ever created; None: no limit."""
    max_duration_ms: int | None = None
    """Longest time RUNNING or with live trials; None: no limit."""
