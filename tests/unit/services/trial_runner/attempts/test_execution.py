import asyncio
import errno
import json
import os
import select
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nni_proto.trial.v1 import cause_pb2, report_pb2
from nni_wire.pools import experiment_pool
from svc_common.clock import SystemClock
from svc_common.experiment_events.causes import LossCause, LossReason
from svc_common.storage.code_archives import CodeArchives
from svc_common.storage.shared_storage import LocalMount, SharedStorage, StorageKind
from svc_common.telemetry.trace_ids import TraceParent, span_id, trial_trace_id
from svc_common.telemetry.tracing import TrialSpan
from svc_trial_runner.adapters.code_archives import CachedCodeStore
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.adapters.mounted_storage import MountedStorage
from svc_trial_runner.adapters.report_spool import DirectoryReportSpool
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.attempts.execution import AttemptRun
from svc_trial_runner.attempts.launch_plans import LaunchPlans
from svc_trial_runner.attempts.process_reuse import ReusedProcesses
from svc_trial_runner.converters import read_entry
from svc_trial_runner.domain.attempt import Phase, StopTrigger
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.gpus import GpuDevice, GpuRequest
from svc_trial_runner.ports import LaunchRequest, StarterEndedError, TrialProcess
from svc_trial_runner.telemetry import Telemetry
from tests.unit.services.trial_runner.conftest import EXPERIMENT, WAIT_S, Bench

KEY = AttemptKey(EXPERIMENT, "one", 1)


async def running(bench: Bench, command: str = "sleep 30", **spec: Any) -> AttemptRun:
    """Start a trial in an agent; return its attempt."""
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", command, {"x": 1}, **spec))
    (run,) = agent.attempts
    await bench.until_kind("one", "started")
    return run


async def ended(bench: Bench, run: AttemptRun) -> report_pb2.AttemptExited:
    run.stop(StopTrigger.STOPPED)
    return (await bench.until_kind("one", "exited")).exited


async def test_parameters_in_the_byte_store_are_fetched(bench: Bench) -> None:
    key = await bench.blobs.put(json.dumps({"big": 1}).encode())
    task = bench.task("one", "sleep 30")
    task.parameters.blob_value.sha256 = key.removeprefix("sha256/")
    agent = bench.agent()

    await bench.deliver(agent, task)
    await bench.until_kind("one", "started")

    (run,) = agent.attempts
    text = (bench.folder / "experiment/trials/one/parameter.cfg").read_text()
    assert json.loads(text)["parameters"] == {"big": 1}
    await ended(bench, run)


async def test_missing_parameters_are_an_error(bench: Bench) -> None:
    task = bench.task("one")
    task.parameters.blob_value.sha256 = "0" * 64

    await bench.deliver(bench.agent(), task)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_NOT_STARTED
    assert "0" * 64 in exited.detail


async def not_started(bench: Bench, trial_id: str) -> cause_pb2.LossReason:
    loss = (await bench.until_kind(trial_id, "lost")).lost.loss
    assert loss.cause == cause_pb2.LOSS_CAUSE_NOT_STARTED
    assert bench.kinds(trial_id) == ["lost"]
    return loss


async def test_missing_environment_loses_the_attempt(bench: Bench) -> None:
    gone = str(bench.folder / "environment.json")

    await bench.deliver(bench.agent(), bench.task("one", environment_file=gone))

    assert gone in (await not_started(bench, "one")).detail


async def test_code_that_cannot_be_unpacked_loses_the_attempt(bench: Bench) -> None:
    task = bench.task("one")
    task.spec.code_archive.sha256 = "0" * 64

    await bench.deliver(bench.agent(), task)

    assert "cannot be had" in (await not_started(bench, "one")).detail


async def test_missing_interpreter_loses_the_attempt(bench: Bench) -> None:
    task = bench.task("one", f"{bench.folder}/venv/bin/python trial.py")

    await bench.deliver(bench.agent(), task)

    detail = (await not_started(bench, "one")).detail
    assert detail == f"there is no interpreter {bench.folder}/venv/bin/python"


async def test_working_directory_that_vanishes_loses_the_next_attempt(bench: Bench) -> None:
    agent = bench.agent()
    code = bench.folder / "work"
    code.mkdir()
    await bench.deliver(agent, bench.task("one", code_directory=str(code)))
    await bench.until_kind("one", "exited")
    code.rmdir()

    await bench.deliver(agent, bench.task("two", code_directory=str(code)))

    assert f"{code} does not exist" in (await not_started(bench, "two")).detail


async def test_error_of_the_system_before_the_start_loses_the_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / "code" / ("0" * 64)).mkdir(parents=True)
    task = bench.task("one")
    task.spec.code_archive.sha256 = "0" * 64

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "utime", read_only)
    await bench.deliver(bench.agent(), task)

    assert "Read-only file system" in (await not_started(bench, "one")).detail


async def test_stop_sends_term_and_reports_it(bench: Bench) -> None:
    run = await running(bench)

    exited = await ended(bench, run)

    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert exited.signal == 15


async def test_running_attempt_has_its_leader_in_the_journal(bench: Bench) -> None:
    run = await running(bench)
    assert run.process is not None

    (claim,) = bench.dependencies.journal.state.claims.values()

    assert claim.leader == run.process.identity
    await ended(bench, run)


@pytest.mark.parametrize(("code", "detail"), [(3, "oh"), (0, "")])
async def test_state_of_an_ended_trial_is_written_and_a_failure_has_its_last_words(
    bench: Bench, code: int, detail: str
) -> None:
    await bench.deliver(bench.agent(), bench.task("one", f"echo oh >&2; exit {code}"))

    exited = (await bench.until_kind("one", "exited")).exited
    state = (bench.folder / "experiment/trials/one/.nni/state").read_text().split()
    assert (exited.exit_code, exited.detail) == (code, detail)
    assert state[0] == str(code)
    assert abs(int(state[1]) - exited.ended_at.ToMilliseconds()) <= 1


async def test_trial_that_ignores_term_is_killed_after_the_grace(bench: Bench) -> None:
    agent = bench.agent()
    os.mkfifo(bench.folder / "ready")
    task = bench.task("one", "trap '' TERM; echo > ready; while true; do sleep 1; done")
    task.spec.grace.FromMilliseconds(20)
    await bench.deliver(agent, task)
    await asyncio.to_thread((bench.folder / "ready").read_bytes)

    agent.stop_trial(KEY)

    exited = (await bench.until_kind("one", "exited")).exited
    assert (exited.cause, exited.signal) == (report_pb2.EXIT_CAUSE_STOPPED, signal.SIGKILL)


@pytest.mark.parametrize(
    ("trap", "grace_ms"), [("", 3_600_000), ("trap '' TERM;", 20)], ids=["TERM", "KILL"]
)
async def test_process_that_outlives_its_trial_is_ended(
    bench: Bench, trap: str, grace_ms: int
) -> None:
    command = f"({trap} exec sleep 300) >/dev/null 2>&1 & echo $! > left"
    task = bench.task("one", command)
    task.spec.grace.FromMilliseconds(grace_ms)

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")

    with suppress(ProcessLookupError):  # it has ended already
        left = os.pidfd_open(int((bench.folder / "left").read_text()))
        over, _, _ = await asyncio.to_thread(select.select, [left], [], [], WAIT_S)
        os.close(left)
        assert over


@pytest.mark.parametrize(("platform", "found"), [("", "local"), ("slurm", "slurm")])
async def test_platform_of_the_machine_comes_before_that_of_the_task(
    bench: Bench, platform: str, found: str
) -> None:
    bench.dependencies = replace(bench.dependencies, platform=platform)

    await bench.deliver(bench.agent(), bench.task("one", "echo $NNI_PLATFORM", platform="local"))
    await bench.until_kind("one", "exited")

    assert (bench.folder / "experiment/trials/one/stdout").read_text() == f"{found}\n"


async def test_stop_after_the_natural_end_keeps_the_natural_end(bench: Bench) -> None:
    run = await running(bench, "true")
    exited = (await bench.until_kind("one", "exited")).exited

    run.stop(StopTrigger.STOPPED)

    assert exited.cause == report_pb2.EXIT_CAUSE_ENDED
    assert bench.kinds("one") == ["started", "exited"]


@pytest.mark.claim("platform", 20)
async def test_time_limit_ends_a_trial(bench: Bench) -> None:
    agent = bench.agent()
    task = bench.task("one", "sleep 30")
    task.spec.time_limit.FromMilliseconds(50)

    await bench.deliver(agent, task)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_TIME_LIMIT


async def test_gpus_are_held_while_the_trial_runs(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 1)])
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30", gpu_number=1))
    started = (await bench.until_kind("one", "started")).started
    await bench.deliver(agent, bench.task("two", "true", gpu_number=1))
    waits = (await bench.until_kind("two", "waits")).waits

    agent.stop_trial(KEY)
    await bench.until_kind("two", "exited")

    assert list(started.gpu_indices) == [0]
    assert waits.reason == "waiting for 1 GPU: 0 in use by trial one"
    await bench.tasks.drain()
    assert bench.dependencies.gpus.holders_of(0) == []


async def test_stop_while_waiting_for_a_gpu_ends_without_a_process(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")

    agent.stop_trial(KEY)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert not exited.HasField("exit_code")
    assert not (bench.folder / "experiment/trials/one").exists()


async def test_drop_while_waiting_reports_nothing(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")

    agent.drop_trial(KEY, "")
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)

    assert bench.kinds("one") == ["waits"]
    assert agent.attempts == []
    assert not bench.dependencies.gpus.waiting


class SlowStorage:
    """Shared storage whose mount lasts until the test ends it."""

    def __init__(self) -> None:
        self.asked, self.mounted = asyncio.Event(), asyncio.Event()

    async def ensure(self) -> None:
        self.asked.set()
        await self.mounted.wait()


async def stop_during_the_mount(bench: Bench) -> None:
    """Deliver a trial for one GPU, stop it while its storage is mounted, and wait for its end."""
    storage = SlowStorage()
    plans = LaunchPlans(
        CachedCodeStore(CodeArchives(bench.blobs, bench.folder / "code", SystemClock())),
        FileEnvironments({"PATH": os.environ["PATH"]}, sys.executable),
        bench.folder / "tools",
        bench.folder / "root",
        storage,
    )
    bench.dependencies = replace(bench.dependencies, plans=plans)
    bench.gpus.replace([GpuDevice(0, "a", 1)])
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await asyncio.wait_for(storage.asked.wait(), WAIT_S)
    agent.stop_trial(KEY)
    await bench.until_kind("one", "exited")
    storage.mounted.set()
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)


async def test_stop_before_the_request_for_gpus_holds_none(bench: Bench) -> None:
    await stop_during_the_mount(bench)

    assert bench.dependencies.gpus.holders_of(0) == []


async def test_stopped_attempt_leaves_the_folder_to_the_next_one(bench: Bench) -> None:
    await stop_during_the_mount(bench)

    assert not (bench.folder / "experiment/trials/one").exists()


async def test_gpus_that_are_given_together_with_a_stop_are_released(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 1)])
    gpus, agent = bench.dependencies.gpus, bench.agent()
    await gpus.acquire(GpuRequest(EXPERIMENT, "other", 1), lambda _: None)
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")

    await gpus.release(EXPERIMENT, "other")
    given = gpus.holders_of(0)
    agent.stop_trial(KEY)
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)

    assert given == ["one"]
    assert gpus.holders_of(0) == []


async def test_metric_nested_too_deeply_is_refused_and_takes_no_number(
    bench: Bench, sdk: Path
) -> None:
    script = (
        "import nni\nnni.get_next_parameter()\nvalue = 1\n"
        "for _ in range(200): value = [value]\n"
        "try:\n    nni.report_intermediate_result(value)\n"
        "except Exception as error:\n    print(error)\n"
        "nni.report_intermediate_result('fine')\n"
    )
    (bench.folder / "deep.py").write_text(script)
    task = bench.task("one", "python3 deep.py")
    task.spec.environment["PYTHONPATH"] = str(sdk)

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")

    assert bench.kinds("one") == ["started", "metric", "exited"]
    assert [report.sequence for report in bench.heard] == [0, 1, 2]
    output = (bench.folder / "experiment/trials/one/stdout").read_text()
    assert "nested" in output


async def prepared(bench: Bench, agent: Agent, command: str) -> TrialProcess:
    """Start a trial; return its process when it has run the commands before `echo > ready`."""
    os.mkfifo(bench.folder / "ready")
    await bench.deliver(agent, bench.task("one", command))
    await asyncio.to_thread((bench.folder / "ready").read_bytes)
    await bench.until_kind("one", "started")
    (run,) = agent.attempts
    assert run.process is not None
    return run.process


@pytest.mark.parametrize("trap", ["", "trap 'exit 143' TERM;"], ids=["killed", "handled"])
async def test_trial_that_ends_by_term_before_the_stop_of_its_agent_is_lost(
    bench: Bench, trap: str
) -> None:
    agent = bench.agent()
    process = await prepared(bench, agent, f"{trap} echo > ready; sleep 30 & wait")

    os.killpg(process.identity.pid, signal.SIGTERM)
    await process.ended
    agent.lose_all()

    lost = (await bench.until_kind("one", "lost")).lost
    assert lost.loss.cause == cause_pb2.LOSS_CAUSE_AGENT_STOPPED
    assert bench.kinds("one") == ["started", "lost"]


def noticing(bench: Bench, shutdown_s: float, handled_s: float) -> Agent:
    """Return an agent with these times for which ends of trials wait for its stop."""
    bench.dependencies = replace(
        bench.dependencies, shutdown_notice_s=shutdown_s, handled_signal_notice_s=handled_s
    )
    return bench.agent()


async def test_failure_of_a_trial_does_not_wait_as_long_as_an_end_by_term(bench: Bench) -> None:
    agent = noticing(bench, shutdown_s=3600, handled_s=0)

    await bench.deliver(agent, bench.task("one", "exit 3"))

    exited = (await bench.until_kind("one", "exited")).exited
    assert (exited.cause, exited.exit_code) == (report_pb2.EXIT_CAUSE_ENDED, 3)


class EndedStarter(ReusedProcesses):
    """Processes whose starter ends while it starts a trial."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.dependencies.processes._processes, idle_s=1)
        self.launched = asyncio.Event()

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        self.launched.set()
        raise StarterEndedError("the starter of processes has ended")


async def test_trial_whose_starter_ends_before_the_stop_of_its_agent_is_lost_by_the_stop(
    bench: Bench,
) -> None:
    starter = EndedStarter(bench)
    bench.dependencies = replace(bench.dependencies, processes=starter)
    agent = noticing(bench, shutdown_s=0, handled_s=3600)
    await bench.deliver(agent, bench.task("one"))
    await starter.launched.wait()

    agent.lose_all()

    lost = (await bench.until_kind("one", "lost")).lost
    assert lost.loss.cause == cause_pb2.LOSS_CAUSE_AGENT_STOPPED


async def test_trial_that_handles_term_before_the_stop_of_its_agent_is_lost(bench: Bench) -> None:
    agent = noticing(bench, shutdown_s=0, handled_s=3600)
    process = await prepared(bench, agent, "trap 'exit 3' TERM; echo > ready; sleep 30 & wait")

    os.killpg(process.identity.pid, signal.SIGTERM)
    await process.ended
    agent.lose_all()

    lost = (await bench.until_kind("one", "lost")).lost
    assert lost.loss.cause == cause_pb2.LOSS_CAUSE_AGENT_STOPPED
    assert bench.kinds("one") == ["started", "lost"]


async def test_trial_that_ends_by_term_alone_has_failed(bench: Bench) -> None:
    run = await running(bench)
    assert run.process is not None

    os.killpg(run.process.identity.pid, signal.SIGTERM)

    exited = (await bench.until_kind("one", "exited")).exited
    assert (exited.cause, exited.signal) == (report_pb2.EXIT_CAUSE_ENDED, signal.SIGTERM)


@pytest.mark.parametrize(
    ("attempt", "cause"),
    [(1, cause_pb2.LOSS_CAUSE_STARTER_KILLED), (2, cause_pb2.LOSS_CAUSE_AGENT_FAILED)],
)
async def test_loss_of_the_starter_counts_only_where_the_trial_was_alone(
    bench: Bench, attempt: int, cause: int
) -> None:
    agent = bench.agent()

    await bench.deliver(agent, bench.task("one", "kill -9 $PPID; sleep 30", attempt=attempt))

    lost = (await bench.until_kind("one", "lost")).lost
    assert lost.loss.cause == cause


async def test_clock_that_is_set_back_ends_no_trial_before_its_start(bench: Bench) -> None:
    clock = SteppedClock()
    bench.dependencies = replace(bench.dependencies, clock=clock)
    run = await running(bench)
    started = (await bench.until_kind("one", "started")).started

    clock.step = timedelta(hours=-2)
    exited = await ended(bench, run)

    assert exited.ended_at.ToDatetime() >= started.started_at.ToDatetime()


class SteppedClock(SystemClock):
    """Clock of this machine whose time of day the test sets ahead or back."""

    step = timedelta()

    def now(self) -> datetime:
        return super().now() + self.step


@pytest.mark.claim("platform", 83)
async def test_outputs_in_a_shared_storage_have_a_folder_of_their_own(bench: Bench) -> None:
    mount = bench.folder / "storage"
    (mount / f"nni/{EXPERIMENT}").mkdir(parents=True)
    (mount / f"nni/{EXPERIMENT}/storage-mark").write_text("abc", "ascii")
    storage = MountedStorage(
        SharedStorage(StorageKind.NFS, "/here", str(mount), LocalMount.USER, mark="abc"),
        experiment_pool(EXPERIMENT),
        bench.folder / "runner",
        {},
    )
    plans = LaunchPlans(
        CachedCodeStore(CodeArchives(bench.blobs, bench.folder / "code", SystemClock())),
        FileEnvironments({"PATH": os.environ["PATH"]}, sys.executable),
        bench.folder / "tools",
        storage.root,
        storage,
    )
    bench.dependencies = replace(bench.dependencies, plans=plans)
    command = "echo $NNI_OUTPUT_DIR; touch $NNI_OUTPUT_DIR/a"

    await bench.deliver(bench.agent(), bench.task("one", command, experiment_directory=""))
    await bench.until_kind("one", "exited")

    trial = mount / f"nni/{EXPERIMENT}/trials/one"
    assert (trial / "stdout").read_text() == f"{trial}/nnioutput\n"
    assert (trial / "nnioutput" / "a").exists()


GPUS = [
    GpuDevice(0, "a", 1, frozenset({1})),  # in use by another program
    GpuDevice(1, "b", 1),
    GpuDevice(2, "c", 1),
]


@pytest.mark.parametrize(
    ("options", "indices"),
    [({}, [1]), ({"gpuIndices": "2"}, [2]), ({"useActiveGpu": True}, [0])],
    ids=["any free one", "one of the task", "one in use"],
)
async def test_rules_of_the_task_choose_its_gpu(
    bench: Bench, options: dict[str, object], indices: list[int]
) -> None:
    bench.gpus.replace(GPUS)

    await bench.deliver(
        bench.agent(), bench.task("one", gpu_number=1, platform_options={"slots": 1, **options})
    )

    started = (await bench.until_kind("one", "started")).started
    assert list(started.gpu_indices) == indices
    await bench.until_kind("one", "exited")


async def test_trials_share_a_gpu_as_their_task_says(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 1)])
    agent = bench.agent()

    for name in ("one", "two"):
        options = {"maxTrialNumberPerGpu": 2}
        await bench.deliver(
            agent, bench.task(name, "sleep 30", gpu_number=1, platform_options=options)
        )
        await bench.until_kind(name, "started")

    assert bench.dependencies.gpus.holders_of(0) == ["one", "two"]
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


async def test_retry_gets_a_gpu_before_a_trial_that_has_waited_longer(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 1)])
    gpus, agent = bench.dependencies.gpus, bench.agent()
    await gpus.acquire(GpuRequest(EXPERIMENT, "other", 1), lambda _: None)
    for name, attempt in (("one", 1), ("two", 2)):
        task = bench.task(name, "sleep 30", attempt=attempt, gpu_number=1)
        await bench.deliver(agent, task)
        await bench.until_kind(name, "waits")

    await gpus.release(EXPERIMENT, "other")

    await bench.until_kind("two", "started")
    assert "started" not in bench.kinds("one")
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


async def test_first_cause_of_a_loss_is_reported(bench: Bench) -> None:
    run = await running(bench)

    for cause in (LossCause.AGENT_STOPPED, LossCause.CLAIM_EXPIRED):
        run.stop(StopTrigger.LOST, LossReason(cause))

    lost = (await bench.until_kind("one", "lost")).lost
    assert lost.loss.cause == cause_pb2.LOSS_CAUSE_AGENT_STOPPED


async def test_abandoned_attempt_leaves_no_process_and_reports_once(bench: Bench) -> None:
    agent = bench.agent()
    process = await prepared(bench, agent, "trap '' TERM; echo > ready; sleep 300")
    (run,) = agent.attempts

    run.abandon(LossReason(LossCause.AGENT_STOPPED))

    assert await asyncio.wait_for(process.ended, WAIT_S) == signal.SIGKILL
    await asyncio.wait_for(bench.tasks.drain(), WAIT_S)
    assert bench.kinds("one") == ["started", "lost"]


class HeldStart(ReusedProcesses):
    """Processes that are reported as started when the test says so."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.dependencies.processes._processes, idle_s=1)
        self.launched, self.released = asyncio.Event(), asyncio.Event()

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        process = await super().launch(request)
        self.launched.set()
        await self.released.wait()
        return process


async def held_start(bench: Bench, command: str, **spec: Any) -> tuple[AttemptRun, HeldStart]:
    """Start a trial whose process runs already; return its attempt before it knows of that."""
    held = HeldStart(bench)
    bench.dependencies = replace(bench.dependencies, processes=held)
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", command, **spec))
    await asyncio.wait_for(held.launched.wait(), WAIT_S)
    (run,) = agent.attempts
    return run, held


async def test_stop_while_the_process_starts_ends_it_as_soon_as_it_has_started(
    bench: Bench,
) -> None:
    run, held = await held_start(bench, "sleep 300")

    run.stop(StopTrigger.STOPPED)
    held.released.set()

    exited = (await bench.until_kind("one", "exited")).exited
    assert (exited.cause, exited.signal) == (report_pb2.EXIT_CAUSE_STOPPED, signal.SIGTERM)


async def test_trial_that_starts_waits_for_nothing(bench: Bench) -> None:
    run, held = await held_start(bench, "true")

    waits = run.wait
    held.released.set()

    await bench.until_kind("one", "exited")
    assert waits is None


CLIENT = """\
import json, os, socket, sys, time
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["NNI_TRIAL_SOCKET"])
lines = peer.makefile("rw")
def ask(**request):
    lines.write(json.dumps(request) + "\\n")
    lines.flush()
    return json.loads(lines.readline())
hello = ask(op="hello", token=os.environ["NNI_TRIAL_TOKEN"], pid=os.getpid())
"""


def python(bench: Bench, script: str) -> str:
    """Return the command of a trial that has said hello on its socket and runs a script then."""
    (bench.folder / "client.py").write_text(CLIENT + script)
    return f"{sys.executable} client.py"


async def test_metric_that_comes_before_the_start_is_known_is_reported_after_it(
    bench: Bench,
) -> None:
    os.mkfifo(bench.folder / "reported")
    script = "ask(op='report', type='FINAL', value=7)\nopen('reported', 'w').close()\n"
    _, held = await held_start(bench, python(bench, script))
    await asyncio.to_thread((bench.folder / "reported").read_bytes)

    held.released.set()

    await bench.until_kind("one", "exited")
    assert bench.kinds("one") == ["started", "metric", "exited"]


@pytest.mark.parametrize(("attempt", "goes_on"), [(1, True), (2, False)])
async def test_process_of_a_first_attempt_alone_may_run_another_trial(
    bench: Bench, attempt: int, *, goes_on: bool
) -> None:
    task = bench.task("one", python(bench, "print(json.dumps(hello))"), attempt=attempt)

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")

    output = (bench.folder / "experiment/trials/one/stdout").read_text()
    assert json.loads(output)["next"] is goes_on


AFTER_THE_END = """\
parent = os.getpid()
if os.fork():
    os._exit(0)
for number in (0, 1, 2):
    os.close(number)
while os.getppid() == parent:
    time.sleep(0.001)
ask(op="report", type="FINAL", value=7)
"""


async def test_metric_of_a_process_that_outlives_the_leader_comes_before_the_end(
    bench: Bench,
) -> None:
    task = bench.task("one", python(bench, AFTER_THE_END))
    task.spec.grace.FromSeconds(60)

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")

    assert bench.kinds("one") == ["started", "metric", "exited"]


async def test_output_that_another_process_keeps_open_is_read_for_the_grace(bench: Bench) -> None:
    task = bench.task("one", "echo first; sleep 300 & echo $! > left")
    task.spec.grace.FromMilliseconds(20)

    await bench.deliver(bench.agent(), task)
    exited = (await bench.until_kind("one", "exited")).exited

    assert (exited.cause, exited.exit_code) == (report_pb2.EXIT_CAUSE_ENDED, 0)
    assert (bench.folder / "experiment/trials/one/stdout").read_text() == "first\n"


class RecordingTracer:
    """`Tracer` whose trace contexts name the trial."""

    def record(self, span: TrialSpan) -> None:
        """Do nothing."""

    def traceparent(self, experiment_id: str, parameter_id: int, *path: str | int) -> str:
        return f"{experiment_id}-{parameter_id}-{'-'.join(map(str, path))}"


@pytest.mark.parametrize("sampled", [True, False])
async def test_trial_has_the_trace_context_of_its_attempt(bench: Bench, *, sampled: bool) -> None:
    telemetry = Telemetry(SystemClock(), None, RecordingTracer())
    bench.dependencies = replace(bench.dependencies, telemetry=telemetry)
    task = bench.task("one", "echo ${TRACEPARENT-none}")
    trace_id = trial_trace_id(EXPERIMENT, 1)
    task.traceparent = TraceParent(trace_id, span_id(EXPERIMENT, 1), sampled).text()

    await bench.deliver(bench.agent(), task)
    await bench.until_kind("one", "exited")

    output = (bench.folder / "experiment/trials/one/stdout").read_text()
    assert output == (f"{EXPERIMENT}-1-attempt-1-run\n" if sampled else "none\n")


async def test_end_is_in_the_journal_before_it_has_arrived(bench: Bench) -> None:
    run = await running(bench)
    bench.broker.stop()

    run.stop(StopTrigger.STOPPED)
    async with asyncio.timeout(WAIT_S):
        while run.phase is not Phase.OVER:  # noqa: ASYNC110 - an end has no event but its report
            await asyncio.sleep(0)
    (claim,) = bench.dependencies.journal.state.claims.values()
    ended_there = claim.ended
    bench.broker.start()

    await bench.until_kind("one", "exited")
    assert ended_there


async def test_metric_that_cannot_be_kept_is_refused_before_the_start_is_known(
    bench: Bench,
) -> None:
    os.mkfifo(bench.folder / "reported")
    script = (
        "value = 1\nfor _ in range(200): value = [value]\n"
        "print(ask(op='report', type='FINAL', value=value)['ok'])\nopen('reported', 'w').close()\n"
    )
    _, held = await held_start(bench, python(bench, script))
    await asyncio.to_thread((bench.folder / "reported").read_bytes)

    held.released.set()

    await bench.until_kind("one", "exited")
    assert bench.kinds("one") == ["started", "exited"]
    assert (bench.folder / "experiment/trials/one/stdout").read_text() == "False\n"


SAVES = """\
open("go").close()
os.makedirs(os.path.join(os.environ["NNI_OUTPUT_DIR"], "checkpoint"))
ask(op="report", type="PERIODICAL", value=1)
ask(op="checkpoint", step=5)
open("saved", "w").close()
time.sleep(300)
"""


async def test_checkpoint_is_on_disk_when_the_trial_goes_on(bench: Bench) -> None:
    for name in ("go", "saved"):
        os.mkfifo(bench.folder / name)
    run = await running(bench, python(bench, SAVES))

    bench.broker.stop()
    await asyncio.to_thread((bench.folder / "go").write_bytes, b"")
    await asyncio.to_thread((bench.folder / "saved").read_bytes)
    left = DirectoryReportSpool(bench.folder / "runner/spool").inherited()
    bench.broker.start()

    kinds = [read_entry(report.entry).WhichOneof("kind") for report in left]
    assert kinds[-2:] == ["metric", "checkpoint_saved"]
    await ended(bench, run)
