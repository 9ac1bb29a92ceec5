"""Names of pools of agents."""

from __future__ import annotations

from typing import Final

LOCAL_POOL: Final = "local"
"""Pool of the agents of this machine, and of experiments that name no other."""


def experiment_pool(experiment_id: str) -> str:
    """Return the pool of the agents that platforms start for one experiment alone."""
    return f"exp-{experiment_id}"
