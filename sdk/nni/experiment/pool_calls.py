"""Calls of the client about pools of the installation, and the message of a pool's file."""

from __future__ import annotations

from typing import Any, Final

from nni.experiment.config.pool_file import PoolFile
from nni.experiment.config.quantities import duration_seconds
from nni.experiment.connection import Connection
from nni.experiment.conversion import duration_message
from nni_proto.runner.v1 import pool_pb2
from nni_proto.runner.v1 import pool_service_pb2 as pb
from nni_wire.values import to_value

PLATFORM_TIMEOUT_S: Final = 120.0
"""Time-out of calls in which platforms are asked, or cleaned."""


class PoolCalls(Connection):
    """Connection with one typed, blocking method per call about pools."""

    def create_pool(self, definition: pool_pb2.PoolDefinition) -> pb.Pool:
        """Create a pool; a repetition with the same content returns it."""
        request = pb.CreatePoolRequest(definition=definition)
        answer = self._call(lambda: self._pools.CreatePool, request, PLATFORM_TIMEOUT_S)
        return _pool(answer)

    def update_pool(self, definition: pool_pb2.PoolDefinition) -> pb.Pool:
        """Replace platforms, secrets and limits of a pool."""
        request = pb.UpdatePoolRequest(definition=definition)
        answer = self._call(lambda: self._pools.UpdatePool, request, PLATFORM_TIMEOUT_S)
        return _pool(answer)

    def pool(self, name: str) -> pb.Pool:
        """Return a pool with its state and the experiments that use it."""
        return _pool(self._call(lambda: self._pools.GetPool, pb.GetPoolRequest(pool=name)))

    def pools(self) -> list[pb.Pool]:
        """Return all pools of the installation, by name."""
        pages = self._pages(lambda: self._pools.ListPools, pb.ListPoolsRequest())
        return [pool for page in pages for pool in page.pools]

    def drain_pool(self, name: str, *, undo: bool = False) -> pb.Pool:
        """Let the agents of a pool take no more trials and end, or undo that."""
        request = pb.DrainPoolRequest(pool=name, undo=undo)
        return _pool(self._call(lambda: self._pools.DrainPool, request))

    def remove_pool(self, name: str, *, force: bool = False) -> None:
        """Remove a pool once nothing of it is left on its platforms."""
        request = pb.RemovePoolRequest(pool=name, force=force)
        self._call(lambda: self._pools.RemovePool, request, PLATFORM_TIMEOUT_S)


def pool_to_proto(file: PoolFile) -> pool_pb2.PoolDefinition:
    """Return the checked file of a pool as a message, secret values included."""
    definition = pool_pb2.PoolDefinition(pool=file.name)
    for section in file.platforms():
        options = section.to_dict()
        platform = options.pop("platform")
        if file.slots is not None:
            options.setdefault("slots", file.slots)
        definition.platforms.add(
            platform=platform, options=to_value(options), secret_paths=section.secret_paths()
        )
    limits = definition.limits
    limits.min_agents = file.min_agents or 0
    limits.max_agents = file.max_agents or 0
    if file.idle_time is not None:
        limits.idle.CopyFrom(duration_message(duration_seconds(file.idle_time)))
    if file.max_agent_time is not None:
        limits.max_agent_time.CopyFrom(duration_message(duration_seconds(file.max_agent_time)))
    limits.max_cost = file.max_cost or 0.0
    limits.cost_per_agent_hour = file.cost_per_agent_hour or 0.0
    return definition


def _pool(answer: Any) -> pb.Pool:  # noqa: ANN401 - any answer with a pool
    pool: pb.Pool = answer.pool
    return pool
