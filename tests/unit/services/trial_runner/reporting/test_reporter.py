import asyncio
from asyncio import TimerHandle
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nni_proto.experiment.v1 import inbox_pb2
from svc_common.errors import OutOfRoomError
from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_common.messaging.ports import InboxMessage
from svc_trial_runner.adapters.report_spool import DirectoryReportSpool
from svc_trial_runner.converters import report_entry
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.reports import AttemptLost, AttemptWaits
from svc_trial_runner.reporting.reporter import Reporter
from tests.unit.services.trial_runner.conftest import EXPERIMENT, WAIT_S, Bench

LOSS = LossReason(LossCause.AGENT_FAILED, detail="x")
KEY = AttemptKey(EXPERIMENT, "one", 1)


def entry(number: int) -> bytes:
    return report_entry(KEY, "claim", number, AttemptWaits(WaitReason(WaitCause.BLOB, object="x")))


def last(number: int) -> bytes:
    return report_entry(KEY, "claim", number, AttemptLost(LOSS))


async def until_count(bench: Bench, count: int) -> None:
    await bench.until(lambda: len(bench.heard) >= count)


async def test_reports_arrive_in_order(bench: Bench) -> None:
    for number in range(500):
        bench.dependencies.reporter.add(EXPERIMENT, entry(number))
        if number % 50 == 0:
            await asyncio.sleep(0)

    await until_count(bench, 500)

    assert [report.sequence for report in bench.heard] == list(range(500))


async def test_reports_of_one_turn_of_the_loop_share_a_message(bench: Bench) -> None:
    for number in range(100):
        bench.dependencies.reporter.add(EXPERIMENT, entry(number))
    await until_count(bench, 100)

    stored = await anext(bench.bus.inbox.follow(EXPERIMENT))

    assert [_count(message) for message in stored] == [100]


def _count(message: InboxMessage) -> int:
    parsed = inbox_pb2.InboxMessage.FromString(message.payload)
    return len(parsed.runner_reports.reports)


async def test_last_report_is_called_back_when_it_has_arrived(bench: Bench) -> None:
    arrived = asyncio.Event()
    bench.broker.stop()
    bench.dependencies.reporter.add(EXPERIMENT, entry(0))
    bench.dependencies.reporter.add(EXPERIMENT, last(1), arrived.set)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not arrived.is_set()

    bench.broker.start()
    await asyncio.wait_for(arrived.wait(), WAIT_S)
    await until_count(bench, 2)

    assert [report.sequence for report in bench.heard] == [0, 1]


async def test_last_report_is_in_the_spool_before_it_is_sent(bench: Bench) -> None:
    bench.broker.stop()

    bench.dependencies.reporter.add(EXPERIMENT, entry(0))
    bench.dependencies.reporter.add(EXPERIMENT, last(1), lambda: None)

    left = DirectoryReportSpool(bench.folder / "runner/spool").inherited()
    assert [report.entry for report in left] == [entry(0), last(1)]
    bench.broker.start()
    await bench.dependencies.reporter.wait_idle()


async def test_experiments_do_not_wait_for_each_other(bench: Bench, tmp_path: Path) -> None:
    bench.dependencies.reporter.add("other", entry(0))
    bench.dependencies.reporter.add(EXPERIMENT, entry(0))

    await until_count(bench, 1)
    await bench.dependencies.reporter.wait_idle()

    assert await bench.bus.inbox.last_sequence("other") > 0


async def test_idle_means_that_everything_has_arrived(bench: Bench) -> None:
    reporter = bench.dependencies.reporter
    for number in range(10):
        reporter.add(EXPERIMENT, entry(number))

    await asyncio.wait_for(reporter.wait_idle(), WAIT_S)

    assert await bench.bus.inbox.last_sequence(EXPERIMENT) > 0
    reporter.forget(EXPERIMENT)
    reporter.add(EXPERIMENT, entry(10))
    await until_count(bench, 11)


async def test_reports_fit_up_to_the_last_byte_of_the_room(bench: Bench) -> None:
    reporter = Reporter(
        bench.bus.inbox, bench.spool, bench.tasks, "runner", "boot1", room_bytes=len(entry(0))
    )
    bench.broker.stop()

    reporter.add(EXPERIMENT, entry(0))
    fits = reporter.has_room
    reporter.add(EXPERIMENT, entry(1))

    assert (fits, reporter.has_room) == (True, False)
    bench.broker.start()
    await until_count(bench, 2)


async def test_room_is_bounded_while_the_bus_is_away(bench: Bench) -> None:
    reporter = Reporter(
        bench.bus.inbox, bench.spool, bench.tasks, "runner", "boot1", room_bytes=1000
    )
    bench.broker.stop()
    for number in range(100):
        reporter.add(EXPERIMENT, entry(number))
    was_full = not reporter.has_room

    bench.broker.start()
    await asyncio.wait_for(reporter.wait_room(), WAIT_S)

    assert was_full
    assert reporter.has_room
    await until_count(bench, 100)
    assert reporter.has_room


async def test_reports_of_64_mib_fit_while_the_bus_is_away(bench: Bench) -> None:
    reporter = Reporter(bench.bus.inbox, bench.spool, bench.tasks, "runner", "boot1")
    bench.broker.stop()
    reporter.add(EXPERIMENT, entry(0))
    for _ in range(10):  # the first report is on its way, so that the others are only held
        await asyncio.sleep(0)

    reporter.add(EXPERIMENT, bytes(64 * 2**20 - len(entry(0))))
    fits = reporter.has_room
    reporter.add(EXPERIMENT, b"x")

    assert (fits, reporter.has_room) == (True, False)


async def test_message_has_a_mebibyte_of_reports_at_most(bench: Bench) -> None:
    half = entry_of(2**19)
    for report in (half, half, entry(2)):
        bench.dependencies.reporter.add(EXPERIMENT, report)
    await until_count(bench, 3)

    counts: list[int] = []
    async for stored in bench.bus.inbox.follow(EXPERIMENT):
        counts += map(_count, stored)
        if sum(counts) == 3:
            break

    assert counts == [2, 1]


def entry_of(size_bytes: int) -> bytes:
    """Return an encoded report of this size."""
    made = b""
    for text in range(size_bytes - 100, size_bytes):
        loss = LossReason(LossCause.AGENT_FAILED, detail="x" * (text // 2))
        made = report_entry(KEY, "claim" + "x" * (text % 2), 0, AttemptLost(loss))
        if len(made) >= size_bytes:
            break
    assert len(made) == size_bytes
    return made


async def test_reports_are_collected_for_two_milliseconds_unless_one_is_the_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, reporter = asyncio.get_running_loop(), bench.dependencies.reporter
    now_s = 100.0
    delays: list[float] = []
    later: Callable[..., TimerHandle] = loop.call_later

    def call_later(delay: float, callback: Callable[..., object], *args: object) -> TimerHandle:
        delays.append(delay)
        return later(delay, callback, *args)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: now_s)
        reporter.add(EXPERIMENT, entry(0))
        await reporter.wait_idle()
        await bench.tasks.drain()
        patch.setattr(loop, "call_later", call_later)
        now_s += 0.0005
        reporter.add(EXPERIMENT, entry(1))
        reporter.add(EXPERIMENT, entry(2))
        unsent = len(bench.heard)
        reporter.add(EXPERIMENT, last(3), lambda: None)
        await reporter.wait_idle()
    await until_count(bench, 4)

    assert delays == [pytest.approx(0.0015)]
    assert unsent == 1
    assert [report.sequence for report in bench.heard] == [0, 1, 2, 3]


@pytest.fixture
def full_bus(bench: Bench) -> list[str]:
    """Let the bus be out of room for the first three messages; return the ids of all tries."""
    publish, tries = bench.bus.inbox.publish, []

    async def full(experiment_id: str, source: str, payload: bytes, *, message_id: str) -> int:
        tries.append(message_id)
        if len(tries) <= 3:
            raise OutOfRoomError("the bus is out of room")
        return await publish(experiment_id, source, payload, message_id=message_id)

    bench.bus.inbox.publish = full  # type: ignore[method-assign] # a full disk
    return tries


async def test_reports_wait_for_room_on_the_bus(bench: Bench, full_bus: list[str]) -> None:
    reporter = Reporter(
        bench.bus.inbox, bench.spool, bench.tasks, "runner", "boot1", full_retry_s=0.0
    )
    arrived = asyncio.Event()
    reporter.add(EXPERIMENT, entry(0))
    reporter.add(EXPERIMENT, last(1), arrived.set)

    with capture_logs() as lines:
        await asyncio.wait_for(arrived.wait(), WAIT_S)
    await until_count(bench, 2)

    assert [report.sequence for report in bench.heard] == [0, 1]
    assert full_bus == full_bus[:1] * 4
    assert [line["experiment"] for line in lines if line["log_level"] == "warning"] == [EXPERIMENT]


async def test_queue_with_reports_is_not_forgotten(bench: Bench) -> None:
    reporter = bench.dependencies.reporter
    reporter.forget("unknown")
    bench.broker.stop()
    reporter.add(EXPERIMENT, entry(0))

    reporter.forget(EXPERIMENT)
    reporter.add(EXPERIMENT, entry(1))

    reporter.flush()
    left = DirectoryReportSpool(bench.folder / "runner/spool").inherited()
    assert [report.entry for report in left] == [entry(0), entry(1)]
    bench.broker.start()
    await until_count(bench, 2)
    assert [report.sequence for report in bench.heard] == [0, 1]
