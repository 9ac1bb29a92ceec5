"""Writer of an experiment's event log, on behalf of its owner."""

import secrets
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import ResourceExhaustedError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus

_AGAIN_S: Final = 1.0
"""Pause between two tries to append while the bus has no room."""
_SLOW_S: Final = 2.0
"""Duration above which an append is reported as a reason for waiting."""


class LogWriter:
    """Writer that appends one owner's batches to a log, again while the bus is full.

    Args:
        experiment_id: the experiment.
        epoch: epoch of this ownership.
        bus: holds the log.
        clock: measures the duration of an append.
    """

    def __init__(self, experiment_id: str, epoch: int, bus: Bus, clock: Clock) -> None:
        self._experiment_id = experiment_id
        self.epoch = epoch
        """Epoch of this ownership."""
        self.append_count = 0
        """Number of appended batches."""
        self._bus = bus
        self._clock = clock
        # Managers that share no leases may use the same epoch: this id distinguishes them.
        self._owner = secrets.token_hex(4)
        self._since_s: float | None = None
        """Start of the current append, by the monotonic clock."""
        self._trouble = ""
        """Error of the last try; empty after a success."""
        self._stopping = False

    async def append(self, payload: bytes, expected_sequence: int) -> int:
        """Append a batch after a known sequence, retry while the bus is full; return its sequence.

        Raises:
            LostOwnershipError: another manager owns the experiment.
            ResourceExhaustedError: there is no room for a new experiment, or `stop_retrying` was
                called.
        """
        self._since_s = self._clock.monotonic_s()
        try:
            sequence = await self._append(payload, expected_sequence)
        finally:
            self._since_s = None
            self._trouble = ""
        self.append_count += 1
        return sequence

    async def _append(self, payload: bytes, expected_sequence: int) -> int:
        while True:
            try:
                return await self._bus.events.append(
                    self._experiment_id,
                    payload,
                    expected_sequence=expected_sequence,
                    epoch=self.epoch,
                    append_id=f"{self._owner}.{self.append_count}",
                )
            except ResourceExhaustedError as error:
                if self._stopping or not expected_sequence:
                    raise type(error)(self._with_disk(error.message)) from error
                if not self._trouble:
                    get_logger().error(
                        "events not appended", experiment=self._experiment_id, error=error.message
                    )
                self._trouble = error.message
            await self._clock.sleep(_AGAIN_S)

    def stop_retrying(self) -> None:
        """Make the running and later appends raise when the bus is full, instead of retrying."""
        self._stopping = True

    @property
    def waiting_for(self) -> str:
        """Return why events cannot be appended (bus away, full or slow); empty: they can."""
        if self._trouble:
            return self._with_disk(self._trouble)
        if not self._bus.connected:
            return self._with_disk("waiting for the bus: it cannot be reached")
        if self._since_s is not None and self._clock.monotonic_s() - self._since_s > _SLOW_S:
            return self._with_disk("waiting for the bus to store events")
        return ""

    def _with_disk(self, reason: str) -> str:
        """Return a reason, after the trouble of the bus's disk if there is any."""
        disk = self._bus.disk_trouble
        return f"{disk} ({reason})" if disk else reason
