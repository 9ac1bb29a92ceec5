"""Manager processes that share the experiments of one bus, with clients of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
import httpx

from nni_proto.experiment.v1 import (
    experiment_pb2,
    experiment_service_pb2_grpc,
    history_service_pb2_grpc,
)
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc
from nni_wire.metadata import bearer
from svc_common.access.security import ON_LOOPBACK, SecuritySettings
from svc_common.access.transport import Transport
from svc_common.rpc.client import open_channel
from tests.integration.manager.harness import TIMEOUT_S, TOKEN, Process, Site, manager_process
from tests.support.stores import RedisServer
from tests.unit.services.manager.world import CountingDispatcher

TAKE_OVER_S = 5.0
"""Longest time until the experiments of a killed manager have another owner."""
API = "/api/v1/nni"


@dataclass
class Client:
    """Calls one manager over gRPC and HTTP."""

    channel: grpc.aio.Channel
    http: httpx.AsyncClient
    token: str = TOKEN
    """Empty: it shows none."""

    @property
    def experiments(self) -> Any:
        return experiment_service_pb2_grpc.ExperimentServiceStub(self.channel)

    @property
    def trials(self) -> Any:
        return trial_service_pb2_grpc.TrialServiceStub(self.channel)

    @property
    def histories(self) -> Any:
        return history_service_pb2_grpc.HistoryServiceStub(self.channel)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What every call shows."""
        return bearer(self.token) if self.token else ()

    async def call(self, method: Any, request: Any, timeout_s: float = TIMEOUT_S) -> Any:
        return await method(request, metadata=self.metadata, timeout=timeout_s)

    async def state(self, experiment_id: str) -> str:
        """Give the state, or the code of the refusal."""
        try:
            answer = await self.call(
                self.experiments.GetExperiment, pb.GetExperimentRequest(experiment_id=experiment_id)
            )
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        return experiment_pb2.ExperimentState.Name(answer.experiment.state).removeprefix(
            "EXPERIMENT_STATE_"
        )

    async def update(self, experiment_id: str, concurrency: int, request_id: str = "") -> int:
        """Change the concurrency; give what it is then."""
        answer = await self.call(
            self.experiments.UpdateExperiment,
            pb.UpdateExperimentRequest(
                experiment_id=experiment_id, request_id=request_id, trial_concurrency=concurrency
            ),
        )
        return int(answer.experiment.config.trial_concurrency)

    async def owned(self) -> set[str]:
        """Give the experiments that this manager owns."""
        answer = await self.call(
            self.experiments.ListExperiments, pb.ListExperimentsRequest(owned_only=True)
        )
        return {one.id for one in answer.experiments}

    async def owns(self, experiment_id: str) -> bool:
        return experiment_id in await self.owned()

    async def listed(self) -> set[str]:
        answer = await self.call(
            self.experiments.ListExperiments, pb.ListExperimentsRequest(include_stopped=True)
        )
        return {one.id for one in answer.experiments}


@dataclass
class Shared:
    """A site whose managers share leases."""

    site: Site
    redis: RedisServer
    stack: AsyncExitStack
    followed: set[str] = field(default_factory=set)

    security: SecuritySettings = ON_LOOPBACK
    """Certificate of the managers and of their operator."""

    async def manager(self, **more: str) -> tuple[Process, Client]:
        """Start a manager; give it and a client of it."""
        variables = {
            **self.site.variables,
            "NNI_STOP_ON_TERM": "no",
            "NNI_REDIS_URL": self.redis.url,
            **more,
        }
        process = await self.stack.enter_async_context(manager_process(variables))
        return process, await self.client(process, self.security.transport)

    async def client(self, process: Process, transport: Transport, token: str = TOKEN) -> Client:
        """Open a client of a manager, which shows a token and what the transport has."""
        channel = await self.stack.enter_async_context(
            open_channel(process.facts["grpc"], transport)
        )
        http = await self.stack.enter_async_context(
            httpx.AsyncClient(
                base_url=process.facts["http"] + API,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                trust_env=False,
                timeout=TIMEOUT_S,
                verify=transport.client_context() if transport.ca is not None else False,
            )
        )
        return Client(channel, http, token)

    async def create(self, client: Client, request_id: str = "") -> str:
        """Create an experiment, let the dispatcher follow it; give its id."""
        request = self.site.request()
        request.request_id = request_id
        return await self.created(client, request)

    async def created(self, client: Client, request: pb.CreateExperimentRequest) -> str:
        """Make a call of creation, let the dispatcher follow the experiment; give its id."""
        created = await client.call(client.experiments.CreateExperiment, request)
        experiment_id = str(created.experiment.id)
        if experiment_id not in self.followed:
            self.followed.add(experiment_id)
            self.site.tasks.start(
                CountingDispatcher(self.site.bus).run(experiment_id), f"serve {experiment_id}"
            )
        return experiment_id


async def until(look: Callable[[], Awaitable[Any]], timeout_s: float = TIMEOUT_S) -> float:
    """Wait until something is true of another process; give how long it took, in seconds."""
    began_s = time.monotonic()
    async with asyncio.timeout(timeout_s):
        while not await look():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    return time.monotonic() - began_s
