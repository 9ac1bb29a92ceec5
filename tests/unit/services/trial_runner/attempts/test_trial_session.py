import asyncio
import json

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.adapters.blob_values import StoredLargeValues
from svc_trial_runner.attempts.trial_session import AttemptSession
from svc_trial_runner.domain.channel import REPLY_OK, ChannelError, CheckpointRequest, Report
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.reports import MetricReported
from svc_trial_runner.domain.tasks import BlobKey, TrialSpec, TrialWork
from svc_trial_runner.ports import NextTrial

WORK = TrialWork(AttemptKey("exp", "one", 1), 4, 5, {"x": 1}, "", TrialSpec("true"), b"")


class RecordingSession:
    """Session with a record of its metrics."""

    def __init__(self) -> None:
        self.blobs = InMemoryBlobStore()
        self.metrics: list[MetricReported] = []
        self.over = False
        self.session = AttemptSession(
            WORK,
            {"x": 1},
            StoredLargeValues(lambda _: self.blobs),
            ManualClock(),
            self,
            self._report,
        )
        self.room = asyncio.Event()
        self.room.set()

    @property
    def has_room(self) -> bool:
        return self.room.is_set()

    async def wait_room(self) -> None:
        await self.room.wait()

    def _report(self, metric: MetricReported) -> bool:
        if not self.over:
            self.metrics.append(metric)
        return not self.over

    @property
    def numbers(self) -> list[tuple[bool, int, object]]:
        return [(metric.final, metric.sequence, metric.value) for metric in self.metrics]


def say(value: object, *, final: bool = False, sequence: int | None = None) -> Report:
    return Report(final, sequence, value, 50)


def test_greeting_identifies_the_trial() -> None:
    assert json.loads(RecordingSession().session.greet()) == {
        "ok": True,
        "experiment": "exp",
        "trial": "one",
        "sequence": 4,
        "next": False,
    }


class Waiting:
    """`WaitingProcess` to which no trial is handed over."""

    pid = 7

    def hand_over(self, trial: NextTrial) -> asyncio.Future[bool]:
        raise AssertionError(trial)

    def release(self) -> None:
        raise AssertionError


def test_greeting_says_whether_the_process_may_go_on() -> None:
    kept: list[object] = []

    def keep(process: object) -> bool:
        kept.append(process)
        return True

    one = RecordingSession()
    session = AttemptSession(
        WORK,
        {"x": 1},
        StoredLargeValues(lambda _: one.blobs),
        ManualClock(),
        one,
        lambda _: True,
        keep,
    )
    process = Waiting()

    assert json.loads(session.greet())["next"] is True
    assert session.wait_for_next(process)
    assert kept == [process]


def test_process_of_one_attempt_alone_does_not_go_on() -> None:
    assert not RecordingSession().session.wait_for_next(Waiting())


def test_parameters_are_the_same_in_every_reply() -> None:
    session = RecordingSession().session

    expected = {"ok": True, "parameter_id": 5, "parameters": {"x": 1}, "parameter_index": 0}
    assert json.loads(session.parameters()) == json.loads(session.parameters()) == expected


def test_metrics_are_numbered_by_type() -> None:
    session = RecordingSession()

    for value, final in ((1, False), (2, False), (3, True), (4, False)):
        assert session.session.report(say(value, final=final), 7) == REPLY_OK

    assert session.numbers == [(False, 0, 1), (False, 1, 2), (True, 0, 3), (False, 2, 4)]
    assert session.metrics[0].reported_at == ManualClock().now()


def test_repeated_metric_counts_once() -> None:
    session = RecordingSession()

    for _ in range(3):
        assert session.session.report(say(1, sequence=0), 7) == REPLY_OK

    assert session.numbers == [(False, 0, 1)]


def test_metric_beyond_the_next_is_refused() -> None:
    session = RecordingSession()

    with pytest.raises(ChannelError, match="sequence must be 0, got 2"):
        session.session.report(say(1, sequence=2), 7)

    assert session.metrics == []


def test_metric_after_the_end_is_refused() -> None:
    session = RecordingSession()
    session.over = True

    with pytest.raises(ChannelError, match="this trial is over"):
        session.session.report(say(1), 7)


async def test_large_metric_lies_in_the_byte_store() -> None:
    session = RecordingSession()
    text = "x" * 300_000

    answer = session.session.report(Report(False, None, text, 300_050), 7)
    assert isinstance(answer, asyncio.Future)
    assert await answer == REPLY_OK

    (metric,) = session.metrics
    assert isinstance(metric.value, BlobKey)
    assert json.loads(await session.blobs.get(f"sha256/{metric.value.sha256}")) == text
    assert metric.value.size_bytes == 300_002


async def test_metric_of_256_kib_is_sent_in_the_report() -> None:
    session = RecordingSession()
    answer = session.session.report(Report(False, None, "first", 256 * 1024), 7)
    session.room.clear()
    waiting = session.session.report(Report(False, None, "second", 256 * 1024), 7)
    session.room.set()
    assert isinstance(waiting, asyncio.Future)
    larger = session.session.report(Report(False, None, "third", 256 * 1024 + 1), 7)
    assert isinstance(larger, asyncio.Future)

    assert [answer, await waiting, await larger] == [REPLY_OK] * 3
    values = [metric.value for metric in session.metrics]
    assert values[:2] == ["first", "second"]
    assert isinstance(values[2], BlobKey)


def test_checkpoint_is_refused_where_none_is_stored() -> None:
    with pytest.raises(ChannelError, match="this agent stores no checkpoints"):
        RecordingSession().session.save_checkpoint(CheckpointRequest(None))


async def test_large_metric_that_cannot_be_kept_takes_no_number() -> None:
    session = RecordingSession()
    session.over = True
    answer = session.session.report(Report(False, None, "x", 300_050), 7)
    assert isinstance(answer, asyncio.Future)
    assert json.loads(await answer)["ok"] is False

    session.over = False
    session.session.report(say(1), 7)

    assert session.numbers == [(False, 0, 1)]


async def test_metric_waits_for_room() -> None:
    session = RecordingSession()
    session.room.clear()
    answer = session.session.report(say(1, sequence=0), 7)
    assert isinstance(answer, asyncio.Future)
    await asyncio.sleep(0)
    assert session.metrics == []

    session.room.set()

    assert await answer == REPLY_OK
    assert session.numbers == [(False, 0, 1)]


async def test_metric_that_is_repeated_while_it_waits_counts_once() -> None:
    session = RecordingSession()
    session.room.clear()
    answers = [session.session.report(say(1, sequence=0), 7) for _ in range(2)]

    session.room.set()

    for answer in answers:
        assert isinstance(answer, asyncio.Future)
        assert await answer == REPLY_OK
    assert session.numbers == [(False, 0, 1)]


class RefusingStore(InMemoryBlobStore):
    """Store that takes nothing."""

    async def put(self, data: bytes) -> str:
        raise UnavailableError("the store is away")


async def test_large_metric_that_the_store_refuses_is_refused_and_takes_no_number() -> None:
    session = RecordingSession()
    session.blobs = RefusingStore()

    answer = session.session.report(Report(False, None, "x", 300_050), 7)
    assert isinstance(answer, asyncio.Future)
    refused = json.loads(await answer)
    session.session.report(say(1), 7)

    assert refused["ok"] is False
    assert "the store is away" in refused["error"]
    assert session.numbers == [(False, 0, 1)]


async def test_refused_sequence_names_the_process_that_has_sent_it() -> None:
    session = RecordingSession()
    session.session.report(say(1, final=True), 7)

    with pytest.raises(ChannelError, match=r"sequence must be 1, got 3 \(pid 7\)"):
        session.session.report(say(1, final=True, sequence=3), 7)
    assert session.session.report(say(2, final=True, sequence=1), 7) == REPLY_OK


async def test_metric_that_is_not_accepted_takes_no_number() -> None:
    session = RecordingSession()
    session.over = True
    with pytest.raises(ChannelError):
        session.session.report(say(1), 7)
    session.over = False

    assert session.session.report(say(2), 7) == REPLY_OK
    assert session.numbers == [(False, 0, 2)]
