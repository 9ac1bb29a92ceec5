"""Roles of callers, and what is known of one; pure values."""

import enum
from dataclasses import dataclass
from typing import Self

from nni_wire.access import ROLES
from svc_common.errors import PermissionDeniedError


class Role(enum.IntEnum):
    """What a caller may do: each from `VIEWER` on what the one before may, and more."""

    AGENT = 1
    """Bring and fetch the bytes of trials: what an agent needs, beside which user code runs."""
    VIEWER = 2
    """See everything but secrets, change nothing."""
    USER = 3
    """Run, change, stop and delete experiments and trials: run code on the machines of a pool."""
    ADMIN = 4
    """Also what concerns the installation: agents, and the services among each other."""

    @classmethod
    def of_word(cls, word: str) -> Self:
        """Return the role that an access file calls ``word``.

        Raises:
            ValueError: it is no role.
        """
        return cls(ROLES.index(word) + 1)

    @property
    def word(self) -> str:
        """What an access file calls it."""
        return ROLES[self - 1]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a call needs."""

    role: Role
    """Least role that may."""
    audited: bool
    """Whether each call leaves a line in the audit trail: all that change something do."""
    agents: bool = False
    """Whether agents may as well."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose credentials were checked."""

    name: str
    role: Role
    by: str
    """How it was shown: `token`, `certificate`, or `nothing` for readers on loopback."""

    def check(self, rule: Rule, what: str) -> None:
        """Return if the caller may do what this rule is about.

        Args:
            rule: who may.
            what: the method or route, for the message.

        Raises:
            PermissionDeniedError: the caller may not.
        """
        if self.role < rule.role and not (self.role is Role.AGENT and rule.agents):
            raise PermissionDeniedError(
                f"{what} needs the role {rule.role.word}, and {self.name} has the role "
                f"{self.role.word}; ask whoever runs these services for another token",
                {"role": self.role.word, "needs": rule.role.word},
            )


BY_CERTIFICATE = "certificate"
"""`Caller.by` of those who show a client certificate."""
SERVICES_NAME = "installation"
"""Caller that shows the installation's own token: a service, or a user of the local shape."""
AGENTS_NAME = "agents"
"""Caller that shows the token which all agents share."""
READER = Caller("anybody-on-this-machine", Role.VIEWER, "nothing")
"""Who shows nothing on loopback, where the documented paths may be read."""
