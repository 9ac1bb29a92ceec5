"""State machine of one attempt on this machine.

    HELD ──launching──> LAUNCHING ──launched──> RUNNING ──process_ended──> READING ──read──> OVER
      │                     │                      │                        ^  │              ^
      └──stop──> OVER       └──stop: remembered    └──stop──> STOPPING ─────┘  └─saving─> SAVING

The driver carries out the order that each call returns; nothing here waits, reads a clock or
touches a process. An attempt that was dropped ends the same way but reports nothing.
"""

from enum import Enum


class Phase(Enum):
    """Phases of an attempt: held, launching, running, stopping, reading, saving, over."""

    HELD = "held"
    """The task is claimed; the attempt waits for GPUs or code."""
    LAUNCHING = "launching"
    RUNNING = "running"
    STOPPING = "stopping"
    """TERM was sent."""
    READING = "reading"
    """The process has ended; socket and pipes are being read to their end."""
    SAVING = "saving"
    """All output was read; the checkpoint is being stored."""
    OVER = "over"


class StopTrigger(Enum):
    """Reason to stop an attempt early: stop order, time limit, lost task or drop order."""

    STOPPED = "stopped"
    """The manager requested it."""
    TIME_LIMIT = "time limit"
    LOST = "lost"
    """The task could not be renewed, or the process that ran it died."""
    DROPPED = "dropped"
    """The claim lost or the trial is over: no report is needed."""


class Order(Enum):
    """Step that an attempt's state machine orders: report, TERM, KILL, cancel saving."""

    NOTHING = "nothing"
    END = "end"
    """Report the end: there is no process."""
    TERMINATE = "terminate"
    """Send TERM to the group now and KILL after the grace."""
    KILL = "kill"
    GIVE_UP = "give up"
    """Cancel the storage of the checkpoint: the attempt ends without it."""


class AttemptStateMachine:
    """State machine of an attempt, from claim to end, that decides how a stop proceeds."""

    __slots__ = ("_phase", "_stop")

    def __init__(self) -> None:
        self._phase = Phase.HELD
        self._stop: StopTrigger | None = None

    @property
    def phase(self) -> Phase:
        """Current phase."""
        return self._phase

    @property
    def stop_trigger(self) -> StopTrigger | None:
        """Reason of the stop; None: not stopped."""
        return self._stop

    def stop(self, cause: StopTrigger) -> Order:
        """Request a stop, return the order by phase; the first cause counts, DROPPED always."""
        if self._phase is Phase.OVER:
            return Order.NOTHING
        if self._phase is Phase.SAVING:
            return self._stop_saving(cause)
        first = self._stop is None
        if self._phase is not Phase.READING and (first or cause is StopTrigger.DROPPED):
            self._stop = cause
        elif cause is StopTrigger.DROPPED:
            self._stop = cause  # it ended by itself, but no report is needed
        if self._phase is Phase.HELD:
            self._phase = Phase.OVER
            return Order.END
        if self._phase is Phase.RUNNING:
            self._phase = Phase.STOPPING
            return Order.TERMINATE
        return Order.NOTHING

    def _stop_saving(self, cause: StopTrigger) -> Order:
        if cause is StopTrigger.TIME_LIMIT:  # the command ended within the limit
            return Order.NOTHING
        first = self._stop is None
        if first or cause is StopTrigger.DROPPED:
            self._stop = cause
        return Order.GIVE_UP if first else Order.NOTHING

    def launching(self) -> None:
        """Record that all inputs are ready and the process is being started."""
        assert self._phase is Phase.HELD
        self._phase = Phase.LAUNCHING

    def launched(self) -> Order:
        """Enter RUNNING; or, if a stop was requested, STOPPING with the order to terminate."""
        assert self._phase is Phase.LAUNCHING
        if self._stop is None:
            self._phase = Phase.RUNNING
            return Order.NOTHING
        self._phase = Phase.STOPPING
        return Order.TERMINATE

    def not_launched(self) -> None:
        """Record that the process could not be started."""
        self._phase = Phase.OVER

    def grace_over(self) -> Order:
        """Return KILL once the grace after TERM is over; the group may outlive its leader."""
        return Order.NOTHING if self._phase is Phase.OVER else Order.KILL

    def process_ended(self) -> None:
        """Record that the leader of the group has ended."""
        if self._phase in {Phase.RUNNING, Phase.STOPPING}:
            self._phase = Phase.READING

    def saving(self) -> None:
        """Record that the checkpoint is being stored."""
        assert self._phase is Phase.READING
        self._phase = Phase.SAVING

    def read(self) -> None:
        """Record that socket and pipes were read, or the grace for that is over; all is stored."""
        self._phase = Phase.OVER
