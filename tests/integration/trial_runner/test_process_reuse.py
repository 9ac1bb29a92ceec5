"""Trials that share a process, on a real agent and a real bus."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from tests.integration.trial_runner.harness import (
    AgentProcess,
    ManagerSide,
    is_alive,
    manager_side,
    until_dead,
    until_written,
)
from tests.support.servers import NatsServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = """\
import os, sys, time
import nni
from nni.trial.reuse import run_trials

def one():
    act = nni.get_next_parameter()["act"]
    print(nni.get_trial_id(), os.environ["NNI_OUTPUT_DIR"], flush=True)
    if act == "crash":
        os._exit(3)
    while act == "run":
        time.sleep(0.01)
    if act == "leave":
        os.environ["CUDA_VISIBLE_DEVICES"] = "wrong"
        os.chdir("/")
    nni.report_final_result(act)

run_trials(one)
"""
COMMAND = "python3 several.py"
SDK = Path(__file__).resolve().parents[3] / "sdk"
KEPT = {"NNI_RUNNER_REUSE_IDLE_S": "3600", "PYTHONPATH": str(SDK)}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return a code folder of this test alone, so that it shares no process with others."""
    (tmp_path / "several.py").write_text(SCRIPT)
    return tmp_path


async def started(manager: ManagerSide, trial_id: str, code: Path, act: str, **spec: Any) -> int:
    """Publish a trial; return the id of its process."""
    made = manager.spec(COMMAND, code_directory=code, **spec)
    await manager.publish(trial_id, made, {"act": act})
    return int((await manager.until(trial_id, "started")).started.pid)


async def ended(
    manager: ManagerSide, trial_id: str, code: Path, act: str = "end", **spec: Any
) -> tuple[int, report_pb2.AttemptExited]:
    """Run a trial to its end; return the id of its process, and the report of its end."""
    pid = await started(manager, trial_id, code, act, **spec)
    return pid, (await manager.until(trial_id, "exited")).exited


async def test_trials_share_a_process_and_nothing_else(manager: ManagerSide, code: Path) -> None:
    names = ["share1", "share2", "share3"]

    ends = [await ended(manager, name, code, "leave") for name in names]

    assert len({pid for pid, _ in ends}) == 1
    assert [end.exit_code for _, end in ends] == [0, 0, 0]
    for name in names:
        folder = manager.trial_folder(name)
        assert (folder / "stdout").read_text() == f"{name} {folder}\n"
        assert (folder / ".nni/state").read_text().startswith("0 ")
        assert manager.kinds(name) == ["started", "metric", "exited"]
        assert manager.metrics(name) == ["leave"]


async def test_crash_fails_one_trial_and_the_next_has_another_process(
    manager: ManagerSide, code: Path
) -> None:
    first, _ = await ended(manager, "crash1", code)
    second, crash = await ended(manager, "crash2", code, "crash")
    third, end = await ended(manager, "crash3", code)

    assert first == second != third
    assert (crash.cause, crash.exit_code) == (report_pb2.EXIT_CAUSE_ENDED, 3)
    assert end.exit_code == 0


async def test_stop_ends_the_present_trial_only(
    manager: ManagerSide, agent: AgentProcess, code: Path
) -> None:
    first, end = await ended(manager, "stop1", code)
    second = await started(manager, "stop2", code, "run")

    manager.stop(agent.facts["runner"], "stop1")  # ended already: nothing happens
    manager.stop(agent.facts["runner"], "stop2")
    stopped = (await manager.until("stop2", "exited")).exited
    third, _ = await ended(manager, "stop3", code)

    assert first == second != third
    assert (end.cause, end.exit_code) == (report_pb2.EXIT_CAUSE_ENDED, 0)
    assert (stopped.cause, stopped.signal) == (report_pb2.EXIT_CAUSE_STOPPED, signal.SIGTERM)


async def test_time_limit_is_that_of_each_trial(manager: ManagerSide, code: Path) -> None:
    # Much longer than a process takes to start: the limit must not end the first trial. Both have
    # the same one, since trials of two kinds share no process.
    first, _ = await ended(manager, "limit1", code, time_limit_s=5)
    second, limited = await ended(manager, "limit2", code, "run", time_limit_s=5)

    assert first == second
    assert limited.cause == report_pb2.EXIT_CAUSE_TIME_LIMIT


async def test_process_that_dies_while_it_waits_loses_no_trial(
    manager: ManagerSide, code: Path
) -> None:
    first, _ = await ended(manager, "dies1", code)
    os.kill(first, signal.SIGKILL)

    second, end = await ended(manager, "dies2", code)

    assert first != second
    assert end.exit_code == 0
    assert manager.kinds("dies2") == ["started", "metric", "exited"]


async def test_retried_trial_has_a_process_of_its_own(manager: ManagerSide, code: Path) -> None:
    first, _ = await ended(manager, "retry1", code)
    spec = manager.spec(COMMAND, code_directory=code)

    await manager.publish("retry2", spec, {"act": "end"}, attempt=2)
    retried = (await manager.until("retry2", "started", attempt=2)).started.pid
    await manager.until("retry2", "exited", attempt=2)

    await until_dead(retried)
    assert first != retried
    assert is_alive(first)


async def test_trial_on_another_gpu_has_another_process(manager: ManagerSide, code: Path) -> None:
    def on(index: int) -> dict[str, Any]:
        return {"gpu_number": 1, "platform_options": {"gpuIndices": [index]}}

    first, _ = await ended(manager, "gpu1", code, **on(0))
    second, _ = await ended(manager, "gpu2", code, **on(1))
    third, _ = await ended(manager, "gpu3", code, **on(0))

    assert first == third != second


async def test_processes_end_with_their_experiment(
    bus_server: NatsServer, tmp_path: Path, code: Path
) -> None:
    agent = AgentProcess(tmp_path / "home", bus_server.url, **KEPT)
    async with manager_side(bus_server.url, tmp_path) as manager:
        await agent.start()
        first, _ = await ended(manager, "forgotten", code)

        manager.control(
            agent.facts["runner"],
            forget_experiment=task_pb2.ForgetExperiment(experiment_id=manager.experiment_id),
        )

        await until_dead(first)
        assert await agent.end() == 0


async def test_killed_agent_loses_the_present_trial_only(
    bus_server: NatsServer, tmp_path: Path, code: Path
) -> None:
    agent = AgentProcess(tmp_path / "home", bus_server.url, **KEPT)
    async with manager_side(bus_server.url, tmp_path) as manager:
        await agent.start()
        first, _ = await ended(manager, "killed1", code)
        second = await started(manager, "killed2", code, "run")
        await until_written(manager.trial_folder("killed2") / "stdout")

        await agent.end(signal.SIGKILL)
        await until_dead(second)
        await agent.start()
        lost = (await manager.until("killed2", "lost")).lost
        third, end = await ended(manager, "killed3", code)

        assert first == second != third
        assert lost.HasField("loss")
        assert manager.kinds("killed1") == ["started", "metric", "exited"]
        assert end.exit_code == 0
        assert await agent.end() == 0
        await asyncio.gather(until_dead(first), until_dead(third))
