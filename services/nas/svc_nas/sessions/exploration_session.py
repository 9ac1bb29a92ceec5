"""Session of one exploration: folds the log, hosts the strategy, reports to the manager."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TypeAlias

from nni_proto.experiment.v1 import event_pb2
from svc_common import subjects
from svc_common.algorithm_reports import AlgorithmReports
from svc_common.clock import Clock
from svc_common.errors import FailedPreconditionError, NotFoundError, ResourceExhaustedError
from svc_common.experiment_sessions import ExperimentSessions, SessionKind
from svc_common.logs import get_logger
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.ports import EventLog, Inbox, LogMessage
from svc_common.storage.large_values import LargeValues
from svc_common.storage.ports import BlobStore
from svc_nas.converters import log_messages
from svc_nas.domain.exploration import Exploration
from svc_nas.domain.reports import GaveUp, Report
from svc_nas.domain.strategy_lines import Exhausted, StrategyOutput, Submitted
from svc_nas.ports import StrategyLauncher, StrategyProcess, StrategyStart
from svc_nas.stored_documents import StoredDocuments
from svc_nas.telemetry import Telemetry

_BATCH_LIMIT: Final = 1_000
_FIRST_PAUSE_S: Final = 0.2
_RESTART_PAUSE_S: Final = 2.0
"""Longest pause before a process that ended is started again."""
STARTS_LIMIT: Final = 3
"""Ends in a row of processes that could not open the document, after which it is given up."""
ENDS_LIMIT: Final = 30
"""Ends in a row of processes that ran, with neither candidate nor result between them."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Log, inbox, blobs, launcher, clock and telemetry that all sessions share."""

    events: EventLog
    inbox: Inbox
    blobs: BlobStore
    launcher: StrategyLauncher
    clock: Clock
    telemetry: Telemetry


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Outputs that a process has sent, with the number of the process."""

    process: int
    outputs: tuple[StrategyOutput, ...]


@dataclass(frozen=True, slots=True)
class _ProcessEnded:
    """Queue item: a process has ended; its number, the reason, whether without an error."""

    process: int
    reason: str
    clean: bool


_Item: TypeAlias = LogMessage | _Outputs | _ProcessEnded


class ExplorationSession:
    """Follower of one exploration's log that hosts its strategy and reports to the manager.

    Args:
        experiment_id: id of the experiment.
        dependencies: ports.
    """

    def __init__(self, experiment_id: str, dependencies: Dependencies) -> None:
        self.id = experiment_id
        self.dependencies = dependencies
        self.box: CallbackQueue[_Item] = CallbackQueue()
        self.values = LargeValues(dependencies.blobs)
        self.documents = StoredDocuments(dependencies.blobs)
        self.ends_in_row = 0
        self._reports = AlgorithmReports(
            experiment_id, subjects.NAS, dependencies.inbox, dependencies.clock, self.values
        )
        self.log = get_logger().bind(experiment=experiment_id)
        self._processes = 0

    def deliver(self, message: LogMessage) -> None:
        """Queue a new message of the experiment's log."""
        self.box.put(message)

    async def serve(self) -> None:
        """Run process after process, with back-off after failures, until the experiment ends."""
        goes_on = True
        while goes_on:
            if self.ends_in_row > 1:
                pause_s = _FIRST_PAUSE_S * 2**self.ends_in_row
                await self.dependencies.clock.sleep(min(pause_s, _RESTART_PAUSE_S))
            self._processes += 1
            run = _Run(self, self._processes)
            try:
                goes_on = await run.run()
            finally:
                await run.aclose()

    async def aclose(self) -> None:
        """Do nothing: a run closes its process."""

    async def publish(self, report: Report, generation: int) -> None:
        """Send a report to the manager; if it is too large, report a final failure instead.

        Raises:
            ResourceExhaustedError: it is a final failure, and too large.
        """
        try:
            await self._send(report, generation)
        except ResourceExhaustedError as error:
            if isinstance(report, GaveUp):
                raise
            await self._send(GaveUp(generation, error.message), generation)

    async def _send(self, report: Report, generation: int) -> None:
        message_id = log_messages.message_id(self.id, generation, report)
        await self._reports.publish(
            generation, lambda: log_messages.report_to_proto(report), message_id
        )
        self.dependencies.telemetry.report_sent(report)


class _Run:
    """One fold of a log from its beginning, with at most one strategy process, never a second."""

    def __init__(self, session: ExplorationSession, number: int) -> None:
        self._session = session
        self._dependencies = session.dependencies
        self._number = number
        self._exploration = Exploration()
        self._process: StrategyProcess | None = None
        self._read_through = 0
        self._ended = False
        """Whether the process of this run has ended."""

    async def run(self) -> bool:
        """Fold the log, host one process, send reports; return True to read the log again."""
        exploration = self._exploration
        async with aclosing(self._dependencies.events.read(self._session.id)) as history:
            async for message in history:
                await self._feed(message)
        generation = exploration.generation
        while exploration.wanted:
            if exploration.generation != generation:
                return True
            if self._ended and exploration.wants_strategy and not exploration.has_unconfirmed:
                return True
            await self._launch_if_wanted()
            self._send_lines()
            await self._report()
            for item in await self._session.box.get_some(_BATCH_LIMIT):
                await self._handle(item)
        return False

    async def aclose(self) -> None:
        """Stop the strategy's process, if there is one; may be called twice."""
        if self._process is not None:
            await self._process.aclose()
            self._process = None

    async def _feed(self, message: LogMessage) -> None:
        if message.sequence <= self._read_through:
            return
        self._read_through = message.sequence
        batch = event_pb2.EventBatch.FromString(message.payload)
        await self._session.values.resolve_metrics(batch, self._session.id)
        await self._session.values.resolve(log_messages.blobs_of(batch))
        for event in log_messages.events_of(batch):
            self._exploration.feed(event)

    async def _handle(self, item: _Item) -> None:
        match item:
            case _Outputs(process, outputs) if process == self._number:
                for output in outputs:
                    self._exploration.apply(output)
                    if isinstance(output, Submitted | Exhausted):
                        self._session.ends_in_row = 0
            case _ProcessEnded(process) if process == self._number:
                self._process_ended(item)
            case LogMessage():
                await self._feed(item)
                self._session.ends_in_row *= not self._exploration.has_result

    def _process_ended(self, end: _ProcessEnded) -> None:
        limit = ENDS_LIMIT if self._exploration.is_ready else STARTS_LIMIT
        self._ended = True
        self._process = None
        self._session.ends_in_row += 1
        self._exploration.drop_process()
        self._session.log.info("strategy ended", reason=end.reason)
        self._dependencies.telemetry.process_ended(clean=end.clean)
        if self._session.ends_in_row >= limit:
            self._exploration.fail(
                f"{end.reason}; it ended {limit} times in a row, see strategy.log of the "
                "experiment, then resume it"
            )

    async def _launch_if_wanted(self) -> None:
        exploration = self._exploration
        if self._ended or self._process is not None or not exploration.wants_strategy:
            return
        setup = exploration.setup
        if setup is None:
            return
        try:
            document = await self._session.documents.text(setup.document_sha256)
            start = StrategyStart(
                self._session.id,
                exploration.directory,
                setup,
                document,
                max(1, exploration.concurrency),
            )
            self._process = await self._dependencies.launcher.launch(start, self)
        except NotFoundError:
            exploration.fail(
                f"document {setup.document_sha256} of the exploration is not in the blob store; "
                "create the exploration again"
            )
        except FailedPreconditionError as error:
            exploration.fail(error.message)
        else:
            self._dependencies.telemetry.process_started()
            self._send_lines()
            self._process.go_live()

    def _send_lines(self) -> None:
        lines = self._exploration.take_lines() if self._process is not None else []
        if lines and self._process is not None:
            self._process.send(lines)

    async def _report(self) -> None:
        while (report := self._exploration.next_report()) is not None:
            await self._session.publish(report, self._exploration.generation)

    # StrategySink

    def on_outputs(self, outputs: Sequence[StrategyOutput]) -> None:
        """Queue the outputs of the process for the session."""
        self._session.box.put(_Outputs(self._number, tuple(outputs)))

    def on_end(self, reason: str, *, clean: bool) -> None:
        """Queue the end of the process."""
        self._session.box.put(_ProcessEnded(self._number, reason, clean))


def exploration_sessions(dependencies: Dependencies) -> ExperimentSessions:
    """Return a session registry, for the caller to run, with one session per exploration.

    Args:
        dependencies: ports.
    """
    kind = SessionKind(
        lambda experiment_id: ExplorationSession(experiment_id, dependencies),
        begins=log_messages.wants_nas,
        ends=log_messages.ends_exploration,
    )
    return ExperimentSessions(dependencies.events, dependencies.clock, kind)
