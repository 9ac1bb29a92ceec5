"""Actions on platforms, and events that change the state of a pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from svc_trial_runner.fleet.domain.agents import AgentName, LaunchFailure, PlatformAgent
from svc_trial_runner.fleet.domain.needs import PoolNeed


@dataclass(frozen=True, slots=True)
class PlannedAgent:
    """One agent to launch, without its credentials."""

    name: AgentName
    slots: int
    max_trials: int | None = None
    gpus_per_trial: int | None = None


@dataclass(frozen=True, slots=True)
class OpenPlatform:
    """Action: check the section, then prepare the platform."""


@dataclass(frozen=True, slots=True)
class ListAgents:
    """Action: ask for the agents and the capacity."""


@dataclass(frozen=True, slots=True)
class LaunchAgents:
    """Action: launch agents."""

    agents: tuple[PlannedAgent, ...]


@dataclass(frozen=True, slots=True)
class TerminateAgents:
    """Action: end and forget agents."""

    names: tuple[AgentName, ...]


@dataclass(frozen=True, slots=True)
class CleanPlatform:
    """Action: remove everything of the pool, or only some agents."""

    agents: tuple[AgentName, ...] | None = None
    """None: everything. Otherwise these are ended, since another section of the pool has agents on
    the same platform."""


PlatformAction: TypeAlias = (
    OpenPlatform | ListAgents | LaunchAgents | TerminateAgents | CleanPlatform
)
"""What one platform is asked to do; one at a time."""


@dataclass(frozen=True, slots=True)
class NeedChanged:
    """Event: the manager has published a new need (demand) of the pool."""

    need: PoolNeed


@dataclass(frozen=True, slots=True)
class RestoredAgent:
    """Agent in the last published state of a fleet that has ended."""

    name: AgentName
    platform: str
    slots: int
    launching: bool
    """True if the platform may not have been asked yet."""
    counts_from_s: float | None = None
    """From when its time counts, by the clock of this process; None: it has no machine yet."""
    started_s: float | None = None
    """When it first had a machine unless the clock of the day was set; None: no time is missing."""


@dataclass(frozen=True, slots=True)
class StateRestored:
    """Event: last published state of an earlier fleet process, its agents and counters."""

    agents: tuple[RestoredAgent, ...]
    last_number: int
    cleaned: bool = False
    log_sequence: int = 0
    ended_agent_s: float = 0.0
    """Time of the agents that have ended."""


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """Event: an action begins; stored before the platform is called."""

    platform: str
    action: PlatformAction


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """Event: an action on a platform failed, with reason and remedy; its effect is unknown."""

    platform: str
    action: PlatformAction
    reason: str
    remedy: str = ""
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class PlatformOpened:
    """Event: the platform is checked and prepared."""

    platform: str


@dataclass(frozen=True, slots=True)
class AgentsListed:
    """Event: a platform has listed the agents of this pool, and its capacity."""

    platform: str
    agents: tuple[PlatformAgent, ...]
    capacity: int | None


@dataclass(frozen=True, slots=True)
class AgentsLaunched:
    """Event: the platform has handled the orders of the current launch."""

    platform: str
    failures: tuple[LaunchFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentsTerminated:
    """Event: the agents of the current termination are gone."""

    platform: str


@dataclass(frozen=True, slots=True)
class PlatformCleaned:
    """Event: nothing of the pool is left on the platform."""

    platform: str


@dataclass(frozen=True, slots=True)
class PlatformChanged:
    """Event: the list of agents may have changed."""

    platform: str


@dataclass(frozen=True, slots=True)
class PresenceReceived:
    """Event: a presence message of an agent was received, with its load."""

    name: AgentName
    trials: int
    draining: bool = False
    leaving: bool = False
    slots: int | None = None
    """Trials at once; None: an agent of an older version."""
    uploads: int = 0
    """Ended trials whose outputs are not stored yet."""
    running_s: float = 0.0
    """Time since the start of its process; 0: an agent of an older version."""


@dataclass(frozen=True, slots=True)
class AgentEnrolled:
    """Event: a machine has enrolled as an agent, in place of its former one if it had one."""

    name: AgentName
    platform: str
    slots: int
    machine: str
    replaced: AgentName | None = None
    """Agent that the machine was before; None: it has not enrolled before."""


@dataclass(frozen=True, slots=True)
class DrainSent:
    """Event: agents were ordered to drain: to take no more trials."""

    names: tuple[AgentName, ...]


@dataclass(frozen=True, slots=True)
class SlotsSent:
    """Event: agents were ordered to run another number of trials at once."""

    slots: Mapping[AgentName, int]


@dataclass(frozen=True, slots=True)
class ListeningChanged:
    """Event: the connection to the bus is restored, or lost: then no presence message arrives."""

    listening: bool


ActionCompleted: TypeAlias = (
    PlatformOpened | AgentsListed | AgentsLaunched | AgentsTerminated | PlatformCleaned
)
"""Results of actions."""
PlatformEvent: TypeAlias = ActionCompleted | ActionStarted | ActionFailed | PlatformChanged
"""What changes the state of one platform."""
PoolEvent: TypeAlias = (
    PlatformEvent
    | NeedChanged
    | StateRestored
    | PresenceReceived
    | DrainSent
    | SlotsSent
    | ListeningChanged
    | AgentEnrolled
)
