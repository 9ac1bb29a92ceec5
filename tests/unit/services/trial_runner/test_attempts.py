import asyncio
import hashlib
import json
from typing import Any

import pytest

from nni_proto.trial.v1 import report_pb2
from nni_wire.values import from_value
from svc_trial_runner.attempts import AttemptRun
from svc_trial_runner.domain.attempt import StopCause
from svc_trial_runner.domain.channel import REPLY_OK, ChannelError, Report
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.gpus import GpuDevice
from tests.unit.services.trial_runner.conftest import EXPERIMENT, Bench

KEY = AttemptKey(EXPERIMENT, "one", 1)


async def running(bench: Bench, command: str = "sleep 30", **spec: Any) -> AttemptRun:
    """Start a trial in an agent and give its attempt."""
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", command, {"x": 1}, **spec))
    await bench.until_kind("one", "started")
    (run,) = agent.attempts
    return run


async def ended(bench: Bench, run: AttemptRun) -> report_pb2.AttemptExited:
    run.stop(StopCause.STOPPED)
    return (await bench.until_kind("one", "exited")).exited


def metrics(bench: Bench) -> list[tuple[int, int, object]]:
    return [
        (report.metric.type, report.metric.sequence, from_value(report.metric.value))
        for report in bench.heard
        if report.WhichOneof("kind") == "metric"
    ]


def say(value: object, *, final: bool = False, sequence: int | None = None) -> Report:
    return Report(final, sequence, value, 50)


async def test_trial_is_told_who_it_is_and_what_to_try(bench: Bench) -> None:
    run = await running(bench)

    assert json.loads(run.greet()) == {
        "ok": True,
        "experiment": EXPERIMENT,
        "trial": "one",
        "sequence": 0,
    }
    expected = {"ok": True, "parameter_id": 1, "parameters": {"x": 1}, "parameter_index": 0}
    assert json.loads(run.parameters()) == json.loads(run.parameters()) == expected
    await ended(bench, run)


async def test_metrics_are_numbered_by_type_and_precede_the_end(bench: Bench) -> None:
    run = await running(bench)

    for value, final in ((1, False), (2, False), (3, True), (4, False)):
        assert run.report(say(value, final=final), 7) == REPLY_OK
    await ended(bench, run)

    assert metrics(bench) == [(1, 0, 1), (1, 1, 2), (2, 0, 3), (1, 2, 4)]
    assert bench.kinds("one") == ["started", *["metric"] * 4, "exited"]
    assert [report.sequence for report in bench.heard] == list(range(6))


async def test_metric_told_twice_counts_once(bench: Bench) -> None:
    run = await running(bench)

    for _ in range(3):
        assert run.report(say(1, sequence=0), 7) == REPLY_OK
    await ended(bench, run)

    assert metrics(bench) == [(1, 0, 1)]


async def test_metric_beyond_the_next_is_refused(bench: Bench) -> None:
    run = await running(bench)

    with pytest.raises(ChannelError, match="sequence must be 0, got 2"):
        run.report(say(1, sequence=2), 7)
    await ended(bench, run)

    assert metrics(bench) == []


async def test_metric_nested_too_deeply_is_refused_and_takes_no_number(bench: Bench) -> None:
    run = await running(bench)
    deep: object = 1
    for _ in range(200):
        deep = [deep]

    with pytest.raises(ChannelError, match="nested"):
        run.report(say(deep), 7)
    run.report(say("fine", sequence=0), 7)
    await ended(bench, run)

    assert metrics(bench) == [(1, 0, "fine")]
    assert [report.sequence for report in bench.heard] == [0, 1, 2]


async def test_large_metric_lies_in_the_byte_store(bench: Bench) -> None:
    run = await running(bench)
    text = "x" * 300_000

    answer = run.report(Report(False, None, text, 300_050), 7)
    assert isinstance(answer, asyncio.Future)
    assert await answer == REPLY_OK
    await ended(bench, run)

    (report,) = [r for r in bench.heard if r.WhichOneof("kind") == "metric"]
    digest = hashlib.sha256(json.dumps(text).encode()).hexdigest()
    assert report.metric.value.blob_value.sha256 == digest
    assert json.loads(await bench.blobs.get(f"sha256/{digest}")) == text


async def test_metric_after_the_last_word_is_refused(bench: Bench) -> None:
    run = await running(bench)
    await ended(bench, run)

    with pytest.raises(ChannelError, match="over"):
        run.report(say(1), 7)


async def test_parameters_in_the_byte_store_are_fetched(bench: Bench) -> None:
    key = await bench.blobs.put(json.dumps({"big": 1}).encode())
    task = bench.task("one", "sleep 30")
    task.parameters.blob_value.sha256 = key.removeprefix("sha256/")
    agent = bench.agent()

    await bench.deliver(agent, task)
    await bench.until_kind("one", "started")

    (run,) = agent.attempts
    assert json.loads(run.parameters())["parameters"] == {"big": 1}
    await ended(bench, run)


async def test_missing_parameters_are_said(bench: Bench) -> None:
    task = bench.task("one")
    task.parameters.blob_value.sha256 = "0" * 64

    await bench.deliver(bench.agent(), task)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_NOT_STARTED
    assert "0" * 64 in exited.detail


async def test_stop_sends_term_and_reports_it(bench: Bench) -> None:
    run = await running(bench)

    exited = await ended(bench, run)

    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert exited.signal == 15


async def test_stop_after_the_natural_end_keeps_the_natural_end(bench: Bench) -> None:
    run = await running(bench, "true")
    exited = (await bench.until_kind("one", "exited")).exited

    run.stop(StopCause.STOPPED)

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
    assert bench.workshop.gpus.holders_of(0) == []


async def test_stop_while_waiting_for_a_gpu_ends_without_a_process(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")

    agent.stop_trial(KEY)

    exited = (await bench.until_kind("one", "exited")).exited
    assert exited.cause == report_pb2.EXIT_CAUSE_STOPPED
    assert not exited.HasField("exit_code")
    assert not (bench.folder / "experiment/trials/one").exists()


async def test_drop_while_waiting_says_nothing(bench: Bench) -> None:
    agent = bench.agent()
    await bench.deliver(agent, bench.task("one", gpu_number=1))
    await bench.until_kind("one", "waits")

    agent.drop_trial(KEY, "")
    await asyncio.wait_for(bench.tasks.drain(), 5)

    assert bench.kinds("one") == ["waits"]
    assert agent.attempts == []
    assert not bench.workshop.gpus.waiting
