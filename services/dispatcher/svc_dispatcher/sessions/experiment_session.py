"""Serves one experiment: life after life of its algorithm, and what the manager is told.

All that is known is a fold of the log, so whatever ends (the host, the connection, this process)
is answered by reading the log again from its beginning.
"""

from collections import deque
from typing import Final

from nni_proto.experiment.v1 import inbox_pb2
from svc_common.errors import ResourceExhaustedError, UnavailableError
from svc_common.logs import get_logger
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.ports import LogMessage
from svc_common.tasks import TaskOwner
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.failures import FailureLedger
from svc_dispatcher.domain.values import Position
from svc_dispatcher.sessions.generation import Life, Over, Surroundings

SOURCE: Final = "dispatcher"
"""Name under which reports stand in the INBOX."""
_FIRST_PAUSE_S: Final = 0.2
_LAST_PAUSE_S: Final = 10.0


class Experiment:
    """One experiment, as long as it wants an algorithm.

    Args:
        experiment_id: which.
        surroundings: ports and limits.
    """

    def __init__(self, experiment_id: str, surroundings: Surroundings) -> None:
        self.id = experiment_id
        self._around = surroundings
        self._box: CallbackQueue[LogMessage] = CallbackQueue()
        self._ledger = FailureLedger()
        self._given_up = 0
        self._deaths_in_row = 0
        # Reports outlive the host that made them: its last words must arrive.
        self._reports = TaskOwner(self._report_failed)
        self._unsent: deque[tuple[int, answers.Report]] = deque()
        self._sending = False
        self._log = get_logger().bind(experiment=experiment_id)

    def deliver(self, message: LogMessage) -> None:
        """Take a new message of the experiment's log."""
        self._box.put(message)

    async def serve(self) -> None:
        """Serve until the log says that no algorithm is wanted."""
        while True:
            life = Life(self, self._around)
            try:
                over = await life.run(self._box, eager=self._deaths_in_row > 0)
            finally:
                await life.aclose()
            if over is Over.AGAIN:
                await self._pause()
            elif not self._resumed_meanwhile():
                return

    def _resumed_meanwhile(self) -> bool:
        """Whether an algorithm was asked for again while the last host was being ended."""
        return any(log_messages.wants_algorithm(m.payload) for m in self._box.take_all())

    async def aclose(self) -> None:
        """Give up what is still on its way to the manager; a later dispatcher says it again."""
        await self._reports.aclose()

    def tell(self, generation: int, report: answers.Report) -> None:
        """Send a report to the manager; reports keep their order.

        Args:
            generation: of the algorithm that it comes from.
            report: what to say.
        """
        self._unsent.append((generation, report))
        self._send_on()

    def _send_on(self) -> None:
        if self._unsent and not self._sending:
            self._sending = True
            self._reports.start(self._publish_all(), f"report {self.id}")

    async def _publish_all(self) -> None:
        """Send one after another: what has to be sent again must not be overtaken.

        Parameters that were promised would come before the promise, and would be refused.
        """
        try:
            while self._unsent:
                await self._publish(*self._unsent.popleft())
        finally:
            self._sending = False

    async def _publish(self, generation: int, report: answers.Report) -> None:
        message = await self._around.blobs.shrunk(log_messages.report_to_proto(report))
        try:
            await self._send(generation, report, message)
        except ResourceExhaustedError as error:
            if isinstance(report, answers.GaveUp):
                raise
            self._given_up = generation
            failure = answers.GaveUp(generation, error.message)
            await self._send(generation, failure, log_messages.report_to_proto(failure))

    async def _send(
        self, generation: int, report: answers.Report, message: inbox_pb2.InboxMessage
    ) -> None:
        await self._around.inbox.publish(
            self.id,
            SOURCE,
            message.SerializeToString(),
            message_id=log_messages.message_id(self.id, generation, report),
        )

    def _report_failed(self, name: str, error: BaseException) -> None:
        if not isinstance(error, UnavailableError):  # else the bus is closed: this process ends
            self._log.error("report not sent", task=name, exc_info=error)
            self._send_on()

    async def _pause(self) -> None:
        """Wait a little longer after each death without progress, so that none is hot."""
        if self._deaths_in_row > 1:
            pause_s = _FIRST_PAUSE_S * 2 ** min(self._deaths_in_row - 2, 10)
            await self._around.clock.sleep(min(pause_s, _LAST_PAUSE_S))

    def given_up(self, generation: int) -> bool:
        """Whether the algorithm of this generation was given up."""
        return generation <= self._given_up

    def handled(self, position: Position, *, everything: bool) -> None:
        """Learn that a host has handled all events up to this one, and whether no more wait."""
        self._ledger.handled(position)
        if everything:
            self._deaths_in_row = 0

    def host_died(self, generation: int, position: Position | None, reason: str) -> str:
        """Learn of a host's death; return why the algorithm is given up, or nothing.

        Args:
            generation: of the algorithm.
            position: the oldest event that it had not handled; None if it had handled all.
            reason: why it died.
        """
        self._deaths_in_row += 1
        if self._around.witness is not None:
            self._around.witness.host_died()
        count = self._ledger.note(position)
        hopeless = self._ledger.hopeless(count)
        self._log.warning("host ended", reason=reason, count=count, position=position)
        if not hopeless:
            return ""
        self._given_up = generation
        return f"{reason}; it failed {count} times on the same event"

    def give_up(self, generation: int) -> None:
        """Remember that nothing more is tried for this generation."""
        self._given_up = generation
