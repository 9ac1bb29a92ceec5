"""Signals that end a process while it starts, or waits for, an experiment.

In other threads than the main one, which handles signals in Python, all of this does nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Literal, NoReturn, TypeAlias

OnExit: TypeAlias = Literal["stop", "leave"]
"""Fate of an experiment when a signal ends the process that waits for it."""

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end, besides SIGINT."""


class Interruption:
    """Record of a signal that came while signals were deferred."""

    def __init__(self) -> None:
        self.came = False
        self.exit_code = _exit_code(signal.SIGINT)
        """By which a shell reports the signal; that of Ctrl-C while none came."""


def check_on_exit(on_exit: str) -> None:
    """Raise ValueError unless the text is one of `OnExit`.

    Raises:
        ValueError: it is another one.
    """
    if on_exit not in {"stop", "leave"}:
        raise ValueError(f"on_exit must be 'stop' or 'leave', got {on_exit!r}")


@contextmanager
def deferred_interrupt() -> Iterator[Interruption]:
    """Defer the first Ctrl-C until the end of the block; raise a second one at once.

    Within `signals_as_exit` its signals are deferred, too. The second signal is not deferred.

    Raises:
        KeyboardInterrupt: Ctrl-C came meanwhile, and the block has not set `came` back to false.
        SystemExit: the same for a signal of `signals_as_exit`.
    """
    interruption = Interruption()
    first = signal.SIGINT

    def defer(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if interruption.came:
            _raise(number, frame)
        interruption.came, first = True, signal.Signals(number)
        interruption.exit_code = _exit_code(number)

    exits = [number for number in _ENDING if signal.getsignal(number) is _exit]
    with _handlers(dict.fromkeys((signal.SIGINT, *exits), defer)):
        yield interruption
    if interruption.came:
        _raise(first, None)


@contextmanager
def signals_as_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit; a signal that is ignored, as by nohup, stays so.

    Raises:
        SystemExit: with the code by which a shell reports the signal.
    """
    with _handlers(dict.fromkeys(_ENDING, _exit)):
        yield


@contextmanager
def _handlers(
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], Any]],
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, former in before.items():
            # None: set by other code than Python's, which cannot be set again.
            signal.signal(number, signal.SIG_DFL if former is None else former)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    _exit(number, frame)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(_exit_code(number))


def _exit_code(number: int) -> int:
    return 128 + number
