"""Pools of an installation in memory, for tests of clients."""

from typing import Any

import grpc

from nni_proto.runner.v1 import pool_pb2, pool_service_pb2_grpc
from nni_proto.runner.v1 import pool_service_pb2 as pb


class InMemoryPools(pool_service_pb2_grpc.PoolServiceServicer):
    """Servicer of pools that keeps definitions in a table and checks nothing."""

    def __init__(self) -> None:
        self.pools: dict[str, pb.Pool] = {}
        self.cleanings: list[pb.CleanPlatformsRequest] = []
        self.left = pb.CleanPlatformsResponse()
        """Answer to a cleaning."""

    def CreatePool(self, request: Any, context: Any) -> Any:
        pool = self.pools[request.definition.pool] = pb.Pool(definition=request.definition)
        return pb.CreatePoolResponse(pool=pool)

    def UpdatePool(self, request: Any, context: Any) -> Any:
        pool = self._found(request.definition.pool, context)
        pool.definition.CopyFrom(request.definition)
        return pb.UpdatePoolResponse(pool=pool)

    def GetPool(self, request: Any, context: Any) -> Any:
        return pb.GetPoolResponse(pool=self._found(request.pool, context))

    def ListPools(self, request: Any, context: Any) -> Any:
        return pb.ListPoolsResponse(pools=[pool for _, pool in sorted(self.pools.items())])

    def DrainPool(self, request: Any, context: Any) -> Any:
        pool = self._found(request.pool, context)
        pool.definition.draining = not request.undo
        return pb.DrainPoolResponse(pool=pool)

    def RemovePool(self, request: Any, context: Any) -> Any:
        pool = self._found(request.pool, context)
        if pool.users and not request.force:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the pool is used")
        del self.pools[request.pool]
        return pb.RemovePoolResponse()

    def CleanPlatforms(self, request: Any, context: Any) -> Any:
        self.cleanings.append(request)
        answer = pb.CleanPlatformsResponse()
        answer.CopyFrom(self.left)
        for one in answer.leftovers:
            one.removed = not one.in_use and not request.dry_run
        return answer

    def add(self, name: str, platform: str, **state: Any) -> pb.Pool:
        """Add a pool with a state."""
        pool = self.pools[name] = pb.Pool(
            definition=pool_pb2.PoolDefinition(pool=name), state=pool_pb2.PoolState(**state)
        )
        pool.definition.platforms.add(platform=platform)
        return pool

    def _found(self, name: str, context: Any) -> pb.Pool:
        if name not in self.pools:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no pool {name}")
        return self.pools[name]
