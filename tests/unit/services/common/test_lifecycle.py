import asyncio
import json
import os
import signal
from collections.abc import Iterator, Mapping

import httpx
import pytest

from svc_common.errors import FailedPreconditionError
from svc_common.lifecycle import Heartbeat, Service, run
from svc_common.telemetry import health_listener
from tests.support import wait
from tests.support.ports import free_port


async def test_stop_handlers_run_in_the_documented_order() -> None:
    order: list[str] = []
    service = Service(grace_s=1.0)

    def step(name: str) -> None:
        order.append(name)

    async def health() -> None:
        step("health")

    async def consumer() -> None:
        step("consumer")

    async def server(_grace_s: float) -> None:
        step("server")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            step("task")

    service.adapters.callback(step, "first adapter")
    service.adapters.callback(step, "second adapter")
    service.on_stopping(health)
    service.add_consumer(consumer)
    service.add_server(server)
    service.tasks.start(work(), "work")
    await asyncio.sleep(0)

    await service.aclose()
    await service.aclose()

    assert order == ["health", "consumer", "server", "task", "second adapter", "first adapter"]


async def test_failed_stop_handler_does_not_block_the_others() -> None:
    closed: list[str] = []
    service = Service(grace_s=1.0)

    async def broken() -> None:
        raise ValueError("no")

    async def server(_grace_s: float) -> None:
        closed.append("server")

    service.add_consumer(broken)
    service.add_server(server)

    await service.aclose()

    assert closed == ["server"]


async def test_signal_ends_a_service_with_exit_code_zero() -> None:
    built = asyncio.Event()

    async def build(_service: Service) -> Mapping[str, str]:
        built.set()
        return {}

    running = asyncio.ensure_future(run(build))
    await built.wait()

    os.kill(os.getpid(), signal.SIGTERM)

    assert await running == 0


@pytest.fixture
def hangup_restored() -> Iterator[None]:
    """Restore this process's disposition of HUP after the test."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, signal.SIG_DFL if before is None else before)


@pytest.mark.usefixtures("hangup_restored")
async def test_hangup_ends_a_service_as_term_does() -> None:
    signal.signal(signal.SIGHUP, lambda *_: None)  # harmless to this process, without a service
    built = asyncio.Event()

    async def build(_service: Service) -> Mapping[str, str]:
        built.set()
        return {}

    running = asyncio.ensure_future(run(build))
    await built.wait()

    os.kill(os.getpid(), signal.SIGHUP)

    assert await running == 0


@pytest.mark.usefixtures("hangup_restored")
async def test_hangup_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    seen: list[object] = []

    async def build(service: Service) -> Mapping[str, str]:
        seen.append(signal.getsignal(signal.SIGHUP))
        service.stop()
        return {}

    assert await run(build) == 0
    assert seen == [signal.SIG_IGN]


async def test_signal_during_the_start_cancels_it() -> None:
    building = asyncio.Event()
    closed: list[str] = []

    async def build(service: Service) -> Mapping[str, str]:
        service.adapters.callback(closed.append, "adapter")
        building.set()
        await asyncio.Event().wait()
        return {}

    running = asyncio.ensure_future(run(build))
    await building.wait()

    os.kill(os.getpid(), signal.SIGINT)

    assert await running == 0
    assert closed == ["adapter"]


async def test_start_that_fails_ends_with_exit_code_one() -> None:
    closed: list[str] = []

    async def build(service: Service) -> Mapping[str, str]:
        service.adapters.callback(closed.append, "adapter")
        raise ValueError("no")

    assert await run(build) == 1
    assert closed == ["adapter"]


async def test_failed_start_is_reported_to_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setenv("NNI_READY_FD", str(writer))

    async def build(_service: Service) -> Mapping[str, str]:
        raise FailedPreconditionError("port 8080 is taken")

    assert await run(build) == 1
    with os.fdopen(reader) as pipe:
        assert json.loads(pipe.read()) == {"ready": False, "error": "port 8080 is taken"}


async def test_task_that_fails_ends_the_service_with_exit_code_one() -> None:
    async def broken() -> None:
        raise ValueError("no")

    async def build(service: Service) -> Mapping[str, str]:
        service.tasks.start(broken(), "broken")
        return {}

    assert await run(build) == 1


async def test_first_stop_names_the_exit_code() -> None:
    async def build(service: Service) -> Mapping[str, str]:
        service.stop(75)
        service.stop()
        return {}

    assert await run(build) == 75


async def test_heartbeat_is_written_while_the_loop_runs_and_never_blocks() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    while True:
        try:
            filled += os.write(writer, b"x" * 4096)
        except BlockingIOError:
            break
    full = Heartbeat(asyncio.get_running_loop(), writer)
    full.close()
    while filled:
        filled -= len(os.read(reader, min(filled, 65536)))

    heartbeat = Heartbeat(asyncio.get_running_loop(), writer)

    assert os.read(reader, 10) == b"."
    assert not os.get_inheritable(writer)
    heartbeat.close()
    os.close(reader)
    os.close(writer)


async def test_health_listens_during_the_start_and_knows_when_work_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setenv("NNI_HEALTH", f"127.0.0.1:{port}")
    monkeypatch.setattr(health_listener, "_REQUEST_TIMEOUT_S", 60.0)
    begun, finish = asyncio.Event(), asyncio.Event()
    held: list[Service] = []
    connected = True

    async def build(service: Service) -> Mapping[str, str]:
        held.append(service)
        service.takes_work_if(lambda: connected)
        begun.set()
        await finish.wait()
        return {}

    async def codes() -> tuple[int, int]:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            alive, ready = await client.get("/livez"), await client.get("/readyz")
            return alive.status_code, ready.status_code

    running = asyncio.create_task(run(build))
    await begun.wait()
    assert await codes() == (200, 503)
    finish.set()
    await asyncio.sleep(0)
    await asyncio.to_thread(wait.until, lambda: held[0].takes_work, 60, "the start")
    assert await codes() == (200, 200)
    connected = False
    assert await codes() == (200, 503)
    connected = True
    held[0].stop()
    assert not held[0].takes_work
    assert await running == 0


async def test_taken_health_port_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_HEALTH", "nonsense")
    reader, writer = os.pipe()
    monkeypatch.setenv("NNI_READY_FD", str(writer))

    async def build(_: Service) -> Mapping[str, str]:
        return {}

    assert await run(build) == 1
    with os.fdopen(reader) as pipe:
        assert "NNI_HEALTH" in json.loads(pipe.readline())["error"]
