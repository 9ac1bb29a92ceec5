"""Agents and managers killed, stopped and continued: each trial runs once and counts once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from nni_wire.values import write_value
from svc_common.messaging.limits import ACK_WAIT_S
from tests.integration.manager.harness import TOKEN, Process, site_on
from tests.integration.manager.sharing import Client, Shared, until
from tests.integration.trial_runner.harness import AgentProcess, is_alive, until_dead
from tests.support.servers import NatsServer
from tests.support.stores import redis_server

"""How long the bus leaves a task to an agent that says nothing."""
TRIAL = """\
import os, pathlib, time
import nni
nni.get_next_parameter()
folder = pathlib.Path(os.environ["RECORDS"])
mine = folder / f"{nni.get_trial_id()}.{os.getpid()}"
mine.write_text(str(os.getpid()))
while not (folder / "go").exists():
    time.sleep(0.02)
nni.report_final_result(1.0)
"""
"""Trial that records its process id and succeeds once the file `go` exists."""


class Scene(Shared):
    """Managers, real agents, and a folder in which trials record their processes."""

    @property
    def records(self) -> Path:
        return self.site.folder / "records"

    @property
    def code(self) -> Path:
        return self.site.folder / "code"

    def processes(self, trial_id: str = "*") -> list[Path]:
        """Return one file per process that ever ran a trial."""
        return sorted(self.records.glob(f"{trial_id}.*"))

    def release_trials(self) -> None:
        """Create the file that lets all trials end."""
        (self.records / "go").touch()

    async def agent(self, name: str, **variables: str) -> AgentProcess:
        agent = AgentProcess(
            self.site.folder / name,
            self.site.variables["NNI_NATS_URL"],
            NNI_TOKEN=TOKEN,
            **variables,
        )
        await agent.start()
        self.stack.push_async_callback(agent.end, signal.SIGKILL)
        return agent

    async def start(self, client: Client, **config: Any) -> str:
        """Create an experiment of ``max_trial_number`` trials; return its id."""
        request = self.site.request()
        request.request_id = ""
        request.environment.update(os.environ | {"RECORDS": str(self.records)})
        request.interpreter = sys.executable
        request.config.trial_code_directory = str(self.code)
        for name, value in {"max_trial_number": 1, **config}.items():
            setattr(request.config, name, value)
        return await self.created(client, request)

    async def trials(self, client: Client, experiment_id: str) -> list[Any]:
        answer = await client.call(
            client.trials.ListTrials,
            trial_service_pb2.ListTrialsRequest(experiment_id=experiment_id),
        )
        return list(answer.trials)

    async def succeeded(self, client: Client, experiment_id: str, count: int) -> bool:
        states = [one.state for one in await self.trials(client, experiment_id)]
        return states == [trial_pb2.TRIAL_STATE_SUCCEEDED] * count


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    bus = NatsServer(tmp_path / "nats")
    bus.host = "127.0.0.2"  # another machine to agents: they cannot know which side is cut off
    bus.start()
    try:
        with redis_server(tmp_path / "redis") as redis:
            async with site_on(bus, tmp_path, scripted=False) as site, AsyncExitStack() as stack:
                made = Scene(site, redis, stack)
                made.records.mkdir()
                made.code.mkdir()
                (made.code / "trial.py").write_text(TRIAL)
                yield made
    finally:
        bus.stop()


async def test_task_that_an_agent_was_given_but_did_not_claim_is_given_again_when_it_restarts(
    scene: Scene,
) -> None:
    _, manager = await scene.manager()
    agent = await scene.agent("one")
    os.kill(agent.pid, signal.SIGSTOP)
    experiment_id = await scene.start(manager)
    await until(lambda: scheduled(scene, manager, experiment_id))

    await agent.end(signal.SIGKILL)
    scene.release_trials()
    await agent.start()
    took_s = await until(lambda: scene.succeeded(manager, experiment_id, 1), ACK_WAIT_S)

    (trial,) = await scene.trials(manager, experiment_id)
    assert took_s < ACK_WAIT_S / 2
    assert trial.attempt == 1
    assert len(scene.processes()) == 1


async def scheduled(scene: Scene, client: Client, experiment_id: str) -> bool:
    return bool(await scene.trials(client, experiment_id))


async def test_two_agents_with_one_task_count_it_once(scene: Scene) -> None:
    _, manager = await scene.manager()
    first = await scene.agent("one", NNI_RUNNER_SLOTS="1")
    experiment_id = await scene.start(manager)
    await until(lambda: started(scene, 1))
    (trial,) = await scene.trials(manager, experiment_id)
    second = await scene.agent("two")

    task = task_pb2.TrialTask(
        experiment_id=experiment_id, trial_id=trial.id, attempt=1, parameter_source="algorithm"
    )
    write_value(task.parameters, {"x": 0})
    task.spec.command = "python3 trial.py"
    task.spec.code_directory = str(scene.code)
    task.spec.environment_file = str(
        scene.site.folder / "experiments" / experiment_id / "environment.json"
    )
    task.spec.experiment_directory = str(scene.site.folder / "experiments" / experiment_id)
    await scene.site.bus.tasks.publish("local", task.SerializeToString(), message_id="again")
    journal = second.home / "nni" / "runner" / "claims.journal"
    await until(lambda: holds(journal, trial.id))
    await until(lambda: only_process_is_of(scene, first.pid))
    scene.release_trials()
    await until(lambda: scene.succeeded(manager, experiment_id, 1))

    (trial,) = await scene.trials(manager, experiment_id)
    assert (trial.attempt, trial.runner_id) == (1, first.facts["runner"])


async def started(scene: Scene, count: int) -> bool:
    return len(scene.processes()) == count


async def holds(file: Path, text: str) -> bool:
    return text.encode() in await asyncio.to_thread(file.read_bytes)


async def only_process_is_of(scene: Scene, agent: int) -> bool:
    """Return whether exactly one trial process runs and descends from this agent."""
    pids = [int(path.suffix[1:]) for path in scene.processes()]
    return [descends(pid, agent) for pid in pids if is_alive(pid)] == [True]


def descends(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):  # it has ended since
            return False
    return pid == ancestor


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_agent_frozen_beyond_its_time_loses_its_trial_and_nothing_is_counted_twice(
    scene: Scene,
) -> None:
    _, manager = await scene.manager()
    frozen = await scene.agent("one")
    experiment_id = await scene.start(manager)
    await until(lambda: started(scene, 1))
    old_pid = int(scene.processes()[0].suffix[1:])
    other = await scene.agent("two")

    os.kill(frozen.pid, signal.SIGSTOP)
    await until(lambda: second_attempt(scene, manager, experiment_id), 3 * ACK_WAIT_S)
    os.kill(frozen.pid, signal.SIGCONT)
    await until_dead(old_pid)
    scene.release_trials()
    await until(lambda: scene.succeeded(manager, experiment_id, 1))

    (trial,) = await scene.trials(manager, experiment_id)
    metrics = await manager.call(
        manager.trials.ListMetrics,
        trial_service_pb2.ListMetricsRequest(experiment_id=experiment_id),
    )
    assert (trial.attempt, trial.runner_id) == (2, other.facts["runner"])
    assert len(metrics.metrics) == 1


async def second_attempt(scene: Scene, client: Client, experiment_id: str) -> bool:
    (trial,) = await scene.trials(client, experiment_id)
    return bool(trial.attempt == 2 and trial.state == trial_pb2.TRIAL_STATE_RUNNING)


@pytest.mark.slow
async def test_a_stop_does_not_wait_for_an_agent_that_has_vanished(scene: Scene) -> None:
    _, manager = await scene.manager()
    agent = await scene.agent("one")
    experiment_id = await scene.start(manager)
    await until(lambda: started(scene, 1))
    await agent.end(signal.SIGKILL)

    began_s = time.monotonic()
    await manager.call(
        manager.experiments.StopExperiment,
        pb.StopExperimentRequest(experiment_id=experiment_id),
        ACK_WAIT_S,
    )

    (trial,) = await scene.trials(manager, experiment_id)
    assert trial.state == trial_pb2.TRIAL_STATE_SYS_CANCELED
    assert time.monotonic() - began_s < ACK_WAIT_S / 2


@pytest.mark.timeout(240)
async def test_agent_obeys_no_manager_that_was_frozen_while_another_took_over(
    scene: Scene,
) -> None:
    process, one = await scene.manager()
    _, two = await scene.manager()
    await scene.agent("one")
    experiment_id = await scene.start(one, max_trial_number=4, trial_concurrency=2)
    await until(lambda: started(scene, 2))

    process.process.send_signal(signal.SIGSTOP)
    await until(lambda: two.owns(experiment_id))
    # Trials that the frozen manager knows nothing of: it will want the agent to drop them.
    await two.update(experiment_id, 4)
    await until(lambda: started(scene, 4))
    process.process.send_signal(signal.SIGCONT)
    await until(lambda: gone(one, experiment_id))
    scene.release_trials()
    await until(lambda: scene.succeeded(two, experiment_id, 4))

    assert [trial.attempt for trial in await scene.trials(one, experiment_id)] == [1] * 4
    assert len(scene.processes()) == 4


async def gone(client: Client, experiment_id: str) -> bool:
    return not await client.owns(experiment_id)


@pytest.mark.timeout(240)
async def test_managers_killed_frozen_and_terminated_in_turn_lose_and_double_nothing(
    scene: Scene,
) -> None:
    """Of two managers, the owner of the experiment is the one that gets the signal."""
    signals = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL)
    trials = 8 * (len(signals) + 1)
    (scene.code / "trial.py").write_text(
        TRIAL.replace("while not", "time.sleep(0.3)\nwhile False and not")
    )
    await scene.agent("one")
    managers = [await scene.manager(), await scene.manager()]
    experiment_id = await scene.start(
        managers[0][1], max_trial_number=trials, trial_concurrency=4, max_trial_retries=0
    )
    frozen: tuple[Process, Client] | None = None
    for number, fault in enumerate(signals):
        await until(partial(reached, scene, 8 * number + 4), 60)
        (process, client), other = managers
        process.process.send_signal(fault)
        await until(partial(other[1].owns, experiment_id))
        if frozen is not None:
            frozen[0].process.send_signal(signal.SIGCONT)
            await until(partial(gone, frozen[1], experiment_id))
            frozen[0].process.kill()  # alive again, it would be the next owner as well as others
        frozen = (process, client) if fault is signal.SIGSTOP else None
        managers = [other, await scene.manager()]
    client = managers[0][1]
    await until(lambda: scene.succeeded(client, experiment_id, trials), 60)

    found = await scene.trials(managers[1][1], experiment_id)
    assert [trial.sequence_id for trial in found] == list(range(trials))
    assert {trial.attempt for trial in found} == {1}
    assert sorted(trial.id for trial in found) == sorted(
        path.name.partition(".")[0] for path in scene.processes()
    )


async def reached(scene: Scene, count: int) -> bool:
    return len(scene.processes()) >= count
