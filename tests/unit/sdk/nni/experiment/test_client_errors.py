"""Statuses of a real gRPC server in this process, as errors of the library."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from nni.experiment.client_errors import deadline_passed, error_facts, is_passing, translated
from nni.experiment.errors import (
    ConfigError,
    ExperimentError,
    NotFoundError,
    RefusedError,
    ServiceFailedError,
    UnreachableError,
    WrongStateError,
)
from nni_wire.metadata import ERROR_DETAILS_KEY

Fail = Callable[[grpc.StatusCode, bytes], grpc.RpcError]
CODES = list(grpc.StatusCode)[1:]


@pytest.fixture
def fail() -> Iterator[Fail]:
    """Call a method that ends with a status and details; return the error of the client."""

    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        name, _, details = request.partition(b" ")
        context.set_trailing_metadata(((ERROR_DETAILS_KEY, details),))
        context.abort(grpc.StatusCode[name.decode()], "port must be free, got 80")

    server = grpc.server(ThreadPoolExecutor(1))
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(refuse)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("Test", {"Fail": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: Any = channel.unary_unary("/Test/Fail")

        def call(code: grpc.StatusCode, details: bytes) -> grpc.RpcError:
            with pytest.raises(grpc.RpcError) as raised:
                method(code.name.encode() + b" " + details)
            return raised.value

        yield call
    server.stop(None).wait()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, ConfigError),
        (grpc.StatusCode.NOT_FOUND, NotFoundError),
        (grpc.StatusCode.FAILED_PRECONDITION, WrongStateError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, RefusedError),
        (grpc.StatusCode.PERMISSION_DENIED, UnreachableError),
        (grpc.StatusCode.ABORTED, ServiceFailedError),
        (grpc.StatusCode.DATA_LOSS, ServiceFailedError),
    ],
)
def test_status_has_its_error_with_text_and_facts(
    fail: Fail, code: grpc.StatusCode, error: type[ExperimentError]
) -> None:
    found = translated(fail(code, b'{"field": "port"}'))

    assert type(found) is error
    assert str(found) == "port must be free, got 80"
    assert found.facts == {"field": "port"}


def test_manager_that_does_not_answer_has_a_remedy(fail: Fail) -> None:
    found = translated(fail(grpc.StatusCode.UNAVAILABLE, b"{}"))

    assert "the manager does not answer" in str(found)
    assert "nnictl doctor" in str(found)


@pytest.mark.parametrize("details", [b"no json", b"[1]"])
def test_details_that_are_no_map_are_no_facts(fail: Fail, details: bytes) -> None:
    error: Any = fail(grpc.StatusCode.NOT_FOUND, details)  # a `grpc.Call` too

    assert error_facts(error) == {}


def test_calls_that_may_work_later_are_those_of_a_manager_that_is_away(fail: Fail) -> None:
    passing = {code for code in CODES if is_passing(fail(code, json.dumps({}).encode()))}

    assert passing == {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
    }
    assert deadline_passed(fail(grpc.StatusCode.DEADLINE_EXCEEDED, b""))
    assert not deadline_passed(fail(grpc.StatusCode.UNAVAILABLE, b""))


def test_error_without_a_call_keeps_its_text() -> None:
    found = translated(grpc.RpcError("broken"))

    assert (type(found), str(found)) == (ServiceFailedError, "broken")
