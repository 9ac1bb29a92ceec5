"""What an installation has on a platform, by pool, and which of it is in use."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from svc_trial_runner.fleet.domain.agents import parse_agent_name


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a platform has of one pool of the installation."""

    pool: str
    agents: tuple[str, ...] = ()
    """Names, ended ones included; empty: only something that serves agents, such as a bundle."""
    key: str = ""
    """Of the section in its pool, by which the platform marks its objects; empty: by none."""
    in_use: bool = False
    """The pool exists: nothing is removed."""
    removed: bool = False


def leftovers_of(
    names: Iterable[str], installation: str, key: str = "", pools: Iterable[str] = ()
) -> list[Leftover]:
    """Return what names of agents say of the pools of an installation, by pool.

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


def unused(leftovers: Iterable[Leftover], living: Collection[str]) -> list[Leftover]:
    """Return what belongs to no pool that exists, and may be removed.

    Args:
        leftovers: of a platform.
        living: names of the pools that exist, read after the platform was asked.
    """
    return [one for one in leftovers if one.pool not in living]
