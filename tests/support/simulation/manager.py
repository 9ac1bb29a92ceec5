"""Simulated manager of one experiment, with the real decisions of its actor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final, cast

from nni_proto.runner.v1 import task_pb2
from svc_common.clock import SteadyClock
from svc_common.errors import ServiceError
from svc_common.messaging.ports import Bus
from svc_manager.agents.liveness import AgentMonitor
from svc_manager.converters.events import Stamp, batch_to_bytes
from svc_manager.converters.notifications import notifications_from
from svc_manager.converters.tasks import (
    drop_to_bytes,
    forget_to_bytes,
    spec_of,
    stop_to_bytes,
    task_of,
)
from svc_manager.domain import effects, events, inputs
from svc_manager.domain.decide import decide_notification, decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import outstanding_effects
from svc_manager.domain.experiment import CLOSED_STATES
from svc_manager.domain.scheduling import (
    count_after_restart,
    count_after_step,
    next_moment_ms,
    settle,
)
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState
from svc_manager.event_log.reader import FoldedExperiment, fold_batch
from svc_manager.event_log.snapshot import decode_snapshot, encode_snapshot
from tests.support.simulation.bus import InboxMessage, SimulatedBus
from tests.support.simulation.virtual_time import Node, VirtualTime

_MONITOR_EVERY_S: Final = 5.0
_RELOAD_S: Final = 1.0
_SNAPSHOT_PROBABILITY: Final = 0.02
"""Share of rounds followed by a snapshot; a real manager writes one every 100,000 events."""

Answer = Callable[[ServiceError | None], None]


class ViolationError(AssertionError):
    """Broken invariant of the simulated system."""


@dataclass(slots=True)
class DurableState:
    """State that survives managers, apart from the bus."""

    snapshots: list[bytes] = field(default_factory=list)
    trial_ids: int = 0
    """Number of ids drawn."""
    owners: int = 0
    """Number of ownerships so far."""
    on_events: Callable[[list[events.Event]], None] = lambda _: None
    """Callback for every batch whose append a manager has confirmed."""


class _CountedTrialIds:
    """`TrialIds` that counts; no two managers draw the same id."""

    def __init__(self, durable: DurableState) -> None:
        self._durable = durable

    def trial_id(self) -> str:
        self._durable.trial_ids += 1
        return f"{self._durable.trial_ids:05d}"


class SimulatedManager(Node):
    """Owner of the experiment until it is killed or another manager takes over."""

    def __init__(
        self,
        time: VirtualTime,
        name: str,
        bus: SimulatedBus,
        durable: DurableState,
        agents: dict[str, Any],
    ) -> None:
        super().__init__(time, name)
        self.bus = bus
        self.durable = durable
        self.agents = agents
        """Receivers of orders by runner id: nodes with `handle_order(payload)`."""
        self.retired = False
        """Whether another manager has taken the experiment over."""
        bus.clients.append(self)
        self._clear()

    def _clear(self) -> None:
        self._folded = FoldedExperiment(Experiment())
        self.epoch = 0
        """Number of its ownership; 0: the log has not been read yet."""
        self._append_count = 0
        self._read_sequence = 0
        self._messages: list[InboxMessage] = []
        self._notifications: list[inputs.Notification] = []
        self._commands: list[tuple[inputs.RecordedCommand, Answer]] = []
        self._busy = False
        self._woken = False
        self._reading = False
        self._loaded = False
        self._recovery_end: int | None = None
        self._published: dict[str, list[int]] = {}
        self._replaced: set[tuple[str, int, str]] = set()
        self._withdrawals = 0
        self._timer_ms: int | None = None
        self._clock = SteadyClock(self.time)
        self._counted = False

    # --- start and stop

    def started(self) -> None:
        """Fold the log and recover, as `ActorRegistry.open` and `ExperimentActor` do."""
        self._clear()
        self.retired = False
        self.durable.owners += 1
        self._owner = f"owner{self.durable.owners}"
        self.bus.request(self, lambda: list(self.bus.log), self._load)

    def killed(self) -> None:
        """Clear all state."""
        self._clear()

    def _load(self, log: list[Any]) -> None:
        folded = FoldedExperiment(Experiment())
        if self.durable.snapshots and self.bus.random.random() < 0.5:
            snapshot = decode_snapshot(self.bus.random.choice(self.durable.snapshots))
            if log and snapshot.sequence <= log[-1].sequence:
                folded = snapshot
        for batch in log:
            if batch.sequence > folded.sequence:
                fold_batch(folded, batch.sequence, batch.payload)
        self._folded = folded
        self._clock = SteadyClock(self.time, folded.experiment.logged_at_ms)
        self.epoch = folded.epoch + 1
        self._read_sequence = folded.inbox_sequence
        self._monitor = AgentMonitor(
            cast("Bus", SimpleNamespace(signals=_OrderSignals(self))), self.time
        )
        self._loaded = True
        self._monitor.attach(self)
        if self.experiment.created:
            self._spec = spec_of(self.experiment)
            self._sync_with_state()
            self._recovery_end = 0
            if self._reading:
                self.bus.request(self, self._last_inbox_sequence, self._settle_after)
        self.later(_MONITOR_EVERY_S, self._check_agents)
        self._wake()

    def _last_inbox_sequence(self) -> int:
        return self.bus.inbox[-1].sequence if self.bus.inbox else 0

    def _settle_after(self, sequence: int) -> None:
        self._recovery_end = sequence
        self._wake()

    def reconnected(self) -> None:
        """Reset the deadlines of all agents, as `AgentMonitor.extend_deadlines` does."""
        if self._loaded:
            for agent in self._monitor._agents.values():
                agent.seen_s = max(agent.seen_s, self.time.now_s)

    # --- notifications and commands

    @property
    def id(self) -> str:
        """Id of the experiment; see `MonitoredExperiment`."""
        return self.experiment.id

    @property
    def experiment(self) -> Experiment:
        """State of the experiment in this manager."""
        return self._folded.experiment

    def actors(self) -> Iterator[SimulatedManager]:
        """Return the live experiments."""
        if self.experiment.created:
            yield self

    def stopped_at(self, experiment_id: str) -> int | None:
        """Return the last sequence in the log of a stopped experiment that is not live."""
        del experiment_id
        return None

    def notify(self, notification: inputs.Notification) -> None:
        """Queue a notification for the next round; nothing is returned."""
        self._notifications.append(notification)
        self._wake()

    def submit(self, recorded: inputs.RecordedCommand, answer: Answer) -> None:
        """See `ExperimentActor.submit`; a killed manager never answers."""
        self._commands.append((recorded, answer))
        self._wake()

    def handle_presence(self, presence: task_pb2.RunnerPresence) -> None:
        """Pass an agent's presence to the monitor."""
        if self._loaded:
            self._monitor.handle_presence(presence)

    def inbox_grew(self) -> None:
        """Read the new messages of the INBOX, if the bus is reachable."""
        if not self._reading:
            return
        if not self.bus.reaches(self):
            self.later(_RELOAD_S, self.inbox_grew)
            return
        read = self._messages[-1].sequence if self._messages else self._read_sequence
        self._messages += [message for message in self.bus.inbox[read:] if message.sequence > read]
        self._wake()

    def _check_agents(self) -> None:
        if self.bus.reaches(self):
            self._monitor._check_silence()
        self.later(_MONITOR_EVERY_S, self._check_agents)

    # --- rounds

    def _now_ms(self) -> int:
        return self._clock.now_ms()

    def _wake(self) -> None:
        if self._loaded and not self._busy and not self._woken:
            self._woken = True
            self.later(0.0, self._round)

    def _round(self) -> None:
        self._woken = False
        if self._busy:
            return
        step = self._clock.follow()
        round_ = Round(self.experiment, self._now_ms(), _CountedTrialIds(self.durable))
        if not self._counted:
            self._counted = True
            count_after_restart(round_)
        elif step:
            count_after_step(round_, step // timedelta(milliseconds=1))
        messages, self._messages = self._messages, []
        for message in messages:
            for notification in notifications_from(message.payload):
                decide_notification(round_, notification)
            self._read_sequence = message.sequence
        notifications, self._notifications = self._notifications, []
        for notification in notifications:
            decide_notification(round_, notification)
        replies = self._decide_commands(round_)
        if self.experiment.created:
            settle(round_)
        if round_.events:
            self._append(round_, replies)
        else:
            self._after(round_, replies)

    def _decide_commands(self, round_: Round) -> list[tuple[Answer, ServiceError | None]]:
        commands, self._commands = self._commands, []
        replies: list[tuple[Answer, ServiceError | None]] = []
        for recorded, answer in commands:
            try:
                decide_recorded(round_, recorded)
                replies.append((answer, None))
            except ServiceError as error:
                replies.append((answer, error))
        return replies

    def _append(self, round_: Round, replies: list[tuple[Answer, ServiceError | None]]) -> None:
        self._busy = True
        stamp = Stamp(self.epoch, self._append_count, round_.now_ms)
        payload = batch_to_bytes(round_.events, stamp, self._read_sequence)
        expected, epoch = self._folded.sequence, self.epoch
        append_id = f"{self._owner}.{self._append_count}"
        read_sequence = self._read_sequence

        def appended(sequence: int | None) -> None:
            self._busy = False
            if sequence is None:
                self._lost_ownership()
                return
            self._append_count += 1
            self._folded.sequence = sequence
            self._folded.epoch = self.epoch
            self._folded.inbox_sequence = read_sequence
            self.durable.on_events(round_.events)
            self._after(round_, replies)
            if self.bus.random.random() < _SNAPSHOT_PROBABILITY:
                self.durable.snapshots.append(encode_snapshot(self._folded))

        self.bus.request(
            self, lambda: self.bus.append(payload, expected, epoch, append_id), appended
        )

    def _lost_ownership(self) -> None:
        found = self.bus.log[-1].epoch if self.bus.log else 0
        if found > self.epoch:
            self.retired = True
            self.kill()
        else:  # see `ActorRegistry._actor_failed`
            self.kill()
            self.alive = True
            self.later(_RELOAD_S, self.started)

    def _after(self, round_: Round, replies: list[tuple[Answer, ServiceError | None]]) -> None:
        if self.experiment.created:
            self._perform_all(round_)
        for answer, refusal in replies:
            answer(refusal)
        if self._messages or self._notifications or self._commands:
            self._wake()

    def _perform_all(self, round_: Round) -> None:
        for event in round_.events:
            if isinstance(event, events.ExperimentCreated):
                self._spec = spec_of(self.experiment)
            elif isinstance(event, events.TrialStarted):
                self._published.pop(event.trial_id, None)
        for effect in round_.effects:
            self._perform(effect)
        self._sync_with_state()
        if self._recovery_end is not None and self._read_sequence >= self._recovery_end:
            self._recovery_end = None
            for effect in list(outstanding_effects(self.experiment)):
                self._perform(effect)

    def _sync_with_state(self) -> None:
        closed = self.experiment.state in CLOSED_STATES
        if closed:
            self._reading = False
        elif not self._reading:
            self._reading = True
            self._messages.clear()
            self.inbox_grew()
        moment_ms = next_moment_ms(self.experiment, self._now_ms())
        if moment_ms is not None and moment_ms != self._timer_ms:
            self.later((moment_ms - self._now_ms() + 1) / 1000, self._wake)
        self._timer_ms = moment_ms

    # --- effects

    def _perform(self, effect: effects.Effect) -> None:
        experiment = self.experiment
        match effect:
            case effects.PublishTask(trial_id, attempt):
                self._publish(trial_id, attempt)
            case effects.PublishAgain(trial_id, attempt, boot_id):
                self._publish_again(trial_id, attempt, boot_id)
            case effects.WithdrawTask(trial_id):
                self._withdraw(trial_id)
            case effects.SendStop(runner_id):
                self.order(runner_id, stop_to_bytes(experiment.id, effect, self._folded.sequence))
            case effects.SendDrop(runner_id):
                self.order(runner_id, drop_to_bytes(experiment.id, effect, self._folded.sequence))
            case effects.ForgetExperiment():
                self._forget(self._folded.sequence)
            case _:
                pass

    def _publish(self, trial_id: str, attempt: int) -> None:
        trial = self.experiment.trials[trial_id]
        if trial.state is not TrialState.WAITING or trial.attempt != attempt:
            return
        task = task_of(self.experiment.id, trial, self._spec, self._folded.sequence)
        payload = task.SerializeToString()
        published: list[int] = []
        self._published[trial_id] = published
        self.bus.request(self, lambda: self.bus.put_task(payload), published.append)

    def _publish_again(self, trial_id: str, attempt: int, boot_id: str) -> None:
        """Replace a task, as `EffectRunner` does; its message id makes a second try a duplicate."""
        first = self._published.get(trial_id)
        key = (trial_id, attempt, boot_id)
        if first is None or self.experiment.trials[trial_id].claim_id or key in self._replaced:
            return
        self._replaced.add(key)
        self._publish(trial_id, attempt)
        self._withdrawals += 1
        self._delete(first)

    def _withdraw(self, trial_id: str) -> None:
        published = self._published.pop(trial_id, None)
        if published is not None:
            self._withdrawals += 1
            self._delete(published)

    def _delete(self, published: list[int]) -> None:
        if not published:
            self.later(0.01, self._delete, published)
            return
        sequence = published[0]
        self.bus.request(self, lambda: self.bus.delete_task(sequence), self._withdrawn)

    def _withdrawn(self, _: None) -> None:
        self._withdrawals -= 1

    def _forget(self, sequence: int) -> None:
        if self._withdrawals:
            self.later(0.01, self._forget, sequence)
            return
        for runner_id in self.agents:
            self.order(runner_id, forget_to_bytes(self.experiment.id, sequence))

    def order(self, runner_id: str, payload: bytes) -> None:
        """Send an order to an agent; it may be lost."""
        agent = self.agents.get(runner_id)
        if agent is not None:
            self.bus.signal(self, agent, agent.handle_order, payload)


class _OrderSignals:
    """`Signals` reduced to the part that `AgentMonitor` uses."""

    def __init__(self, manager: SimulatedManager) -> None:
        self._manager = manager

    def publish(self, subject: str, payload: bytes) -> bool:
        self._manager.order(subject.rpartition(".")[2], payload)
        return True
