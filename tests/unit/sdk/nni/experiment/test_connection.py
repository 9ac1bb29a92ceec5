"""Calls to a manager that is restarted, or gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.errors import (
    UnreachableError,
    WrongStateError,
)
from nni_proto.experiment.v1 import (
    experiment_service_pb2 as pb,
)
from tests.support.scripted_experiment_service import (
    ScriptedExperimentService,
    Supervised,
    answering,
    client,
    endpoint_on,
    manager,
    supervised,
)

__all__ = ["client", "manager", "supervised"]  # fixtures

SOON_S = 0.001


def test_every_call_carries_the_token(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    manager.answers = [answering(pb.GetExperimentResponse())]

    client.get("abcd1234")

    assert manager.tokens == ["Bearer t0ken"]


def test_call_is_repeated_at_the_address_of_the_manager_that_came_back(
    manager: ScriptedExperimentService, supervised: Supervised
) -> None:
    manager.answers = [answering(pb.GetExperimentResponse(urls=["u"]))]
    supervised(manager, "new")

    with ManagerClient(endpoint_on(1), retry_step_s=SOON_S) as client:
        assert list(client.get("a").urls) == ["u"]

    assert manager.tokens == ["Bearer new"]


def test_call_on_a_channel_that_another_thread_replaces_is_repeated(
    manager: ScriptedExperimentService, supervised: Supervised
) -> None:
    manager.answers = [answering(pb.GetExperimentResponse(urls=[name])) for name in "abcd"]
    supervised(manager, "new")
    moved: list[str] = []

    with ManagerClient(endpoint_on(1), retry_step_s=SOON_S) as client:

        def method() -> Any:
            found = client._experiments.GetExperiment
            if not moved:
                moved.extend(client.get("a").urls)
            return found

        request = pb.GetExperimentRequest(experiment_id="a")
        assert list(client._call(method, request).urls) == ["b"]
        assert moved == ["a"]


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


def test_call_takes_no_longer_than_the_limit() -> None:
    given: list[float] = []

    def method(_request: object, *, timeout: float, metadata: object) -> None:
        given.append(timeout)

    with ManagerClient(endpoint_on(1), call_limit_s=1.0) as client:
        client._call(lambda: method, object())
        client._call(lambda: method, object(), 0.5)

    assert given == [1.0, 0.5]


def test_channel_that_never_closes_is_left_behind(
    manager: ScriptedExperimentService, monkeypatch: pytest.MonkeyPatch
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


def test_client_is_closed_though_the_interpreter_ends_and_starts_no_thread(
    manager: ScriptedExperimentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def refuse(thread: threading.Thread) -> None:
        refused.append(thread.name)
        raise RuntimeError("can't create new thread at interpreter shutdown")

    client = ManagerClient(endpoint_on(manager.port))
    with monkeypatch.context() as end:
        end.setattr(threading.Thread, "start", refuse)
        client.close()

    assert refused == ["close channel"]
    client.close()


def test_calls_and_streams_of_a_closed_client_say_so(manager: ScriptedExperimentService) -> None:
    client = ManagerClient(endpoint_on(manager.port))
    client.close()

    for use in (
        lambda: client.get("a"),
        lambda: client.wait("a", ()),
        lambda: list(client.events("a")),
        lambda: list(client.replay("a")),
    ):
        with pytest.raises(WrongStateError, match="the client was closed; open another one"):
            use()


def test_call_that_is_under_way_when_the_client_closes_says_so(
    manager: ScriptedExperimentService,
) -> None:
    client = ManagerClient(endpoint_on(manager.port), retry_step_s=SOON_S)
    begun, released = threading.Event(), threading.Event()

    def answer(_request: object, _context: object) -> pb.GetExperimentResponse:
        begun.set()
        released.wait(30)
        return pb.GetExperimentResponse()

    manager.answers = [answer]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.get, "a")
        assert begun.wait(30)
        client.close()
        error = waiting.exception(30)
        released.set()

    assert isinstance(error, WrongStateError)


def test_stream_on_a_channel_that_another_thread_replaces_begins_again(
    manager: ScriptedExperimentService, supervised: Supervised
) -> None:
    manager.answers = [
        answering(pb.GetExperimentResponse()),
        answering(iter([pb.FollowLogsResponse(data=b"text")])),
    ]
    supervised(manager, "new")
    moved: list[bool] = []

    with ManagerClient(endpoint_on(1), retry_step_s=SOON_S) as client:

        def method() -> Any:
            found = client._experiments.FollowLogs
            if not moved:
                moved.append(True)
                client.get("a")
            return found

        request = pb.FollowLogsRequest(experiment_id="a")
        pieces = list(client._resumed(method, request, lambda _: None, follow=True))

    assert [one.data for one in pieces] == [b"text"]


LISTENER = """\
import os, signal, socket
os.setuid(65534)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
signal.pause()
"""
"""Program that listens as another user."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_stream_is_not_begun_at_a_port_of_another_user() -> None:
    command = [sys.executable, "-c", LISTENER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            with (
                ManagerClient(endpoint_on(port), restart_s=0.0) as client,
                pytest.raises(UnreachableError, match="belongs to the user with number 65534"),
            ):
                next(client.events("a"))
        finally:
            process.kill()
