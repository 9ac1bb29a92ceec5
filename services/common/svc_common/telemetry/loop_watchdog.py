"""Watchdog of an event loop: measures how long callbacks block it, and logs their stacks.

The loop's selector notifies it when callbacks begin and end; they run between calls of `select`.
A thread looks at a loop that is held and keeps the innermost lines of its stack for the log. It
rests while the loop is idle, so an idle process stays asleep. `faulthandler` writes the stack: to
walk along frame objects of a thread that goes on (`f_back`) has crashed CPython 3.11.7.

There are thousands of turns a second, so a turn costs one reading of the monotonic clock, or two
if the loop waits after it: that is a read of memory, while the CPU time is a system call of up to
20 µs and is read every now and then.
"""

import faulthandler
import math
import os
import re
import selectors
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from svc_common.logs import get_logger
from svc_common.telemetry.metrics import Registry

HELD_LIMIT_S: Final = 0.05
"""Longest time that callbacks may hold the loop before others notice it."""
_LOOK_S: Final = HELD_LIMIT_S / 2
"""Time between two looks of the thread, and age of a turn whose stack is read at a look.

A hold beyond the limit has two looks; at the second one it is old enough."""
_IDLE_LOOKS: Final = 40
"""Looks without progress of the loop after which the thread rests: one second."""
_STACK_LINES: Final = 6
_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_COUNTED_FROM_S: Final = _BOUNDS_S[0]
"""Shorter times are not observed: there are thousands a second."""
_CPU_EVERY_S: Final = 0.02
"""Age from which a turn reads the CPU time again; `Hold.cpu_s` is too long by no more than that."""

_STACK_LINE: Final = re.compile(r'  File "(?P<file>.*)", line (?P<number>\d+) in (?P<name>.*)')


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
        self._seen = (0, "")
        """Turn whose stack the thread read last, and the innermost lines of that."""
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
        """Register metrics: the number of holds beyond the limit, a histogram of held times."""
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
        """Record the stack of the loop's thread if its callbacks have run for some time."""
        turn, began_s = self._turn, self._began_s
        if began_s is None or self._now_s() - began_s < _LOOK_S:
            return
        stack = _innermost(_written_stacks(), self._thread_id)
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
        self.last = Hold(held_s, cpu_s, stack if seen == self._turn else "")
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


def _written_stacks() -> str:
    """Return the stacks of all threads as `faulthandler` writes them; empty: no file to be had."""
    try:
        with open(os.memfd_create("stacks"), "w+b", buffering=0) as file:  # noqa: PTH123 - a descriptor
            faulthandler.dump_traceback(file)
            file.seek(0)
            return file.read().decode("utf-8", "replace")
    except OSError:  # no descriptor is left
        return ""


def _innermost(stacks: str, thread_id: int) -> str:
    """Return up to six innermost lines of a thread's stack: `file.py:12 function < …`."""
    _, _, rest = stacks.partition(f"Thread 0x{thread_id:016x} ")
    lines = []
    for line in rest.splitlines()[1 : _STACK_LINES + 1]:
        if (found := _STACK_LINE.fullmatch(line)) is None:
            break
        file = "/".join(found["file"].split("/")[-2:])
        lines.append(f"{file}:{found['number']} {found['name']}")
    return " < ".join(lines)
