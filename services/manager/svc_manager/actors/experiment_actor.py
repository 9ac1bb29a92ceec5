"""The owner of one experiment: the only one that decides on it and appends to its log.

It gathers whatever has arrived — messages of the INBOX, commands, words about agents, the time —
into one round, appends the facts of the round as one batch, then carries out what follows. While an
append is under way the next round gathers, so load makes batches larger instead of queues longer.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from nni_proto.experiment.v1 import experiment_pb2
from svc_common.clock import Clock
from svc_common.errors import AbortedError, PermissionDeniedError, ServiceError
from svc_common.logs import bind_task, get_logger
from svc_common.messaging.ports import Bus
from svc_manager.actors.effect_runner import EffectRunner
from svc_manager.actors.inbox_reader import InboxReader
from svc_manager.actors.timer import Timer
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.events import Stamp, batches_to_bytes
from svc_manager.converters.reports import notifications_from
from svc_manager.converters.text_log import line_of
from svc_manager.converters.views import experiment_view
from svc_manager.domain import events, inputs
from svc_manager.domain.decide import decide_notification, decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import outstanding_effects
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.scheduling import next_moment_ms, settle
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import FoldedExperiment
from svc_manager.event_log.snapshot import take_snapshot
from svc_manager.event_log.summaries import Summaries
from svc_manager.event_log.writer import LogWriter
from svc_manager.ports import Agents, Journal, Listeners, TrialIds
from svc_manager.telemetry.telemetry import Telemetry

BATCH_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Largest payload of one append, half of what the bus takes; a longer round makes several."""
TRIM_EVERY: Final = 2000
"""Messages of the INBOX after which it is trimmed behind the cursor."""
_DRAIN_S: Final = 1.0
"""For effects that are under way when the actor ends; the next one does the rest again."""
SNAPSHOT_EVERY: Final = 100_000
"""Events after which the state is kept: folding so many takes about a second."""


@dataclass(frozen=True, slots=True)
class ActorDependencies:
    """What actors work with; the same for all."""

    bus: Bus
    clock: Clock
    ids: TrialIds
    listeners: Listeners
    agents: Agents
    summaries: Summaries
    large_values: LargeValues
    bytes_travel: bool = False
    """Whether agents share no folders with this manager."""
    telemetry: Telemetry = field(default_factory=Telemetry)
    """Counts and traces what gets into logs."""
    on_end: Callable[[], None] = lambda: None
    """Called when a life of an experiment is over: something may be garbage now."""


class ExperimentActor:
    """Decides on one experiment, one round at a time.

    Call order: `run` in a task, once; `submit`, `tell` and the views at any time. When `run` ends
    by an error, this object is dead and every waiting call has that error: another one must load
    the log again.

    Args:
        experiment_id: which experiment.
        folded: the experiment as its log tells; the actor owns it from now on.
        journal: what its folder keeps.
        outside: what all actors share.
        epoch: number of this ownership, as the lease has it.
    """

    def __init__(
        self,
        experiment_id: str,
        folded: FoldedExperiment,
        journal: Journal,
        dependencies: ActorDependencies,
        epoch: int,
    ) -> None:
        self._id = experiment_id
        self._folded = folded
        self._experiment = folded.experiment
        # A stale owner may have written since the lease was taken.
        epoch = max(epoch, folded.epoch + 1)
        self._writer = LogWriter(experiment_id, epoch, dependencies.bus, dependencies.clock)
        self._events_since_snapshot = 0
        """Events since the last snapshot."""
        self._read_sequence = folded.inbox_sequence
        self._trimmed = folded.inbox_sequence
        self._journal = journal
        self._dependencies = dependencies
        self._effect_runner: EffectRunner | None = None
        self._reader = InboxReader(dependencies.bus.inbox, experiment_id, self._request_round)
        self._timer = Timer(dependencies.clock, self._request_round)
        self._notifications: list[inputs.Notification] = []
        self._commands: list[tuple[inputs.RecordedCommand, asyncio.Future[None]]] = []
        self._watchers: list[tuple[frozenset[ExperimentState], asyncio.Future[None]]] = []
        self._change = asyncio.Event()
        self._change_wanted = False
        self._deciding = False
        self._wake = asyncio.Event()
        self._first_input_s: float | None = None
        """When the first word came that the next round answers, by the monotonic clock."""
        self._closing = False
        self._ended = asyncio.Event()
        self._recovery_end: int | None = None
        """INBOX sequence to be read before what a dead manager left undone is done again; None:
        that has been done."""

    @property
    def id(self) -> str:
        """Which experiment."""
        return self._id

    @property
    def experiment(self) -> Experiment:
        """The experiment; for reading only, and only until the next `await`."""
        return self._experiment

    @property
    def sequence(self) -> int:
        """Stream sequence of the last batch in its log."""
        return self._folded.sequence

    @property
    def epoch(self) -> int:
        """Number of this ownership."""
        return self._writer.epoch

    def now_ms(self) -> int:
        """Give the time, ms since 1970."""
        return int(self._dependencies.clock.now().timestamp() * 1000)

    @property
    def bus_trouble(self) -> str:
        """Why facts do not get into the log; empty: they do."""
        return self._writer.waiting_for

    def view(self) -> experiment_pb2.Experiment:
        """Give the experiment as clients see it."""
        agents = self._dependencies.agents.of_pools(self._experiment.settings.pools)
        view = experiment_view(self._experiment, self.now_ms(), len(agents))
        if self._experiment.state is not ExperimentState.STOPPED:
            view.waiting_for = self._writer.waiting_for or view.waiting_for
        return view

    async def submit(self, recorded: inputs.RecordedCommand) -> None:
        """Have a command carried out; returns when its facts are in the log.

        Raises:
            ServiceError: it is refused, or the experiment is owned by another manager now.
        """
        if self._closing:
            raise AbortedError("the experiment is being closed here; try again")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commands.append((recorded, done))
        self._request_round()
        await done

    def notify(self, notification: inputs.Notification) -> None:
        """Say something that needs no answer."""
        self._notifications.append(notification)
        self._request_round()

    @property
    def next_change(self) -> asyncio.Event:
        """Event of the end of the next round, or of this actor; take it before looking."""
        self._change_wanted = True
        return self._change

    async def wait_for_state(self, states: Collection[ExperimentState]) -> None:
        """Return once the state is one of ``states``, or has been since the call."""
        if self._experiment.state in states:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.append((frozenset(states), done))
        try:
            await done
        finally:
            self._watchers = [item for item in self._watchers if item[1] is not done]

    @property
    def deciding(self) -> bool:
        """Whether a round is under way, whose facts may not be in the log and the files yet."""
        return self._deciding

    @property
    def alive(self) -> bool:
        """Whether it still decides on its experiment."""
        return not self._closing

    def request_stop(self) -> None:
        """Let `run` end after the round that is under way."""
        self._closing = True
        self._writer.give_up()
        self._wake.set()

    async def wait_for_effects(self) -> None:
        """Wait until what follows from the facts so far has been done."""
        if self._effect_runner is not None:
            await self._effect_runner.drain()

    async def ended(self) -> None:
        """Wait until `run` has ended."""
        await self._ended.wait()

    async def run(self) -> None:
        """Decide and append until `stop_soon`.

        Raises:
            LostOwnershipError: another manager has the experiment.
        """
        error: BaseException = AbortedError("the experiment is closed here; try again")
        bind_task(experiment=self.id)
        try:
            await self._recover()
            while not self._closing:
                await self._wake.wait()
                self._wake.clear()
                self._deciding = True
                await self._round()
                self._deciding = False
                self._signal_change()
        except BaseException as cause:
            error = cause
            raise
        finally:
            self._closing = True
            await self._end(error)
            self._ended.set()
            self._change.set()

    def _request_round(self) -> None:
        if self._first_input_s is None:
            self._first_input_s = self._dependencies.clock.monotonic_s()
        self._wake.set()

    async def _recover(self) -> None:
        if self._experiment.created:
            self._start_performer()
            await self._sync_with_state()
            self._recovery_end = 0
            if self._reader.reading:
                self._recovery_end = await self._dependencies.bus.inbox.last_sequence(self.id)
        self._wake.set()

    def _start_performer(self) -> None:
        self._effect_runner = EffectRunner(
            self._experiment,
            self._dependencies.bus,
            self._dependencies.listeners,
            self._write_summary,
            self._dependencies.agents,
            self._dependencies.large_values,
            lambda: self._folded.sequence,
            self._dependencies.clock,
            bytes_travel=self._dependencies.bytes_travel,
            traceparent=self._dependencies.telemetry.traceparent,
        )

    async def _write_summary(self) -> None:
        await self._dependencies.summaries.put(self.view(), self._folded.sequence)

    async def _end(self, error: BaseException) -> None:
        await self._reader.aclose()
        await self._timer.aclose()
        if self._effect_runner is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await self._effect_runner.drain()
            await self._effect_runner.aclose()
        self._journal.close()
        refusal = (
            error
            if isinstance(error, ServiceError)
            else AbortedError("the experiment is closed here; try again")
        )
        waiting = [done for _, done in self._commands] + [done for _, done in self._watchers]
        for done in waiting:
            if not done.done():
                done.set_exception(refusal)

    async def _round(self) -> None:
        now_ms = self.now_ms()
        first_input_s, self._first_input_s = self._first_input_s, None
        round_ = Round(self._experiment, now_ms, self._dependencies.ids)
        self._decide_messages(round_)
        notifications, self._notifications = self._notifications, []
        for notification in notifications:
            self._decide(round_, notification)
        replies = self._decide_commands(round_)
        if self._experiment.created:
            settle(round_)
        try:
            await self._append(round_)
        except BaseException:
            # Nobody may believe that it was done: `run` ends and refuses them all.
            self._commands.extend((recorded, done) for recorded, done, _ in replies)
            raise
        if round_.events:
            self._witness(round_, first_input_s)
        await self._perform(round_)
        for _, done, refusal in replies:
            if done.done():
                continue
            if refusal is None:
                done.set_result(None)
            else:
                done.set_exception(refusal)
        self._resolve_watchers(round_)

    def _decide_messages(self, round_: Round) -> None:
        for message in self._reader.take():
            if message.sequence <= self._read_sequence:
                continue
            try:
                notifications = notifications_from(message.payload, message.source)
            except (DecodeError, PermissionDeniedError) as error:
                get_logger().error(
                    "message dropped",
                    experiment=self.id,
                    source=message.source,
                    sequence=message.sequence,
                    error=str(error),
                )
                notifications = []
            for notification in notifications:
                self._decide(round_, notification)
            self._read_sequence = message.sequence

    def _decide(self, round_: Round, notification: inputs.Notification) -> None:
        try:
            decide_notification(round_, notification)
        except Exception:  # noqa: BLE001 - rim: one senseless word must not end an experiment
            get_logger().exception(
                "word dropped", experiment=self.id, notification=type(notification).__name__
            )

    def _decide_commands(
        self, round_: Round
    ) -> list[tuple[inputs.RecordedCommand, asyncio.Future[None], ServiceError | None]]:
        commands, self._commands = self._commands, []
        replies: list[tuple[inputs.RecordedCommand, asyncio.Future[None], ServiceError | None]] = []
        for recorded, done in commands:
            try:
                decide_recorded(round_, recorded)
                replies.append((recorded, done, None))
            except ServiceError as error:
                replies.append((recorded, done, error))
        return replies

    async def _append(self, round_: Round) -> None:
        if not round_.events:
            return
        folded = self._folded
        stamp = Stamp(self._writer.epoch, self._writer.append_count, round_.now_ms)
        batches = batches_to_bytes(
            round_.events, stamp, folded.inbox_sequence, self._read_sequence, BATCH_LIMIT_BYTES
        )
        for payload in batches:
            folded.sequence = await self._writer.append(payload, folded.sequence)
            self._journal.record(folded.sequence, payload)
        folded.inbox_sequence = self._read_sequence
        self._events_since_snapshot += len(round_.events)

    def _witness(self, round_: Round, first_input_s: float | None) -> None:
        telemetry = self._dependencies.telemetry
        telemetry.record_events(self._experiment, round_.events, round_.now_ms)
        if first_input_s is not None:
            telemetry.record_decision(self._dependencies.clock.monotonic_s() - first_input_s)

    async def _perform(self, round_: Round) -> None:
        for event in round_.events:
            line = line_of(event)
            if line is not None:
                self._journal.add_line(round_.now_ms, *line)
        self._journal.flush()
        if not self._experiment.created:
            return
        if self._effect_runner is None:
            self._start_performer()
        assert self._effect_runner is not None
        for event in round_.events:
            self._effect_runner.note(event)
            if isinstance(event, events.ExperimentEnded):
                self._dependencies.on_end()
        await self._effect_runner.run(round_.effects)
        await self._sync_with_state()
        if self._recovery_end is not None and self._read_sequence >= self._recovery_end:
            self._recovery_end = None
            await self._effect_runner.run(list(outstanding_effects(self._experiment)))
        await self._trim()
        if self._events_since_snapshot >= SNAPSHOT_EVERY:
            self._events_since_snapshot = 0
            # Writing it takes seconds for a long experiment, which must not stand still meanwhile.
            snapshot = take_snapshot(self._folded)
            keeping = self._dependencies.summaries.put_snapshot(self.id, snapshot)
            self._effect_runner.start(keeping, "keep snapshot")

    async def _trim(self) -> None:
        behind = self._folded.inbox_sequence - self._trimmed
        over = self._experiment.state in CLOSED_STATES
        if behind >= TRIM_EVERY or (over and behind > 0):
            self._trimmed = self._folded.inbox_sequence
            await self._dependencies.bus.inbox.trim(self.id, self._trimmed)

    async def _sync_with_state(self) -> None:
        """Read the INBOX while the experiment is open, and wake when time alone matters."""
        closed = self._experiment.state in CLOSED_STATES
        if closed and self._reader.reading:
            await self._reader.aclose()
        elif not closed and not self._reader.reading:
            self._reader.start(self._read_sequence)
        await self._timer.set(next_moment_ms(self._experiment, self.now_ms()))

    def _resolve_watchers(self, round_: Round) -> None:
        """Tell those who wait for a state that the round has reached."""
        if not self._watchers:
            return
        seen = {
            event.to_state
            for event in round_.events
            if isinstance(event, events.ExperimentStateChanged)
        }
        for states, done in self._watchers:
            if states & seen and not done.done():
                done.set_result(None)

    def _signal_change(self) -> None:
        if self._change_wanted:
            self._change_wanted = False
            change, self._change = self._change, asyncio.Event()
            change.set()
