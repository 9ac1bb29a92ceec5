"""Agents of a pool: names, orders to a platform, states reported by a platform."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import SharedStorage, shared_storage_of

NAME_LIMIT_CHARACTERS: Final = 63
"""Longest name: names of pods have to be labels of DNS."""

_NAME = re.compile(r"nni-([a-z0-9]{8})-([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)-(0|[1-9][0-9]*)\Z")
_INSTALLATION = re.compile(r"[a-z0-9]{8}\Z")
_POOL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True, order=True)
class AgentName:
    """Name of one agent: `nni-<installation>-<pool>-<number>`.

    It is the agent's id on the bus and the name of its job on the platform, so that a fleet that
    was killed finds its agents again. A number is never used twice in a pool.
    """

    installation: str
    """8 lower-case letters or digits, the same for all runs of an installation."""
    pool: str
    number: int

    def __post_init__(self) -> None:
        """Raise InvalidArgumentError for a part that a platform cannot have in a name."""
        if not _INSTALLATION.match(self.installation):
            raise InvalidArgumentError(
                "installation", "must be 8 lower-case letters or digits", self.installation[:80]
            )
        if not _POOL.match(self.pool):
            raise InvalidArgumentError(
                "pool",
                "must be lower-case letters, digits and '-' within, for platforms",
                self.pool[:80],
            )
        if self.number < 0 or len(str(self)) > NAME_LIMIT_CHARACTERS:
            raise InvalidArgumentError(
                "pool", f"must give names of at most {NAME_LIMIT_CHARACTERS} characters", self.pool
            )

    def __str__(self) -> str:
        """Return the name as the platform knows it."""
        return f"nni-{self.installation}-{self.pool}-{self.number}"


def parse_agent_name(name: str) -> AgentName | None:
    """Return the parts of an agent's name; None if a platform's job has another kind of name."""
    match = _NAME.match(name)
    if match is None or len(name) > NAME_LIMIT_CHARACTERS:  # others may name a job alike
        return None
    installation, pool, number = match.groups()
    return AgentName(installation, pool, int(number))


@dataclass(frozen=True, slots=True)
class AgentCredentials:
    """Bus login and manager token of one agent, valid until they are revoked."""

    bus_user: str
    bus_password: str = field(repr=False)
    manager_token: str = field(repr=False)
    """Bearer token of the manager's gRPC, with the role `agent`: it uploads and downloads blobs."""


@dataclass(frozen=True, slots=True)
class AgentOrder:
    """Order to a platform to start one agent: name, credentials, slots, numbers of trials, GPUs."""

    name: AgentName
    credentials: AgentCredentials
    slots: int
    """Trials at once."""
    max_trials: int | None = None
    """The agent ends after so many trials; None: it stays."""
    gpus_per_trial: int | None = None
    """None: its trials do not ask for GPUs."""


class AgentPhase(Enum):
    """Phases of an agent on its platform: pending, starting, running, ended."""

    PENDING = "pending"
    """In a queue of the platform."""
    STARTING = "starting"
    """The platform has given it a machine."""
    RUNNING = "running"
    """Its process runs."""
    ENDED = "ended"
    """Its process or job is over."""


@dataclass(frozen=True, slots=True)
class PlatformAgent:
    """Agent as its platform lists it: phase, machine, reason, slots."""

    name: AgentName
    phase: AgentPhase
    machine: str = ""
    """Host, node or pod; empty: not known yet."""
    reason: str = ""
    """Why it is pending or has ended, in the platform's words; empty: none."""
    slots: int = 1
    """Trials at once of an agent that the fleet did not order."""


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    """Ordered agent that a platform did not start: name, reason, remedy, whether permanent."""

    name: AgentName
    reason: str
    """In the platform's words."""
    remedy: str = ""
    """What a person can do about it; empty: nothing is known."""
    permanent: bool = False
    """True if another try cannot succeed before the configuration is changed."""


@dataclass(frozen=True, slots=True)
class PlatformProblem:
    """Finding of a check of a platform's section (no exception): field, broken rule, remedy."""

    field: str
    """Path within the section, camelCase: `machineList[0].host`."""
    rule: str
    value: str = ""
    """The value, never a secret."""
    remedy: str = ""
    permanent: bool = True
    """False if the section may be right: a machine is away, or a person can mend it there."""


@dataclass(frozen=True, slots=True)
class PlatformSection:
    """One platform of a pool: its name, options and secrets."""

    platform: str
    options: Mapping[str, object]
    """camelCase names, without secret values."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secret values by path within the section: `machineList[0].password`."""

    @property
    def shared_storage(self) -> SharedStorage | None:
        """Storage that the agents mount for outputs; None: each has its own disk.

        Raises:
            InvalidArgumentError: a field is missing, or breaks a rule.
        """
        return shared_storage_of(self.options, self.secrets)
