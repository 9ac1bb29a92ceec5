"""Roles and authenticated callers; pure values."""

import enum
from dataclasses import dataclass
from typing import Self

from nni_wire.access import ROLES
from svc_common.errors import PermissionDeniedError


class Role(enum.IntEnum):
    """Role of a caller (AGENT, VIEWER, USER, ADMIN); a higher one includes those from VIEWER."""

    AGENT = 1
    """Upload and download blobs of trials: all that an agent, which runs user code, needs."""
    VIEWER = 2
    """Read everything except secrets; change nothing."""
    USER = 3
    """Run, change, stop and delete experiments and trials, and thereby run code on the agents."""
    ADMIN = 4
    """Administer the installation: agents, and calls between services."""

    @classmethod
    def of_word(cls, word: str) -> Self:
        """Return the role of its name in an access file; raise ValueError if there is none.

        Raises:
            ValueError: no role has this name.
        """
        return cls(ROLES.index(word) + 1)

    @property
    def word(self) -> str:
        """Name in an access file."""
        return ROLES[self - 1]


@dataclass(frozen=True, slots=True)
class Rule:
    """Lowest role that a method or route requires, whether agents may call it, whether audited."""

    role: Role
    """Lowest role with the permission."""
    audited: bool
    """True if each call is audited: all that change state are."""
    agents: bool = False
    """True if the role `AGENT` has the permission, too."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Authenticated caller of a service: name, role, and kind of credentials."""

    name: str
    role: Role
    by: str
    """Kind of credentials: `token`, `certificate`, `page` (its cookie), or `nothing` for readers on
    loopback."""
    pool: str = ""
    """Pool of an agent whose token is limited to its own trials; empty: no limit."""

    def check(self, rule: Rule, what: str) -> None:
        """Raise PermissionDeniedError if the role is too low; agents pass rules that permit agents.

        Args:
            rule: required permission.
            what: the method or route, for the message.

        Raises:
            PermissionDeniedError: the role of the caller is too low.
        """
        if self.role < rule.role and not (self.role is Role.AGENT and rule.agents):
            raise PermissionDeniedError(
                f"{what} needs the role {rule.role.word}, and {self.name} has the role "
                f"{self.role.word}; ask the operator of these services for another token",
                {"role": self.role.word, "needs": rule.role.word},
            )


BY_CERTIFICATE = "certificate"
"""`Caller.by` of callers with a client certificate."""
BY_PAGE = "page"
"""`Caller.by` of callers with a cookie of the page."""
SERVICES_NAME = "installation"
"""Name of callers with the installation's own token: services, and users of the local shape."""
AGENTS_NAME = "agents"
"""Name of callers with the token that all agents share."""
READER = Caller("anybody-on-this-machine", Role.VIEWER, "nothing")
"""Caller without credentials on loopback, where the documented paths may be read."""
