"""Simulated agent and its trials, with the real claims, attempt state machine and reports."""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from nni_proto.runner.v1 import task_pb2
from nni_wire.pools import LOCAL_POOL
from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_common.messaging.limits import ACK_WAIT_S
from svc_trial_runner.agent.agent import RENEW_EVERY_S
from svc_trial_runner.agent.presence import PRESENCE_EVERY_S
from svc_trial_runner.converters import report_entry, reports_message, work_from_payload
from svc_trial_runner.domain.attempt import AttemptStateMachine, Order, Phase, StopTrigger
from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claim,
    Claimed,
    Closed,
    Ended,
    JournalState,
    Redelivered,
    TaskDecision,
    decide_task,
    is_outdated,
)
from svc_trial_runner.domain.reports import (
    AttemptLost,
    AttemptReport,
    AttemptWaits,
    ExitCause,
    MetricReported,
    ProcessExited,
    ProcessStarted,
    is_last,
)
from svc_trial_runner.domain.tasks import TrialWork
from svc_trial_runner.ports import SpooledReport
from svc_trial_runner.reporting.recovery import InheritedReports, read_inherited
from tests.support.simulation.bus import Delivery, SimulatedBus
from tests.support.simulation.virtual_time import Node, VirtualTime

_AFTER_CHANGE_S: Final = 0.5
_GRACE_S: Final = 5.0
_WAIT_PROBABILITY: Final = 0.1
_LONG_PROBABILITY: Final = 0.05
_IGNORES_TERM_PROBABILITY: Final = 0.1
"""Share of trials that ignore TERM."""


_NO_SPACE: Final = LossReason(LossCause.NOT_STARTED, detail="No space left on device")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a configuration; it depends on the parameters alone."""

    value: float
    curve: tuple[float, ...]
    fails: bool
    step_s: float = 0.0
    """Seconds per value of the curve; 0: the duration of the whole curve is drawn."""

    def times_s(self, drawn_s: float) -> tuple[float, ...]:
        """Return the report time of each value of the curve, then the end of the trial.

        Args:
            drawn_s: duration of the trial where ``step_s`` is 0.
        """
        if self.step_s:
            steps = [self.step_s * (step + 1) for step in range(len(self.curve))]
            return (*steps, steps[-1])
        count = len(self.curve) + 1
        return tuple(drawn_s * (step + 1) / count for step in range(count))

    @classmethod
    def of(cls, parameters: object, *, failing: bool) -> Outcome:
        """Return the outcome of a configuration."""
        digest = zlib.crc32(json.dumps(parameters, sort_keys=True).encode())
        value = digest % 10_007 / 10_007
        curve = tuple(value + 1 / (step + 1) for step in range(digest % 4))
        return cls(value, curve, failing and digest % 7 == 0)


@dataclass(slots=True, eq=False)
class _Attempt:
    """Attempt that the agent holds; simulates `svc_trial_runner.attempts.execution.AttemptRun`."""

    work: TrialWork
    claim_id: str
    ack_subject: str
    renewed_at_s: float
    machine: AttemptStateMachine = field(default_factory=AttemptStateMachine)
    next_report: int = 0
    muted: bool = False
    launched: bool = False
    loss: LossReason | None = None

    @property
    def key(self) -> AttemptKey:
        return self.work.key


@dataclass(slots=True)
class Disk:
    """State that survives a restart of the agent."""

    journal: JournalState = field(default_factory=JournalState)
    spool: list[SpooledReport] = field(default_factory=list)
    acknowledged: int = 0
    """Number of the oldest reports in the spool that have arrived."""


class SimulatedAgent(Node):
    """Agent whose trials have results that depend on their parameters alone."""

    def __init__(
        self,
        time: VirtualTime,
        name: str,
        bus: SimulatedBus,
        managers: list[Any],
        *,
        loses_unrenewed: bool,
        failing: bool,
        outcome_of: Callable[[Any], Outcome] | None = None,
    ) -> None:
        super().__init__(time, name)
        self.bus = bus
        self.managers = managers
        """Receivers of its presences: nodes with `handle_presence(presence)`."""
        self.disk = Disk()
        self.full_disks = 0
        """Faults that keep the folders of trials from being written now."""
        self.starts: dict[AttemptKey, int] = {}
        """Number of processes started for an attempt, over all runs of the agent."""
        self._loses_unrenewed = loses_unrenewed
        self._outcome_of = outcome_of or (lambda x: Outcome.of(x, failing=failing))
        self._claims = 0
        self._messages = 0
        self._clear()
        bus.takers.append(self)

    def _clear(self) -> None:
        self.held: dict[AttemptKey, _Attempt] = {}
        self._ended: dict[AttemptKey, None] = {}
        self._outbox: deque[tuple[bytes, Callable[[], None] | None]] = deque()
        self._spooled = 0
        self._sending = False
        self._presence_due = False

    @property
    def running(self) -> list[AttemptKey]:
        """Attempts whose process exists."""
        return [key for key, attempt in self.held.items() if attempt.launched]

    @property
    def idle(self) -> bool:
        """Whether the agent holds no attempt and has no unsent report."""
        return not self.held and not self._outbox and not self.disk.journal.claims

    # --- start and stop

    def started(self) -> None:
        """Settle the predecessor's claims and reports, then take tasks; simulates `Recovery`."""
        self._clear()
        disk = self.disk
        claims = dict(disk.journal.claims)
        inherited = [
            SpooledReport(item.experiment_id, item.entry, place < disk.acknowledged)
            for place, item in enumerate(disk.spool)
        ]
        disk.spool, disk.acknowledged = [], 0
        left = read_inherited(inherited)
        for report in left.unarrived:
            claim = claims.get(report.claim_id)
            close = self._closer(claim) if claim is not None and report.last else None
            self._add(report.entry, close)
        for claim in claims.values():
            if claim.claim_id not in left.ends_unarrived:
                self._settle_unreported(claim, left)
            self._ended[claim.key] = None
        self._spool_outbox()
        self.bus.offer_all()
        self._renew()
        self._send_presences()

    def _settle_unreported(self, claim: Claim, left: InheritedReports) -> None:
        known = claim.claim_id in left.ends_arrived or claim.next_sequence > 0
        if claim.ended and known:
            self._acknowledge(claim.ack_subject, claim.claim_id)
            return
        sequence = max(claim.next_sequence, left.next_sequences.get(claim.claim_id, 0))
        lost = AttemptLost(LossReason(LossCause.AGENT_RESTARTED))
        self._add(report_entry(claim.key, claim.claim_id, sequence, lost), self._closer(claim))

    def _closer(self, claim: Claim) -> Callable[[], None]:
        return lambda: self._acknowledge(claim.ack_subject, claim.claim_id)

    def killed(self) -> None:
        """Clear the state that is not on disk, the trials included."""
        self._clear()

    def reconnected(self) -> None:
        """Pull tasks again."""
        self.bus.offer_all()

    # --- tasks

    def take(self, delivery: Delivery) -> None:
        """Take a task or answer its redelivery, as `Agent.take` does."""
        if not self.bus.reaches(self):
            return
        work = work_from_payload(delivery.payload)
        decision = decide_task(work.key, self.held, self._ended)
        if decision is TaskDecision.RUNNING:
            attempt = self.held[work.key]
            attempt.ack_subject = delivery.ack_subject
            attempt.renewed_at_s = self.time.now_s
            self.disk.journal.fold(Redelivered(attempt.claim_id, delivery.ack_subject))
        elif decision is TaskDecision.ENDED:
            self._request(lambda: self.bus.acknowledge(delivery.ack_subject))
        else:
            self._claim(work, delivery.ack_subject)

    def _claim(self, work: TrialWork, ack_subject: str) -> None:
        self._claims += 1
        claim_id = f"{self.name}-{self._claims}"
        self.disk.journal.fold(Claimed(work.key, claim_id, "", ack_subject))
        attempt = _Attempt(work, claim_id, ack_subject, self.time.now_s)
        self.held[work.key] = attempt
        draw = self.bus.random.random
        delay_s = draw() * 0.01
        if draw() < _WAIT_PROBABILITY:
            self._report(attempt, AttemptWaits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=1)))
            delay_s += draw() * 10
        self.later(delay_s, self._launch, attempt)
        self._changed()

    def _launch(self, attempt: _Attempt) -> None:
        if attempt.machine.phase is Phase.HELD:
            attempt.machine.launching()
            self.later(self.bus.random.random() * 0.05, self._launched, attempt)

    def _not_launched(self, attempt: _Attempt) -> None:
        """Lose an attempt whose folder cannot be written, as `AttemptRun._not_started` does."""
        attempt.machine.not_launched()
        if attempt.machine.stop_trigger in {StopTrigger.DROPPED, StopTrigger.LOST}:
            self._end(attempt, None)
        else:
            self._report(attempt, AttemptLost(_NO_SPACE))

    def _launched(self, attempt: _Attempt) -> None:
        if self.full_disks:
            self._not_launched(attempt)
            return
        attempt.launched = True
        self.starts[attempt.key] = self.starts.get(attempt.key, 0) + 1
        self._report(attempt, ProcessStarted(self.time.now(), 1, (), warm=False))
        if attempt.machine.launched() is Order.TERMINATE:
            self._terminate(attempt)
            return
        outcome = self._outcome_of(attempt.work.parameters)
        draw = self.bus.random.random
        drawn_s = 0.05 + draw() * 5 + (60 if draw() < _LONG_PROBABILITY else 0)
        *times_s, duration_s = outcome.times_s(drawn_s)
        for step, (value, delay_s) in enumerate(zip(outcome.curve, times_s, strict=True)):
            self.later(delay_s, self._metric, attempt, intermediate(step, value, self.time.now()))
        if not outcome.fails:
            metric = MetricReported(True, 0, outcome.value, self.time.now())
            self.later(duration_s, self._metric, attempt, metric)
        self.later(duration_s, self._process_ended, attempt, int(outcome.fails))

    def _metric(self, attempt: _Attempt, metric: MetricReported) -> None:
        if attempt.machine.phase in {Phase.RUNNING, Phase.STOPPING}:
            self._report(attempt, metric)

    def stop(self, attempt: _Attempt, trigger: StopTrigger, loss: LossReason | None = None) -> None:
        """Stop an attempt, as `AttemptRun.stop` does."""
        attempt.loss = attempt.loss or loss
        order = attempt.machine.stop(trigger)
        if order is Order.TERMINATE:
            self._terminate(attempt)
        elif order is Order.END:
            self._end(attempt, None)

    def _terminate(self, attempt: _Attempt) -> None:
        draw = self.bus.random.random
        delay_s = _GRACE_S if draw() < _IGNORES_TERM_PROBABILITY else draw() * 0.1
        self.later(delay_s, self._process_ended, attempt, None)

    def _process_ended(self, attempt: _Attempt, exit_code: int | None) -> None:
        if attempt.machine.phase not in {Phase.RUNNING, Phase.STOPPING}:
            return
        attempt.machine.process_ended()
        self.later(self.bus.random.random() * 0.002, self._read_to_end, attempt, exit_code)

    def _read_to_end(self, attempt: _Attempt, exit_code: int | None) -> None:
        attempt.machine.read()
        self._end(attempt, exit_code)

    def _end(self, attempt: _Attempt, exit_code: int | None) -> None:
        cause = attempt.machine.stop_trigger
        launched, attempt.launched = attempt.launched, False
        if cause is StopTrigger.DROPPED:
            if not attempt.muted:
                attempt.muted = True
                self._close(attempt)
        elif cause is StopTrigger.LOST:
            assert attempt.loss is not None
            self._report(attempt, AttemptLost(attempt.loss))
        else:
            end = ExitCause.STOPPED if cause is StopTrigger.STOPPED else ExitCause.ENDED
            signal = 15 if launched and exit_code is None else 0
            self._report(attempt, ProcessExited(self.time.now(), end, exit_code, signal, ""))

    def _close(self, attempt: _Attempt) -> None:
        del self.held[attempt.key]
        self._ended[attempt.key] = None
        self._acknowledge(attempt.ack_subject, attempt.claim_id)
        self._changed()

    def _acknowledge(self, ack_subject: str, claim_id: str) -> None:
        closed = Closed(claim_id)
        self.bus.request(
            self,
            lambda: self.bus.acknowledge(ack_subject),
            lambda _: self.disk.journal.fold(closed),
        )

    def _request(self, operate: Callable[[], None]) -> None:
        self.bus.request(self, operate, lambda _: None)

    # --- reports

    def _report(self, attempt: _Attempt, report: AttemptReport) -> None:
        if attempt.muted:
            return
        entry = report_entry(attempt.key, attempt.claim_id, attempt.next_report, report)
        attempt.next_report += 1
        if is_last(report):
            attempt.muted = True
            self._add(entry, lambda: self._close(attempt))
            self.disk.journal.fold(Ended(attempt.claim_id))
        else:
            self._add(entry, None)

    def _add(self, entry: bytes, on_arrived: Callable[[], None] | None) -> None:
        self._outbox.append((entry, on_arrived))
        if on_arrived is not None:
            self._spool_outbox()
        if not self._sending:
            self._sending = True
            self.later(0.001, self._send)

    def _spool_outbox(self) -> None:
        fresh = list(self._outbox)[self._spooled :]
        experiment_id = self.bus.experiment_id
        self.disk.spool += [SpooledReport(experiment_id, entry, False) for entry, _ in fresh]
        self._spooled = len(self._outbox)

    def _send(self) -> None:
        if not self._outbox:
            self._sending = False
            return
        self._spool_outbox()
        batch = [entry for entry, _ in self._outbox]
        self._messages += 1
        boot_id = f"{self.name}.{self.boot}"
        payload = reports_message(self.name, boot_id, batch)
        message_id = f"{boot_id}-{self._messages}"
        self.bus.request(
            self,
            lambda: self.bus.publish(self.name, payload, message_id),
            lambda _: self._arrived(len(batch)),
        )

    def _arrived(self, count: int) -> None:
        self.disk.acknowledged += count
        self._spooled -= count
        calls = [self._outbox.popleft()[1] for _ in range(count)]
        for call in calls:
            if call is not None:
                call()
        self._send()

    # --- orders and presence

    def handle_order(self, payload: bytes) -> None:
        """Handle an order of the manager, as `ControlConsumer` does."""
        control = task_pb2.RunnerControl.FromString(payload)
        kind, sequence = control.WhichOneof("kind"), control.log_sequence
        if kind == "stop_trial":
            stop = control.stop_trial
            key = AttemptKey(stop.experiment_id, stop.trial_id, stop.attempt)
            self._order(self.held.get(key), StopTrigger.STOPPED, sequence)
        elif kind == "drop_trial":
            drop = control.drop_trial
            attempt = self.held.get(AttemptKey(drop.experiment_id, drop.trial_id, drop.attempt))
            if attempt is not None and drop.claim_id in {"", attempt.claim_id}:
                self._order(attempt, StopTrigger.DROPPED, sequence)
        elif kind == "forget_experiment":
            for attempt in list(self.held.values()):
                self._order(attempt, StopTrigger.DROPPED, sequence)
            if not self.held:
                self._ended.clear()

    def _order(self, attempt: _Attempt | None, cause: StopTrigger, sequence: int) -> None:
        if attempt is not None and not is_outdated(sequence, attempt.work.log_sequence):
            self.stop(attempt, cause)

    def _changed(self) -> None:
        if not self._presence_due:
            self._presence_due = True
            self.later(_AFTER_CHANGE_S, self._send_due_presence)

    def _send_due_presence(self) -> None:
        self._presence_due = False
        self._send_presence()

    def _send_presences(self) -> None:
        self._send_presence()
        self.later(PRESENCE_EVERY_S, self._send_presences)

    def _send_presence(self) -> None:
        presence = task_pb2.RunnerPresence(
            runner_id=self.name,
            boot_id=f"{self.name}.{self.boot}",
            pool=LOCAL_POOL,
            trials=[
                task_pb2.HeldTrial(
                    experiment_id=attempt.key.experiment_id,
                    trial_id=attempt.key.trial_id,
                    attempt=attempt.key.attempt,
                    claim_id=attempt.claim_id,
                )
                for attempt in self.held.values()
            ],
        )
        for manager in self.managers:
            self.bus.signal(self, manager, manager.handle_presence, presence)

    def _renew(self) -> None:
        now_s = self.time.now_s
        for attempt in list(self.held.values()):
            if self.bus.reaches(self):
                self.later(self.bus.delay_s(), self._renewed, attempt)
            if self._loses_unrenewed and attempt.renewed_at_s < now_s - ACK_WAIT_S:
                expired = LossReason(LossCause.CLAIM_EXPIRED, silence_ms=int(ACK_WAIT_S * 1000))
                self.stop(attempt, StopTrigger.LOST, expired)
        self.later(RENEW_EVERY_S, self._renew)

    def _renewed(self, attempt: _Attempt) -> None:
        if self.bus.reaches(self):
            self.bus.renew(attempt.ack_subject)
            attempt.renewed_at_s = self.time.now_s


def intermediate(step: int, value: float, now: datetime) -> MetricReported:
    """Return the report of an intermediate result."""
    return MetricReported(False, step, value, now)
