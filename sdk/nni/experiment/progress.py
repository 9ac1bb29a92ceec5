"""Progress of an experiment: done, running, failed, best, rate and time left.

`ProgressMeter` turns what the manager tells into numbers and holds no clock; the displays show
them, on a terminal as one line that changes, else as plain lines.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Final, Protocol

from nni.experiment.printable_text import printable_stream
from nni.experiment.records import state_name, trial_counts
from nni_proto.experiment.v1 import experiment_pb2

_RATE_WINDOW_S: Final = 30.0
"""The rate is that of the last half minute: early trials may have been slower."""
_PLAIN_INTERVAL_S: Final = 5.0
"""Least time between two plain lines."""
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an experiment at one moment: state, trial counts, best value, rate, time left."""

    state: str
    done: int
    """Trials that ended by themselves or were stopped early."""
    running: int
    waiting: int
    failed: int
    """Trials that failed or were cancelled."""
    limit: int | None
    """Most trials ever created; `None`: no limit."""
    best: float | None
    best_trial_id: str
    rate_per_s: float | None
    """Trials that ended per second, lately; `None`: too early to say."""
    left_s: float | None
    """Until the first budget is used up; `None`: unknown."""
    waiting_for: str

    @property
    def ended(self) -> int:
        """Number of ended trials: done plus failed."""
        return self.done + self.failed

    def line(self) -> str:
        """Return the progress as one line of text: counts, best value, rate, time left."""
        total = f"/{self.limit}" if self.limit is not None else ""
        parts = [f"{self.ended}{total} trials", f"{self.running} running", f"{self.failed} failed"]
        if self.best is not None:
            parts.append(f"best {self.best:.6g} (trial {self.best_trial_id})")
        if self.rate_per_s:
            parts.append(rate_text(self.rate_per_s))
        if self.left_s is not None:
            parts.append(f"{duration_words(self.left_s)} left")
        if self.waiting_for and not self.running:
            parts.append(self.waiting_for)
        return ", ".join(parts)


def rate_text(rate_per_s: float) -> str:
    """Return a rate as text in trials per second, minute or hour, the first that is at least 1."""
    if rate_per_s >= 1:
        return f"{rate_per_s:.1f} trials/s"
    if rate_per_s * _MINUTE_S >= 1:
        return f"{rate_per_s * _MINUTE_S:.1f} trials/min"
    return f"{rate_per_s * _HOUR_S:.1f} trials/h"


def duration_words(seconds: float) -> str:
    """Return a duration as `45 s`, `3 min 20 s` or `2 h 5 min`."""
    whole = max(0, round(seconds))
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"


class ProgressMeter:
    """Meter of an experiment's progress; its recent readings give rate and time left."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def read(self, experiment: experiment_pb2.Experiment, now_s: float) -> Progress:
        """Record the ended trials at ``now_s``, on a monotonic clock, and return the progress."""
        counts = trial_counts(experiment)
        done = counts.get("SUCCEEDED", 0) + counts.get("EARLY_STOPPED", 0)
        failed = sum(counts.get(name, 0) for name in ("FAILED", "USER_CANCELED", "SYS_CANCELED"))
        config = experiment.config
        limit = config.max_trial_number if config.HasField("max_trial_number") else None
        rate = self._rate(done + failed, now_s)
        return Progress(
            state=state_name(experiment.state),
            done=done,
            running=counts.get("RUNNING", 0) + counts.get("UNKNOWN", 0),
            waiting=counts.get("WAITING", 0),
            failed=failed,
            limit=limit,
            best=experiment.best_value if experiment.HasField("best_value") else None,
            best_trial_id=experiment.best_trial_id,
            rate_per_s=rate,
            left_s=_time_left(experiment, limit, done + failed, rate),
            waiting_for=experiment.waiting_for,
        )

    def _rate(self, ended: int, now_s: float) -> float | None:
        seen = self._seen
        seen.append((now_s, ended))
        while len(seen) > 2 and now_s - seen[1][0] >= _RATE_WINDOW_S:  # noqa: PLR2004 - both ends of the window stay
            seen.popleft()
        start_s, start_ended = seen[0]
        if ended == start_ended or now_s <= start_s:
            return None
        return (ended - start_ended) / (now_s - start_s)


def _time_left(
    experiment: experiment_pb2.Experiment, limit: int | None, ended: int, rate: float | None
) -> float | None:
    estimates = []
    if limit is not None and ended >= limit:
        return None
    if limit is not None and rate:
        estimates.append((limit - ended) / rate)
    if experiment.config.HasField("max_experiment_duration"):
        allowed_s = experiment.config.max_experiment_duration.ToTimedelta().total_seconds()
        spent_s = experiment.execution_time.ToTimedelta().total_seconds()
        estimates.append(max(0.0, allowed_s - spent_s))
    return min(estimates) if estimates else None


class ProgressDisplay(Protocol):
    """Interface of progress displays: show the progress, print notes, close."""

    def show(self, progress: Progress) -> None:
        """Show the progress as it is now."""
        ...

    def note(self, text: str) -> None:
        """Write lines of text that stay on the screen; from any thread."""
        ...

    def close(self) -> None:
        """Leave the last state on the screen and give the terminal back."""
        ...


class PlainDisplay:
    """Display that writes a line of text after a change, at most every few seconds."""

    def __init__(self, stream: IO[str], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock_s = clock_s
        self._shown: Progress | None = None
        self._written = ""
        self._written_at_s = float("-inf")

    def show(self, progress: Progress) -> None:
        """Remember the progress, and write it as a line if the interval has passed."""
        self._shown = progress
        if self._clock_s() - self._written_at_s >= _PLAIN_INTERVAL_S:
            self._write(progress)

    def _write(self, progress: Progress) -> None:
        line = f"{progress.state}: {progress.line()}"
        if line != self._written:
            self._stream.write(line + "\n")
            self._stream.flush()
        self._written = line
        self._written_at_s = self._clock_s()

    def note(self, text: str) -> None:
        """Write a text to the stream as it is, and flush."""
        self._stream.write(text)
        self._stream.flush()

    def close(self) -> None:
        """Write the last progress that has not been written."""
        if self._shown is not None:
            self._write(self._shown)
            self._shown = None


class TerminalDisplay:
    """Progress bar on one line of a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.fields[state]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=Console(file=stream),
            transient=False,
        )
        self._task = self._bar.add_task("", total=None, state="")
        self._started = False

    def show(self, progress: Progress) -> None:
        """Start the progress bar if necessary, and update its counts and state."""
        if not self._started:
            self._bar.start()
            self._started = True
        self._bar.update(
            self._task,
            description=progress.line(),
            completed=progress.ended,
            total=progress.limit,
            state=progress.state,
        )

    def note(self, text: str) -> None:
        """Print a text above the bar, without control characters or markup."""
        text = printable_stream(text)
        self._bar.console.print(text, end="", markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Stop the progress bar if it was started."""
        if self._started:
            self._bar.stop()
            self._started = False


def display_for(stream: IO[str]) -> ProgressDisplay:
    """Return a display for a stream: a progress bar on a terminal, else plain lines."""
    return TerminalDisplay(stream) if stream.isatty() else PlainDisplay(stream)
