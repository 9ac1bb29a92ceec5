"""Health check of a service on this machine: `python -m svc_common.health HOST:PORT`.

For machines without another gRPC client; containers ask `/readyz` instead, which starts no
interpreter. Exit code 0: the service
is serving; 1: it is not, or does not answer, and stderr says why.
"""

import sys
from dataclasses import replace
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from svc_common.access.security import read_security_settings

TIMEOUT_S: Final = 3.0
"""Longest wait for the response; less than the time-out of any health check."""


def failure_reason(address: str, timeout_s: float = TIMEOUT_S) -> str | None:
    """Call a service's gRPC health check, blocking; return why it is not serving; None: it is.

    Args:
        address: `host:port` of its gRPC server.
        timeout_s: longest wait for the response, in seconds.
    """
    with _open(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its types name no method
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
        except grpc.RpcError as error:
            return f"{address} does not answer: {error.code().name}"
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return None
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return f"{address} says {status}"


def _open(address: str) -> grpc.Channel:
    # The check bypasses proxies of the environment, and needs no token.
    options = [("grpc.enable_http_proxy", 0)]
    transport = read_security_settings().transport
    # The environment is that of the service, so the transport is that of its server, too.
    listens_encrypted = transport.listens_encrypted
    if transport.client_ca is None:
        # Without mTLS the check needs no key: a process that other programs can inspect holds none.
        transport = replace(transport, certificate=None, key=None)
    encryption = transport.grpc_channel_credentials() if listens_encrypted else None
    if encryption is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, encryption, options=options)


def main(arguments: list[str]) -> int:
    """Check the gRPC health of the address in the arguments; return 0: serves, 1: not, 2: usage."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m svc_common.health HOST:PORT\n")
        return 2
    reason = failure_reason(arguments[0])
    if reason is None:
        return 0
    sys.stderr.write(f"{reason}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
