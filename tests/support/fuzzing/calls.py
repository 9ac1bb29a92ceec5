"""Generic calls of any RPC with arbitrary bytes, and the statuses that services may answer."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from nni_wire.limits import grpc_channel_options
from nni_wire.metadata import ERROR_DETAILS_KEY, bearer

CALL_TIMEOUT_S: Final = 60.0
"""Time-out of a call; a longer one counts as hanging."""
WAITING_CALL_TIMEOUT_S: Final = 0.03
"""Time-out of calls that wait for an event: long enough for a defect to show."""
DELIBERATE: Final = frozenset(
    {
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""Statuses that a service returns deliberately to an authenticated caller."""


@dataclass(frozen=True)
class Answer:
    """Answer to a call."""

    code: grpc.StatusCode
    message: str
    facts: dict[str, str]
    payload: bytes

    def read(self, kind: type[Any]) -> Any:
        """Return the answer parsed as a message."""
        return kind.FromString(self.payload)


@dataclass(frozen=True)
class Server:
    """Channel and token of a service process."""

    channel: grpc.Channel
    token: str

    def call(self, method: MethodDescriptor, payload: bytes, timeout_s: float) -> Answer:
        """Call a method of any kind; return the last message of a stream."""
        path = f"/{method.containing_service.full_name}/{method.name}"
        options: Any = {"timeout": timeout_s, "metadata": bearer(self.token)}
        try:
            if method.client_streaming:
                answers: Any = self.channel.stream_unary(path)
                return Answer(grpc.StatusCode.OK, "", {}, answers(iter([payload] * 2), **options))
            if method.server_streaming:
                stream: Any = self.channel.unary_stream(path)
                got: list[bytes] = list(stream(payload, **options))
                return Answer(grpc.StatusCode.OK, "", {}, got[-1] if got else b"")
            call: Any = self.channel.unary_unary(path)
            answer: bytes = call(payload, **options)
        except grpc.RpcError as error:
            return _refusal(error)
        return Answer(grpc.StatusCode.OK, "", {}, answer)


def _refusal(error: Any) -> Answer:
    facts = {}
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_DETAILS_KEY:
            facts = json.loads(value)
    return Answer(error.code(), error.details() or "", facts, b"")


def open_server(address: str, token: str) -> Server:
    """Open a channel to a service of this machine."""
    options = [*grpc_channel_options(), ("grpc.enable_http_proxy", 0)]
    return Server(grpc.insecure_channel(address, options=options), token)


def services_of(folder: Path) -> list[str]:
    """Load the protos of a folder; return the full names of their services."""
    found = []
    for path in sorted(folder.rglob("*.proto")):
        module = ".".join(path.relative_to(folder.parent).with_suffix("").parts) + "_pb2"
        file: Any = importlib.import_module(module).DESCRIPTOR
        found += [service.full_name for service in file.services_by_name.values()]
    return found


def methods_of(services: Iterable[str]) -> list[MethodDescriptor]:
    """Return every method of some services, by their full names."""
    pool: Any = descriptor_pool.Default()
    return [method for name in services for method in pool.FindServiceByName(name).methods]


def served_by(address: str, token: str) -> list[str]:
    """Return the full names of the services of a server, which may have to start first."""
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = stub.ServerReflectionInfo(
            iter([request]), metadata=bearer(token), timeout=30, wait_for_ready=True
        )
    return [service.name for service in answer.list_services_response.service]


def request_class(method: MethodDescriptor) -> type[Message]:
    """Return the message class of a method's requests."""
    return GetMessageClass(method.input_type)


def waits(method: MethodDescriptor, payload: bytes) -> bool:
    """Return whether a call may stay open without an answer."""
    if method.name.startswith("Wait"):
        return True
    try:
        request: Any = request_class(method).FromString(payload)
    except Exception:  # noqa: BLE001 - bytes that are no message are what fuzzing is about
        return False
    return bool(getattr(request, "follow", False))
