"""Sampler of running trials' CPU, memory and GPU use, into a file of each trial."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from svc_common.clock import Clock, SteadyClock
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.resource_use import (
    FIRST_SAMPLE_S,
    ProcessUse,
    ResourceSample,
    next_interval_s,
    sample_line,
)
from svc_trial_runner.ports import GpuDevices, TrialUse

_AT_ONCE: Final = 2
"""Samples that are read and written at once: other work needs threads, and a disk may hang."""


@dataclass(frozen=True, slots=True)
class SampledTrial:
    """Trial to sample: its process, folder and GPUs, its end, and a callback for each sample."""

    process: ProcessIdentity
    directory: str
    gpu_indices: Sequence[int]
    ended: asyncio.Future[int | None]
    """Done when the trial has ended; its process may go on, with another trial."""
    on_line: Callable[[], None]
    """Called after each sample, on the event loop."""


class ResourceSampler:
    """Sampler that appends a trial's CPU, memory and GPU use to its file, at growing intervals.

    A trial costs a timer until its first sample, which most short trials do not reach. Reading and
    writing happen in threads; what cannot be read or written leaves a gap.

    Args:
        trials: reads processes and writes files.
        gpus: reads the use of GPUs.
        clock: tells the times of samples.
        tasks: owner of one task per sample.
        first_s: age of a trial at its first sample, in seconds.
        interval_s: returns the delay of the next sample by the age of the trial and the CPU time
            of reading the last one, all in seconds.
    """

    def __init__(
        self,
        trials: TrialUse,
        gpus: GpuDevices,
        clock: Clock,
        tasks: TaskOwner,
        first_s: float = FIRST_SAMPLE_S,
        interval_s: Callable[[float, float], float] = next_interval_s,
    ) -> None:
        self._trials = trials
        self._gpus = gpus
        self._clock = clock
        self._tasks = tasks
        self._first_s = first_s
        self._interval_s = interval_s
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def begin(self, trial: SampledTrial) -> Callable[[], None]:
        """Sample a trial from now on until it ends; return a function that stops it earlier."""
        sampling = _Sampling(trial, self._clock, self._start_sample)
        trial.ended.add_done_callback(lambda _ended: sampling.stop())
        sampling.continue_after(self._first_s)
        return sampling.stop

    def forget(self, directory: str) -> None:
        """Delete the samples of an earlier attempt in a trial's folder, if there are any."""
        self._trials.forget(directory)

    def _start_sample(self, sampling: "_Sampling") -> None:
        self._tasks.start(self._sample(sampling), "resource sample")

    async def _sample(self, sampling: "_Sampling") -> None:
        """Take one sample, call back and schedule the next one; stop if the trial has ended."""
        reading_s: float | None
        try:
            async with self._turns:
                reading_s = await self._append_sample(sampling)
        except Exception as error:  # noqa: BLE001 - trials go on, whatever a driver raises
            sampling.log_failure(error)
            reading_s = 0.0
        if reading_s is None or sampling.is_over():
            return
        sampling.trial.on_line()
        sampling.continue_after(self._interval_s(sampling.age_s, reading_s))

    async def _append_sample(self, sampling: "_Sampling") -> float | None:
        """Append one sample; return the CPU seconds of reading it; None: the trial is over."""
        trial, before = sampling.trial, sampling.last
        if sampling.is_over():
            return None
        use, reading_s = await asyncio.to_thread(self._read, trial.process)
        now = sampling.now()
        if use is None:
            return None
        gpus = await self._gpus.use(trial.gpu_indices) if trial.gpu_indices else ()
        if sampling.is_over():
            return None
        sampling.last = ResourceSample(now, use, tuple(gpus))
        line = sample_line(before, sampling.last)
        await asyncio.to_thread(self._trials.append, trial.directory, line)
        return reading_s

    def _read(self, process: ProcessIdentity) -> tuple[ProcessUse | None, float]:
        """Read a process's use, called in a thread; return it (None: gone) and CPU seconds."""
        begin_s = time.thread_time()
        use = self._trials.read(process)
        return use, time.thread_time() - begin_s


class _Sampling:
    """Timer of a trial's next sample, and the last sample taken."""

    __slots__ = (
        "_begin_s",
        "_clock",
        "_logged",
        "_loop",
        "_over",
        "_steady_clock",
        "_timer",
        "_wake",
        "last",
        "trial",
    )

    def __init__(
        self, trial: SampledTrial, clock: Clock, wake: Callable[["_Sampling"], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._begin_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._wake = wake
        self.trial = trial
        self._clock = clock
        self._steady_clock: Clock | None = None
        self.last: ResourceSample | None = None
        self._over = False
        self._logged = False

    @property
    def age_s(self) -> float:
        """Seconds since the sampling began."""
        return self._loop.time() - self._begin_s

    def now(self) -> datetime:
        """Return the time of day, which never goes back from one sample to the next."""
        if self._steady_clock is None:  # most short trials reach no sample
            self._steady_clock = SteadyClock(self._clock)
        return self._steady_clock.now()

    def is_over(self) -> bool:
        """Return whether `stop` was called."""
        return self._over

    def log_failure(self, error: Exception) -> None:
        """Log the error of the trial's first sample that failed."""
        if not self._logged:
            self._logged = True
            get_logger().warning(
                "no sample of a trial's use", folder=self.trial.directory, error=str(error)
            )

    def continue_after(self, delay_s: float) -> None:
        """Set the timer that starts the next sample after a delay."""
        self._timer = self._loop.call_later(delay_s, self._wake, self)

    def stop(self) -> None:
        """Cancel the timer, and mark a sample that is under way to be dropped."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
