"""Calls to a manager that is restarted, or gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from nni.experiment.errors import (
    UnreachableError,
)
from nni_proto.experiment.v1 import (
    experiment_service_pb2 as pb,
)
from nni_proto.experiment.v1 import (
    experiment_service_pb2_grpc,
)
from tests.support.endpoint_files import SUPERVISOR, process_spawner, write_endpoint

SOON_S = 0.001


Answer = Callable[[Any, Any], Any]


class ScriptedManager(experiment_service_pb2_grpc.ExperimentServiceServicer):
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
    DiagnoseServices = _next

    def FollowLogs(self, request: Any, context: Any) -> Iterator[pb.FollowLogsResponse]:
        yield from self._next(request, context)


Supervised = Callable[[ScriptedManager, str], None]
"""Takes the manager and its token."""


@pytest.fixture
def manager() -> Iterator[ScriptedManager]:
    servicer = ScriptedManager()
    server = grpc.server(ThreadPoolExecutor(2))
    experiment_service_pb2_grpc.add_ExperimentServiceServicer_to_server(servicer, server)
    servicer.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield servicer
    server.stop(None).wait()


def endpoint_on(port: int, token: str = "t0ken") -> Endpoint:
    return Endpoint("1", 1, "", "http://127.0.0.1:1", f"127.0.0.1:{port}", "", token)


@pytest.fixture
def client(manager: ScriptedManager) -> Iterator[ManagerClient]:
    with ManagerClient(endpoint_on(manager.port)) as opened:
        yield opened


@pytest.fixture
def supervised(private_home: Path) -> Iterator[Supervised]:
    """Write an `endpoint.json` with a manager and a running supervisor."""
    home = private_home / "nni"
    home.mkdir()
    with process_spawner(home) as spawn:

        def write(manager: ScriptedManager, token: str) -> None:
            address = f"127.0.0.1:{manager.port}"
            write_endpoint(home, spawn(SUPERVISOR).pid, grpc=address, token=token)

        yield write


def answering(message: Any) -> Answer:
    return lambda _request, _context: message


def test_every_call_carries_the_token(manager: ScriptedManager, client: ManagerClient) -> None:
    manager.answers = [answering(pb.GetExperimentResponse())]

    client.get("abcd1234")

    assert manager.tokens == ["Bearer t0ken"]


def test_call_is_repeated_at_the_address_of_the_manager_that_came_back(
    manager: ScriptedManager, supervised: Supervised
) -> None:
    manager.answers = [answering(pb.GetExperimentResponse(urls=["u"]))]
    supervised(manager, "new")

    with ManagerClient(endpoint_on(1), retry_step_s=SOON_S) as client:
        assert list(client.get("a").urls) == ["u"]

    assert manager.tokens == ["Bearer new"]


def test_services_that_are_gone_end_the_waiting() -> None:
    with (
        ManagerClient(endpoint_on(1), retry_step_s=SOON_S) as client,
        pytest.raises(UnreachableError, match="no longer up"),
    ):
        client.get("a")


def test_manager_that_stays_away_is_given_up() -> None:
    with (
        ManagerClient(endpoint_on(1), restart_s=0.0) as client,
        pytest.raises(UnreachableError, match="does not answer"),
    ):
        client.get("a")


def test_channel_that_never_closes_is_left_behind(
    manager: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = ManagerClient(endpoint_on(manager.port), close_s=SOON_S)
    released = threading.Event()
    grpc_close, ended = client._channel.close, threading.Event()

    def close() -> None:
        released.wait()
        grpc_close()
        ended.set()

    monkeypatch.setattr(client._channel, "close", close)
    client.close()
    left_behind = not ended.is_set()
    released.set()

    assert left_behind
    assert ended.wait(30)
