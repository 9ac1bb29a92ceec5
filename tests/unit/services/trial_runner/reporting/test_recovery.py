import asyncio
import shutil
from pathlib import Path

from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_common.messaging.ports import Task
from svc_trial_runner.adapters.claim_journal import FileClaimJournal
from svc_trial_runner.adapters.report_spool import DirectoryReportSpool
from svc_trial_runner.converters import report_entry
from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claimed,
    Ended,
    JournalRecord,
    ProcessIdentity,
    Progressed,
    ServerStarted,
    Started,
)
from svc_trial_runner.domain.reports import AttemptLost, AttemptWaits, ExitCause, ProcessExited
from svc_trial_runner.reporting.recovery import Recovery
from svc_trial_runner.reporting.reporter import Reporter
from tests.unit.services.trial_runner.conftest import EXPERIMENT, POOL, WAIT_S, Bench

LOSS = LossReason(LossCause.AGENT_FAILED, detail="x")
KEY = AttemptKey(EXPERIMENT, "one", 1)


def waits(number: int) -> bytes:
    return report_entry(KEY, "c1", number, AttemptWaits(WaitReason(WaitCause.BLOB, object="x")))


def exited(bench: Bench, number: int) -> bytes:
    report = ProcessExited(bench.dependencies.clock.now(), ExitCause.ENDED, 0, 0, "")
    return report_entry(KEY, "c1", number, report)


async def held_task(bench: Bench) -> Task:
    await bench.bus.tasks.publish(POOL, b"task", message_id="1")
    feed = await bench.bus.tasks.pull(POOL)
    feed.grant(1)
    return await anext(aiter(feed))


class Successor:
    """State of a killed agent, with a new agent on top."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench = bench
        self._folder = folder
        folder.mkdir()

    def left(self, records: list[JournalRecord], reports: list[bytes], arrived: int = 0) -> None:
        journal = FileClaimJournal(self._folder / "claims.journal", "boot")
        journal.append(*records)
        journal.close()
        spool = DirectoryReportSpool(self._folder / "spool")
        spool.append([(EXPERIMENT, entry) for entry in reports])
        if arrived:
            spool.acknowledge(EXPERIMENT, arrived)
        spool.close()

    async def settle(self) -> tuple[list[AttemptKey], FileClaimJournal]:
        bench = self._bench
        journal = FileClaimJournal(self._folder / "claims.journal", "boot")
        spool = DirectoryReportSpool(self._folder / "spool")
        reporter = Reporter(bench.bus.inbox, spool, bench.tasks, "runner", "boot2")
        ended = Recovery(journal, spool, reporter, bench.bus.tasks, bench.tasks).settle()
        await asyncio.wait_for(bench.tasks.drain(), WAIT_S)
        await asyncio.wait_for(reporter.wait_idle(), WAIT_S)
        await asyncio.wait_for(bench.tasks.drain(), WAIT_S)
        return ended, journal


async def test_unfinished_claim_is_lost_and_its_task_acknowledged(
    bench: Bench, tmp_path: Path
) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    leader = ProcessIdentity(1, 2)
    successor.left([Claimed(KEY, "c1", "t", task.ack_subject), Started("c1", leader)], [])

    ended, journal = await successor.settle()

    lost = await bench.until_kind("one", "lost")
    assert (lost.claim_id, lost.sequence) == ("c1", 0)
    assert ended == [KEY]
    assert journal.state.claims == {}
    bench.broker.redeliver()
    assert (await bench.bus.tasks.pull(POOL)).granted == 0


async def test_loss_is_numbered_after_all_reports(bench: Bench, tmp_path: Path) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    successor.left(
        [Claimed(KEY, "c1", "t", task.ack_subject), Progressed("c1", 5)],
        [waits(5), waits(6)],
        arrived=1,
    )

    await successor.settle()

    await bench.until_kind("one", "lost")
    assert [report.sequence for report in bench.heard] == [6, 7]


async def test_end_that_had_not_arrived_is_sent_instead_of_a_loss(
    bench: Bench, tmp_path: Path
) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    successor.left(
        [Claimed(KEY, "c1", "t", task.ack_subject), Ended("c1")],
        [waits(0), exited(bench, 1)],
    )

    _, journal = await successor.settle()

    await bench.until_kind("one", "exited")
    assert bench.kinds("one") == ["waits", "exited"]
    assert journal.state.claims == {}


async def test_end_that_had_arrived_is_only_acknowledged(bench: Bench, tmp_path: Path) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    successor.left(
        [Claimed(KEY, "c1", "t", task.ack_subject), Ended("c1")], [exited(bench, 0)], arrived=1
    )

    _, journal = await successor.settle()

    assert bench.heard == []
    assert journal.state.claims == {}


async def test_report_without_a_claim_outlives_another_crash(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "next"
    Successor(bench, folder).left([], [waits(0)])
    journal = FileClaimJournal(folder / "claims.journal", "boot")
    spool = DirectoryReportSpool(folder / "spool")
    reporter = Reporter(bench.bus.inbox, spool, bench.tasks, "runner", "boot2")

    Recovery(journal, spool, reporter, bench.bus.tasks, bench.tasks).settle()
    shutil.copytree(folder / "spool", tmp_path / "spool")  # as it is after a kill now

    left = DirectoryReportSpool(tmp_path / "spool").inherited()
    assert [one.entry for one in left] == [waits(0)]
    await asyncio.wait_for(reporter.wait_idle(), WAIT_S)


async def test_end_that_a_full_disk_swallowed_becomes_a_loss(bench: Bench, tmp_path: Path) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    successor.left([Claimed(KEY, "c1", "t", task.ack_subject), Ended("c1")], [])

    _, journal = await successor.settle()

    lost = await bench.until_kind("one", "lost")
    assert lost.lost.reason == "its agent was restarted"
    assert bench.kinds("one") == ["lost"]
    assert journal.state.claims == {}


async def test_end_whose_reports_have_left_the_spool_is_only_acknowledged(
    bench: Bench, tmp_path: Path
) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    successor.left(
        [Claimed(KEY, "c1", "t", task.ack_subject), Progressed("c1", 1), Ended("c1")], []
    )

    _, journal = await successor.settle()

    assert bench.heard == []
    assert journal.state.claims == {}


async def test_process_servers_of_the_predecessor_are_forgotten(
    bench: Bench, tmp_path: Path
) -> None:
    successor = Successor(bench, tmp_path / "next")
    successor.left([ServerStarted(ProcessIdentity(1, 2))], [])

    ended, journal = await successor.settle()

    assert ended == []
    assert journal.state.servers == []


async def test_reports_of_closed_claims_are_still_sent(bench: Bench, tmp_path: Path) -> None:
    successor = Successor(bench, tmp_path / "next")
    successor.left(
        [],
        [
            waits(0),
            report_entry(KEY, "c1", 1, AttemptLost(LOSS)),
        ],
    )

    ended, _ = await successor.settle()

    await bench.until_kind("one", "lost")
    assert ended == []


async def test_second_successor_finds_nothing(bench: Bench, tmp_path: Path) -> None:
    task = await held_task(bench)
    successor = Successor(bench, tmp_path / "next")
    successor.left([Claimed(KEY, "c1", "t", task.ack_subject)], [waits(0)])
    _, journal = await successor.settle()
    journal.close()
    await bench.until_kind("one", "lost")
    heard = len(bench.heard)

    again, _ = await successor.settle()

    assert again == []
    assert len(bench.heard) == heard
