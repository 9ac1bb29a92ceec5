"""Experiment service of a manager over gRPC, whose answers a test scripts; fixtures for clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.experiment.v1 import experiment_service_pb2_grpc
from tests.support.endpoint_files import SUPERVISOR, process_spawner, write_endpoint

Answer = Callable[[Any, Any], Any]


class ScriptedExperimentService(experiment_service_pb2_grpc.ExperimentServiceServicer):
    """Answers every method with the next of its answers; remembers requests and tokens."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[Any] = []
        self.tokens: list[str] = []
        self.port = 0

    def _next(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.tokens.append(dict(context.invocation_metadata()).get("authorization", ""))
        return self.answers.pop(0)(request, context)

    GetExperiment = ListExperiments = StopExperiment = UpdateExperiment = _next
    ExportData = ImportData = WaitExperiment = CreateExperiment = ResumeExperiment = _next
    ViewExperiment = DeleteExperiment = FollowEvents = ListRunners = DrainRunner = _next
    DiagnoseServices = ChangeRemarks = _next

    def FollowLogs(self, request: Any, context: Any) -> Iterator[pb.FollowLogsResponse]:
        yield from self._next(request, context)


Supervised = Callable[[ScriptedExperimentService, str], None]
"""Takes the manager and its token."""


@pytest.fixture
def manager() -> Iterator[ScriptedExperimentService]:
    servicer = ScriptedExperimentService()
    server = grpc.server(ThreadPoolExecutor(2))
    experiment_service_pb2_grpc.add_ExperimentServiceServicer_to_server(servicer, server)
    servicer.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield servicer
    server.stop(None).wait()


def endpoint_on(port: int, token: str = "t0ken") -> Endpoint:
    return Endpoint("1", 1, "", "http://127.0.0.1:1", f"127.0.0.1:{port}", "", token)


@pytest.fixture
def client(manager: ScriptedExperimentService) -> Iterator[ManagerClient]:
    with ManagerClient(endpoint_on(manager.port)) as opened:
        yield opened


@pytest.fixture
def supervised(private_home: Path) -> Iterator[Supervised]:
    """Write an `endpoint.json` with a manager and a running supervisor."""
    home = private_home / "nni"
    home.mkdir()
    with process_spawner(home) as spawn:

        def write(manager: ScriptedExperimentService, token: str) -> None:
            address = f"127.0.0.1:{manager.port}"
            write_endpoint(home, spawn(SUPERVISOR).pid, grpc=address, token=token)

        yield write


def answering(message: Any) -> Answer:
    return lambda _request, _context: message
