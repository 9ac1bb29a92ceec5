"""Users of the bus and callers of the manager that are agents of the fleet, in two files.

They outlive the process that keeps them, since agents on other machines do. Two files, readable by
this user only: one with the passwords, from which the configuration of the bus is made, and an
access file of the manager with fingerprints of the tokens.
"""

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from nni_wire.access import AGENT, AccessEntry, dump_entries, fingerprint, new_token
from nni_wire.folders import AGENTS_ACCESS_FILE
from nni_wire.pools import broken_name_rule, experiment_of_pool
from svc_common.credential_channel import IssuedCredentials
from svc_common.durable_files import write_private
from svc_common.errors import InvalidArgumentError, ResourceExhaustedError
from svc_common.logs import get_logger
from svc_common.messaging.permissions import BusUser, runner_user, silent_user
from svc_common.own_files import read_or_set_aside

USERS_FILE: Final = "agents.json"
BUS_FILE: Final = "agents.conf"
"""Accounts of agents that the configuration of a deployment's bus includes."""
PROBE: Final = "reload"
"""User of the bus without rights, whose password is the revision of the users that the bus reads:
the bus has read them when it admits this user."""
AGENTS_LIMIT: Final = 5_000
"""Most agents with credentials; the bus reads all its users again at each change."""
_VERSION: Final = 1
_PASSWORD: Final = re.compile(r"p[A-Za-z0-9_-]+\Z")
_NAME: Final = re.compile(r"nni-[a-z0-9]{8}-([a-z0-9-]+)-[0-9]+\Z")
"""Name of an agent of a fleet; no service and no other user of the bus has such a name."""


@dataclass(frozen=True, slots=True)
class AgentUser:
    """Agent with credentials: name, pool, password at the bus, fingerprint of its token."""

    name: str
    pool: str
    password: str = field(repr=False)
    sha256: str
    """Fingerprint of its token at the manager."""


class AgentUsers:
    """Registry of agents' bus users and manager callers, read from a file; `save` stores both.

    The constructor stores both as well.

    Args:
        home: folder of the installation.
        limit: most agents.

    Raises:
        OSError: the files cannot be read or written.
    """

    def __init__(self, home: Path, limit: int = AGENTS_LIMIT) -> None:
        self._limit = limit
        self._file = home / USERS_FILE
        self.access_file = home / AGENTS_ACCESS_FILE
        """Access file of the manager."""
        self._users = {user.name: user for user in _read(self._file)}
        self.save()
        self.revision = ""
        """Password of `PROBE`."""
        self.renew_revision()

    def logins(self) -> list[tuple[BusUser, str]]:
        """Return agents and the probe as bus users with passwords; the probe's is the revision."""
        return [(silent_user(PROBE), self.revision), *self.agents()]

    def agents(self) -> list[tuple[BusUser, str]]:
        """Return agents as bus users with passwords."""
        users = self._users.values()
        return [(runner_user(one.name, one.pool, one.name), one.password) for one in users]

    def issue(self, name: str, pool: str) -> IssuedCredentials:
        """Replace an agent's password and token and return the new; the caller must `save`.

        Raises:
            InvalidArgumentError: it is no name of an agent of this pool, or the fleet has no such
                pool: agents of `local` are a part of the installation, with rights of their own.
            ResourceExhaustedError: there are too many agents.
        """
        match = _NAME.match(name)
        if match is None or match[1] != pool:
            raise InvalidArgumentError(
                "name", f"must be nni-<installation>-{pool[:80]}-<number>", name[:80]
            )
        if experiment_of_pool(pool) is None and broken_name_rule(pool):
            raise InvalidArgumentError(
                "pool", "must be that of an experiment, or of the installation", pool[:80]
            )
        runner_user(name, pool, name)  # raises for a name that is no part of a subject
        if name not in self._users and len(self._users) >= self._limit:
            raise ResourceExhaustedError(f"{self._limit:,} agents have credentials already")
        # It begins with a letter: the bus would read a password of digits as a number.
        password, token = f"p{secrets.token_urlsafe(24)}", new_token()
        self._users[name] = AgentUser(name, pool, password, fingerprint(token))
        return IssuedCredentials(name, password, token)

    def revoke(self, names: Iterable[str]) -> None:
        """Remove agents, ignoring unknown names; the caller must `save`."""
        for name in names:
            self._users.pop(name, None)

    def save(self) -> None:
        """Write the users to their file, and the callers to the access file of the manager.

        Raises:
            OSError: one cannot be written.
        """
        users = list(self._users.values())
        text = json.dumps({"version": _VERSION, "agents": [asdict(user) for user in users]})
        write_private(self._file, f"{text}\n")
        entries = [AccessEntry(one.name, AGENT, one.sha256, pool=one.pool) for one in users]
        write_private(self.access_file, dump_entries(entries))

    def renew_revision(self) -> None:
        """Draw a new `PROBE` password, `revision`; the bus admits it once it has read `logins`."""
        self.revision = f"r{secrets.token_urlsafe(24)}"


def _read(file: Path) -> list[AgentUser]:
    """Return the users in a file; none if it is missing, or damaged: then agents are started anew.

    Raises:
        OSError: it cannot be read.
    """
    stored = read_or_set_aside(file)
    if stored is None:
        return []
    try:
        content: Any = json.loads(stored)
        return [_stored_user(fields) for fields in content["agents"]]
    except (ValueError, TypeError, KeyError, RecursionError, InvalidArgumentError):
        get_logger().error("credentials of agents cannot be read, all are revoked", file=str(file))
        return []


def _stored_user(fields: Mapping[str, Any]) -> AgentUser:
    """Build a user from the fields that a file has; raise if one is invalid.

    Raises:
        TypeError, ValueError, InvalidArgumentError: they are not those of a user.
    """
    user = AgentUser(**fields)
    runner_user(user.name, user.pool, user.name)
    AccessEntry(user.name, AGENT, user.sha256)
    if not _PASSWORD.match(user.password):
        raise ValueError("its password is not one that `issue` draws")
    return user
