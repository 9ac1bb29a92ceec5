"""Watchdog of an event loop: measures how long its callbacks hold it, and logs what did.

The loop's selector notifies it when callbacks begin and end; they run between calls of `select`.
A thread looks at a loop that is held and keeps the innermost lines of its stack for the log. It
rests while the loop is idle, so an idle process stays asleep.

There are thousands of turns a second, so a turn costs one reading of the monotonic clock, or two
if the loop waits after it: that is a read of memory, while the CPU time is a system call of up to
20 µs and is read every now and then.
"""

import math
import selectors
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Final

from svc_common.logs import get_logger
from svc_common.telemetry.metrics import Registry

HELD_LIMIT_S: Final = 0.05
"""Longest time that callbacks may hold the loop before others notice it."""
_LOOK_S: Final = HELD_LIMIT_S
"""Time between two looks of the thread: each hold beyond the limit contains one."""
_IDLE_LOOKS: Final = 20
"""Looks without progress of the loop after which the thread rests: one second."""
_STACK_LINES: Final = 6
_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_COUNTED_FROM_S: Final = _BOUNDS_S[0]
"""Shorter times are not observed: there are thousands a second."""
_CPU_EVERY_S: Final = 0.02
"""Age from which a turn reads the CPU time again; `Hold.cpu_s` is too long by no more than that."""

Line = tuple[str, int, str]
"""File, number and function of a line of a stack."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Measurement of one time for which callbacks held the event loop: duration, CPU, stack."""

    held_s: float
    """Elapsed time, in seconds."""
    cpu_s: float
    """CPU time of the loop's thread; much less than `held_s` if it waited, or had no core."""
    at: str
    """Innermost lines of the stack while it was held; empty: the thread had no chance to look."""


class LoopWatchdog:
    """Watchdog thread that measures and logs how long callbacks hold an event loop.

    Args:
        limit_s: time from which a hold is counted and logged, in seconds.
        now_s: returns the monotonic time in seconds.
        cpu_s: returns the CPU time of the calling thread in seconds.

    Attributes:
        holds: number of holds beyond the limit.
        last: the last of them.
    """

    def __init__(
        self,
        limit_s: float = HELD_LIMIT_S,
        now_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._limit_s = limit_s
        self._now_s = now_s
        self._cpu_s = cpu_s
        self._turn = 0
        """Number of the last turn, counted from 1."""
        self._began_s: float | None = None
        """Start of the present turn; None: the loop waits."""
        self._cpu_read_s = -math.inf
        """Time of the last reading of the CPU time."""
        self._cpu_then_s = 0.0
        """CPU time at the last reading."""
        self._thread_id = 0
        self._seen: tuple[int, list[Line]] = (0, [])
        """Turn in which the thread looked last, and the stack that it saw."""
        self._resting = False
        self._wake = threading.Event()
        self._closed = threading.Lock()
        """Held until `stop`: a lock waits for a time-out without allocating anything."""
        self._thread: threading.Thread | None = None
        self._observe: Callable[[float], None] | None = None
        self.holds = 0
        self.last: Hold | None = None

    def selector(self) -> selectors.BaseSelector:
        """Return the selector for the loop: `SelectorEventLoop(watchdog.selector())`."""
        return _WatchedSelector(self)

    def register(self, registry: Registry) -> None:
        """Register a count of holds beyond the limit and a histogram of their durations."""
        registry.gauge(
            "nni_loop_holds_total",
            f"Times that callbacks held the event loop for more than {self._limit_s * 1000:g} ms",
            lambda: [((), float(self.holds))],
        )
        self._observe = registry.histogram(
            "nni_loop_held_seconds",
            f"Time that callbacks held the event loop, from {_COUNTED_FROM_S * 1000:g} ms on",
            _BOUNDS_S,
        ).observe

    def start(self) -> None:
        """Start the watchdog's thread over the calling thread's event loop."""
        self._thread_id = threading.get_ident()
        self._closed.acquire()
        self._thread = threading.Thread(target=self._watch, name="loop watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watchdog's thread and wait for it; may be called twice."""
        if self._thread is not None:
            self._closed.release()
            self._wake.set()
            self._thread.join()
            self._thread = None

    def turn_began(self) -> None:
        """Record when the loop begins to run callbacks; wake the watchdog's thread if it rests."""
        self._begin(self._now_s())

    def turn_ended(self) -> None:
        """Measure how long the loop's callbacks ran; count and log it if beyond the limit."""
        began_s, self._began_s = self._began_s, None
        if began_s is None:
            return
        held_s = self._now_s() - began_s
        if held_s >= _COUNTED_FROM_S:
            self._count(held_s)

    def turn_passed(self) -> None:
        """Record the end of a turn and the begin of the next one, which follows without a wait."""
        now_s = self._now_s()
        if self._began_s is not None and now_s - self._began_s >= _COUNTED_FROM_S:
            self._count(now_s - self._began_s)
        self._begin(now_s)

    def _begin(self, now_s: float) -> None:
        if now_s - self._cpu_read_s >= _CPU_EVERY_S:
            self._cpu_read_s, self._cpu_then_s = now_s, self._cpu_s()
        self._turn += 1
        self._began_s = now_s
        if self._resting:
            self._wake.set()

    def look(self) -> None:
        """Record the stack of the loop's thread if its callbacks run now."""
        turn = self._turn
        if self._began_s is None:
            return
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - documented, for this purpose
        stack = _innermost(frame)
        if self._turn == turn:  # not of a later turn
            self._seen = (turn, stack)

    def _count(self, held_s: float) -> None:
        if self._observe is not None:
            self._observe(held_s)
        if held_s <= self._limit_s:
            return
        cpu_s = min(self._cpu_s() - self._cpu_then_s, held_s)
        seen, stack = self._seen
        self.holds += 1
        self.last = Hold(held_s, cpu_s, _stack_text(stack) if seen == self._turn else "")
        get_logger().warning(
            "event loop held",
            held_s=round(held_s, 3),
            cpu_s=round(cpu_s, 3),
            at=self.last.at or "unknown",
        )

    def _watch(self) -> None:
        idle, turn = 0, self._turn
        while not self._closed.acquire(timeout=_LOOK_S):
            if idle >= _IDLE_LOOKS:
                self._resting = True
                self._wake.wait()
                self._wake.clear()
                self._resting, idle = False, 0
            self.look()
            idle = idle + 1 if self._turn == turn and self._began_s is None else 0
            turn = self._turn
        self._closed.release()


class _WatchedSelector(selectors.DefaultSelector):
    """I/O selector of an event loop that notifies a watchdog before and after each wait."""

    def __init__(self, watchdog: LoopWatchdog) -> None:
        super().__init__()
        self._wait = super().select
        self._watchdog = watchdog

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for I/O, with the watchdog notified that callbacks ended before and begin after."""
        if timeout == 0:  # callbacks are ready: a look at the sockets, and no wait
            ready = self._wait(timeout)
            self._watchdog.turn_passed()
            return ready
        self._watchdog.turn_ended()
        ready = self._wait(timeout)
        self._watchdog.turn_began()
        return ready


def _innermost(frame: FrameType | None) -> list[Line]:
    """Return up to six (file, line, function) of a stack, innermost first; None: an empty list."""
    lines: list[Line] = []
    while frame is not None and len(lines) < _STACK_LINES:
        lines.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return lines


def _stack_text(stack: list[Line]) -> str:
    """Return a stack's innermost lines as text: `file.py:12 function < …`."""
    return " < ".join(
        f"{'/'.join(filename.split('/')[-2:])}:{number} {name}" for filename, number, name in stack
    )
