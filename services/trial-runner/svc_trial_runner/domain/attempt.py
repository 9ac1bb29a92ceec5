"""The life of one attempt on this machine, as a table of what follows from what.

    HELD ──launching──> LAUNCHING ──launched──> RUNNING ──process_ended──> READING ──read──> OVER
      │                     │                      │                        ^  │              ^
      └──stop──> OVER       └──stop: remembered    └──stop──> STOPPING ─────┘  └─saving─> SAVING

The one who drives it carries out the orders that each call returns; nothing here waits, reads a
clock or touches a process. An attempt that was dropped ends the same way but reports nothing.
"""

from enum import Enum


class Phase(Enum):
    """Where an attempt is."""

    HELD = "held"
    """Its task is ours; it waits for GPUs or code."""
    LAUNCHING = "launching"
    RUNNING = "running"
    STOPPING = "stopping"
    """TERM was sent."""
    READING = "reading"
    """Its process has ended; socket and pipes are being read to their end."""
    SAVING = "saving"
    """Everything was read; what it has saved is being stored."""
    OVER = "over"


class StopCause(Enum):
    """Why an attempt ends before its command does."""

    STOPPED = "stopped"
    """The manager asked for it."""
    TIME_LIMIT = "time limit"
    LOST = "lost"
    """The hold on its task could not be renewed, or what ran it died."""
    DROPPED = "dropped"
    """The claim lost or the trial is over: nobody wants to hear of it."""


class Order(Enum):
    """What the driver has to do."""

    NOTHING = "nothing"
    END = "end"
    """There is no process: report the end."""
    TERMINATE = "terminate"
    """Send TERM to the group now and KILL after the grace."""
    KILL = "kill"
    GIVE_UP = "give up"
    """Stop storing what it has saved: it ends without."""


class AttemptStateMachine:
    """State of one attempt."""

    __slots__ = ("_phase", "_stop")

    def __init__(self) -> None:
        self._phase = Phase.HELD
        self._stop: StopCause | None = None

    @property
    def phase(self) -> Phase:
        """Where it is."""
        return self._phase

    @property
    def stop_cause(self) -> StopCause | None:
        """Why it was ended before its time; None: it was not."""
        return self._stop

    def stop(self, cause: StopCause) -> Order:
        """Somebody wants it to end. The first cause counts, except that DROPPED silences it."""
        if self._phase is Phase.OVER:
            return Order.NOTHING
        if self._phase is Phase.SAVING:
            return self._stop_saving(cause)
        first = self._stop is None
        if self._phase is not Phase.READING and (first or cause is StopCause.DROPPED):
            self._stop = cause
        elif cause is StopCause.DROPPED:
            self._stop = cause  # it ended by itself, but nobody wants to hear of it
        if self._phase is Phase.HELD:
            self._phase = Phase.OVER
            return Order.END
        if self._phase is Phase.RUNNING:
            self._phase = Phase.STOPPING
            return Order.TERMINATE
        return Order.NOTHING

    def _stop_saving(self, cause: StopCause) -> Order:
        if cause is StopCause.TIME_LIMIT:  # its command has kept it
            return Order.NOTHING
        first = self._stop is None
        if first or cause is StopCause.DROPPED:
            self._stop = cause
        return Order.GIVE_UP if first else Order.NOTHING

    def launching(self) -> None:
        """Everything it needs is there and its process is being made."""
        assert self._phase is Phase.HELD
        self._phase = Phase.LAUNCHING

    def launched(self) -> Order:
        """Its process exists; a stop that came meanwhile takes effect now."""
        assert self._phase is Phase.LAUNCHING
        if self._stop is None:
            self._phase = Phase.RUNNING
            return Order.NOTHING
        self._phase = Phase.STOPPING
        return Order.TERMINATE

    def not_launched(self) -> None:
        """Its process could not be made."""
        self._phase = Phase.OVER

    def grace_over(self) -> Order:
        """The time from TERM to KILL has passed; the rest of the group may outlive its leader."""
        return Order.NOTHING if self._phase is Phase.OVER else Order.KILL

    def process_ended(self) -> None:
        """The leader of its group is gone."""
        if self._phase in {Phase.RUNNING, Phase.STOPPING}:
            self._phase = Phase.READING

    def saving(self) -> None:
        """What it has saved is being stored."""
        assert self._phase is Phase.READING
        self._phase = Phase.SAVING

    def read(self) -> None:
        """Socket and pipes are at their end, or the grace for that has passed; all is stored."""
        self._phase = Phase.OVER
