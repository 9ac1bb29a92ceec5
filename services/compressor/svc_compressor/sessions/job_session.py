"""Session of one compression job: folds the log, answers the manager."""

from contextlib import aclosing
from typing import Final

from svc_common import subjects
from svc_common.algorithm_reports import AlgorithmReports
from svc_common.clock import Clock
from svc_common.experiment_sessions import ExperimentSessions, SessionKind
from svc_common.logs import get_logger
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.ports import EventLog, Inbox, LogMessage
from svc_compressor.converters import log_messages
from svc_compressor.domain.job_progress import JobProgress
from svc_compressor.domain.reports import Report
from svc_compressor.telemetry import Telemetry

_BATCH_LIMIT: Final = 1_000


class JobSession:
    """Follower of one job's log that sends each report to the manager once.

    Args:
        experiment_id: id of the job's experiment.
        events: the logs.
        inbox: where the manager reads reports.
        clock: waits while the bus has no room.
        telemetry: counts and traces the reports.
    """

    def __init__(
        self,
        experiment_id: str,
        events: EventLog,
        inbox: Inbox,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self.id = experiment_id
        self._telemetry = telemetry
        self._events = events
        self._reports = AlgorithmReports(experiment_id, subjects.COMPRESSOR, inbox, clock)
        self._box: CallbackQueue[LogMessage] = CallbackQueue()
        self._log = get_logger().bind(experiment=experiment_id)

    def deliver(self, message: LogMessage) -> None:
        """Queue a new message of the job's log."""
        self._box.put(message)

    async def serve(self) -> None:
        """Fold the log, then answer the manager until the experiment ends."""
        run = _JobRun(self)
        async with aclosing(self._events.read(self.id)) as history:
            async for message in history:
                run.feed(message)
        await run.send_due()
        while run.progress.wanted:
            for message in await self._box.get_some(_BATCH_LIMIT):
                run.feed(message)
            await run.send_due()

    async def aclose(self) -> None:
        """Do nothing: a session has no resources of its own."""

    async def publish(self, report: Report, generation: int, job: object) -> None:
        """Send a report to the manager, with back-off while the bus has no room; count it."""
        due_ms = self._telemetry.now_ms()
        message_id = log_messages.message_id(self.id, generation, report)
        await self._reports.publish(
            generation, lambda: log_messages.report_to_proto(report, job), message_id
        )
        self._telemetry.report_sent(self.id, report, due_ms)
        self._log.info("reported", report=type(report).__name__)


class _JobRun:
    """Fold of a log from its beginning, and the reports that were sent meanwhile."""

    def __init__(self, session: JobSession) -> None:
        self.progress = JobProgress()
        self._session = session
        self._job: object = None
        self._read_through = 0
        self._sent: tuple[int, Report] | None = None

    def feed(self, message: LogMessage) -> None:
        """Apply a message of the log; one that was read before changes nothing."""
        if message.sequence <= self._read_through:
            return
        self._read_through = message.sequence
        if self._job is None:
            self._job = log_messages.job_in(message.payload)
        for event in log_messages.events_of(message.payload):
            self.progress.feed(event)

    async def send_due(self) -> None:
        """Send due reports, each once; stop while the log does not show the last one's effect."""
        while (report := self.progress.next_report()) is not None:
            due = (self.progress.generation, report)
            if due == self._sent:
                return  # its effect is not in the log yet
            self._sent = due
            await self._session.publish(report, self.progress.generation, self._job)


def job_sessions(
    events: EventLog, inbox: Inbox, clock: Clock, telemetry: Telemetry
) -> ExperimentSessions:
    """Return a session registry, for the caller to run, with one session per compression job.

    Args:
        events: the logs.
        inbox: where managers read reports.
        clock: waits after failures.
        telemetry: counts and traces the reports.
    """
    kind = SessionKind(
        lambda experiment_id: JobSession(experiment_id, events, inbox, clock, telemetry),
        begins=log_messages.wants_compressor,
        ends=log_messages.ends_job,
    )
    return ExperimentSessions(events, clock, kind)
