import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from nni_proto.experiment.v1 import inbox_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES, METRIC_LIMIT_BYTES
from nni_wire.values import to_value
from svc_common.errors import UnavailableError
from svc_common.large_work import ON_LOOP_BYTES
from svc_common.messaging.memory import InMemoryBus
from svc_manager.actors.inbox_reader import (
    TAKE_LIMIT,
    TAKE_LIMIT_BYTES,
    DecodedMessage,
    InboxReader,
)
from svc_manager.converters.notifications import REPORTS_LIMIT
from svc_manager.domain import inputs
from svc_manager.domain.reports import Report
from svc_manager.domain.values import Metric

PATIENCE_S = 60.0


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def advice(number: int, reason: str = "") -> bytes:
    """Return a small message, which its sender may send as a dispatcher."""
    message = inbox_pb2.InboxMessage()
    message.stop_advice.trial_id = str(number)
    message.stop_advice.reason = reason
    return message.SerializeToString()


def reports(count: int, runner_id: str = "r1") -> bytes:
    """Return a message of an agent with so many reports, as small as they can be."""
    batch = report_pb2.RunnerReports(runner_id=runner_id)
    for sequence in range(count):
        report = batch.reports.add(trial_id="aB3dE", attempt=1, sequence=sequence, claim_id="c")
        report.lost.SetInParent()
    return inbox_pb2.InboxMessage(runner_reports=batch).SerializeToString()


def metrics(*values: object) -> bytes:
    batch = report_pb2.RunnerReports(runner_id="r1")
    for sequence, value in enumerate(values):
        report = batch.reports.add(trial_id="aB3dE", attempt=1, sequence=sequence, claim_id="c")
        report.metric.value.CopyFrom(to_value(value))
    return inbox_pb2.InboxMessage(runner_reports=batch).SerializeToString()


@asynccontextmanager
async def reading(*messages: tuple[str, bytes]) -> AsyncIterator[tuple[InboxReader, asyncio.Event]]:
    """Yield a reader of these messages (source, payload), and the event that it sets."""
    async with InMemoryBus() as bus:
        for number, (source, payload) in enumerate(messages):
            await bus.inbox.publish("exp", source, payload, message_id=str(number))
        wake = asyncio.Event()
        reader = InboxReader(bus.inbox, "exp", wake.set)
        reader.start(0)
        try:
            yield reader, wake
        finally:
            await reader.aclose()


async def take_through(
    reader: InboxReader, wake: asyncio.Event, sequence: int
) -> list[DecodedMessage]:
    """Return all that is taken up to the end of the message with this sequence."""
    taken: list[DecodedMessage] = []
    async with asyncio.timeout(PATIENCE_S):
        while not taken or taken[-1].sequence < sequence or not taken[-1].complete:
            await wake.wait()
            wake.clear()
            taken += reader.take()
    return taken


async def test_messages_are_taken_in_order_and_once() -> None:
    messages = [("dispatcher", advice(number)) for number in range(3)]
    async with reading(*messages) as (reader, wake):
        await turns()

        taken = reader.take()

        expected = [(inputs.StopAdvice(str(number), ""),) for number in range(3)]
        assert [tuple(message.notifications) for message in taken] == expected
        assert all(message.complete for message in taken)
        assert reader.take() == []
        assert wake.is_set()


async def test_too_many_bytes_at_once_are_taken_in_batches() -> None:
    reason = "x" * (ON_LOOP_BYTES // 2)
    messages = [("dispatcher", advice(number, reason)) for number in range(20)]
    async with reading(*messages) as (reader, wake):
        await turns()

        first = reader.take()
        wake.clear()
        second = reader.take()

        assert sum(message.size_bytes for message in first[:-1]) < TAKE_LIMIT_BYTES
        assert (len(first), len(second)) == (16, 4)
        assert not wake.is_set()
    await reader.aclose()


async def test_too_many_reports_at_once_are_taken_in_batches() -> None:
    count = TAKE_LIMIT // 2
    messages = [("r1", reports(count)) for _ in range(3)]
    async with reading(*messages) as (reader, _):
        await turns()

        first, second = reader.take(), reader.take()

        assert [len(message.notifications) for message in first] == [count, count]
        assert [len(message.notifications) for message in second] == [count]


async def test_unknown_reports_count_as_others() -> None:
    batch = report_pb2.RunnerReports(
        runner_id="r1", reports=[report_pb2.TrialReport()] * TAKE_LIMIT
    )
    payload = inbox_pb2.InboxMessage(runner_reports=batch).SerializeToString()
    async with reading(("r1", payload), ("r1", payload)) as (reader, _):
        await turns()

        assert [list(message.notifications) for message in reader.take()] == [[]]


@pytest.mark.parametrize("count", [TAKE_LIMIT + 1, REPORTS_LIMIT], ids=["small", "large"])
async def test_many_reports_are_handled_in_pieces_of_which_the_last_ends_the_message(
    count: int,
) -> None:
    async with reading(("r1", reports(count)), ("dispatcher", advice(1))) as (reader, wake):
        *pieces, last = await take_through(reader, wake, 2)

        found = [report for piece in pieces for report in piece.notifications]
        assert [report.sequence for report in found if isinstance(report, Report)] == [
            *range(count)
        ]
        assert [piece.complete for piece in pieces] == [False] * (len(pieces) - 1) + [True]
        assert max(len(piece.notifications) for piece in pieces) == TAKE_LIMIT
        assert last.notifications == [inputs.StopAdvice("1", "")]


@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        (b"\x0a\x80\x80\x80\x02" + b"\x1a\x00" * 2 * 1024 * 1024, "at most 800,000 parts"),
        (reports(REPORTS_LIMIT + 1), "at most 50,000 reports, got 50,001"),
        (b"\xff" * (ON_LOOP_BYTES + 1), "pars"),
        (reports(2_000, runner_id="r2"), "r1 may not send"),
    ],
    ids=["parts", "reports", "malformed", "foreign"],
)
async def test_refused_message_is_logged_once_and_the_next_is_read(
    payload: bytes, rule: str
) -> None:
    with capture_logs() as logs:
        async with reading(("r1", payload), ("dispatcher", advice(1))) as (reader, wake):
            refused, following = await take_through(reader, wake, 2)

    assert (list(refused.notifications), refused.complete) == ([], True)
    assert following.notifications == [inputs.StopAdvice("1", "")]
    (line,) = [line for line in logs if line["event"] == "message dropped"]
    assert rule in line["error"]
    assert (line["experiment"], line["source"], line["sequence"]) == ("exp", "r1", 1)


@pytest.mark.parametrize(
    "values",
    [
        ["x" * METRIC_LIMIT_BYTES],
        [[1] * (INLINE_VALUE_LIMIT_BYTES // 2)] * 2,
        [{f"{number:x}": 1 for number in range(INLINE_VALUE_LIMIT_BYTES // 9)}],
    ],
    ids=["text", "lists of 1 MB in all", "map"],
)
async def test_largest_metrics_of_an_agent_arrive(values: list[object]) -> None:
    async with reading(("r1", metrics(*values))) as (reader, wake):
        (message,) = await take_through(reader, wake, 1)

        sent = [to_value(value).SerializeToString() for value in values]
        assert [
            report.body.value
            for report in message.notifications
            if isinstance(report, Report) and isinstance(report.body, Metric)
        ] == sent


async def test_a_failed_read_wakes_the_actor_and_is_raised_by_take() -> None:
    bus = InMemoryBus()
    wake = asyncio.Event()
    reader = InboxReader(bus.inbox, "exp", wake.set)
    await bus.aclose()

    reader.start(0)
    await asyncio.wait_for(wake.wait(), 10)

    with pytest.raises(UnavailableError):
        reader.take()
    await reader.aclose()
