"""Actor of one experiment: its only decision maker and the only writer of its event log.

It collects all pending input (INBOX messages, commands, agent notifications, the time) into one
round, appends the events of the round as one batch, then runs the effects. While an append is
under way the next round collects, so load makes batches larger instead of queues longer.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from nni_proto.experiment.v1 import experiment_pb2
from nni_wire.pools import LOCAL_POOL, experiment_pool
from svc_common.clock import Clock, SteadyClock
from svc_common.errors import AbortedError, ServiceError
from svc_common.experiment_events.causes import WaitReason
from svc_common.logs import bind_task, get_logger
from svc_common.messaging.ports import Bus
from svc_manager.actors.effect_runner import EffectRunner
from svc_manager.actors.inbox_reader import InboxReader
from svc_manager.actors.need_publisher import NeedPublisher
from svc_manager.actors.timer import Timer
from svc_manager.blobs.checkpoints import frees_blobs
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.events import Stamp, batches_to_bytes
from svc_manager.converters.pools import need_template, need_to_bytes
from svc_manager.converters.text_log import line_of
from svc_manager.converters.views import experiment_view
from svc_manager.domain import events, inputs
from svc_manager.domain.callers import Callers, Claim
from svc_manager.domain.decide import decide_notification, decide_recorded
from svc_manager.domain.decision_round import Round
from svc_manager.domain.demand import demand_of
from svc_manager.domain.effects import outstanding_effects
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.scheduling import (
    count_after_restart,
    count_after_step,
    next_moment_ms,
    settle,
)
from svc_manager.domain.state import Experiment
from svc_manager.event_log.reader import FoldedExperiment
from svc_manager.event_log.snapshot import take_snapshot
from svc_manager.event_log.summaries import Summaries
from svc_manager.event_log.writer import LogWriter
from svc_manager.ports import Agents, IdSource, Journal, Listeners
from svc_manager.telemetry.telemetry import Telemetry

BATCH_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Largest payload of one append, half of the bus's limit; a longer round makes several appends."""
TRIM_EVERY: Final = 2000
"""Consumed INBOX messages after which the INBOX is trimmed behind the cursor."""
_DRAIN_S: Final = 1.0
"""Time for effects under way when the actor ends; the next actor repeats the others."""
SNAPSHOT_EVERY: Final = 100_000
"""Events between two snapshots: folding so many takes about a second."""


@dataclass(frozen=True, slots=True)
class ActorDependencies:
    """Bus, clock, listeners, stores and callbacks that all experiment actors share."""

    bus: Bus
    clock: Clock
    ids: IdSource
    listeners: Listeners
    agents: Agents
    summaries: Summaries
    large_values: LargeValues
    bytes_travel: bool = False
    """True if agents share no folders with this manager."""
    telemetry: Telemetry = field(default_factory=Telemetry)
    """Metrics and traces of appended events."""
    platform_wait: Callable[[str], WaitReason | None] = lambda _pool: None
    """Returns why the platforms of a pool start no agent; None: no reason is known."""
    on_garbage: Callable[[], None] = lambda: None
    """Called when blobs may have become garbage, as at the end of an experiment."""


class ExperimentActor:
    """Actor that handles one experiment's commands and messages and appends events, in rounds.

    Call order: `run` in a task, once; `submit`, `notify` and the views at any time. When `run`
    raises, the actor is dead and every waiting call gets that error; another actor must load the
    log again.

    Args:
        experiment_id: the experiment.
        folded: state of the experiment, folded from its log; the actor owns it from now on.
        journal: log files in the experiment's folder.
        dependencies: shared by all actors.
        epoch: epoch of the lease.
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
        # A stale owner may have appended since the lease was acquired.
        epoch = max(epoch, folded.epoch + 1)
        self._writer = LogWriter(experiment_id, epoch, dependencies.bus, dependencies.clock)
        self._events_since_snapshot = 0
        """Events since the last snapshot."""
        self._read_sequence = folded.inbox_sequence
        self._trimmed = folded.inbox_sequence
        self._journal = journal
        self._dependencies = dependencies
        self._effect_runner: EffectRunner | None = None
        self._need: NeedPublisher | None = None
        """None: the agents of its pool are a part of the installation."""
        self._reader = InboxReader(dependencies.bus.inbox, experiment_id, self._request_round)
        # The time of this experiment: wall clocks only bridge the owners of its log.
        self._clock = SteadyClock(dependencies.clock, self._experiment.logged_at_ms)
        self._counted = False
        """Whether the time before this owner was counted."""
        self._timer = Timer(self._clock, self._request_round)
        self._notifications: list[inputs.Notification] = []
        self._commands: list[tuple[inputs.RecordedCommand, asyncio.Future[None]]] = []
        self._watchers: list[tuple[frozenset[ExperimentState], asyncio.Future[None]]] = []
        self._callers = Callers()
        self._asks: list[tuple[str, asyncio.Future[Claim]]] = []
        """Calls that wait for a trial, by request id; a repeated one waits beside the first."""
        self._change = asyncio.Event()
        self._change_wanted = False
        self._deciding = False
        self._wake = asyncio.Event()
        self._first_input_s: float | None = None
        """Arrival of the next round's first input, by the monotonic clock."""
        self._closing = False
        self._ended = asyncio.Event()
        self._recovery_end: int | None = None
        """INBOX sequence to read before outstanding effects are repeated; None: they were."""

    @property
    def id(self) -> str:
        """Id of the experiment."""
        return self._id

    @property
    def experiment(self) -> Experiment:
        """State of the experiment; read-only, and valid only until the next `await`."""
        return self._experiment

    @property
    def sequence(self) -> int:
        """Stream sequence of the last appended batch."""
        return self._folded.sequence

    @property
    def read_sequence(self) -> int:
        """Sequence of the last INBOX message that was read, decided on or not."""
        return max(self._read_sequence, self._reader.read_sequence)

    @property
    def epoch(self) -> int:
        """Epoch of this ownership: the lease's, or above the log's last one if that is higher."""
        return self._writer.epoch

    def now_ms(self) -> int:
        """Return the current time of the experiment, ms since 1970; it never goes back."""
        return self._clock.now_ms()

    @property
    def bus_trouble(self) -> str:
        """Reason why the bus or its disk cannot take events at present; empty: it can."""
        return self._writer.waiting_for or self._dependencies.bus.disk_trouble

    def view(self) -> experiment_pb2.Experiment:
        """Return the experiment's proto message: state, counts, agents, reason for waiting."""
        pool = self._experiment.settings.pool
        agents = self._dependencies.agents.of_pools({pool})
        wait = self._dependencies.platform_wait(pool)
        view = experiment_view(self._experiment, self.now_ms(), len(agents), wait)
        if self._experiment.state is not ExperimentState.STOPPED:
            view.waiting_for = self.bus_trouble or view.waiting_for
        return view

    async def submit(self, recorded: inputs.RecordedCommand) -> None:
        """Queue a command for the next round; return once its events are logged; raise if refused.

        Raises:
            ServiceError: the command is refused, or another manager owns the experiment now.
        """
        if self._closing:
            raise AbortedError("the experiment is being closed here; try again")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commands.append((recorded, done))
        self._request_round()
        await done

    async def ask(self, ask: inputs.AskTrial) -> Claim:
        """Submit a caller's ask; return its trial and attempt once the start is logged; or raise.

        A call that is cancelled takes the ask back; if a trial has started, its lease lapses,
        unless the ask is repeated.

        Raises:
            FailedPreconditionError: no trial comes in the present state.
            ServiceError: the ask is refused, or another manager owns the experiment now.
        """
        done: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        self._asks.append((ask.request_id, done))
        try:
            await self.submit(inputs.RecordedCommand(ask, "", "AskTrial"))
            return await done
        finally:
            if done.done() and not done.cancelled():
                done.exception()  # seen, also where the command was refused by the same error
            self._asks = [item for item in self._asks if item[1] is not done]
            if all(request_id != ask.request_id for request_id, _ in self._asks):
                self._callers.asks.pop(ask.request_id, None)

    def renew_leases(self, caller_id: str, claims: Iterable[Claim]) -> list[str]:
        """Renew the leases of a caller; return the ids of the trials that it does not hold."""
        return self._callers.renew(self._experiment, caller_id, claims, self.now_ms())

    def notify(self, notification: inputs.Notification) -> None:
        """Queue a notification for the next round, without waiting until it is handled."""
        self._notifications.append(notification)
        self._request_round()

    @property
    def next_change(self) -> asyncio.Event:
        """Request and return the event that is set after the next round or at the actor's end.

        Take it before reading state.
        """
        self._change_wanted = True
        return self._change

    async def wait_for_state(self, states: Collection[ExperimentState]) -> None:
        """Wait until the state is or was since the call in ``states``; raise if the actor ends.

        Raises:
            ServiceError: the actor has ended first; the error says why.
        """
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
        """True if a round is under way, whose events may not be in the log and the files yet."""
        return self._deciding

    @property
    def alive(self) -> bool:
        """True unless a stop was requested or `run` has ended."""
        return not self._closing

    def request_stop(self) -> None:
        """Make `run` return after the current round, without retries; `ended` waits for that."""
        self._closing = True
        self._writer.stop_retrying()
        self._wake.set()

    async def wait_for_effects(self) -> None:
        """Wait until the effects of all rounds so far are done."""
        if self._effect_runner is not None:
            await self._effect_runner.drain()

    async def ended(self) -> None:
        """Wait until `run` has ended."""
        await self._ended.wait()

    async def run(self) -> None:
        """Run the actor's loop: wait for input, decide, append the events; until `request_stop`.

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
            self._update_need()
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
        pool = self._experiment.settings.pool
        if pool != LOCAL_POOL:
            template = need_template(self._experiment)
            self._need = NeedPublisher(
                self._dependencies.bus,
                self._dependencies.clock,
                pool,
                lambda demand: need_to_bytes(template, demand, self._folded.sequence),
                experiment_pool(self._experiment.id),
            )

    def _update_need(self) -> None:
        if self._need is not None:
            self._need.update(demand_of(self._experiment))

    async def _write_summary(self) -> None:
        if self._need is not None and self._experiment.state in CLOSED_STATES:
            # A manager that finds an up-to-date summary of a stopped experiment does not load it.
            await self._need.flush()
        await self._dependencies.summaries.put(self.view(), self._folded.sequence)

    async def _end(self, error: BaseException) -> None:
        await self._reader.aclose()
        await self._timer.aclose()
        if self._need is not None and self._experiment.state not in CLOSED_STATES:
            await self._need.aclose()  # the next owner publishes what it reads in the log
        if self._effect_runner is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    await self._effect_runner.drain()
            await self._effect_runner.aclose()
        if self._need is not None:
            await self._need.aclose()
        self._journal.close()
        refusal = (
            error
            if isinstance(error, ServiceError)
            else AbortedError("the experiment is closed here; try again")
        )
        waiting: list[asyncio.Future[Any]] = [done for _, done in self._commands]
        waiting += [done for _, done in self._watchers]
        waiting += [done for _, done in self._asks]
        for done in waiting:
            if not done.done():
                done.set_exception(refusal)

    async def _round(self) -> None:
        step = self._clock.follow()
        first_input_s, self._first_input_s = self._first_input_s, None
        self._callers.shift(step // timedelta(milliseconds=1))
        round_ = Round(self._experiment, self.now_ms(), self._dependencies.ids, self._callers)
        if not self._counted:
            self._counted = True
            count_after_restart(round_)
        elif step:
            get_logger().warning(
                "clock was set ahead; the step does not count as time of the experiment",
                experiment=self.id,
                step_s=round(step.total_seconds(), 3),
            )
            count_after_step(round_, step // timedelta(milliseconds=1))
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
            # The commands were not stored: `run` ends and refuses them all.
            self._commands.extend((recorded, done) for recorded, done, _ in replies)
            raise
        if round_.events:
            self._record_telemetry(round_, first_input_s)
        await self._run_effects(round_)
        for _, done, refusal in replies:
            if done.done():
                continue
            if refusal is None:
                done.set_result(None)
            else:
                done.set_exception(refusal)
        self._resolve_watchers(round_)
        self._resolve_asks(round_)

    def _decide_messages(self, round_: Round) -> None:
        for message in self._reader.take():
            if message.sequence <= self._read_sequence:
                continue
            for notification in message.notifications:
                self._decide(round_, notification)
            if message.complete:
                self._read_sequence = message.sequence

    def _decide(self, round_: Round, notification: inputs.Notification) -> None:
        try:
            decide_notification(round_, notification)
        except Exception:  # noqa: BLE001 - rim: one malformed notification must not end an experiment
            get_logger().exception(
                "notification dropped", experiment=self.id, notification=type(notification).__name__
            )

    def _decide_commands(
        self, round_: Round
    ) -> list[tuple[inputs.RecordedCommand, asyncio.Future[None], ServiceError | None]]:
        commands, self._commands = self._commands, []
        replies: list[tuple[inputs.RecordedCommand, asyncio.Future[None], ServiceError | None]] = []
        for recorded, done in commands:
            if done.cancelled() and isinstance(recorded.command, inputs.AskTrial):
                continue  # no caller waits for a trial
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

    def _record_telemetry(self, round_: Round, first_input_s: float | None) -> None:
        telemetry = self._dependencies.telemetry
        telemetry.record_events(self._experiment, round_.events, round_.now_ms)
        if first_input_s is not None:
            telemetry.record_decision(self._dependencies.clock.monotonic_s() - first_input_s)

    async def _run_effects(self, round_: Round) -> None:
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
            self._effect_runner.observe(event)
            if frees_blobs(self._experiment, event):
                self._dependencies.on_garbage()
        self._update_need()
        await self._effect_runner.run(round_.effects)
        await self._sync_with_state()
        if self._recovery_end is not None and self._read_sequence >= self._recovery_end:
            self._recovery_end = None
            await self._effect_runner.run(list(outstanding_effects(self._experiment)))
        await self._trim()
        if self._events_since_snapshot >= SNAPSHOT_EVERY:
            self._events_since_snapshot = 0
            # A snapshot of a long experiment takes seconds; rounds go on meanwhile.
            snapshot = take_snapshot(self._folded)
            writing = self._dependencies.summaries.put_snapshot(self.id, snapshot)
            self._effect_runner.start(writing, "write snapshot")

    async def _trim(self) -> None:
        behind = self._folded.inbox_sequence - self._trimmed
        over = self._experiment.state in CLOSED_STATES
        if behind >= TRIM_EVERY or (over and behind > 0):
            self._trimmed = self._folded.inbox_sequence
            await self._dependencies.bus.inbox.trim(self.id, self._trimmed)

    async def _sync_with_state(self) -> None:
        """Read the INBOX only while the experiment is open; set the timer to its next deadline."""
        closed = self._experiment.state in CLOSED_STATES
        if closed and self._reader.reading:
            await self._reader.aclose()
        elif not closed and not self._reader.reading:
            self._reader.start(self._read_sequence)
        await self._timer.set(next_moment_ms(self._experiment, self.now_ms(), self._callers))

    def _resolve_watchers(self, round_: Round) -> None:
        """Wake callers of `wait_for_state` whose states this round's events entered."""
        if not self._watchers:
            return
        seen = {
            event.new_state
            for event in round_.events
            if isinstance(event, events.ExperimentStateChanged)
        }
        for states, done in self._watchers:
            if states & seen and not done.done():
                done.set_result(None)

    def _resolve_asks(self, round_: Round) -> None:
        """Set result or error of the waiting asks that the round has answered."""
        if not round_.answers:
            return
        for request_id, done in self._asks:
            answer = round_.answers.get(request_id)
            if isinstance(answer, Claim) and not done.done():
                done.set_result(answer)
            elif isinstance(answer, ServiceError) and not done.done():
                done.set_exception(answer)

    def _signal_change(self) -> None:
        if self._change_wanted:
            self._change_wanted = False
            change, self._change = self._change, asyncio.Event()
            change.set()
