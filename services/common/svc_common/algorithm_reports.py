"""Reports on an algorithm to the manager of its experiment, sent again while there is no room."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_wire.limits import MESSAGE_LIMIT_BYTES
from svc_common.clock import Clock
from svc_common.errors import OutOfRoomError
from svc_common.large_work import off_loop
from svc_common.logs import get_logger
from svc_common.messaging.ports import Inbox
from svc_common.rpc.message_parts import PARTS_LIMIT, check_parts
from svc_common.storage.large_values import LargeValues

_FIRST_PAUSE_S: Final = 0.2
_LAST_PAUSE_S: Final = 10.0


class AlgorithmReports:
    """Sender of one experiment's reports that repeats them while bus or blob store are full.

    That a report waits for the blob store is reported itself, once, unless the bus is full, too.

    Args:
        experiment_id: id of the experiment.
        source: name of the service in the INBOX, one of `subjects.ALGORITHM_SOURCES`.
        inbox: where the manager reads reports.
        clock: measures the pauses.
        values: store of large parameters; None: reports have none.
    """

    def __init__(
        self,
        experiment_id: str,
        source: str,
        inbox: Inbox,
        clock: Clock,
        values: LargeValues | None = None,
    ) -> None:
        self._experiment_id = experiment_id
        self._source = source
        self._inbox = inbox
        self._clock = clock
        self._values = values
        # Message id of the last report whose delay was reported.
        self._delayed = ""
        self._log = get_logger().bind(experiment=experiment_id)

    async def publish(
        self, generation: int, report: Callable[[], inbox_pb2.InboxMessage], message_id: str
    ) -> None:
        """Publish a report; while there is no room, repeat with pauses of 0.2 s to 10 s.

        Args:
            generation: generation of the algorithm that made the report.
            report: makes its message anew at each call.
            message_id: equal for repetitions, so that the bus discards them.

        Raises:
            ResourceExhaustedError: it has more parts or bytes than bus and manager accept.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                message = await self._offloaded(generation, report(), message_id)
                await self._send(message, message_id)
            except OutOfRoomError as error:
                if pause_s == _FIRST_PAUSE_S:
                    self._log.warning("report waits for room", error=error.message)
                await self._clock.sleep(pause_s)
                pause_s = min(2 * pause_s, _LAST_PAUSE_S)
            else:
                return

    async def _offloaded(
        self, generation: int, message: inbox_pb2.InboxMessage, message_id: str
    ) -> inbox_pb2.InboxMessage:
        """Return a message, large values stored; without room, report why it waits.

        Raises:
            OutOfRoomError: the blob store has no room.
        """
        if self._values is None:
            return message
        try:
            return await self._values.offload(message)
        except OutOfRoomError as error:
            await self._report_delay(generation, message_id, error.message)
            raise

    async def _report_delay(self, generation: int, delayed: str, reason: str) -> None:
        """Publish once per report why it waits; do nothing if the bus has no room either."""
        if delayed == self._delayed:
            return
        waits = event_pb2.AlgorithmWaits(generation=generation, reason=reason)
        with suppress(OutOfRoomError):
            await self._send(inbox_pb2.InboxMessage(algorithm_waits=waits), f"{delayed}.waits")
            self._delayed = delayed

    async def _send(self, message: inbox_pb2.InboxMessage, message_id: str) -> None:
        """Publish a message; raise if it has more parts than the manager decodes.

        Raises:
            ResourceExhaustedError: it has too many parts or bytes, or the bus has no room.
        """
        payload = message.SerializeToString()
        if len(payload) <= MESSAGE_LIMIT_BYTES:  # else the bus refuses it
            read = inbox_pb2.InboxMessage.FromString
            await off_loop(len(payload), check_parts, "the algorithm", PARTS_LIMIT, read, payload)
        await self._inbox.publish(self._experiment_id, self._source, payload, message_id=message_id)
