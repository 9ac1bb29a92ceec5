"""Parts of the agent that the settings choose; the whole is started by the integration tests."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from grpc.aio import insecure_channel
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from nni_proto.runner.v1 import task_pb2
from svc_common.clock import ManualClock
from svc_common.errors import FailedPreconditionError
from svc_common.lifecycle import Service
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import Signal, Task
from svc_common.storage.s3_settings import S3Settings
from svc_common.subjects import control_subject, presence_subject
from svc_common.telemetry.metrics import process_registry
from svc_trial_runner.adapters.claim_journal import FileClaimJournal
from svc_trial_runner.adapters.gpu_devices import NvmlGpuDevices
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.adapters.process_reaper import Reaper
from svc_trial_runner.adapters.process_table import identity_of
from svc_trial_runner.agent.agent import RENEW_EVERY_S, Agent
from svc_trial_runner.agent.presence import PRESENCE_EVERY_S
from svc_trial_runner.agent_settings import ConnectionKind, ConnectionSettings
from svc_trial_runner.app import (
    _abandon_within_grace,
    _gpu_count,
    _gpu_source,
    _open_dependencies,
    _open_guard,
    _open_processes,
    _open_state,
    _renew_for_ever,
    _serve,
    _stop_when_drained,
    _tidy_for_ever,
)
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.domain.claims import AttemptKey, ServerStarted
from svc_trial_runner.domain.gpus import GpuAllocation, GpuDevice, GpuRequest
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import FinishedTrial, LaunchRequest
from svc_trial_runner.settings import Settings, read_settings, settings_of_fleet
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


@dataclass
class Served:
    """Agent that is served on the in-memory bus, and what it has published."""

    service: Service
    settings: Settings
    agent: Agent
    facts: Mapping[str, str]
    presences: AsyncGenerator[Signal, None]

    async def presence(self) -> task_pb2.RunnerPresence:
        """Return the next presence of the agent."""
        return task_pb2.RunnerPresence.FromString((await anext(self.presences)).payload)


@asynccontextmanager
async def served(
    bench: Bench, settings: Settings, kind: type[Agent] = Agent
) -> AsyncIterator[Served]:
    """Serve an agent, and stop it."""
    service = Service()
    agent = kind(bench.dependencies, bench.bus.tasks, service.tasks, loses_unrenewed=False)
    state = _open_state(service, settings)
    presences = await bench.bus.signals.subscribe(presence_subject(state.name))
    registry = process_registry("trial-runner", "1")
    try:
        async with asyncio.timeout(30):
            facts = await _serve(
                service, settings, bench.bus, bench.dependencies, agent, state, registry
            )
            service.built()
            yield Served(service, settings, agent, facts, presences)
    finally:
        await service.aclose()
        await presences.aclose()


async def test_agent_takes_work_while_it_is_connected_and_does_not_drain(
    bench: Bench, tmp_path: Path
) -> None:
    async with served(bench, settings_of_fleet(fleet(tmp_path))) as one:
        takes = [one.service.takes_work]
        bench.broker.stop()
        takes.append(one.service.takes_work)
        bench.broker.start()
        takes.append(one.service.takes_work)
        one.agent.drain()
        takes.append(one.service.takes_work)

    assert takes == [True, False, True, False]


async def test_agent_of_a_fleet_listens_nowhere(bench: Bench, tmp_path: Path) -> None:
    async with served(bench, settings_of_fleet(fleet(tmp_path))) as one:
        presence = await one.presence()

    assert dict(one.facts) == {"grpc": "", "runner": "one"}
    assert (presence.grpc_address, presence.pool) == ("", "pool")


async def test_agent_of_this_machine_publishes_the_address_at_which_it_listens(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_METRICS", "127.0.0.1:0")
    async with served(bench, replace(read_settings([]), home=tmp_path / "home")) as one:
        presence = await one.presence()
        host, _, port = one.facts["grpc"].rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()

    assert presence.grpc_address == one.facts["grpc"]
    assert presence.runner_id == one.facts["runner"]
    assert "metrics" in one.facts
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


async def test_presence_tells_gpus_restart_and_outputs_that_wait(
    bench: Bench, tmp_path: Path
) -> None:
    settings = settings_of_fleet(fleet(tmp_path))
    bench.gpus.replace([GpuDevice(0, "a", 1), GpuDevice(1, "b", 1)])
    bench.dependencies.outputs.add(FinishedTrial("e1", "t1", 1, str(tmp_path / "t1")))
    async with served(bench, settings) as one:
        first = await one.presence()
    async with served(bench, settings) as one:
        second = await one.presence()

    assert (first.gpu_count, first.uploads, first.restarted) == (2, 1, False)
    assert second.restarted


async def test_agent_that_is_stopped_loses_its_trials_and_says_that_it_leaves(
    bench: Bench, tmp_path: Path
) -> None:
    async with served(bench, settings_of_fleet(fleet(tmp_path, grace_s=5.0))) as one:
        await bench.bus.tasks.publish(
            "pool", bench.task("t1", "sleep 600").SerializeToString(), message_id="1"
        )
        await bench.until_kind("t1", "started")
        await one.service.aclose()

        async with asyncio.timeout(30):
            while not (presence := await one.presence()).leaving:
                pass

    assert list(presence.trials) == []
    assert bench.kinds("t1")[-1] == "lost"


async def test_agent_of_a_fleet_drains_at_the_end_of_its_lifetime_and_stops(
    bench: Bench, tmp_path: Path
) -> None:
    settings = settings_of_fleet(fleet(tmp_path, max_lifetime_s=0.0))
    async with served(bench, settings) as one:
        await one.service.wait_stopping()

    assert one.agent.draining


async def test_order_to_drain_reaches_the_agent(bench: Bench, tmp_path: Path) -> None:
    async with served(bench, settings_of_fleet(fleet(tmp_path))) as one:
        order = task_pb2.RunnerControl(drain_runner=task_pb2.DrainRunner())
        bench.bus.signals.publish(control_subject("one"), order.SerializeToString())
        await one.service.wait_stopping()

    assert one.agent.draining


async def test_claims_are_renewed_while_the_agent_is_served(bench: Bench, tmp_path: Path) -> None:
    clock = ManualClock()
    bench.dependencies = replace(bench.dependencies, clock=clock)
    async with served(bench, settings_of_fleet(fleet(tmp_path))) as one:
        async with asyncio.timeout(30):
            while clock.sleepers < 3:  # noqa: ASYNC110 - the clock has no event
                await asyncio.sleep(0)
        assert (await one.presence()).runner_id == "one"
        clock.advance(PRESENCE_EVERY_S)
        assert (await one.presence()).runner_id == "one"


def test_store_of_another_machine_is_not_called_in_plain_text() -> None:
    settings = replace(
        read_settings([]), s3=S3Settings("http://198.51.100.7:9000", "key", "secret")
    )

    with pytest.raises(FailedPreconditionError, match="NNI_S3_ENDPOINT"):
        _open_guard(Service(), settings)


def open_files(folder: Path) -> list[str]:
    """Return the names of the files below a folder that this process has open."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor of this listing
            found.append(one.readlink())
    return sorted(path.name for path in found if path.is_relative_to(folder))


async def test_audit_trail_is_closed_with_the_service(tmp_path: Path) -> None:
    service = Service()

    guard = _open_guard(service, replace(read_settings([]), home=tmp_path / "home"))

    opened = open_files(tmp_path / "home")
    await service.aclose()
    assert guard.transport.ca is None
    assert opened == ["audit.log"]
    assert open_files(tmp_path / "home") == []


def sleeper() -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, as daemons have one."""
    return subprocess.Popen(["sleep", "600"], start_new_session=True)


class ManualReaper(Reaper):
    """Reaper that reaps nothing: the test reports the ends of children."""

    def __init__(self) -> None:
        self.calls: list[Callable[[int, int], None]] = []

    def on_end(self, call: Callable[[int, int], None]) -> None:
        self.calls.append(call)


async def test_processes_of_an_agent_are_noted_and_adopted_ones_are_known(tmp_path: Path) -> None:
    service, reaper = Service(), ManualReaper()
    journal = FileClaimJournal(tmp_path / "claims", "boot")
    service.adapters.callback(journal.close)
    daemon = sleeper()  # as if it were adopted
    processes = _open_processes(service, read_settings([]), journal, reaper)
    null = os.open(os.devnull, os.O_WRONLY)
    request = LaunchRequest(
        label="t",
        command="sleep 600",
        python=None,
        code=str(tmp_path),
        directory=str(tmp_path),
        base={"PATH": os.environ["PATH"]},
        variables={},
        stdout=null,
        stderr=null,
    )
    try:
        first = await processes.launch(replace(request, command="exit 0"))
        await asyncio.wait_for(first.ended, 30)
        left = processes.has_leftovers(first)
        second = await processes.launch(request)
        started = len(journal.state.servers)
        for call in reaper.calls:
            call(second.identity.pid, 7 << 8)
        status = await asyncio.wait_for(second.ended, 30)
    finally:
        os.close(null)
        await service.aclose()
        daemon.kill()
        daemon.wait()

    assert (started, status) == (1, 7 << 8)
    assert left
    assert journal.state.servers == []


class StoppedAgent(Agent):
    """Agent that notes what its stop calls, and the tasks that it is given."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls: list[str] = []
        self.during_the_end: Callable[[], Awaitable[None]] | None = None

    def lose_all(self) -> None:
        self.calls.append("lose")
        super().lose_all()

    async def abandon_all(self, grace_s: float) -> None:
        self.calls.append("abandon")
        if self.during_the_end is not None:
            await self.during_the_end()

    def take(self, task: Task) -> None:
        self.calls.append("take")
        super().take(task)


async def test_stopped_agent_loses_its_trials_at_once_and_takes_no_task_from_then_on(
    bench: Bench, tmp_path: Path
) -> None:
    async def publish_a_task() -> None:
        await bench.bus.tasks.publish(
            "pool", bench.task("t1").SerializeToString(), message_id="late"
        )
        for _ in range(20):  # turns of the loop
            await asyncio.sleep(0)

    async with served(bench, settings_of_fleet(fleet(tmp_path)), StoppedAgent) as one:
        assert isinstance(one.agent, StoppedAgent)
        await one.presence()
        one.agent.during_the_end = publish_a_task
        await one.service.aclose()

    assert one.agent.calls == ["lose", "abandon"]


async def test_draining_agent_is_given_no_further_task(bench: Bench, tmp_path: Path) -> None:
    async with served(bench, settings_of_fleet(fleet(tmp_path)), StoppedAgent) as one:
        assert isinstance(one.agent, StoppedAgent)
        for number, command in enumerate(("sleep 600", "true")):
            await bench.bus.tasks.publish(
                "pool",
                bench.task(f"t{number}", command).SerializeToString(),
                message_id=str(number),
            )
            if not number:
                await bench.until_kind("t0", "started")
                one.agent.drain()
            for _ in range(20):  # turns of the loop
                await asyncio.sleep(0)
        calls = list(one.agent.calls)
        for run in list(one.agent.attempts):
            one.agent.stop_trial(run.key)
        await one.agent.wait_drained()

    assert calls == ["take"]


async def test_outputs_are_stored_while_the_agent_is_served(bench: Bench, tmp_path: Path) -> None:
    outputs = bench.dependencies.outputs
    outputs.add(FinishedTrial("e1", "t1", 1, str(tmp_path / "gone")))
    async with served(bench, settings_of_fleet(fleet(tmp_path))):
        await outputs.wait_stored()

    assert outputs.waiting == 0


async def test_joined_agent_drains_at_an_interrupt(bench: Bench, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    async with served(bench, settings_of_fleet(fleet(tmp_path, platform="joined"))) as one:
        try:
            assert signal.getsignal(signal.SIGINT) is not before
            signal.raise_signal(signal.SIGINT)
            await one.agent.wait_draining()
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


async def test_health_is_not_serving_while_the_agent_ends_its_trials(
    bench: Bench, tmp_path: Path
) -> None:
    answers: list[int] = []

    async def ask(address: str) -> None:
        async with insecure_channel(address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answers.append((await stub.Check(health_pb2.HealthCheckRequest())).status)

    settings = replace(read_settings([]), home=tmp_path / "home")
    async with served(bench, settings, StoppedAgent) as one:
        assert isinstance(one.agent, StoppedAgent)
        address = one.facts["grpc"]
        await ask(address)
        one.agent.during_the_end = partial(ask, address)
        await one.service.aclose()

    status = health_pb2.HealthCheckResponse
    assert answers == [status.SERVING, status.NOT_SERVING]


async def test_processes_of_the_agent_before_are_killed_and_that_is_logged(tmp_path: Path) -> None:
    settings = replace(read_settings([]), home=tmp_path / "home")
    left = sleeper()
    identity = identity_of(left.pid)
    assert identity is not None
    try:
        first = Service()
        with capture_logs() as none:
            _open_state(first, settings).journal.append(ServerStarted(identity))
        await first.aclose()
        second = Service()
        with capture_logs() as lines:
            _open_state(second, settings)
        await second.aclose()
        status = left.wait(30)
    finally:
        left.kill()
        left.wait()

    assert status == -signal.SIGKILL
    assert none == []
    assert [(line["event"], line["count"]) for line in lines] == [
        ("predecessor's processes killed", 1)
    ]


async def test_state_of_an_agent_is_private_and_closed_with_it(tmp_path: Path) -> None:
    settings = replace(read_settings([]), home=tmp_path / "home")
    settings.home.mkdir()
    settings.runner_directory.mkdir()
    settings.runner_directory.chmod(0o755)
    service = Service()

    state = _open_state(service, settings)
    state.spool.append([("e1", b"report")])
    opened = open_files(settings.home)
    await service.aclose()

    assert settings.runner_directory.stat().st_mode & 0o777 == 0o700
    assert {"claims.journal", "claims.journal.lock"} < set(opened)
    assert open_files(settings.home) == []
