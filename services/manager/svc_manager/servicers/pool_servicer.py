"""gRPC servicer of the pools of the installation."""

from typing import Any, TypeAlias

import grpc.aio

from nni_proto.runner.v1 import pool_service_pb2 as pb
from nni_proto.runner.v1 import pool_service_pb2_grpc as pb_grpc
from svc_manager.usecases.pools import Pools

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class PoolServicer(pb_grpc.PoolServiceServicer):
    """gRPC servicer of pools: create, update, get, list, drain, remove; clean platforms.

    Args:
        pools: use cases.
    """

    def __init__(self, pools: Pools) -> None:
        self._pools = pools

    async def CreatePool(
        self, request: pb.CreatePoolRequest, context: Context
    ) -> pb.CreatePoolResponse:
        """Create a pool once its platforms accept their sections; return it, or an equal one."""
        return pb.CreatePoolResponse(pool=await self._pools.create(request.definition))

    async def UpdatePool(
        self, request: pb.UpdatePoolRequest, context: Context
    ) -> pb.UpdatePoolResponse:
        """Replace platforms, their secrets and limits of a pool; it stays draining; return it."""
        return pb.UpdatePoolResponse(pool=await self._pools.update(request.definition))

    async def GetPool(self, request: pb.GetPoolRequest, context: Context) -> pb.GetPoolResponse:
        """Return a pool with its state and the experiments that use it."""
        return pb.GetPoolResponse(pool=await self._pools.get(request.pool))

    async def ListPools(
        self, request: pb.ListPoolsRequest, context: Context
    ) -> pb.ListPoolsResponse:
        """Return a page of pools by name."""
        page = await self._pools.page(page_size=request.page_size, page_token=request.page_token)
        return pb.ListPoolsResponse(pools=page.items, next_page_token=page.next_token)

    async def DrainPool(
        self, request: pb.DrainPoolRequest, context: Context
    ) -> pb.DrainPoolResponse:
        """Drain a pool, so that its agents take no more trials and end, or undo that; return it."""
        return pb.DrainPoolResponse(pool=await self._pools.drain(request.pool, undo=request.undo))

    async def RemovePool(
        self, request: pb.RemovePoolRequest, context: Context
    ) -> pb.RemovePoolResponse:
        """Mark a pool as removed, wait until its platforms are clean, delete it; raise if late."""
        await self._pools.remove(request.pool, force=request.force)
        return pb.RemovePoolResponse()

    async def CleanPlatforms(
        self, request: pb.CleanPlatformsRequest, context: Context
    ) -> pb.CleanPlatformsResponse:
        """Remove leftovers of no pool from platforms (dry run: find); return them, problems."""
        return await self._pools.clean_platforms(request.platforms, dry_run=request.dry_run)
