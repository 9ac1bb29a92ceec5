"""In-memory bus with the guarantees of JetStream and no others."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from svc_common.messaging.limits import ACK_WAIT_S
from tests.support.simulation.scenario import Noise
from tests.support.simulation.virtual_time import Node, VirtualTime

RETRY_S = 5.0
"""Seconds without an answer after which a request is sent again."""
REDELIVERED_AT_ONCE = 0.6
"""Share of unacknowledged tasks that a restarted server redelivers at once (measured)."""
_RECONNECT_S = 1.0

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Batch:
    """One append of the log."""

    sequence: int
    payload: bytes
    epoch: int
    append_id: str


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """One message of the INBOX."""

    sequence: int
    source: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Delivery:
    """Task as delivered to an agent."""

    sequence: int
    payload: bytes
    ack_subject: str


@dataclass(slots=True)
class _Queued:
    """Unacknowledged task."""

    sequence: int
    payload: bytes
    deliveries: int = 0
    deadline_s: float = -1.0
    """End of the `ack_wait` of its delivery; negative: it is not delivered."""


@dataclass(slots=True)
class SimulatedBus:
    """Log, INBOX, tasks and signals of one experiment.

    The client repeats a request until it is answered, as the real adapters do, so every request
    is carried out at least once; answers and signals may be lost.
    """

    time: VirtualTime
    random: random.Random
    noise: Noise
    experiment_id: str = "simulate"
    up: bool = True
    log: list[Batch] = field(default_factory=list)
    inbox: list[InboxMessage] = field(default_factory=list)
    tasks: dict[int, _Queued] = field(default_factory=dict)
    takers: list[Any] = field(default_factory=list)
    """Agents with a standing pull: nodes with `take(delivery)`."""
    clients: list[Node] = field(default_factory=list)
    messages: int = 0
    _sequences: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _seen: set[str] = field(default_factory=set)
    _on_log: list[Callable[[], None]] = field(default_factory=list)

    def reaches(self, node: Node) -> bool:
        """Return whether messages pass between the bus and a node now."""
        return self.up and node.linked

    def delay_s(self) -> float:
        """Draw the delay of a message."""
        noise = self.noise
        if noise.late and self.random.random() < noise.late:
            return self.random.random() * noise.late_s
        return 0.0002 + self.random.random() * 0.002

    def outgoing_s(self, node: Node) -> float:
        """Draw the delay of a message from a node; messages of a node arrive in order."""
        node.sent_until_s = max(node.sent_until_s, self.time.now_s + self.delay_s())
        return node.sent_until_s - self.time.now_s

    def incoming_s(self, node: Node) -> float:
        """Draw the delay of a message to a node; messages to a node arrive in order."""
        node.received_until_s = max(node.received_until_s, self.time.now_s + self.delay_s())
        return node.received_until_s - self.time.now_s

    def _draw(self, probability: float) -> bool:
        return probability > 0.0 and self.random.random() < probability

    # --- requests

    def request(self, node: Node, operate: Callable[[], R], answered: Callable[[R], None]) -> None:
        """Send a request for an operation of the bus; repeat it until the answer arrives."""
        _Request(self, node, operate, answered).send()

    # --- log

    def append(self, payload: bytes, expected: int, epoch: int, append_id: str) -> int | None:
        """Store a batch; see `EventLog.append`.

        Returns:
            Its sequence; None: another writer has appended since.
        """
        last = self.log[-1] if self.log else None
        if (last.sequence if last else 0) != expected:
            own = last is not None and (last.epoch, last.append_id) == (epoch, append_id)
            return last.sequence if last is not None and own else None
        # Other experiments share the stream: sequences grow, but not by one.
        sequence = expected + 1 + int(self.random.random() * 3)
        self.log.append(Batch(sequence, payload, epoch, append_id))
        for call in self._on_log:
            call()
        return sequence

    def on_log(self, call: Callable[[], None]) -> None:
        """Register a callback that runs at the bus on every append."""
        self._on_log.append(call)

    # --- INBOX

    def publish(self, source: str, payload: bytes, message_id: str) -> int:
        """Store a message for the manager."""
        if self.noise.deduplicates:
            if message_id in self._seen:
                return 0
            self._seen.add(message_id)
        sequence = (self.inbox[-1].sequence if self.inbox else 0) + 1
        self.inbox.append(InboxMessage(sequence, source, payload))
        for client in self.clients:
            client.later(self.delay_s(), client.inbox_grew)  # type: ignore[attr-defined] # managers
        return sequence

    # --- tasks

    def put_task(self, payload: bytes) -> int:
        """Put a task on the queue."""
        task = _Queued(next(self._sequences), payload)
        self.tasks[task.sequence] = task
        self._offer(task)
        return task.sequence

    def delete_task(self, sequence: int) -> None:
        """Delete a task from the queue, delivered or not."""
        self.tasks.pop(sequence, None)

    def acknowledge(self, ack_subject: str) -> None:
        """Remove a finished task."""
        self.tasks.pop(int(ack_subject.partition("/")[0]), None)

    def renew(self, ack_subject: str) -> None:
        """Extend the `ack_wait` of a delivered task."""
        task = self.tasks.get(int(ack_subject.partition("/")[0]))
        if task is not None and task.deadline_s >= 0:
            task.deadline_s = self.time.now_s + ACK_WAIT_S

    def offer_all(self) -> None:
        """Deliver the tasks that no agent has; called when an agent begins to pull."""
        for task in list(self.tasks.values()):
            if task.deadline_s < 0:
                self._offer(task)

    def _offer(self, task: _Queued) -> None:
        able = [taker for taker in self.takers if taker.alive and self.reaches(taker)]
        if not able:
            task.deadline_s = -1.0
            return
        taker = able[int(self.random.random() * len(able))]
        task.deliveries += 1
        task.deadline_s = self.time.now_s + ACK_WAIT_S
        delivery = Delivery(task.sequence, task.payload, f"{task.sequence}/{task.deliveries}")
        taker.later(self.incoming_s(taker), taker.take, delivery)
        if self._draw(self.noise.duplicated):
            taker.later(self.random.random() * self.noise.late_s, taker.take, delivery)
        self.messages += 1
        self.time.at(ACK_WAIT_S, self._expire, task, task.deliveries)

    def _expire(self, task: _Queued, delivery: int) -> None:
        if task.sequence not in self.tasks or task.deliveries != delivery or task.deadline_s < 0:
            return
        if task.deadline_s > self.time.now_s:
            self.time.at(task.deadline_s - self.time.now_s, self._expire, task, delivery)
        else:
            self._offer(task)

    # --- signals

    def signal(self, sender: Node, receiver: Node, call: Callable[..., None], *args: Any) -> None:
        """Call the receiver at most once; the signal is lost where the link is down."""
        if not (self.reaches(sender) and receiver.alive) or self._draw(self.noise.lost):
            return
        self.messages += 1
        receiver.later(self.incoming_s(receiver), self._arrive, receiver, call, args)
        if self._draw(self.noise.duplicated):
            late_s = self.random.random() * self.noise.late_s
            receiver.later(late_s, self._arrive, receiver, call, args)

    def _arrive(self, receiver: Node, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self.reaches(receiver):
            call(*args)

    # --- restarts

    def go_down(self) -> None:
        """Stop answering; stored messages stay."""
        self.up = False

    def come_up(self) -> None:
        """Answer again; redeliver some tasks although their agents still hold them."""
        self.up = True
        for task in list(self.tasks.values()):
            if task.deadline_s < 0 or self.random.random() < REDELIVERED_AT_ONCE:
                self._offer(task)


class _Request:
    """Request that its client repeats until it is answered."""

    __slots__ = ("_answered", "_boot", "_bus", "_done", "_node", "_operate")

    def __init__(
        self,
        bus: SimulatedBus,
        node: Node,
        operate: Callable[[], Any],
        answered: Callable[[Any], None],
    ) -> None:
        self._bus = bus
        self._node = node
        self._operate = operate
        self._answered = answered
        self._boot = node.boot
        self._done = False

    def send(self) -> None:
        """Send the request unless it has been answered."""
        bus, node = self._bus, self._node
        if self._done:
            return
        if not bus.reaches(node):
            node.later_in(self._boot, _RECONNECT_S, self.send)
            return
        bus.messages += 1
        noise = bus.noise
        lost = noise.lost > 0 and bus.random.random() < noise.lost
        if not lost:
            # Scheduled by the bus: it arrives even if the sender has been killed meanwhile.
            bus.time.at(bus.outgoing_s(node), self._arrive)
        if lost or noise.lost > 0 or noise.late > 0 or not bus.up:
            node.later_in(self._boot, RETRY_S, self.send)
        if noise.duplicated and bus.random.random() < noise.duplicated:
            bus.time.at(bus.random.random() * noise.late_s, self._arrive)

    def _arrive(self) -> None:
        bus, node = self._bus, self._node
        if not bus.up:
            node.later_in(self._boot, RETRY_S, self.send)
            return
        result = self._operate()
        if not (bus.noise.lost > 0 and bus.random.random() < bus.noise.lost):
            node.later_in(self._boot, bus.incoming_s(node), self._answer, result)

    def _answer(self, result: Any) -> None:
        if self._done:
            return
        if not self._bus.reaches(self._node):
            self._node.later_in(self._boot, RETRY_S, self.send)
            return
        self._done = True
        self._answered(result)
