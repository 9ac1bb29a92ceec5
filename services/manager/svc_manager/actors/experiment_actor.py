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
from svc_manager.actors.effect_runner import Performer
from svc_manager.actors.inbox_reader import InboxReader
from svc_manager.actors.timer import Alarm
from svc_manager.blobs.large_values import BigValues
from svc_manager.converters.events import Stamp, batches_to_bytes
from svc_manager.converters.reports import words_from
from svc_manager.converters.text_log import line_of
from svc_manager.converters.views import experiment_view
from svc_manager.domain import events as e
from svc_manager.domain import inputs as i
from svc_manager.domain.decide import decide_recorded, decide_word
from svc_manager.domain.decision_round import Round
from svc_manager.domain.effects import outstanding_effects
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.scheduling import next_moment_ms, settle
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import Folded
from svc_manager.event_log.snapshot import take_snapshot
from svc_manager.event_log.summaries import Summaries
from svc_manager.event_log.writer import LogWriter
from svc_manager.ports import Agents, Journal, Listeners, TrialIds
from svc_manager.telemetry.telemetry import Witness

BATCH_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Largest payload of one append, half of what the bus takes; a longer round makes several."""
TRIM_EVERY: Final = 2000
"""Messages of the INBOX after which it is trimmed behind the cursor."""
_DRAIN_S: Final = 1.0
"""For effects that are under way when the actor ends; the next one does the rest again."""
SNAPSHOT_EVERY: Final = 100_000
"""Events after which the state is kept: folding so many takes about a second."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What actors work with; the same for all."""

    bus: Bus
    clock: Clock
    ids: TrialIds
    listeners: Listeners
    agents: Agents
    summaries: Summaries
    big_values: BigValues
    bytes_travel: bool = False
    """Whether agents share no folders with this manager."""
    witness: Witness = field(default_factory=Witness)
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
        self, experiment_id: str, folded: Folded, journal: Journal, outside: Outside, epoch: int
    ) -> None:
        self._id = experiment_id
        self._folded = folded
        self._experiment = folded.experiment
        # A stale owner may have written since the lease was taken.
        epoch = max(epoch, folded.epoch + 1)
        self._writer = LogWriter(experiment_id, epoch, outside.bus, outside.clock)
        self._unkept_count = 0
        """Events since the last snapshot."""
        self._read_sequence = folded.inbox_sequence
        self._trimmed = folded.inbox_sequence
        self._journal = journal
        self._outside = outside
        self._performer: Performer | None = None
        self._reader = InboxReader(outside.bus.inbox, experiment_id, self._rouse)
        self._alarm = Alarm(outside.clock, self._rouse)
        self._words: list[i.Word] = []
        self._commands: list[tuple[i.Recorded, asyncio.Future[None]]] = []
        self._watchers: list[tuple[frozenset[ExperimentState], asyncio.Future[None]]] = []
        self._change = asyncio.Event()
        self._change_wanted = False
        self._deciding = False
        self._wake = asyncio.Event()
        self._roused_s: float | None = None
        """When the first word came that the next round answers, by the monotonic clock."""
        self._closing = False
        self._ended = asyncio.Event()
        self._settle_until: int | None = None
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
        return int(self._outside.clock.now().timestamp() * 1000)

    @property
    def bus_trouble(self) -> str:
        """Why facts do not get into the log; empty: they do."""
        return self._writer.waiting_for

    def view(self) -> experiment_pb2.Experiment:
        """Give the experiment as clients see it."""
        agents = self._outside.agents.of_pools(self._experiment.settings.pools)
        view = experiment_view(self._experiment, self.now_ms(), len(agents))
        if self._experiment.state is not ExperimentState.STOPPED:
            view.waiting_for = self._writer.waiting_for or view.waiting_for
        return view

    async def submit(self, recorded: i.Recorded) -> None:
        """Have a command carried out; returns when its facts are in the log.

        Raises:
            ServiceError: it is refused, or the experiment is owned by another manager now.
        """
        if self._closing:
            raise AbortedError("the experiment is being closed here; try again")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commands.append((recorded, done))
        self._rouse()
        await done

    def tell(self, word: i.Word) -> None:
        """Say something that needs no answer."""
        self._words.append(word)
        self._rouse()

    @property
    def next_change(self) -> asyncio.Event:
        """Event of the end of the next round, or of this actor; take it before looking."""
        self._change_wanted = True
        return self._change

    async def reached(self, states: Collection[ExperimentState]) -> None:
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

    def stop_soon(self) -> None:
        """Let `run` end after the round that is under way."""
        self._closing = True
        self._writer.give_up()
        self._wake.set()

    async def settled(self) -> None:
        """Wait until what follows from the facts so far has been done."""
        if self._performer is not None:
            await self._performer.drain()

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
                self._announce()
        except BaseException as cause:
            error = cause
            raise
        finally:
            self._closing = True
            await self._end(error)
            self._ended.set()
            self._change.set()

    def _rouse(self) -> None:
        if self._roused_s is None:
            self._roused_s = self._outside.clock.monotonic_s()
        self._wake.set()

    async def _recover(self) -> None:
        if self._experiment.created:
            self._start_performer()
            await self._follow_state()
            self._settle_until = 0
            if self._reader.reading:
                self._settle_until = await self._outside.bus.inbox.last_sequence(self.id)
        self._wake.set()

    def _start_performer(self) -> None:
        self._performer = Performer(
            self._experiment,
            self._outside.bus,
            self._outside.listeners,
            self._write_summary,
            self._outside.agents,
            self._outside.big_values,
            lambda: self._folded.sequence,
            self._outside.clock,
            bytes_travel=self._outside.bytes_travel,
            traceparent=self._outside.witness.traceparent,
        )

    async def _write_summary(self) -> None:
        await self._outside.summaries.put(self.view(), self._folded.sequence)

    async def _end(self, error: BaseException) -> None:
        await self._reader.aclose()
        await self._alarm.aclose()
        if self._performer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await self._performer.drain()
            await self._performer.aclose()
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
        roused_s, self._roused_s = self._roused_s, None
        round_ = Round(self._experiment, now_ms, self._outside.ids)
        self._decide_messages(round_)
        words, self._words = self._words, []
        for word in words:
            self._decide(round_, word)
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
            self._witness(round_, roused_s)
        await self._perform(round_)
        for _, done, refusal in replies:
            if done.done():
                continue
            if refusal is None:
                done.set_result(None)
            else:
                done.set_exception(refusal)
        self._note(round_)

    def _decide_messages(self, round_: Round) -> None:
        for message in self._reader.take():
            if message.sequence <= self._read_sequence:
                continue
            try:
                words = words_from(message.payload, message.source)
            except (DecodeError, PermissionDeniedError) as error:
                get_logger().error(
                    "message dropped",
                    experiment=self.id,
                    source=message.source,
                    sequence=message.sequence,
                    error=str(error),
                )
                words = []
            for word in words:
                self._decide(round_, word)
            self._read_sequence = message.sequence

    def _decide(self, round_: Round, word: i.Word) -> None:
        try:
            decide_word(round_, word)
        except Exception:  # noqa: BLE001 - rim: one senseless word must not end an experiment
            get_logger().exception("word dropped", experiment=self.id, word=type(word).__name__)

    def _decide_commands(
        self, round_: Round
    ) -> list[tuple[i.Recorded, asyncio.Future[None], ServiceError | None]]:
        commands, self._commands = self._commands, []
        replies: list[tuple[i.Recorded, asyncio.Future[None], ServiceError | None]] = []
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
        self._unkept_count += len(round_.events)

    def _witness(self, round_: Round, roused_s: float | None) -> None:
        witness = self._outside.witness
        witness.saw(self._experiment, round_.events, round_.now_ms)
        if roused_s is not None:
            witness.decided(self._outside.clock.monotonic_s() - roused_s)

    async def _perform(self, round_: Round) -> None:
        for event in round_.events:
            line = line_of(event)
            if line is not None:
                self._journal.say(round_.now_ms, *line)
        self._journal.flush()
        if not self._experiment.created:
            return
        if self._performer is None:
            self._start_performer()
        assert self._performer is not None
        for event in round_.events:
            self._performer.note(event)
            if isinstance(event, e.ExperimentEnded):
                self._outside.on_end()
        await self._performer.perform(round_.effects)
        await self._follow_state()
        if self._settle_until is not None and self._read_sequence >= self._settle_until:
            self._settle_until = None
            await self._performer.perform(list(outstanding_effects(self._experiment)))
        await self._trim()
        if self._unkept_count >= SNAPSHOT_EVERY:
            self._unkept_count = 0
            # Writing it takes seconds for a long experiment, which must not stand still meanwhile.
            snapshot = take_snapshot(self._folded)
            keeping = self._outside.summaries.put_snapshot(self.id, snapshot)
            self._performer.start(keeping, "keep snapshot")

    async def _trim(self) -> None:
        behind = self._folded.inbox_sequence - self._trimmed
        over = self._experiment.state in CLOSED_STATES
        if behind >= TRIM_EVERY or (over and behind > 0):
            self._trimmed = self._folded.inbox_sequence
            await self._outside.bus.inbox.trim(self.id, self._trimmed)

    async def _follow_state(self) -> None:
        """Read the INBOX while the experiment is open, and wake when time alone matters."""
        closed = self._experiment.state in CLOSED_STATES
        if closed and self._reader.reading:
            await self._reader.aclose()
        elif not closed and not self._reader.reading:
            self._reader.start(self._read_sequence)
        await self._alarm.set(next_moment_ms(self._experiment, self.now_ms()))

    def _note(self, round_: Round) -> None:
        """Tell those who wait for a state that the round has reached."""
        if not self._watchers:
            return
        seen = {
            event.to_state for event in round_.events if isinstance(event, e.ExperimentStateChanged)
        }
        for states, done in self._watchers:
            if states & seen and not done.done():
                done.set_result(None)

    def _announce(self) -> None:
        if self._change_wanted:
            self._change_wanted = False
            change, self._change = self._change, asyncio.Event()
            change.set()
