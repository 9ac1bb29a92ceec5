"""Trials while the agent, the bus or a process server is killed or stopped."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from nni_proto.runner.v1.runner_service_pb2_grpc import RunnerServiceStub

from nni_proto.runner.v1 import runner_service_pb2 as runner_pb
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.metadata import bearer
from svc_common.subjects import presence_subject
from tests.integration.trial_runner.harness import (
    TOKEN,
    WAIT_S,
    AgentProcess,
    ManagerSide,
    manager_side,
    until_dead,
    until_true,
    until_written,
)
from tests.support.servers import NatsServer

SDK = Path(__file__).resolve().parents[3] / "sdk"


@asynccontextmanager
async def running_agent(
    folder: Path, bus: NatsServer, *arguments: str, **environment: str
) -> AsyncIterator[tuple[AgentProcess, ManagerSide]]:
    agent = AgentProcess(folder / "home", bus.url, **environment)
    await agent.start(*arguments)
    async with manager_side(bus.url, folder) as manager:
        try:
            yield agent, manager
        finally:
            await agent.end(signal.SIGKILL)


@pytest.mark.claim("platform", 78)
async def test_restarted_agent_kills_and_reports_what_its_predecessor_ran(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server) as (agent, manager):
        command = f"(setsid sleep 300 & echo $! >{tmp_path}/pid); sleep 300; true"
        await manager.publish("one", manager.spec(command))
        started = (await manager.until("one", "started")).started
        stray = int(await until_written(tmp_path / "pid"))
        runner = agent.facts["runner"]

        await agent.end(signal.SIGKILL)
        await agent.start()
        lost = await manager.until("one", "lost")

        assert agent.facts["runner"] == runner
        assert lost.sequence == 1
        await until_dead(started.pid)
        await until_dead(stray)
        # The task was acknowledged: the manager publishes the next attempt itself.
        await manager.publish("one", manager.spec("true"), attempt=2)
        await manager.until("one", "exited", attempt=2)


async def test_lost_attempt_is_numbered_behind_its_metrics(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server) as (agent, manager):
        await manager.publish(
            "one", manager.spec("nni-trial report 1; nni-trial report 2; sleep 300")
        )
        async with asyncio.timeout(WAIT_S), manager.changed:
            await manager.changed.wait_for(lambda: len(manager.metrics("one")) == 2)

        await agent.end(signal.SIGKILL)
        await agent.start()
        lost = await manager.until("one", "lost")

        assert lost.sequence == 3


async def test_results_of_trials_that_ended_while_the_bus_was_away_survive_the_agent(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server) as (agent, manager):
        command = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; nni-trial final 5"
        await manager.publish("one", manager.spec(command))
        await manager.until("one", "started")
        bus_server.kill()
        (tmp_path / "go").touch()
        await until_written(manager.trial_folder("one") / ".nni/state")

        await agent.end(signal.SIGKILL)
        restart = asyncio.create_task(agent.start())
        bus_server.start()
        await restart
        await manager.until("one", "exited")

        assert manager.kinds("one") == ["started", "metric", "exited"]
        assert manager.metrics("one") == [5]


async def test_trials_outlive_the_bus(tmp_path: Path, bus_server: NatsServer) -> None:
    async with running_agent(tmp_path, bus_server) as (_, manager):
        wait = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"
        command = f"nni-trial report 1; {wait}; nni-trial final 5"
        await manager.publish("one", manager.spec(command))
        await manager.until("one", "metric")

        bus_server.kill()
        (tmp_path / "go").touch()
        await until_written(manager.trial_folder("one") / ".nni/state")
        bus_server.start()
        await manager.until("one", "exited")
        await manager.publish("two", manager.spec("true"))
        await manager.until("two", "exited")

        assert manager.metrics("one") == [1, 5]
        assert manager.kinds("one") == ["started", "metric", "metric", "exited"]


async def test_death_of_the_warm_interpreter_loses_the_attempt_at_once(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    (tmp_path / "wait.py").write_text("import signal\nsignal.pause()\n")
    async with running_agent(tmp_path, bus_server) as (_, manager):
        await manager.publish("one", manager.spec("python3 wait.py"))
        started = (await manager.until("one", "started")).started
        assert started.warm

        psutil.Process(psutil.Process(started.pid).ppid()).kill()
        await manager.until("one", "lost")

        await until_dead(started.pid)
        (tmp_path / "wait.py").write_text("pass\n")
        await manager.publish("one", manager.spec("python3 wait.py"), attempt=2)
        await manager.until("one", "exited", attempt=2)


async def test_death_of_the_spawner_loses_the_attempt_at_once(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server) as (_, manager):
        await manager.publish("one", manager.spec("sleep 300; true"))
        started = (await manager.until("one", "started")).started

        psutil.Process(psutil.Process(started.pid).ppid()).kill()
        lost = await manager.until("one", "lost")

        await manager.publish("one", manager.spec("true"), attempt=2)
        ended = await manager.until("one", "exited", attempt=2)
        assert lost.lost.reason == "the interpreter that had started it was killed"
        assert ended.exited.exit_code == 0
        assert manager.kinds("one") == ["started", "lost", "started", "exited"]


async def test_starter_that_a_trial_has_stopped_loses_no_end(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    (tmp_path / "stop.py").write_text("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n")
    async with running_agent(tmp_path, bus_server) as (_, manager):
        await manager.publish("one", manager.spec("python3 stop.py"))

        ended = await manager.until("one", "exited")

        assert ended.exited.exit_code == 0


DAEMON = """
import ctypes, os, sys
def leave(name, work):
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 3)
        with open(name + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(name + ".new", name)
        work()
        os.execve("/bin/sleep", ["sleep", "300"], {})
def adopt():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if os.fork() == 0:
        leave(sys.argv[1] + "/child", lambda: None)
        os._exit(0)
leave(sys.argv[1] + "/daemon", adopt)
open(sys.argv[1] + "/go").read()
"""
"""Leaves a daemon that adopts another one, both without the trial's token."""


async def test_daemons_of_an_ended_trial_end_while_later_trials_run(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    (tmp_path / "daemon.py").write_text(DAEMON)
    os.mkfifo(tmp_path / "go")
    async with running_agent(tmp_path, bus_server) as (_, manager):
        await manager.publish("first", manager.spec(f"python3 daemon.py {tmp_path}"))
        daemons = [int(await until_written(tmp_path / name)) for name in ("daemon", "child")]
        begun = max(psutil.Process(pid).create_time() for pid in daemons)
        # Start times have the unit of the kernel's clock, 10 ms.
        await until_true(lambda: time.time() > begun + 0.1, "a later tick of the clock")
        await manager.publish("second", manager.spec("sleep 300; true"))
        second = (await manager.until("second", "started")).started

        (tmp_path / "go").write_text("")
        await manager.until("first", "exited")

        for pid in daemons:
            await until_dead(pid)
        assert psutil.pid_exists(second.pid)


async def test_stopped_agent_reports_its_trials_lost(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server) as (agent, manager):
        await manager.publish("one", manager.spec("sleep 300; true"))
        started = (await manager.until("one", "started")).started

        code = await agent.end()
        await manager.until("one", "lost")

        assert code == 0
        await until_dead(started.pid)


async def test_agent_with_a_limit_of_trials_ends_by_itself(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server, "--max-trials", "2") as (agent, manager):
        for name in ("one", "two", "three"):
            await manager.publish(name, manager.spec("sleep 0.1"))

        assert agent.process is not None
        assert await asyncio.wait_for(agent.process.wait(), WAIT_S) == 0

        await manager.until("one", "exited")
        await manager.until("two", "exited")
        assert manager.kinds("three") == []


async def test_slots_bound_the_trials_at_once(tmp_path: Path, bus_server: NatsServer) -> None:
    async with running_agent(tmp_path, bus_server, NNI_RUNNER_SLOTS="1") as (_, manager):
        at_once: list[int] = []
        running = 0

        def count(report: report_pb2.TrialReport) -> None:
            nonlocal running
            running += {"started": 1, "exited": -1}.get(str(report.WhichOneof("kind")), 0)
            at_once.append(running)

        manager.on_report = count
        for name in ("one", "two", "three"):
            await manager.publish(name, manager.spec("sleep 0.05"))
        for name in ("one", "two", "three"):
            await manager.until(name, "exited")

        assert max(at_once) == 1


async def test_runner_service_describes_the_agent_and_its_trials(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    import grpc.aio

    async with running_agent(tmp_path, bus_server, NNI_RUNNER_FAKE_GPUS="1") as (agent, manager):
        await manager.publish("one", manager.spec("echo first; sleep 300", gpu_number=1))
        await manager.until("one", "started")

        async with grpc.aio.insecure_channel(agent.facts["grpc"]) as channel:
            stub = RunnerServiceStub(channel)
            about = await stub.DescribeRunner(
                runner_pb.DescribeRunnerRequest(), metadata=bearer(TOKEN)
            )
            trials = await stub.ListRunnerTrials(
                runner_pb.ListRunnerTrialsRequest(), metadata=bearer(TOKEN)
            )
            logs = stub.FollowLogs(
                runner_pb.FollowLogsRequest(
                    experiment_id=manager.experiment_id, trial_id="one", follow=True
                ),
                metadata=bearer(TOKEN),
            )
            pieces = aiter(logs)
            first = await asyncio.wait_for(anext(pieces), WAIT_S)
            manager.stop(agent.facts["runner"], "one")
            rest = [piece async for piece in pieces]
            await stub.DrainRunner(runner_pb.DrainRunnerRequest(), metadata=bearer(TOKEN))

        assert about.running_count == 1
        assert list(about.devices[0].trial_ids) == ["one"]
        assert [trial.trial_id for trial in trials.trials] == ["one"]
        assert first.data == b"first\n"
        assert rest == []
        assert agent.process is not None
        assert await asyncio.wait_for(agent.process.wait(), WAIT_S) == 0


async def test_presence_has_the_held_trials_and_the_leave(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    async with running_agent(tmp_path, bus_server) as (agent, manager):
        heard = await manager.bus.signals.subscribe(presence_subject(agent.facts["runner"]))
        await manager.publish("one", manager.spec("sleep 300"))

        async def until_published(what: str) -> task_pb2.RunnerPresence:
            async for signal_ in heard:
                presence = task_pb2.RunnerPresence.FromString(signal_.payload)
                if getattr(presence, what):
                    return presence
            raise AssertionError("the bus was closed")

        holding = await asyncio.wait_for(until_published("trials"), WAIT_S)
        ending = asyncio.create_task(agent.end())
        leaving = await asyncio.wait_for(until_published("leaving"), WAIT_S)
        await ending

        assert [trial.trial_id for trial in holding.trials] == ["one"]
        assert holding.grpc_address == agent.facts["grpc"]
        assert leaving.draining


async def test_death_of_a_later_generation_of_the_interpreter_loses_its_trials(
    tmp_path: Path, bus_server: NatsServer
) -> None:
    """The ancestor goes on without knowing them; the agent adopts them and reports the loss."""
    (tmp_path / "learn.py").write_text("import decimal, fractions\n")
    (tmp_path / "wait.py").write_text("import decimal, signal\nsignal.pause()\n")
    async with running_agent(tmp_path, bus_server) as (agent, manager):
        runner = agent.facts["runner"]
        await manager.publish("learn", manager.spec("python3 learn.py"))
        await manager.until("learn", "exited")
        for number in range(200):
            name = f"wait{number}"
            await manager.publish(name, manager.spec("python3 wait.py"))
            pid = (await manager.until(name, "started")).started.pid
            parent = psutil.Process(psutil.Process(pid).ppid())
            if parent.ppid() != agent.pid:
                break
            # The second generation is still importing; the first has started this one.
            manager.stop(runner, name)
            await manager.until(name, "exited")

        parent.kill()
        lost = await manager.until(name, "lost")

        await manager.publish("again", manager.spec("python3 learn.py"))
        ended = await manager.until("again", "exited")
        assert lost.lost.reason == "the interpreter that had started it was killed"
        assert manager.kinds(name) == ["started", "lost"]
        assert ended.exited.exit_code == 0
