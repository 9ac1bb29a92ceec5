"""Loop of a process that runs one trial after another, each with its own record.

An experiment starts a process for each trial. Where a trial takes milliseconds, most of its cost is
that process: a loop of this module keeps it. The protocol is that of ``docs/trial-protocol.md``.
"""

import gc
import os
import sys

from nni.trial import settings
from nni.trial.api import next_trial, offers_next_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nni.trial.channel import NextTrial

MAX_TRIALS = 1000
"""Number of trials after which a process ends."""
MAX_GROWTH = 2.0
"""Factor by which the memory of a process may grow after its first trial."""
_STANDARD_STREAMS = (1, 2)
_REDRAWING_THREADS = ("TMonitor",)
"""Threads that only redraw progress bars: that of tqdm."""


def run_trials(
    run_one: "Callable[[], object]", max_trials: int = MAX_TRIALS, max_growth: float = MAX_GROWTH
) -> int:
    """Run a function for each trial of this process, up to a limit; return the number of trials.

    The function does what a trial script does: it gets the parameters of its trial, and reports
    its results. When it returns, its trial has succeeded. When it raises, the process ends, and
    only that trial fails. Of each trial are its own: parameters, metrics, ids, environment,
    working directory, standard output and error, random numbers, time limit and stop. Imported
    modules, caches, signal handlers and global settings of libraries stay.

    The process ends, and the experiment starts another one, after `max_trials`, when its memory has
    grown by `max_growth`, or when a thread or a child process of a trial still runs. Outside an
    experiment the function is called once.

    Args:
        run_one: runs one trial.
        max_trials: largest number of trials of this process, >= 1.
        max_growth: largest factor by which the resident memory grows after the first trial, >= 1.

    Returns:
        The number of trials.

    Raises:
        ValueError: a limit is below 1.

    Examples:
        >>> import nni
        >>> from nni.trial.reuse import run_trials
        >>> def square() -> None:
        ...     nni.report_final_result({"x": 3, **nni.get_next_parameter()}["x"] ** 2)
        >>> run_trials(square)
        [...] INFO (nni) Final result: 9
        1
    """
    if max_trials < 1:
        raise ValueError(f"max_trials must be >= 1, got {max_trials!r}")
    if max_growth < 1:
        raise ValueError(f"max_growth must be >= 1, got {max_growth!r}")
    if not settings.in_experiment():
        run_one()
        return 1
    process = _ReusedProcess()
    run_one()
    count = 1
    limit_bytes = int(_resident_bytes() * max_growth)
    while count < max_trials and not reason_to_end(limit_bytes) and offers_next_trial():
        process.end_output()
        found = next_trial()
        if found is None:
            break
        process.begin(found)
        run_one()
        count += 1
    return count


def reason_to_end(limit_bytes: int) -> str:
    """Free unused memory; return why this process must run no further trial, or empty text.

    Args:
        limit_bytes: largest resident memory.
    """
    if os.getpid() != os.getsid(0):
        return "it is not the process that the experiment has started"
    if _has_children():
        return "a child process of the trial still runs"
    threads = _threads()
    if threads:
        return f"the thread {threads[0]} of the trial still runs"
    _free_device_memory()
    if _resident_bytes() > limit_bytes:
        gc.collect()
        size = _resident_bytes()
        if size > limit_bytes:
            return f"it has {size} bytes of memory, more than {limit_bytes}"
    return ""


class _ReusedProcess:
    """Properties of this process that are put back, or replaced, between trials."""

    def __init__(self) -> None:
        self._directory = os.getcwd()  # noqa: PTH109 - pathlib costs a trial milliseconds
        self._environment = settings.environment()

    def end_output(self) -> None:
        """Flush all output, and point stdout and stderr to the null device."""
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            if stream is not None and not stream.closed:
                stream.flush()
        _flush_extensions()
        null = os.open(os.devnull, os.O_WRONLY)
        for number in _STANDARD_STREAMS:
            os.dup2(null, number)
        os.close(null)

    def begin(self, trial: "NextTrial") -> None:
        """Switch to the output, environment, folder and import paths of a trial; draw new seeds."""
        for source, target in zip((trial.stdout, trial.stderr), _STANDARD_STREAMS, strict=True):
            os.dup2(source, target)
            os.close(source)
        for name in trial.unset:
            self._environment.pop(name, None)
        self._environment.update(trial.environment)
        settings.replace_environment(self._environment)
        os.chdir(trial.directory)
        if trial.directory != self._directory:
            _move_imports(self._directory, trial.directory)
            self._directory = trial.directory
        _show_token()
        _reseed()


def _move_imports(before: str, after: str) -> None:
    """Rewrite the paths of imports and loaded modules from a folder to its copy."""
    sys.path[:] = [_moved(part, before, after) for part in sys.path]
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        file, path = names.get("__file__"), names.get("__path__")
        if isinstance(file, str):
            names["__file__"] = _moved(file, before, after)
        if isinstance(path, list):
            path[:] = [_moved(part, before, after) for part in path]


def _moved(path: str, before: str, after: str) -> str:
    inside = path == before or path.startswith(before + os.sep)
    return after + path[len(before) :] if inside else path


def _show_token() -> None:
    """Write the trial's token to the initial environment, in a fork of the warm interpreter."""
    warm = sys.modules.get("nni.trial.warm")
    if warm is not None:
        warm.show_token(settings.required(settings.TOKEN))


def _reseed() -> None:
    """Reseed random, numpy and torch; set the start folder of multiprocessing."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        # Not `torch.seed`: until CUDA is used, each call of it is kept, with its traceback.
        torch.default_generator.seed()
        if torch.cuda.is_initialized():
            torch.cuda.seed_all()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined] # noqa: PTH109 - spawn needs it


def _flush_extensions() -> None:
    """Flush the output streams of the C library."""
    import ctypes

    ctypes.CDLL(None).fflush(None)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _threads() -> "list[str]":
    """Return the names of the other Python threads, without those that redraw progress bars."""
    threading = sys.modules.get("threading")
    if threading is None:
        return []
    return [
        thread.name
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
        and type(thread).__name__ not in _REDRAWING_THREADS
    ]


def _free_device_memory() -> None:
    """Collect garbage, and release torch's cached memory of the GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def _resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as above
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
