import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from svc_common.health import failure_reason, main
from svc_common.rpc.server import GrpcServer
from tests.support import wait
from tests.support.ports import free_port

WAIT_S = 60.0


@pytest.fixture
async def server() -> AsyncIterator[tuple[GrpcServer, str]]:
    one = GrpcServer([], "secret")
    port = await one.start()
    yield one, f"127.0.0.1:{port}"
    await one.stop(0.1)


async def test_serving_service_has_no_failure_and_needs_no_token(
    server: tuple[GrpcServer, str],
) -> None:
    assert await asyncio.to_thread(failure_reason, server[1], WAIT_S) is None


async def test_stopping_service_is_not_serving(server: tuple[GrpcServer, str]) -> None:
    await server[0].set_not_serving()

    reason = await asyncio.to_thread(failure_reason, server[1], WAIT_S)
    assert reason == f"{server[1]} says NOT_SERVING"


def test_unreachable_service_is_a_failure() -> None:
    address = f"127.0.0.1:{free_port()}"

    assert failure_reason(address, WAIT_S) == f"{address} does not answer: UNAVAILABLE"


def test_command_without_address_prints_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "HOST:PORT" in capsys.readouterr().err


async def test_command_ends_with_the_exit_code_for_container_engines(
    server: tuple[GrpcServer, str],
) -> None:
    command = (sys.executable, "-P", "-m", "svc_common.health")
    dead = f"127.0.0.1:{free_port()}"

    def is_served() -> bool:
        # Like a container engine, which asks again: a machine may stall for the limit of a check.
        return subprocess.run([*command, server[1]], check=False).returncode == 0

    await asyncio.to_thread(wait.until, is_served, WAIT_S, "an exit with 0")
    refused = await asyncio.to_thread(
        subprocess.run, [*command, dead], check=False, capture_output=True, text=True
    )

    assert refused.returncode == 1
    assert dead in refused.stderr
