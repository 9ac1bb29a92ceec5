import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from nni_proto.runner.v1 import runner_service_pb2 as pb
from nni_proto.trial.v1 import cause_pb2
from svc_common.errors import InvalidArgumentError
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.agent.log_files import TrialLogReader
from svc_trial_runner.agent.presence import RunnerIdentity
from svc_trial_runner.attempts.execution import AttemptRun
from svc_trial_runner.converters import work_from_payload
from svc_trial_runner.domain.gpus import GpuDevice
from svc_trial_runner.servicer import RunnerServicer
from tests.unit.services.trial_runner.conftest import EXPERIMENT, WAIT_S, Bench

IDENTITY = RunnerIdentity("r", "b", "local", "host", "1.0")
CONTEXT = cast(Any, None)
"""Unused by all methods."""


def servicer(bench: Bench, agent: Agent) -> RunnerServicer:
    dependencies = bench.dependencies
    logs = TrialLogReader(agent, bench.folder)
    return RunnerServicer(
        agent, IDENTITY, dependencies.clock.now(), dependencies.gpus, dependencies.processes, logs
    )


async def test_runner_describes_itself_and_its_devices(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 7, frozenset({1}))])

    answer = await servicer(bench, bench.agent()).DescribeRunner(
        pb.DescribeRunnerRequest(), CONTEXT
    )

    assert (answer.runner_id, answer.boot_id, answer.pool) == ("r", "b", "local")
    assert (answer.host_name, answer.version, answer.running_count) == ("host", "1.0", 0)
    (device,) = answer.devices
    assert (device.index, device.name, device.memory_bytes, device.active) == (0, "a", 7, True)


async def test_trials_are_paged_in_order(bench: Bench) -> None:
    agent = bench.agent()
    for name in ("c", "a", "b"):
        await bench.deliver(agent, bench.task(name, gpu_number=1))
    runner_servicer = servicer(bench, agent)
    await bench.until_kind("c", "waits")

    first = await runner_servicer.ListRunnerTrials(pb.ListRunnerTrialsRequest(page_size=2), CONTEXT)
    rest = await runner_servicer.ListRunnerTrials(
        pb.ListRunnerTrialsRequest(page_size=2, page_token=first.next_page_token), CONTEXT
    )

    whole = [
        await runner_servicer.ListRunnerTrials(pb.ListRunnerTrialsRequest(page_size=size), CONTEXT)
        for size in (0, 3, 4)
    ]
    smallest = await runner_servicer.ListRunnerTrials(
        pb.ListRunnerTrialsRequest(page_size=1), CONTEXT
    )

    assert [(len(page.trials), page.next_page_token) for page in whole] == [(3, "")] * 3
    assert [trial.trial_id for trial in smallest.trials] == ["a"]
    assert [trial.trial_id for trial in first.trials] == ["a", "b"]
    assert [trial.trial_id for trial in rest.trials] == ["c"]
    assert rest.next_page_token == ""
    assert rest.trials[0].waiting_for == "waiting for 1 GPU: this machine has 0"
    assert rest.trials[0].wait.cause == cause_pb2.WAIT_CAUSE_GPU_MISSING
    assert (rest.trials[0].process_group_id, rest.trials[0].warm) == (0, False)
    assert not rest.trials[0].HasField("started_at")
    for run in list(agent.attempts):
        agent.stop_trial(run.key)


async def test_running_trial_has_its_process_and_start(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "sleep 30"))
    started = (await bench.until_kind("one", "started")).started

    answer = await servicer(bench, agent).ListRunnerTrials(pb.ListRunnerTrialsRequest(), CONTEXT)

    (trial,) = answer.trials
    assert (trial.process_group_id, trial.warm) == (started.pid, False)
    assert trial.started_at == started.started_at
    assert not trial.HasField("wait")
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


async def test_negative_page_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentError, match="page_size"):
        await servicer(bench, bench.agent()).ListRunnerTrials(
            pb.ListRunnerTrialsRequest(page_size=-1), CONTEXT
        )


async def test_draining_twice_is_draining(bench: Bench) -> None:
    agent = bench.agent()
    runner_servicer = servicer(bench, agent)

    for _ in range(2):
        await runner_servicer.DrainRunner(pb.DrainRunnerRequest(), CONTEXT)

    assert agent.draining


async def test_unknown_stream_is_refused(bench: Bench) -> None:
    request = pb.FollowLogsRequest(experiment_id="e", trial_id="t", stream=99)  # type: ignore[arg-type] # of a newer version

    with pytest.raises(InvalidArgumentError, match="stream"):
        await anext(servicer(bench, bench.agent()).FollowLogs(request, CONTEXT))


async def test_description_has_the_load_of_the_agent(bench: Bench) -> None:
    bench.gpus.replace([GpuDevice(0, "a", 7), GpuDevice(1, "b", 7)])
    agent = bench.agent()
    runner_servicer = servicer(bench, agent)
    await bench.deliver(agent, bench.task("one", "sleep 30", gpu_number=1))
    await bench.until_kind("one", "started")

    before = await runner_servicer.DescribeRunner(pb.DescribeRunnerRequest(), CONTEXT)
    agent.drain()
    after = await runner_servicer.DescribeRunner(pb.DescribeRunnerRequest(), CONTEXT)

    assert [list(device.trial_ids) for device in before.devices] == [["one"], []]
    assert [device.active for device in before.devices] == [False, False]
    assert (before.running_count, before.warm_interpreter_count) == (1, 0)
    assert (before.draining, after.draining) == (False, True)
    assert before.HasField("started_at")
    agent.lose_all()
    await asyncio.wait_for(agent.wait_drained(), WAIT_S)


@pytest.mark.parametrize(
    ("stream", "offset", "content"),
    [
        (pb.LOG_STREAM_UNSPECIFIED, 0, b"out\n"),
        (pb.LOG_STREAM_TRIAL_LOG, 0, b"out\n"),
        (pb.LOG_STREAM_STDOUT, 1, b"ut\n"),
        (pb.LOG_STREAM_STDERR, 2, b"ror\n"),
    ],
)
async def test_stream_of_a_trial_is_sent_from_the_offset(
    bench: Bench, stream: pb.LogStream.ValueType, offset: int, content: bytes
) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", "echo out; echo error >&2"))
    await bench.until_kind("one", "exited")
    request = pb.FollowLogsRequest(
        experiment_id=EXPERIMENT, trial_id="one", stream=stream, offset=offset
    )

    pieces = [piece async for piece in servicer(bench, agent).FollowLogs(request, CONTEXT)]

    assert [(piece.offset, piece.data) for piece in pieces] == [(offset, content)]


async def test_stream_of_a_running_trial_is_followed_if_asked(bench: Bench) -> None:
    agent = bench.agent()
    go = bench.folder / "go"
    command = f"echo one; until [ -e {go} ]; do sleep 0.01; done; echo two"
    await bench.deliver(agent, bench.task("one", command))
    await bench.until_kind("one", "started")
    request = pb.FollowLogsRequest(experiment_id=EXPERIMENT, trial_id="one", follow=True)

    received = b""
    async with asyncio.timeout(WAIT_S):
        async for piece in servicer(bench, agent).FollowLogs(request, CONTEXT):
            received += piece.data
            go.touch()

    assert received == b"one\ntwo\n"


class CrowdedAgent(Agent):
    """Agent with many attempts, none of which runs."""

    crowd: Sequence[AttemptRun] = ()

    @property
    def attempts(self) -> Sequence[AttemptRun]:
        return self.crowd


@pytest.mark.parametrize(
    ("page_size", "number"), [(0, 100), (999, 999), (1000, 1000), (1001, 1000), (2**31 - 1, 1000)]
)
async def test_page_has_up_to_a_thousand_trials_and_a_hundred_if_nothing_is_asked(
    bench: Bench, page_size: int, number: int
) -> None:
    agent = CrowdedAgent(bench.dependencies, bench.bus.tasks, bench.tasks, loses_unrenewed=False)
    agent.crowd = [
        AttemptRun(
            work_from_payload(bench.task(f"t{index:04}").SerializeToString()),
            "claim",
            "token",
            bench.dependencies,
            lambda _: None,
        )
        for index in range(1002)
    ]

    page = await servicer(bench, agent).ListRunnerTrials(
        pb.ListRunnerTrialsRequest(page_size=page_size), CONTEXT
    )

    assert len(page.trials) == number
    assert page.next_page_token == f"{EXPERIMENT}/t{number - 1:04}/00000001"
