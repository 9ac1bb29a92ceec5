"""Replays of experiments: fresh hosts draw every suggestion again, for comparison."""

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
from svc_common.storage.large_values import LargeValues
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.commands import Command
from svc_dispatcher.domain.replay import (
    Comparison,
    GenerationReader,
    RecordedGeneration,
    ReplayFinished,
    ReplayProgress,
    ReplayUpdate,
    TrialDifference,
    replay_result,
)
from svc_dispatcher.ports import HostLauncher

_CHUNK: Final = 200
"""Commands sent to a host in one batch: few enough to show progress, enough to keep it busy."""
_CONCURRENCY: Final = 2
"""Replays that run at the same time; each has a process that computes, and experiments go first."""
_DIFFERENCES_LIMIT: Final = 1_000


@dataclass(frozen=True, slots=True)
class ReplayDependencies:
    """Logs, blobs, launcher, clock and time limit that replays use."""

    events: EventLog
    blobs: LargeValues
    launcher: HostLauncher
    """Must leave the experiment's folder untouched, checkpoint and log included."""
    clock: Clock
    answer_timeout_s: float
    """Longest silence of a host that still has commands."""


class Replays:
    """Use case that replays experiments' algorithms from their logs, two at a time.

    Args:
        dependencies: ports and limits.
    """

    def __init__(self, dependencies: ReplayDependencies) -> None:
        self._dependencies = dependencies
        self._free = asyncio.Semaphore(_CONCURRENCY)

    async def run(self, experiment_id: str) -> AsyncGenerator[ReplayUpdate, None]:
        """Replay a log's generations on new hosts; yield progress, first differences, verdict.

        Close the generator (`contextlib.aclosing`) to stop early: that stops the host.

        Raises:
            NotFoundError: no such experiment, or the blob store has lost one of its
                values other than metrics.
            FailedPreconditionError: the log cannot be read.
        """
        began_s = self._dependencies.clock.monotonic_s()
        yield ReplayProgress(0, 0)
        async with self._free:
            reader = await self._read(experiment_id)
            generations = reader.generations()
            total = sum(len(generation.commands) for generation in generations)
            comparisons: list[Comparison] = []
            reported = 0
            for generation in generations:
                before = sum(len(one.generation.commands) for one in comparisons)
                comparison = Comparison(generation)
                comparisons.append(comparison)
                if not generation.recorded:
                    continue
                async with contextlib.aclosing(
                    self._replay_generation(generation, comparison)
                ) as steps:
                    async for handled in steps:
                        for difference in itertools.islice(
                            comparison.take_differences(), max(0, _DIFFERENCES_LIMIT - reported)
                        ):
                            reported += 1
                            trial_id = reader.trials.get(difference.parameter_id, "")
                            yield TrialDifference(difference, trial_id)
                        yield ReplayProgress(before + handled, total)
        duration_s = self._dependencies.clock.monotonic_s() - began_s
        yield ReplayFinished(replay_result(comparisons), duration_s)

    async def _read(self, experiment_id: str) -> GenerationReader:
        reader = GenerationReader()
        found = False
        async with contextlib.aclosing(self._dependencies.events.read(experiment_id)) as history:
            async for message in history:
                found = True
                try:
                    batch = event_pb2.EventBatch.FromString(message.payload)
                except DecodeError as error:
                    raise FailedPreconditionError(
                        f"the log of experiment {experiment_id} cannot be read at "
                        f"{message.sequence}: {error}"
                    ) from error
                await self._dependencies.blobs.resolve_metrics(batch, experiment_id)
                await self._dependencies.blobs.resolve(log_messages.blobs_of(batch))
                for position, event in log_messages.events_of(message.sequence, batch):
                    reader.feed(position, event)
        if not found:
            raise NotFoundError("experiment", experiment_id)
        return reader

    async def _replay_generation(
        self, generation: RecordedGeneration, comparison: Comparison
    ) -> AsyncGenerator[int, None]:
        """Replay one generation on a new host; yield numbers handled; note a failed start."""
        sink = _ComparisonSink(comparison)
        try:
            host = await self._dependencies.launcher.launch(generation.setup, sink, eager=True)
        except (FailedPreconditionError, UnavailableError) as error:
            comparison.failure = error.message
            yield 0
            return
        try:
            for start in range(0, len(generation.commands), _CHUNK):
                chunk = generation.commands[start : start + _CHUNK]
                sink.expect(chunk)
                host.send(chunk)
                if not await self._wait_handled(sink):
                    break
                yield sink.handled
        finally:
            await host.aclose()
        yield sink.handled

    async def _wait_handled(self, sink: "_ComparisonSink") -> bool:
        """Wait until all sent commands are handled; False if the host ended or was late."""
        while sink.waiting and not sink.over:
            sink.news.clear()
            try:
                async with asyncio.timeout(self._dependencies.answer_timeout_s):
                    await sink.news.wait()
            except TimeoutError:
                limit_s = self._dependencies.answer_timeout_s
                sink.on_end(f"the algorithm gave no answer for {limit_s:g} s")
        return not sink.over


@dataclass(slots=True)
class _ComparisonSink:
    """Receiver of a replayed host's outputs, which passes them to a comparison."""

    comparison: Comparison
    waiting: deque[Command] = field(default_factory=deque)
    """Commands sent and not yet handled, oldest first."""
    handled: int = 0
    over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, commands: Sequence[Command]) -> None:
        """Add commands that are about to be sent to the host."""
        self.waiting.extend(commands)

    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        """Pass outputs to the comparison; count handled commands; wake the replay."""
        for output in outputs:
            if isinstance(output, answers.Done):
                self._done(output)
            else:
                self.comparison.add_output(output)
                self.over = self.over or isinstance(output, answers.Unbuildable)
        self.news.set()

    def _done(self, output: answers.Done) -> None:
        """Count the oldest sent command as handled, if the host's position has reached it."""
        if self.waiting and self.waiting[0].position <= output.position:
            self.comparison.handled(self.waiting.popleft())
            self.handled += 1

    def on_end(self, reason: str) -> None:
        """Mark the host as ended; keep its cause as the failure of the comparison."""
        self.over = True
        self.comparison.failure = self.comparison.failure or reason
        self.news.set()
