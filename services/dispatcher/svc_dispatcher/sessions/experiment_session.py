"""Session of one experiment: successive runs of its algorithm, and reports to the manager.

All state is a fold of the log, so after any failure (of the host, the connection, this process)
the log is read again from its beginning.
"""

from collections import deque
from typing import Final

from svc_common.algorithm_reports import AlgorithmReports
from svc_common.errors import ResourceExhaustedError, UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.ports import LogMessage
from svc_common.tasks import TaskOwner
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.failures import FailureLedger
from svc_dispatcher.domain.values import Position
from svc_dispatcher.sessions.generation import GenerationRun, RunEnd, SessionDependencies

SOURCE: Final = "dispatcher"
"""Source name of the dispatcher's reports in the INBOX."""
_FIRST_PAUSE_S: Final = 0.2
_LAST_PAUSE_S: Final = 10.0


class ExperimentSession:
    """Supervisor of one experiment's algorithm: runs its generations, sends their reports.

    Args:
        experiment_id: id of the experiment.
        dependencies: ports and limits.
    """

    def __init__(self, experiment_id: str, dependencies: SessionDependencies) -> None:
        self.id = experiment_id
        self._dependencies = dependencies
        self._box: CallbackQueue[LogMessage] = CallbackQueue()
        self._ledger = FailureLedger()
        self._given_up = 0
        self._deaths_in_row = 0
        # Reports outlive the host that made them: the last ones must arrive.
        self._reports = TaskOwner(self._report_failed)
        self._unsent: deque[tuple[int, answers.Report]] = deque()
        self._sending = False
        self._sender = AlgorithmReports(
            experiment_id, SOURCE, dependencies.inbox, dependencies.clock, dependencies.blobs
        )
        self._log = get_logger().bind(experiment=experiment_id)

    def deliver(self, message: LogMessage) -> None:
        """Queue a new message of the experiment's log for the run that `serve` drives."""
        self._box.put(message)

    async def serve(self) -> None:
        """Run generation after generation, pausing after failures, until the experiment ends."""
        while True:
            run = GenerationRun(self, self._dependencies)
            try:
                end = await run.run(self._box, eager=self._deaths_in_row > 0)
            finally:
                await run.aclose()
            if end is RunEnd.READ_AGAIN:
                await self._pause()
            elif not self._resumed_meanwhile():
                return

    def _resumed_meanwhile(self) -> bool:
        """Drop the waiting messages; return whether one of them requests the algorithm again."""
        return any(log_messages.wants_algorithm(m.payload) for m in self._box.take_all())

    async def aclose(self) -> None:
        """Cancel reports on their way to the manager; a later dispatcher sends them again."""
        await self._reports.aclose()

    def report(self, generation: int, report: answers.Report) -> None:
        """Queue a generation's report for the manager's INBOX; start sending if it is idle.

        Args:
            generation: generation of the algorithm that made the report.
            report: the report.
        """
        self._unsent.append((generation, report))
        self._start_sending()

    def _start_sending(self) -> None:
        if self._unsent and not self._sending:
            self._sending = True
            self._reports.start(self._publish_all(), f"report {self.id}")

    async def _publish_all(self) -> None:
        """Publish queued reports one by one, in order, until the queue is empty.

        Deferred parameters that overtake their announcement would be refused.
        """
        try:
            while self._unsent:
                await self._publish(*self._unsent.popleft())
        finally:
            self._sending = False

    async def _publish(self, generation: int, report: answers.Report) -> None:
        """Publish a report; if it is too large for the bus or the manager, report a final failure.

        Raises:
            ResourceExhaustedError: it is a final failure, and too large.
        """
        try:
            await self._send(generation, report)
        except ResourceExhaustedError as error:
            if isinstance(report, answers.GaveUp):
                raise
            self._given_up = generation
            await self._send(generation, answers.GaveUp(generation, error.message))

    async def _send(self, generation: int, report: answers.Report) -> None:
        message_id = log_messages.message_id(self.id, generation, report)
        await self._sender.publish(
            generation, lambda: log_messages.report_to_proto(report), message_id
        )

    def _report_failed(self, name: str, error: BaseException) -> None:
        if not isinstance(error, UnavailableError):  # else the bus is closed: this process ends
            self._log.error("report not sent", task=name, exc_info=error)
            self._start_sending()

    async def _pause(self) -> None:
        """Sleep with exponential back-off if several hosts in a row died without progress."""
        if self._deaths_in_row > 1:
            pause_s = _FIRST_PAUSE_S * 2 ** min(self._deaths_in_row - 2, 10)
            await self._dependencies.clock.sleep(min(pause_s, _LAST_PAUSE_S))

    def given_up(self, generation: int) -> bool:
        """Return whether the algorithm of this generation was given up."""
        return generation <= self._given_up

    def handled(self, position: Position, *, everything: bool) -> None:
        """Record that a host handled events up to ``position``; reset deaths if none is left."""
        self._ledger.handled(position)
        if everything:
            self._deaths_in_row = 0

    def host_died(self, generation: int, position: Position | None, reason: str) -> str:
        """Count a host's death at its event; return why to give up, or empty to try again.

        Args:
            generation: generation of the algorithm.
            position: oldest event that the host had not handled; None if it had handled all.
            reason: cause of the end.
        """
        self._deaths_in_row += 1
        if self._dependencies.telemetry is not None:
            self._dependencies.telemetry.host_died()
        count = self._ledger.record_failure(position)
        exhausted = self._ledger.is_exhausted(count)
        self._log.warning("host ended", reason=reason, count=count, position=position)
        if not exhausted:
            return ""
        self._given_up = generation
        return f"{reason}; it failed {count} times on the same event"

    def give_up(self, generation: int) -> None:
        """Mark a generation as given up: no further host is started for it."""
        self._given_up = generation
