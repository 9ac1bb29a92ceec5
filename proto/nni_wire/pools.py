"""Names of pools of agents, and of the platform that every installation has."""

from __future__ import annotations

import re
from typing import Final

LOCAL_PLATFORM: Final = "local"
"""Platform whose agents are a part of the installation and share folders with its clients."""
LOCAL_POOL: Final = "local"
"""Pool of the agents of this machine, and of experiments that name no other."""
POOL_PLATFORM: Final = "pool"
"""Platform of experiments that use a pool of the installation, whose name is its option `name`."""
POOL_NAME_OPTION: Final = "name"
FRONT_HOST_OPTION: Final = "nniManagerIp"
"""Option that the manager adds to the platforms of an experiment: host by which their agents reach
the TLS front."""
POOL_NAME_LIMIT_CHARACTERS: Final = 40
"""Longest name of a pool of the installation: names of its agents have to be labels of DNS."""
_OF_EXPERIMENT: Final = "exp-"
_OF_CHECK: Final = "check-"
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\Z")


def experiment_pool(experiment_id: str) -> str:
    """Return the pool of the agents that platforms start for one experiment alone."""
    return f"{_OF_EXPERIMENT}{experiment_id}"


def experiment_of_pool(pool: str) -> str | None:
    """Return the experiment whose pool it is; None: a pool of the installation."""
    return pool.removeprefix(_OF_EXPERIMENT) if pool.startswith(_OF_EXPERIMENT) else None


def pool_of_check(check_id: str) -> str:
    """Return the pool name under which the platforms of one check request are opened."""
    return f"{_OF_CHECK}{check_id}"


def broken_name_rule(name: str) -> str:
    """Return the rule, as text, that an installation's pool name breaks; empty: it is valid."""
    if name == LOCAL_POOL or name.startswith((_OF_EXPERIMENT, _OF_CHECK)):
        return f"must not be {LOCAL_POOL!r}, nor start with {_OF_EXPERIMENT!r} or {_OF_CHECK!r}"
    if len(name) > POOL_NAME_LIMIT_CHARACTERS or not _NAME.match(name):
        return (
            f"must be 1 to {POOL_NAME_LIMIT_CHARACTERS} lower-case letters, digits or '-', "
            "and neither start nor end with '-'"
        )
    return ""
