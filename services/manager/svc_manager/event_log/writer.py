"""Puts an experiment's facts into its log, as its owner, and tells why they do not get there."""

import secrets
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import ResourceExhaustedError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus

_AGAIN_S: Final = 1.0
"""Between two tries to store facts for which the bus has no room."""
_SLOW_S: Final = 2.0
"""An append that takes longer is worth telling."""


class LogWriter:
    """Appends the batches of one owner, one after the other.

    Args:
        experiment_id: whose log.
        epoch: number of this ownership.
        bus: where the log is.
        clock: tells how long an append takes.
    """

    def __init__(self, experiment_id: str, epoch: int, bus: Bus, clock: Clock) -> None:
        self._experiment_id = experiment_id
        self.epoch = epoch
        """Number of this ownership."""
        self.append_count = 0
        """How many batches have been appended."""
        self._bus = bus
        self._clock = clock
        # Managers that share no leases may take the same epoch: this tells them apart.
        self._owner = secrets.token_hex(4)
        self._since_s: float | None = None
        """When the append that is under way began, by the monotonic clock."""
        self._trouble = ""
        """Why the last try failed; empty once one has succeeded."""
        self._giving_up = False

    async def append(self, payload: bytes, expected_sequence: int) -> int:
        """Append a batch; give its stream sequence.

        Where the bus has no room, it is tried again until there is some.

        Raises:
            LostOwnershipError: another manager has the experiment.
            ResourceExhaustedError: there is no room for a new experiment, or `give_up` was called.
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
                if self._giving_up or not expected_sequence:
                    raise
                if not self._trouble:
                    get_logger().error(
                        "facts not stored", experiment=self._experiment_id, error=error.message
                    )
                self._trouble = error.message
            await self._clock.sleep(_AGAIN_S)

    def give_up(self) -> None:
        """Try nothing again from now on."""
        self._giving_up = True

    @property
    def waiting_for(self) -> str:
        """Why facts do not get into the log; empty: they do."""
        if self._trouble:
            return self._trouble
        if not self._bus.connected:
            return "waiting for the bus: it cannot be reached"
        if self._since_s is not None and self._clock.monotonic_s() - self._since_s > _SLOW_S:
            return "waiting for the bus to store what has happened"
        return ""
