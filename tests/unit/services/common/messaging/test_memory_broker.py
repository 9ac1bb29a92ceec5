"""In-memory server of the bus."""

from __future__ import annotations

import pytest

from svc_common.messaging.memory_broker import (
    InMemoryBroker,
    QueuedTask,
    Record,
    Stream,
    matches,
)
from svc_common.messaging.ports import Task


class ManualFeed:
    """`TaskReceiver` with unlimited credit."""

    pool = "lab"
    granted = 1

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def receive(self, task: Task) -> None:
        self.tasks.append(task)


def broker_with(tasks: int, *feeds: ManualFeed) -> InMemoryBroker:
    broker = InMemoryBroker()
    broker.feeds += feeds
    broker.tasks |= {number: QueuedTask("lab", b"") for number in range(1, tasks + 1)}
    return broker


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("nni.task.lab", "nni.task.lab", True),
        ("nni.*.lab", "nni.task.lab", True),
        ("nni.*", "nni.task.lab", False),
        ("nni.*.lab", "nni.lab", False),
        ("nni.task.other", "nni.task.lab", False),
    ],
)
def test_a_wildcard_is_one_token(pattern: str, subject: str, *, expected: bool) -> None:
    assert matches(pattern, subject) is expected


def test_a_message_id_is_stored_once() -> None:
    stream = Stream()
    first = stream.add(Record("a", b"1", "x"))

    again = stream.add(Record("a", b"2", "x"))
    other = stream.add(Record("a", b"3"))

    assert (first, again, other) == (1, 1, 2)
    assert [record.payload for _, record in stream.matching("a", 0)] == [b"1", b"3"]


def test_a_purge_ends_before_its_sequence() -> None:
    stream = Stream()
    for number in range(4):
        stream.add(Record("a" if number % 2 else "b", b""))

    stream.purge("a", before=4)

    assert sorted(stream.records) == [1, 3, 4]
    stream.purge("b")
    assert sorted(stream.records) == [4]


async def test_tasks_go_to_the_feeds_in_turn() -> None:
    feeds = ManualFeed(), ManualFeed()
    broker = broker_with(4, *feeds)

    broker.offer()

    assert [[task.sequence for task in feed.tasks] for feed in feeds] == [[1, 3], [2, 4]]


async def test_an_unfinished_task_is_delivered_again_with_its_number() -> None:
    feed = ManualFeed()
    broker = broker_with(1, feed)
    broker.offer()

    broker.redeliver()

    assert [(task.sequence, task.deliveries) for task in feed.tasks] == [(1, 1), (1, 2)]


async def test_nothing_is_delivered_while_the_broker_is_stopped() -> None:
    feed = ManualFeed()
    broker = broker_with(1, feed)
    broker.stop()

    broker.offer()
    while_stopped = list(feed.tasks)
    broker.start()

    assert (len(while_stopped), len(feed.tasks)) == (0, 1)


async def test_a_feed_of_another_pool_or_without_credit_receives_nothing() -> None:
    elsewhere, exhausted = ManualFeed(), ManualFeed()
    elsewhere.pool, exhausted.granted = "other", 0
    broker = broker_with(1, elsewhere, exhausted)

    broker.offer()

    assert elsewhere.tasks == exhausted.tasks == []
