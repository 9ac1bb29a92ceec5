"""Run of a generation: replay of the experiment's log into one host, then live events."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from nni_proto.experiment.v1 import event_pb2
from svc_common.clock import Clock
from svc_common.errors import FailedPreconditionError, ServiceError, UnavailableError
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.ports import EventLog, Inbox, LogMessage
from svc_common.storage.large_values import LargeValues
from svc_common.tasks import TaskOwner
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.algorithm_state import AlgorithmState
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import Position
from svc_dispatcher.ports import AlgorithmHost, HostLauncher
from svc_dispatcher.telemetry import Telemetry

_BATCH_LIMIT: Final = 1_000
_BATCHING_DELAY_S: Final = 0.02
"""Longest delay of a command whose answer is not awaited, so that commands are batched: a host is
woken once per trial instead of for its result, its end and the next request."""


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """Log, inbox, blobs, launcher, clock and limits that all experiment sessions share."""

    events: EventLog
    inbox: Inbox
    blobs: LargeValues
    launcher: HostLauncher
    clock: Clock
    answer_timeout_s: float
    """Time limit of a host for one command."""
    idle_limit_s: float
    """Time after which a host without trials and requests is stopped until it is needed."""
    telemetry: Telemetry | None = None
    """None: no metrics and no traces."""


class RunEnd(Enum):
    """Reason for a run's end: the experiment ended, or its log is to be read again."""

    EXPERIMENT_ENDED = auto()
    """The experiment needs no algorithm any more."""
    READ_AGAIN = auto()
    """The host ended or idled, another generation is wanted, or a message came: read again."""


class GenerationOwner(Protocol):
    """Interface of an experiment's session for its runs: reports, failures, progress."""

    id: str

    def report(self, generation: int, report: answers.Report) -> None:
        """Queue a report for the manager; reports keep their order and survive the run."""

    def given_up(self, generation: int) -> bool:
        """Return whether the algorithm of this generation was given up."""

    def give_up(self, generation: int) -> None:
        """Mark a generation as given up: no further host is started for it."""

    def handled(self, position: Position, *, everything: bool) -> None:
        """Record that a host has handled all events up to this one, and whether it has no more."""

    def host_died(self, generation: int, position: Position | None, reason: str) -> str:
        """Record the end of a host; return why the algorithm is given up, or an empty string."""


class GenerationRun:
    """Run of one generation (one construction of the algorithm): folds the log, drives a host.

    Args:
        experiment: session that the run belongs to.
        dependencies: ports and limits.
    """

    def __init__(self, experiment: GenerationOwner, dependencies: SessionDependencies) -> None:
        self._experiment = experiment
        self._dependencies = dependencies
        self._state = AlgorithmState()
        self._host: AlgorithmHost | None = None
        self._waiting: deque[Position] = deque()
        self._pending: list[Command] = []
        self._send_timer: asyncio.TimerHandle | None = None
        self._progress_at_s = 0.0
        self._idle_since_s: float | None = None
        self._over: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._tasks = TaskOwner(self._task_failed)
        self._last_failure = ""
        self._read_through = 0
        self._generation = 0

    async def run(self, box: CallbackQueue[LogMessage], *, eager: bool) -> RunEnd:
        """Fold the log, start a host if needed, feed it new messages; return why the run ended.

        Args:
            box: new messages of the log; messages already read are skipped.
            eager: see `HostLauncher.launch`.
        """
        async with contextlib.aclosing(
            self._dependencies.events.read(self._experiment.id)
        ) as history:
            async for message in history:
                await self._feed(message)
        self._generation = self._state.generation
        self._state.go_live()
        if not self._state.wants_host:
            return RunEnd.EXPERIMENT_ENDED
        if self._state.idle:
            await self._wait_for_news(box)
            return RunEnd.READ_AGAIN
        if not self._experiment.given_up(self._generation):
            await self._launch(eager=eager)
        self._tasks.start(self._follow(box), "follow")
        self._tasks.start(self._watch(), "watch")
        return await self._over

    async def aclose(self) -> None:
        """Stop the run's host and tasks; count the host as closed."""
        if self._send_timer is not None:
            self._send_timer.cancel()
        self._finish(RunEnd.READ_AGAIN)
        if self._host is not None:
            await self._host.aclose()
            if self._dependencies.telemetry is not None:
                self._dependencies.telemetry.host_closed(self._experiment.id)
        await self._tasks.aclose()

    async def _launch(self, *, eager: bool) -> None:
        setup = self._state.setup
        assert setup is not None, "a wanted host implies that its experiment was created"
        try:
            self._host = await self._dependencies.launcher.launch(setup, self, eager=eager)
        except FailedPreconditionError as error:
            self._give_up(error.message)
        except UnavailableError as error:
            first = self._state.take_commands()[0]
            self._waiting.append(first.position)
            self.on_end(error.message)
        else:
            if self._dependencies.telemetry is not None:
                self._dependencies.telemetry.host_started()
            self._send()

    async def _wait_for_news(self, box: CallbackQueue[LogMessage]) -> None:
        """Wait, without a host, for a message newer than those read; drop it and all before it."""
        while True:
            (message,) = await box.get_some(1)
            if message.sequence > self._read_through:
                return

    @property
    def _replaced(self) -> bool:
        """True if the log requests a later generation: nothing more goes to or from this host."""
        return self._state.generation != self._generation

    async def _follow(self, box: CallbackQueue[LogMessage]) -> None:
        while not self._over.done():  # later messages are for the next run
            for message in await box.get_some(_BATCH_LIMIT):
                if message.sequence > self._read_through:
                    await self._feed(message)
            if self._replaced:
                self._finish(RunEnd.READ_AGAIN)
            elif not self._state.wants_host:
                self._finish(RunEnd.EXPERIMENT_ENDED)
            else:
                self._send()
            if not self._state.idle:
                self._idle_since_s = None
            elif self._idle_since_s is None:
                self._idle_since_s = self._dependencies.clock.monotonic_s()

    async def _feed(self, message: LogMessage) -> None:
        batch = event_pb2.EventBatch.FromString(message.payload)
        if log_messages.blobs_of(batch):
            await self._dependencies.blobs.resolve_metrics(batch, self._experiment.id)
            await self._dependencies.blobs.resolve(log_messages.blobs_of(batch))
        for position, event in log_messages.events_of(message.sequence, batch):
            self._state.feed(position, event)
        self._read_through = message.sequence

    def _send(self) -> None:
        if self._replaced:
            return
        self._pending += self._state.take_commands()
        if any(command.urgent for command in self._pending):
            self._send_pending()
        elif self._pending and self._send_timer is None:
            loop = asyncio.get_running_loop()
            self._send_timer = loop.call_later(_BATCHING_DELAY_S, self._send_pending)

    def _send_pending(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
        commands, self._pending = self._pending, []
        if not commands or self._host is None or self._replaced or self._abandoned():
            return
        if not self._waiting:
            self._progress_at_s = self._dependencies.clock.monotonic_s()
        self._waiting.extend(command.position for command in commands)
        if self._dependencies.telemetry is not None:
            self._dependencies.telemetry.commands_sent(self._experiment.id, commands)
        self._host.send(commands)

    def _abandoned(self) -> bool:
        return self._experiment.given_up(self._generation)

    async def _watch(self) -> None:
        """End the run if the host is over the time limit of a command, or idle for too long."""
        clock, limit_s = self._dependencies.clock, self._dependencies.answer_timeout_s
        while True:
            now_s = clock.monotonic_s()
            working_s = now_s - self._progress_at_s if self._waiting else 0.0
            idle_s = 0.0 if self._idle_since_s is None else now_s - self._idle_since_s
            if working_s >= limit_s:
                self.on_end(f"the algorithm gave no answer for {limit_s:g} s")
                return
            if idle_s >= self._dependencies.idle_limit_s and not self._waiting:
                self._finish(RunEnd.READ_AGAIN)
                return
            await clock.sleep(
                min(limit_s - working_s, max(self._dependencies.idle_limit_s - idle_s, 1.0))
            )

    # --- HostSink

    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        """Handle the host's outputs: progress, reports, failed construction; send more commands."""
        if self._dependencies.telemetry is not None:
            self._dependencies.telemetry.outputs_received(self._experiment.id, outputs)
        for output in () if self._replaced else outputs:
            if isinstance(output, answers.Done):
                self._handled(output.position)
            elif isinstance(output, answers.Unbuildable):
                self._unbuildable(output)
            else:
                if isinstance(output, answers.CallFailed) and not output.skipped:
                    self._last_failure = f"{output.call}: {_last_line(output.traceback)}"
                for report in self._state.new_reports(output):
                    self._report(report)
        self._send()  # the log may hold another answer than the host's

    def on_end(self, reason: str) -> None:
        """Count the host's end: at the limit give the algorithm up, else end the run to retry."""
        if self._over.done() or self._replaced or self._abandoned():
            return
        position = self._waiting[0] if self._waiting else None
        cause = self._last_failure or reason
        exhausted = self._experiment.host_died(self._generation, position, cause)
        if exhausted:
            self._give_up(exhausted)
        else:
            self._finish(RunEnd.READ_AGAIN)

    def _handled(self, position: Position) -> None:
        while self._waiting and self._waiting[0] <= position:
            self._waiting.popleft()
        self._progress_at_s = self._dependencies.clock.monotonic_s()
        self._experiment.handled(position, everything=not self._waiting)

    def _unbuildable(self, output: answers.Unbuildable) -> None:
        failed = answers.CallFailed(output.position, "__init__", output.traceback, skipped=False)
        self._report(failed)
        self._give_up(output.reason)

    def _give_up(self, reason: str) -> None:
        """Report to the manager that the algorithm cannot be run, and stop its host."""
        self._experiment.give_up(self._generation)
        self._report(answers.GaveUp(self._generation, reason))
        self._waiting.clear()
        if self._host is not None:
            self._tasks.start(self._host.aclose(), "end the host")

    def _report(self, report: answers.Report) -> None:
        self._experiment.report(self._generation, report)

    def _task_failed(self, name: str, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(
                error if isinstance(error, Exception) else ServiceError(f"{name} failed: {error!r}")
            )

    def _finish(self, end: RunEnd) -> None:
        if not self._over.done():
            self._over.set_result(end)


def _last_line(traceback: str) -> str:
    return traceback.rstrip().rpartition("\n")[2]
