"""Replays: every suggestion of an experiment drawn again by fresh hosts, and compared."""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from nni_proto.experiment.v1 import event_pb2
from svc_common.clock import Clock
from svc_common.errors import FailedPreconditionError, NotFoundError, UnavailableError
from svc_common.messaging.ports import EventLog
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.replay import (
    Comparison,
    Outcome,
    Progress,
    RecordedLife,
    RecordedLives,
    Told,
    TrialDifference,
    verdict_of,
)
from svc_dispatcher.large_values import ValueBlobs
from svc_dispatcher.ports import HostLauncher

_CHUNK: Final = 200
"""Commands that a host is given at once: few enough to tell progress, enough to keep it busy."""
_AT_ONCE: Final = 2
"""Replays that run at the same time; each has a process that computes, and experiments go first."""
_TOLD_DIFFERENCES: Final = 1_000


@dataclass(frozen=True, slots=True)
class ReplaySurroundings:
    """What a replay needs from outside."""

    events: EventLog
    blobs: ValueBlobs
    launcher: HostLauncher
    """Must leave the experiment's folder alone, checkpoint and log included."""
    clock: Clock
    answer_timeout_s: float
    """How long a host may be silent over commands that it holds."""


class Replays:
    """Replays experiments, a few at a time.

    Args:
        around: ports and limits.
    """

    def __init__(self, around: ReplaySurroundings) -> None:
        self._around = around
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def run(self, experiment_id: str) -> AsyncGenerator[Told, None]:
        """Replay the log as far as it goes now; the last word is an `Outcome`.

        Close it (`contextlib.aclosing`) when you stop listening: that ends the host.

        Raises:
            NotFoundError: there is no such experiment, or the byte store has lost a value of it.
            FailedPreconditionError: its log cannot be read.
        """
        began_s = self._around.clock.monotonic_s()
        yield Progress(0, 0)
        async with self._free:
            reader = await self._read(experiment_id)
            lives = reader.lives()
            total = sum(len(life.commands) for life in lives)
            comparisons: list[Comparison] = []
            told = 0
            for life in lives:
                before = sum(len(one.life.commands) for one in comparisons)
                comparison = Comparison(life)
                comparisons.append(comparison)
                if not life.recorded:
                    continue
                async with contextlib.aclosing(self._rehearse(life, comparison)) as steps:
                    async for handled in steps:
                        for difference in itertools.islice(
                            comparison.take_differences(), max(0, _TOLD_DIFFERENCES - told)
                        ):
                            told += 1
                            trial_id = reader.trials.get(difference.parameter_id, "")
                            yield TrialDifference(difference, trial_id)
                        yield Progress(before + handled, total)
        duration_s = self._around.clock.monotonic_s() - began_s
        yield Outcome(verdict_of(comparisons), duration_s)

    async def _read(self, experiment_id: str) -> RecordedLives:
        reader = RecordedLives()
        found = False
        async with contextlib.aclosing(self._around.events.read(experiment_id)) as history:
            async for message in history:
                found = True
                try:
                    batch = event_pb2.EventBatch.FromString(message.payload)
                except DecodeError as error:
                    raise FailedPreconditionError(
                        f"the log of experiment {experiment_id} cannot be read at "
                        f"{message.sequence}: {error}"
                    ) from error
                await self._around.blobs.fill(log_messages.blobs_of(batch))
                for position, event in log_messages.events_of(message.sequence, batch):
                    reader.feed(position, event)
        if not found:
            raise NotFoundError("experiment", experiment_id)
        return reader

    async def _rehearse(
        self, life: RecordedLife, comparison: Comparison
    ) -> AsyncGenerator[int, None]:
        """Let a fresh host live a life; tell how many commands it has handled, now and then."""
        listener = _Listener(comparison)
        try:
            host = await self._around.launcher.launch(life.setup, listener, eager=True)
        except (FailedPreconditionError, UnavailableError) as error:
            comparison.failure = error.message
            yield 0
            return
        try:
            for start in range(0, len(life.commands), _CHUNK):
                chunk = life.commands[start : start + _CHUNK]
                listener.expect(chunk)
                host.send(chunk)
                if not await self._heard(listener):
                    break
                yield listener.handled
        finally:
            await host.aclose()
        yield listener.handled

    async def _heard(self, listener: "_Listener") -> bool:
        """Wait until the host has handled what it holds; whether it can go on."""
        while listener.waiting and not listener.over:
            listener.news.clear()
            try:
                async with asyncio.timeout(self._around.answer_timeout_s):
                    await listener.news.wait()
            except TimeoutError:
                limit_s = self._around.answer_timeout_s
                listener.ended(f"the algorithm gave no answer for {limit_s:g} s")
        return not listener.over


@dataclass(slots=True)
class _Listener:
    """`HostSink` that lets a comparison hear a host."""

    comparison: Comparison
    waiting: deque[Command] = field(default_factory=deque)
    """Commands that the host holds, oldest first."""
    handled: int = 0
    over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, commands: Sequence[Command]) -> None:
        """Learn what the host is given."""
        self.waiting.extend(commands)

    def said(self, outputs: Sequence[answers.Output]) -> None:
        """See `HostSink.said`."""
        for output in outputs:
            if isinstance(output, answers.Done):
                self._done(output)
            else:
                self.comparison.heard(output)
                self.over = self.over or isinstance(output, answers.Unbuildable)
        self.news.set()

    def _done(self, output: answers.Done) -> None:
        """Take the oldest command as handled: an eager host says so of each one."""
        if self.waiting and self.waiting[0].position <= output.position:
            self.comparison.handled(self.waiting.popleft())
            self.handled += 1

    def ended(self, reason: str) -> None:
        """See `HostSink.ended`."""
        self.over = True
        self.comparison.failure = self.comparison.failure or reason
        self.news.set()
