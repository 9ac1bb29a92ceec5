"""Leftovers: agents that an installation has on a platform, by pool, whether in use or not."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.fleet.domain.agents import AgentName, parse_agent_name

_KEY: Final = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*)?\Z")
_ANY_INSTALLATION: Final = "00000000"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Leftover of one pool on a platform: agents' names, whether in use, whether removed."""

    pool: str
    agents: tuple[str, ...] = ()
    """Names, ended ones included; empty: only something that serves agents, such as a bundle."""
    key: str = ""
    """Of the section in its pool, by which the platform marks its objects; empty: by none."""
    in_use: bool = False
    """The pool exists: nothing is removed."""
    removed: bool = False

    @property
    def own_agents(self) -> list[AgentName]:
        """The agents whose names are of the pool; on a shared platform others may choose names."""
        names = map(parse_agent_name, self.agents)
        return [name for name in names if name is not None and name.pool == self.pool]


def leftovers_of(
    names: Iterable[str], installation: str, key: str = "", pools: Iterable[str] = ()
) -> list[Leftover]:
    """Group names of an installation's agents by pool; return a leftover for each pool.

    Args:
        names: of agents, jobs or folders; those of other installations, and others, are left out.
        installation: whose pools are wanted.
        key: see `Leftover`.
        pools: further pools that have something without an agent.
    """
    found: dict[str, set[str]] = {pool: set() for pool in pools}
    for text in names:
        name = parse_agent_name(text)
        if name is not None and name.installation == installation:
            found.setdefault(name.pool, set()).add(text)
    return [Leftover(pool, tuple(sorted(some)), key) for pool, some in sorted(found.items())]


def well_named(leftovers: Iterable[Leftover]) -> list[Leftover]:
    """Return the leftovers whose pool and section have valid names; drop others.

    Both are parts of paths on the fleet's machine, and on a platform that others use as well they
    may have been chosen by others.
    """
    return [one for one in leftovers if _KEY.match(one.key) and _is_pool_name(one.pool)]


def _is_pool_name(text: str) -> bool:
    try:
        AgentName(_ANY_INSTALLATION, text, 0)
    except InvalidArgumentError:
        return False
    return True


def unused(leftovers: Iterable[Leftover], living: Collection[str]) -> list[Leftover]:
    """Return the leftovers of pools that do not exist, which may be removed.

    Args:
        leftovers: of a platform.
        living: names of the pools that exist, read after the platform was asked.
    """
    return [one for one in leftovers if one.pool not in living]
