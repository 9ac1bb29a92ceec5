"""Names of pools of agents, and of the platform that every installation has."""

from __future__ import annotations

from typing import Final

LOCAL_PLATFORM: Final = "local"
"""Platform whose agents are a part of the installation and share folders with its clients."""
LOCAL_POOL: Final = "local"
"""Pool of the agents of this machine, and of experiments that name no other."""
_OF_EXPERIMENT: Final = "exp-"


def experiment_pool(experiment_id: str) -> str:
    """Return the pool of the agents that platforms start for one experiment alone."""
    return f"{_OF_EXPERIMENT}{experiment_id}"


def experiment_of_pool(pool: str) -> str | None:
    """Return the experiment whose pool it is; None: a pool of the installation."""
    return pool.removeprefix(_OF_EXPERIMENT) if pool.startswith(_OF_EXPERIMENT) else None
