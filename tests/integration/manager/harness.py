"""Manager processes with a bus, a dispatcher and an agent."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc
from nni_proto.tuning.v1 import algorithm_service_pb2, algorithm_service_pb2_grpc
from nni_wire.metadata import bearer
from svc_common.access.security import ON_LOOPBACK, Guard, SecuritySettings
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.tasks import TaskOwner
from tests.support.servers import NatsServer
from tests.unit.services.manager.world import (
    CountingDispatcher,
    ScriptedAgent,
    hold,
    raise_failure,
)

TOKEN = "the-token"
TIMEOUT_S = 60.0


class Agreeing(algorithm_service_pb2_grpc.AlgorithmServiceServicer):
    """A dispatcher that accepts every algorithm and lists none."""

    async def ListAlgorithms(
        self, request: algorithm_service_pb2.ListAlgorithmsRequest, context: Any
    ) -> algorithm_service_pb2.ListAlgorithmsResponse:
        return algorithm_service_pb2.ListAlgorithmsResponse()

    async def ValidateAlgorithms(
        self, request: algorithm_service_pb2.ValidateAlgorithmsRequest, context: Any
    ) -> algorithm_service_pb2.ValidateAlgorithmsResponse:
        return algorithm_service_pb2.ValidateAlgorithmsResponse(optimize_mode="minimize")

    async def ReplaySuggestions(
        self, request: algorithm_service_pb2.ReplaySuggestionsRequest, context: Any
    ) -> AsyncIterator[algorithm_service_pb2.ReplaySuggestionsResponse]:
        yield algorithm_service_pb2.ReplaySuggestionsResponse()


@dataclass
class Process:
    """A running manager."""

    process: asyncio.subprocess.Process
    facts: dict[str, str]

    async def end(self) -> int:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.process.wait()


@asynccontextmanager
async def manager_process(variables: dict[str, str]) -> AsyncIterator[Process]:
    """Run `python -m svc_manager`; give it once it says that it is ready."""
    reader, writer = os.pipe()
    log = (Path(variables["NNI_HOME"]).parent / "managers.log").open("ab")
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "svc_manager",
            env={**os.environ, **variables, "NNI_READY_FD": str(writer)},
            pass_fds=[writer],
            stderr=log,
        )
        os.close(writer)
        async with asyncio.timeout(TIMEOUT_S):
            line = await asyncio.to_thread(os.read, reader, 65536)
        yield Process(process, json.loads(line))
    finally:
        os.close(reader)
        log.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


@dataclass
class Site:
    """Everything that a manager process needs around it."""

    variables: dict[str, str]
    bus: NatsBus
    agent: ScriptedAgent
    tasks: TaskOwner
    folder: Path

    def request(self) -> pb.CreateExperimentRequest:
        request = pb.CreateExperimentRequest(request_id="r1", interpreter="python3")
        config = request.config
        config.trial_command = "python3 trial.py"
        config.trial_code_directory = str(self.folder)
        config.experiment_working_directory = str(self.folder / "experiments")
        config.trial_concurrency = 2
        config.tuner.name = "TPE"
        config.search_space.map_value.SetInParent()
        return request


@asynccontextmanager
async def site_on(
    bus_server: NatsServer,
    folder: Path,
    *,
    scripted: bool = True,
    security: SecuritySettings = ON_LOOPBACK,
) -> AsyncIterator[Site]:
    """Put a dispatcher on a bus, and a scripted agent unless real ones come."""
    guard = replace(Guard.of_token(TOKEN), transport=security.transport)
    dispatcher = GrpcServer(("nni_proto.tuning.v1.AlgorithmService",), guard)
    dispatcher.register(
        lambda raw: algorithm_service_pb2_grpc.add_AlgorithmServiceServicer_to_server(
            Agreeing(), raw
        )
    )
    port = await dispatcher.start()
    tasks = TaskOwner(raise_failure)
    async with NatsBus(NatsSettings.of(bus_server.url, security, token="", name="site")) as bus:
        agent = ScriptedAgent(bus, hold)
        if scripted:
            tasks.start(agent.run(), "agent")
            tasks.start(agent.obey(), "orders")
        variables = {
            "NNI_HOME": str(folder / "nni"),
            "NNI_NATS_URL": bus_server.url,
            "NNI_TOKEN": TOKEN,
            "NNI_VERSION": "1.2.3",
            "NNI_DISPATCHER_GRPC": f"127.0.0.1:{port}",
        }
        yield Site(variables, bus, agent, tasks, folder)
        await tasks.aclose()
    await dispatcher.stop(0)


async def running(site: Site, process: Process) -> str:
    """Create an experiment over gRPC, wait until two of its trials run; give its id."""
    async with open_channel(process.facts["grpc"]) as channel:
        stub = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        created = await stub.CreateExperiment(
            site.request(), metadata=bearer(TOKEN), timeout=TIMEOUT_S
        )
        experiment_id = str(created.experiment.id)
        site.tasks.start(CountingDispatcher(site.bus).run(experiment_id), "dispatcher")
        await site.agent.holds(2)
    return experiment_id
