"""Pools of agents that every installation knows."""

from __future__ import annotations

from typing import Final

LOCAL_POOL: Final = "local"
"""Pool of the agents of this machine, and of experiments that name no other."""
