"""Parts of the agent that the settings choose; the whole is started by the integration tests."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from svc_common.clock import ManualClock
from svc_common.lifecycle import Service
from svc_common.messaging.memory import InMemoryBus
from svc_trial_runner.adapters.gpu_devices import NvmlGpuDevices
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.agent.agent import RENEW_EVERY_S, Agent
from svc_trial_runner.agent.presence import PRESENCE_EVERY_S
from svc_trial_runner.agent_settings import ConnectionKind, ConnectionSettings
from svc_trial_runner.app import (
    _abandon_within_grace,
    _gpu_count,
    _gpu_source,
    _open_dependencies,
    _open_state,
    _renew_for_ever,
    _stop_when_drained,
    _tidy_for_ever,
)
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.gpus import GpuAllocation, GpuDevice, GpuRequest
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import FinishedTrial
from svc_trial_runner.settings import read_settings, settings_of_fleet
from tests.support.byte_service import byte_service
from tests.unit.services.trial_runner.adapters.test_manager_blobs import ElsewhereStore
from tests.unit.services.trial_runner.conftest import Bench
from tests.unit.services.trial_runner.test_wiring import fleet


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_HOME", str(tmp_path))


async def test_pretended_gpus_have_the_first_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_FAKE_GPUS", "2")

    devices = await _gpu_source(read_settings([])).devices()

    assert devices == [GpuDevice(index, "pretended", 1 << 30) for index in range(2)]


def test_gpus_are_those_of_the_machine_unless_they_are_pretended() -> None:
    assert isinstance(_gpu_source(read_settings([])), NvmlGpuDevices)


async def test_claims_are_renewed_again_and_again(bench: Bench) -> None:
    clock = ManualClock()
    renewing = asyncio.ensure_future(_renew_for_ever(bench.agent(), clock))
    rounds = 0
    while rounds < 3 and not renewing.done():
        await asyncio.sleep(0)
        rounds += clock.sleepers
        clock.advance(RENEW_EVERY_S)

    assert not renewing.done()
    renewing.cancel()
    await asyncio.gather(renewing, return_exceptions=True)


@pytest.mark.parametrize("in_fleet", [True, False])
async def test_drained_agent_waits_for_its_outputs_only_in_a_fleet(
    bench: Bench, tmp_path: Path, *, in_fleet: bool
) -> None:
    settings = settings_of_fleet(fleet(tmp_path)) if in_fleet else read_settings([])
    service, agent, outputs = Service(), bench.agent(), bench.dependencies.outputs
    outputs.add(FinishedTrial("e1", "t1", 1, str(tmp_path / "t1")))
    agent.drain()

    ending = asyncio.ensure_future(_stop_when_drained(service, settings, agent, outputs))
    stopping = asyncio.ensure_future(service.wait_stopping())
    for _ in range(10):  # turns of the loop; nothing uploads the output meanwhile
        await asyncio.sleep(0)

    assert (stopping.done(), outputs.waiting) == (not in_fleet, 1)
    for task in (ending, stopping):
        task.cancel()
    await asyncio.gather(ending, stopping, return_exceptions=True)


async def test_agent_of_a_fleet_loads_values_through_the_manager(
    bench: Bench, tmp_path: Path
) -> None:
    store, given = ElsewhereStore(), bench.dependencies
    key = (await store.put(json.dumps([1, 2]).encode())).removeprefix("sha256/")
    async with InMemoryBus() as bus, byte_service(bus, store) as address, asyncio.timeout(30):
        connection = ConnectionSettings(ConnectionKind.DIRECT, "nats://127.0.0.1:1", address, "")
        settings = settings_of_fleet(fleet(tmp_path, connection=connection))
        service, tools = Service(), tmp_path / "tools"
        made = await _open_dependencies(
            service, settings, given.journal, given.reporter, given.processes, tools
        )
        try:
            loaded = await made.values.load(AttemptKey("e1", "t1", 1), BlobKey(key, 6))
        finally:
            await service.aclose()

    assert loaded == [1, 2]
    assert made.platform == "slurm"


class RecordingProcesses(LocalProcesses):
    """Launcher that notes what is tidied."""

    def __init__(self) -> None:
        super().__init__(None, lambda _: None, os.getpid())
        self.calls: list[str] = []

    def release_idle(self, idle_s: float) -> None:
        self.calls.append(f"release after {idle_s:g} s")

    def continue_stopped(self) -> None:
        self.calls.append("continue")


async def test_idle_interpreters_are_released_and_stopped_ones_continued_every_time(
    bench: Bench,
) -> None:
    clock, processes = ManualClock(), RecordingProcesses()
    dependencies = replace(bench.dependencies, processes=ReusedProcesses(processes, 60.0))
    tidying = asyncio.ensure_future(_tidy_for_ever(dependencies, clock))
    await asyncio.sleep(0)
    clock.advance(PRESENCE_EVERY_S / 2)
    await asyncio.sleep(0)
    assert processes.calls == []
    clock.advance(PRESENCE_EVERY_S / 2)
    for _ in range(2):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clock.advance(PRESENCE_EVERY_S)
    await asyncio.sleep(0)

    tidying.cancel()
    await asyncio.gather(tidying, return_exceptions=True)
    assert processes.calls == ["release after 600 s", "continue"] * 3


async def test_gpu_that_another_program_frees_unannounced_is_found(bench: Bench) -> None:
    clock, gpus = ManualClock(), bench.dependencies.gpus
    bench.gpus.replace([GpuDevice(0, "a", 1, frozenset({1}))])
    waiting = asyncio.ensure_future(gpus.acquire(GpuRequest("e", "one", 1), lambda _: None))
    tidying = asyncio.ensure_future(_tidy_for_ever(bench.dependencies, clock))
    while not clock.sleepers or not gpus.waiting:  # noqa: ASYNC110 - neither has an event
        await asyncio.sleep(0)

    bench.gpus.replace([GpuDevice(0, "a", 1)])
    clock.advance(PRESENCE_EVERY_S)

    assert await asyncio.wait_for(waiting, 30) == GpuAllocation((0,))
    tidying.cancel()
    await asyncio.gather(tidying, return_exceptions=True)


class AbandonedAgent(Agent):
    """Agent that notes the time that its attempts are given to end."""

    grace_s = -1.0

    async def abandon_all(self, grace_s: float) -> None:
        self.grace_s = grace_s


@pytest.mark.parametrize(
    ("connected", "granted_s", "grace_s"), [(True, 60.0, 59.0), (False, 60.0, 4.0), (False, 3, 2)]
)
async def test_attempts_have_the_grace_but_its_last_second_unless_the_bus_is_away(
    bench: Bench, *, connected: bool, granted_s: float, grace_s: float
) -> None:
    agent = AbandonedAgent(bench.dependencies, bench.bus.tasks, bench.tasks, loses_unrenewed=False)
    if not connected:
        bench.broker.stop()

    settings = replace(read_settings([]), grace_s=granted_s)
    await _abandon_within_grace(settings, bench.bus, bench.dependencies, agent)
    bench.broker.start()

    assert agent.grace_s == grace_s


@pytest.mark.parametrize(
    ("in_fleet", "connected", "waits"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
async def test_end_of_an_agent_waits_for_its_outputs_only_in_a_fleet_that_it_reaches(
    bench: Bench, tmp_path: Path, *, in_fleet: bool, connected: bool, waits: bool
) -> None:
    settings = settings_of_fleet(fleet(tmp_path)) if in_fleet else read_settings([])
    bench.dependencies.outputs.add(FinishedTrial("e1", "t1", 1, str(tmp_path / "t1")))
    if not connected:
        bench.broker.stop()

    with capture_logs() as lines:
        await _abandon_within_grace(
            replace(settings, grace_s=1.0), bench.bus, bench.dependencies, bench.agent()
        )
    bench.broker.start()

    events = [line["event"] for line in lines if line["log_level"] == "error"]
    assert events == (["outputs of trials not stored"] if waits else [])


async def test_end_of_an_agent_gives_its_outputs_the_rest_of_the_grace(
    bench: Bench, tmp_path: Path
) -> None:
    settings = settings_of_fleet(fleet(tmp_path))
    outputs = bench.dependencies.outputs
    outputs.add(FinishedTrial("e1", "t1", 1, str(tmp_path / "gone")))
    storing = asyncio.create_task(outputs.run())

    with capture_logs() as lines:
        await _abandon_within_grace(
            replace(settings, grace_s=60.0), bench.bus, bench.dependencies, bench.agent()
        )
    storing.cancel()

    assert outputs.waiting == 0
    assert [line for line in lines if line["log_level"] == "error"] == []


async def test_agent_keeps_its_id_and_knows_that_it_was_restarted() -> None:
    opened = []
    for _ in range(2):
        service = Service()
        opened.append(_open_state(service, read_settings([])))
        await service.aclose()

    first, second = opened
    assert (first.restarted, second.restarted) == (False, True)
    assert first.name == second.name
    assert first.boot_id != second.boot_id


async def test_gpus_of_the_machine_are_counted(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 1), GpuDevice(3, "b", 1)])

    assert await _gpu_count(bench.dependencies.gpus) == 2
