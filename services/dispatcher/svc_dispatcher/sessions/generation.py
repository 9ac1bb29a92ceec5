"""One reading of an experiment's log with one host: from the first event to the host's end."""

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
from svc_common.tasks import TaskOwner
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.algorithm_state import Session
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.values import Position
from svc_dispatcher.large_values import ValueBlobs
from svc_dispatcher.ports import AlgorithmHost, HostLauncher
from svc_dispatcher.telemetry import Witness

_BATCH_LIMIT: Final = 1_000
_PATIENCE_S: Final = 0.02
"""How long a command that nobody waits for may wait for company: a host is woken once per trial
instead of once for its result, once for its end and once for the next request."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every experiment is served with."""

    events: EventLog
    inbox: Inbox
    blobs: ValueBlobs
    launcher: HostLauncher
    clock: Clock
    answer_timeout_s: float
    """How long a host may work on one command."""
    idle_limit_s: float
    """How long a host without trials and requests is kept; it is brought back when needed."""
    witness: Witness | None = None
    """Counts and traces; None: nobody looks."""


class Over(Enum):
    """Why one reading of the log came to its end."""

    ENDED = auto()
    """The experiment needs no algorithm any more."""
    AGAIN = auto()
    """The host is gone, or another generation is wanted: read the log again."""


class LifeOwner(Protocol):
    """Who lives many lives: the experiment."""

    id: str

    def tell(self, generation: int, report: answers.Report) -> None:
        """Send a report to the manager; reports keep their order and outlive the life."""

    def given_up(self, generation: int) -> bool:
        """Whether the algorithm of this generation was given up."""

    def give_up(self, generation: int) -> None:
        """Remember that nothing more is tried for this generation."""

    def handled(self, position: Position, *, everything: bool) -> None:
        """Learn that a host has handled all events up to this one, and whether no more wait."""

    def host_died(self, generation: int, position: Position | None, reason: str) -> str:
        """Learn of a host's death; return why the algorithm is given up, or nothing."""


class Life:
    """Folds the log, runs a host, and hears it (`HostSink`).

    Args:
        experiment: whose life it is.
        around: ports and limits.
    """

    def __init__(self, experiment: LifeOwner, around: Surroundings) -> None:
        self._experiment = experiment
        self._around = around
        self._session = Session()
        self._host: AlgorithmHost | None = None
        self._waiting: deque[Position] = deque()
        self._pile: list[Command] = []
        self._later: asyncio.TimerHandle | None = None
        self._moved_at_s = 0.0
        self._idle_since_s: float | None = None
        self._over: asyncio.Future[Over] = asyncio.get_running_loop().create_future()
        self._tasks = TaskOwner(self._task_failed)
        self._last_failure = ""
        self._read_through = 0

    async def run(self, box: CallbackQueue[LogMessage], *, eager: bool) -> Over:
        """Fold the log, start the host, go on with what comes; return why it ended.

        Args:
            box: new messages of the log; those already read are skipped.
            eager: see `HostLauncher.launch`.
        """
        async with contextlib.aclosing(self._around.events.read(self._experiment.id)) as history:
            async for message in history:
                await self._feed(message)
        generation = self._session.generation
        self._session.go_live()
        if not self._session.wants_host:
            return Over.ENDED
        if self._session.idle:
            await self._wait_for_news(box)
            return Over.AGAIN
        if not self._experiment.given_up(generation):
            await self._launch(eager=eager)
        self._tasks.start(self._follow(box, generation), "follow")
        self._tasks.start(self._watch(), "watch")
        return await self._over

    async def aclose(self) -> None:
        """End the host and all that runs."""
        if self._later is not None:
            self._later.cancel()
        self._finish(Over.AGAIN)
        if self._host is not None:
            await self._host.aclose()
            if self._around.witness is not None:
                self._around.witness.host_closed(self._experiment.id)
        await self._tasks.aclose()

    async def _launch(self, *, eager: bool) -> None:
        setup = self._session.setup
        assert setup is not None, "who wants a host has been created"
        try:
            self._host = await self._around.launcher.launch(setup, self, eager=eager)
        except FailedPreconditionError as error:
            self._give_up(error.message)
        except UnavailableError as error:
            first = self._session.take_commands()[0]
            self._waiting.append(first.position)
            self.ended(error.message)
        else:
            if self._around.witness is not None:
                self._around.witness.host_started()
            self._send()

    async def _wait_for_news(self, box: CallbackQueue[LogMessage]) -> None:
        """Wait, without a host, until the log has grown: a finished experiment costs nothing."""
        while True:
            (message,) = await box.get_some(1)
            if message.sequence > self._read_through:
                return

    async def _follow(self, box: CallbackQueue[LogMessage], generation: int) -> None:
        while not self._over.done():  # what comes after that is for the next life
            for message in await box.get_some(_BATCH_LIMIT):
                if message.sequence > self._read_through:
                    await self._feed(message)
            if self._session.generation != generation:
                self._finish(Over.AGAIN)
            elif not self._session.wants_host:
                self._finish(Over.ENDED)
            else:
                self._send()
            if not self._session.idle:
                self._idle_since_s = None
            elif self._idle_since_s is None:
                self._idle_since_s = self._around.clock.monotonic_s()

    async def _feed(self, message: LogMessage) -> None:
        batch = event_pb2.EventBatch.FromString(message.payload)
        await self._around.blobs.fill(log_messages.blobs_of(batch))
        for position, event in log_messages.events_of(message.sequence, batch):
            self._session.feed(position, event)
        self._read_through = message.sequence

    def _send(self) -> None:
        self._pile += self._session.take_commands()
        if any(command.urgent for command in self._pile):
            self._send_pile()
        elif self._pile and self._later is None:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(_PATIENCE_S, self._send_pile)

    def _send_pile(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        commands, self._pile = self._pile, []
        if not commands or self._host is None or self._abandoned():
            return
        if not self._waiting:
            self._moved_at_s = self._around.clock.monotonic_s()
        self._waiting.extend(command.position for command in commands)
        if self._around.witness is not None:
            self._around.witness.sent(self._experiment.id, commands)
        self._host.send(commands)

    def _abandoned(self) -> bool:
        return self._experiment.given_up(self._session.generation)

    async def _watch(self) -> None:
        """End the host when it works on one command for too long, or has long had nothing to do."""
        clock, limit_s = self._around.clock, self._around.answer_timeout_s
        while True:
            now_s = clock.monotonic_s()
            working_s = now_s - self._moved_at_s if self._waiting else 0.0
            idle_s = 0.0 if self._idle_since_s is None else now_s - self._idle_since_s
            if working_s >= limit_s:
                self.ended(f"the algorithm gave no answer for {limit_s:g} s")
                return
            if idle_s >= self._around.idle_limit_s and not self._waiting:
                self._finish(Over.AGAIN)
                return
            await clock.sleep(
                min(limit_s - working_s, max(self._around.idle_limit_s - idle_s, 1.0))
            )

    # --- HostSink

    def said(self, outputs: Sequence[answers.Output]) -> None:
        """See `HostSink.said`."""
        if self._around.witness is not None:
            self._around.witness.heard(self._experiment.id, outputs)
        for output in outputs:
            if isinstance(output, answers.Done):
                self._handled(output.position)
            elif isinstance(output, answers.Unbuildable):
                self._unbuildable(output)
            else:
                if isinstance(output, answers.CallFailed) and not output.skipped:
                    self._last_failure = f"{output.call}: {_last_line(output.traceback)}"
                for report in self._session.answered(output):
                    self._tell(report)
        self._send()  # the log may hold another answer than the host's

    def ended(self, reason: str) -> None:
        """See `HostSink.ended`."""
        if self._over.done() or self._abandoned():
            return
        position = self._waiting[0] if self._waiting else None
        why = self._last_failure or reason
        hopeless = self._experiment.host_died(self._session.generation, position, why)
        if hopeless:
            self._give_up(hopeless)
        else:
            self._finish(Over.AGAIN)

    def _handled(self, position: Position) -> None:
        while self._waiting and self._waiting[0] <= position:
            self._waiting.popleft()
        self._moved_at_s = self._around.clock.monotonic_s()
        self._experiment.handled(position, everything=not self._waiting)

    def _unbuildable(self, output: answers.Unbuildable) -> None:
        failed = answers.CallFailed(output.position, "__init__", output.traceback, skipped=False)
        self._tell(failed)
        self._give_up(output.reason)

    def _give_up(self, reason: str) -> None:
        """Say that the algorithm cannot be brought to answer; the manager ends the experiment."""
        self._experiment.give_up(self._session.generation)
        self._tell(answers.GaveUp(self._session.generation, reason))
        self._waiting.clear()
        if self._host is not None:
            self._tasks.start(self._host.aclose(), "end the host")

    def _tell(self, report: answers.Report) -> None:
        self._experiment.tell(self._session.generation, report)

    def _task_failed(self, name: str, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(
                error if isinstance(error, Exception) else ServiceError(f"{name} failed: {error!r}")
            )

    def _finish(self, over: Over) -> None:
        if not self._over.done():
            self._over.set_result(over)


def _last_line(traceback: str) -> str:
    return traceback.rstrip().rpartition("\n")[2]
