"""A manager of one experiment: the real decisions, driven as its actor drives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

from nni_proto.runner.v1 import task_pb2
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
from svc_manager.domain.scheduling import next_moment_ms, settle
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState
from svc_manager.event_log.reader import FoldedExperiment, fold_batch
from svc_manager.event_log.snapshot import decode_snapshot, encode_snapshot
from tests.support.simulation.bus import Letter, SimulatedBus
from tests.support.simulation.virtual_time import Node, VirtualTime

_JUDGE_EVERY_S: Final = 5.0
_RELOAD_S: Final = 1.0
_SNAPSHOT_ODDS: Final = 0.02
"""How many rounds are followed by a snapshot; a real one comes every 100,000 events."""

Answer = Callable[[ServiceError | None], None]


class ViolationError(AssertionError):
    """The system did what it must never do."""


@dataclass(slots=True)
class Keeping:
    """What outlives managers beside the bus."""

    snapshots: list[bytes] = field(default_factory=list)
    trial_ids: int = 0
    """How many were drawn."""
    owners: int = 0
    """How many managers there were."""
    on_events: Callable[[list[events.Event]], None] = lambda _: None
    """Told of every batch that a manager knows to be in the log."""


class _Ids:
    """`TrialIds` that never draws one twice, whoever draws."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping

    def trial_id(self) -> str:
        self._keeping.trial_ids += 1
        return f"{self._keeping.trial_ids:05d}"


class SimulatedManager(Node):
    """Owner of the experiment until it dies or another one takes over."""

    def __init__(
        self,
        time: VirtualTime,
        name: str,
        bus: SimulatedBus,
        keeping: Keeping,
        agents: dict[str, Any],
    ) -> None:
        super().__init__(time, name)
        self.bus = bus
        self.keeping = keeping
        self.agents = agents
        """Nodes by runner id, to send orders to: `obey(payload)`."""
        self.retired = False
        """Stepped back: another manager has the experiment."""
        bus.clients.append(self)
        self._forget_all()

    def _forget_all(self) -> None:
        self._folded = FoldedExperiment(Experiment())
        self.epoch = 0
        """Number of its ownership; 0: it has not read the log yet."""
        self._append_count = 0
        self._read_sequence = 0
        self._letters: list[Letter] = []
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
        self._alarm_ms: int | None = None

    # --- life

    def started(self) -> None:
        """Fold the log and go on from there, as `Roster.open` and `ExperimentActor._recover` do."""
        self._forget_all()
        self.retired = False
        self.keeping.owners += 1
        self._owner = f"owner{self.keeping.owners}"
        self.bus.request(self, lambda: list(self.bus.log), self._load)

    def killed(self) -> None:
        """Lose everything."""
        self._forget_all()

    def _load(self, log: list[Any]) -> None:
        folded = FoldedExperiment(Experiment())
        if self.keeping.snapshots and self.bus.random.random() < 0.5:
            kept = decode_snapshot(self.bus.random.choice(self.keeping.snapshots))
            if log and kept.sequence <= log[-1].sequence:
                folded = kept
        for batch in log:
            if batch.sequence > folded.sequence:
                fold_batch(folded, batch.sequence, batch.payload)
        self._folded = folded
        self.epoch = folded.epoch + 1
        self._read_sequence = folded.inbox_sequence
        self._watch = AgentMonitor(cast("Bus", SimpleNamespace(signals=_Orders(self))), self.time)
        self._loaded = True
        self._watch.attach(self)
        if self.experiment.created:
            self._spec = spec_of(self.experiment)
            self._sync_with_state()
            self._recovery_end = 0
            if self._reading:
                self.bus.request(self, self._last_letter, self._settle_after)
        self.later(_JUDGE_EVERY_S, self._judge)
        self._wake()

    def _last_letter(self) -> int:
        return self.bus.inbox[-1].sequence if self.bus.inbox else 0

    def _settle_after(self, sequence: int) -> None:
        self._recovery_end = sequence
        self._wake()

    def reconnected(self) -> None:
        """Give every agent the whole time again, as `AgentWatch.extend_deadlines` does."""
        if self._loaded:
            for agent in self._watch._agents.values():
                agent.seen_s = max(agent.seen_s, self.time.now_s)

    # --- what it is told

    @property
    def id(self) -> str:
        """See `Concerned`."""
        return self.experiment.id

    @property
    def experiment(self) -> Experiment:
        """The experiment as this manager believes it to be."""
        return self._folded.experiment

    def actors(self) -> Iterator[SimulatedManager]:
        """See `ConcernedSource`."""
        if self.experiment.created:
            yield self

    def stopped_at(self, experiment_id: str) -> int | None:
        """See `ConcernedSource`."""
        del experiment_id
        return None

    def notify(self, notification: inputs.Notification) -> None:
        """See `ExperimentActor.notify`."""
        self._notifications.append(notification)
        self._wake()

    def submit(self, recorded: inputs.RecordedCommand, answer: Answer) -> None:
        """See `ExperimentActor.submit`; who dies answers nobody."""
        self._commands.append((recorded, answer))
        self._wake()

    def handle_presence(self, presence: task_pb2.RunnerPresence) -> None:
        """Take in an agent's presence."""
        if self._loaded:
            self._watch.handle_presence(presence)

    def inbox_grew(self) -> None:
        """Read what is new in the INBOX, if the way is open."""
        if not self._reading:
            return
        if not self.bus.reaches(self):
            self.later(_RELOAD_S, self.inbox_grew)
            return
        read = self._letters[-1].sequence if self._letters else self._read_sequence
        self._letters += [letter for letter in self.bus.inbox[read:] if letter.sequence > read]
        self._wake()

    def _judge(self) -> None:
        if self.bus.reaches(self):
            self._watch._check_silence()
        self.later(_JUDGE_EVERY_S, self._judge)

    # --- rounds

    def _wake(self) -> None:
        if self._loaded and not self._busy and not self._woken:
            self._woken = True
            self.later(0.0, self._round)

    def _round(self) -> None:
        self._woken = False
        if self._busy:
            return
        round_ = Round(self.experiment, self.time.now_ms(), _Ids(self.keeping))
        letters, self._letters = self._letters, []
        for letter in letters:
            for notification in notifications_from(letter.payload):
                decide_notification(round_, notification)
            self._read_sequence = letter.sequence
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
            self.keeping.on_events(round_.events)
            self._after(round_, replies)
            if self.bus.random.random() < _SNAPSHOT_ODDS:
                self.keeping.snapshots.append(encode_snapshot(self._folded))

        self.bus.request(
            self, lambda: self.bus.append(payload, expected, epoch, append_id), appended
        )

    def _lost_ownership(self) -> None:
        found = self.bus.log[-1].epoch if self.bus.log else 0
        if found > self.epoch:
            self.retired = True
            self.kill()
        else:  # see `Roster._actor_failed`
            self.kill()
            self.alive = True
            self.later(_RELOAD_S, self.started)

    def _after(self, round_: Round, replies: list[tuple[Answer, ServiceError | None]]) -> None:
        if self.experiment.created:
            self._perform_all(round_)
        for answer, refusal in replies:
            answer(refusal)
        if self._letters or self._notifications or self._commands:
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
            self._letters.clear()
            self.inbox_grew()
        moment_ms = next_moment_ms(self.experiment, self.time.now_ms())
        if moment_ms is not None and moment_ms != self._alarm_ms:
            self.later((moment_ms - self.time.now_ms() + 1) / 1000, self._wake)
        self._alarm_ms = moment_ms

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
        """Replace a task, as `Performer` does; the bus knows the second try by its message id."""
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
            self.bus.signal(self, agent, agent.obey, payload)


class _Orders:
    """The part of `Signals` that `AgentWatch` uses."""

    def __init__(self, manager: SimulatedManager) -> None:
        self._manager = manager

    def publish(self, subject: str, payload: bytes) -> bool:
        self._manager.order(subject.rpartition(".")[2], payload)
        return True
