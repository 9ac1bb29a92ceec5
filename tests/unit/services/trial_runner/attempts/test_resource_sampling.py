"""Samples of running trials, from the timer to the line."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nni_proto.trial.v1 import output_pb2
from svc_common.clock import SystemClock
from svc_common.tasks import TaskOwner
from svc_trial_runner.adapters.gpu_devices import InMemoryGpuDevices
from svc_trial_runner.adapters.process_table import identity_of
from svc_trial_runner.adapters.process_use import ProcTrialUse
from svc_trial_runner.attempts.output_stream import OutputStreamer
from svc_trial_runner.attempts.resource_sampling import ResourceSampler, SampledTrial
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.domain.resource_use import RESOURCES, GpuUse
from tests.unit.services.trial_runner.conftest import Bench

COMPUTED_S = 0.2


def compute() -> None:
    """Use the processor for a while; a sample takes about a millisecond of it."""
    while time.thread_time() < COMPUTED_S:
        pass


class BreakableGpuDevices(InMemoryGpuDevices):
    """Devices whose driver may fail for a number of looks at their use."""

    failures = 0

    async def use(self, indices: Sequence[int]) -> Sequence[GpuUse]:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the driver was replaced")
        return await super().use(indices)


@dataclass
class Stage:
    """Sampler without delays, a process to sample, and an event for each new line."""

    sampler: ResourceSampler
    gpus: BreakableGpuDevices
    tasks: TaskOwner
    root: Path
    process: asyncio.subprocess.Process
    announced: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(
        self,
        name: str,
        gpu_indices: tuple[int, ...] = (),
        ended: asyncio.Future[int | None] | None = None,
    ) -> Callable[[], None]:
        identity = identity_of(self.process.pid)
        assert identity is not None
        folder, ended = self.folder(name), ended or never()
        return self.sampler.begin(
            SampledTrial(identity, folder, gpu_indices, ended, self.announced.set)
        )

    def folder(self, name: str) -> str:
        folder = self.root / name
        (folder / ".nni").mkdir(parents=True, exist_ok=True)
        return str(folder)

    def lines(self, name: str) -> list[dict[str, object]]:
        file = self.root / name / RESOURCES
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    async def has_lines(self, name: str, number: int) -> None:
        async with asyncio.timeout(30):
            while len(self.lines(name)) < number:
                self.announced.clear()
                await self.announced.wait()


def never() -> asyncio.Future[int | None]:
    return asyncio.get_running_loop().create_future()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    failures: list[BaseException] = []
    tasks = TaskOwner(lambda _name, error: failures.append(error))
    gpus = BreakableGpuDevices([GpuDevice(0, "one", 1), GpuDevice(1, "two", 1)])
    sampler = ResourceSampler(
        ProcTrialUse(),
        gpus,
        SystemClock(),
        tasks,
        first_s=0.0,
        interval_s=lambda _age_s, _reading_s: 0.0,
    )
    process = await asyncio.create_subprocess_exec("sleep", "600")
    yield Stage(sampler, gpus, tasks, tmp_path, process)
    await tasks.aclose()
    process.kill()
    await process.wait()
    assert failures == []


async def test_first_sample_has_no_cores_and_the_next_has(stage: Stage) -> None:
    stop = stage.begin("trial")
    await stage.has_lines("trial", 2)
    stop()

    first, second, *_ = stage.lines("trial")
    assert "cores" not in first
    assert isinstance(second["cores"], float)
    assert second["processes"] == 1


async def test_interval_depends_on_the_age_of_the_trial_and_the_time_of_reading(
    stage: Stage,
) -> None:
    asked: list[tuple[float, float]] = []

    def interval_s(age_s: float, reading_s: float) -> float:
        asked.append((age_s, reading_s))
        return 0.0

    stage.sampler = ResourceSampler(
        ProcTrialUse(), stage.gpus, SystemClock(), stage.tasks, 0.0, interval_s
    )
    await asyncio.to_thread(compute)  # what a thread has done before does not count
    stop = stage.begin("trial")
    await stage.has_lines("trial", 3)
    stop()

    ages = [age_s for age_s, _ in asked]
    assert 0 <= ages[0] < ages[1] < 60
    assert all(0 <= reading_s < COMPUTED_S for _, reading_s in asked)


async def test_only_the_gpus_of_the_trial_are_sampled(stage: Stage) -> None:
    stop = stage.begin("trial", gpu_indices=(1,))
    await stage.has_lines("trial", 1)
    stop()

    gpus = [{"index": 1, "utilization": 0.0, "memory": 0}]
    assert stage.lines("trial")[0]["gpus"] == gpus


async def test_sample_that_fails_is_a_gap_and_no_failure_of_the_agent(stage: Stage) -> None:
    stage.gpus.failures = 2
    with capture_logs() as logged:
        stop = stage.begin("trial", gpu_indices=(1,))
        await stage.has_lines("trial", 1)
        stop()

    assert "gpus" in stage.lines("trial")[0]
    assert [line["error"] for line in logged] == ["the driver was replaced"]


async def test_trial_stopped_before_its_first_sample_has_none(stage: Stage) -> None:
    stage.begin("short")()
    stop = stage.begin("long")
    await stage.has_lines("long", 2)  # so the time of the other one's first sample is over
    stop()

    assert stage.lines("short") == []


async def test_ended_process_is_not_sampled(stage: Stage) -> None:
    ended = ProcessIdentity(stage.process.pid, 1)  # as if another process had its number now
    stage.sampler.begin(SampledTrial(ended, stage.folder("old"), (), never(), stage.announced.set))
    stop = stage.begin("new")
    await stage.has_lines("new", 2)
    stop()

    assert stage.lines("old") == []


async def test_process_that_goes_on_with_another_trial_is_not_sampled_for_the_ended_one(
    stage: Stage,
) -> None:
    ended = never()
    stage.begin("first", ended=ended)
    await stage.has_lines("first", 1)
    ended.set_result(0)
    await stage.tasks.drain()  # a sample under way
    lines = stage.lines("first")
    stop = stage.begin("second")
    await stage.has_lines("second", 3)
    stop()

    assert stage.lines("first") == lines


async def test_forget_deletes_the_samples_of_an_earlier_attempt(stage: Stage) -> None:
    folder = stage.folder("trial")
    (stage.root / "trial" / RESOURCES).write_text("{}")

    stage.sampler.forget(folder)

    assert stage.lines("trial") == []


async def test_running_attempt_is_sampled(bench: Bench) -> None:
    sampler = ResourceSampler(
        ProcTrialUse(), InMemoryGpuDevices(), SystemClock(), bench.tasks, first_s=0.0
    )
    bench.dependencies = replace(bench.dependencies, resources=sampler)
    file = bench.folder / "experiment/trials/t1" / RESOURCES
    # The trial itself waits for its first sample.
    task = bench.task("t1", f"until [ -s {file} ]; do sleep 0.02; done")

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("t1", "exited")

    assert json.loads(file.read_text().splitlines()[0])["processes"] >= 1


async def test_samples_of_an_earlier_attempt_are_not_shown_as_those_of_the_next(
    bench: Bench,
) -> None:
    bench.dependencies = replace(
        bench.dependencies,
        live=OutputStreamer(
            bench.bus.log_lines, bench.bus.wait_connected, SystemClock(), bench.tasks
        ),
        resources=ResourceSampler(
            ProcTrialUse(), InMemoryGpuDevices(), SystemClock(), bench.tasks, first_s=600.0
        ),
    )
    file = bench.folder / "experiment/trials/t1" / RESOURCES
    file.parent.mkdir(parents=True)
    file.write_text('{"time":1}\n')

    await bench.deliver(bench.agent(), bench.task("t1", attempt=2))

    pieces = []
    async with asyncio.timeout(30), aclosing(bench.bus.log_lines.follow("exp", "t1")) as feed:
        async for chunk in feed:
            pieces.append(output_pb2.TrialOutput.FromString(chunk.payload))
            if pieces[-1].at_end:
                break
    assert [piece.data for piece in pieces] == [b""]
    await bench.until_kind("t1", "exited")


class CountingTasks(TaskOwner):
    """Owner that counts the tasks that were started."""

    started = 0

    def start(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        self.started += 1
        return super().start(work, name)


async def test_trial_that_is_stopped_costs_no_task(stage: Stage) -> None:
    tasks = CountingTasks(lambda _name, _error: None)
    stage.sampler = ResourceSampler(
        ProcTrialUse(), stage.gpus, SystemClock(), tasks, 0.0, lambda _age_s, _reading_s: 0.0
    )
    ended = never()
    stop = stage.begin("one")
    stage.begin("two", ended=ended)

    stop()
    stop()
    ended.set_result(0)
    for _ in range(5):  # turns of the loop; the timers of the first samples are due
        await asyncio.sleep(0)

    assert tasks.started == 0
