import asyncio
import json

import pytest

from svc_common.clock import ManualClock
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.adapters.blob_values import StoredLargeValues
from svc_trial_runner.attempts.trial_session import AttemptSession
from svc_trial_runner.domain.channel import REPLY_OK, ChannelError, Report
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.reports import MetricReported
from svc_trial_runner.domain.tasks import BlobKey, TrialSpec, TrialWork

WORK = TrialWork(AttemptKey("exp", "one", 1), 4, 5, {"x": 1}, "", TrialSpec("true"), b"")


class Listener:
    """A session, and what was said in it."""

    def __init__(self) -> None:
        self.blobs = InMemoryBlobStore()
        self.said: list[MetricReported] = []
        self.over = False
        self.session = AttemptSession(
            WORK, {"x": 1}, StoredLargeValues(self.blobs), ManualClock(), self, self._report
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
            self.said.append(metric)
        return not self.over

    @property
    def numbers(self) -> list[tuple[bool, int, object]]:
        return [(metric.final, metric.sequence, metric.value) for metric in self.said]


def say(value: object, *, final: bool = False, sequence: int | None = None) -> Report:
    return Report(final, sequence, value, 50)


def test_trial_is_told_who_it_is() -> None:
    assert json.loads(Listener().session.greet()) == {
        "ok": True,
        "experiment": "exp",
        "trial": "one",
        "sequence": 4,
    }


def test_parameters_are_the_same_at_every_question() -> None:
    session = Listener().session

    expected = {"ok": True, "parameter_id": 5, "parameters": {"x": 1}, "parameter_index": 0}
    assert json.loads(session.parameters()) == json.loads(session.parameters()) == expected


def test_metrics_are_numbered_by_type() -> None:
    listener = Listener()

    for value, final in ((1, False), (2, False), (3, True), (4, False)):
        assert listener.session.report(say(value, final=final), 7) == REPLY_OK

    assert listener.numbers == [(False, 0, 1), (False, 1, 2), (True, 0, 3), (False, 2, 4)]
    assert listener.said[0].reported_at == ManualClock().now()


def test_metric_told_twice_counts_once() -> None:
    listener = Listener()

    for _ in range(3):
        assert listener.session.report(say(1, sequence=0), 7) == REPLY_OK

    assert listener.numbers == [(False, 0, 1)]


def test_metric_beyond_the_next_is_refused() -> None:
    listener = Listener()

    with pytest.raises(ChannelError, match="sequence must be 0, got 2"):
        listener.session.report(say(1, sequence=2), 7)

    assert listener.said == []


def test_metric_after_the_end_is_refused() -> None:
    listener = Listener()
    listener.over = True

    with pytest.raises(ChannelError, match="this trial is over"):
        listener.session.report(say(1), 7)


async def test_large_metric_lies_in_the_byte_store() -> None:
    listener = Listener()
    text = "x" * 300_000

    answer = listener.session.report(Report(False, None, text, 300_050), 7)
    assert isinstance(answer, asyncio.Future)
    assert await answer == REPLY_OK

    (metric,) = listener.said
    assert isinstance(metric.value, BlobKey)
    assert json.loads(await listener.blobs.get(f"sha256/{metric.value.sha256}")) == text
    assert metric.value.size_bytes == 300_002


async def test_large_metric_that_cannot_be_kept_takes_no_number() -> None:
    listener = Listener()
    listener.over = True
    answer = listener.session.report(Report(False, None, "x", 300_050), 7)
    assert isinstance(answer, asyncio.Future)
    assert json.loads(await answer)["ok"] is False

    listener.over = False
    listener.session.report(say(1), 7)

    assert listener.numbers == [(False, 0, 1)]


async def test_metric_waits_for_room() -> None:
    listener = Listener()
    listener.room.clear()
    answer = listener.session.report(say(1, sequence=0), 7)
    assert isinstance(answer, asyncio.Future)
    await asyncio.sleep(0)
    assert listener.said == []

    listener.room.set()

    assert await answer == REPLY_OK
    assert listener.numbers == [(False, 0, 1)]
