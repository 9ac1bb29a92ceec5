"""Fork server for Python trials: a warm interpreter that has imported their modules.

One file, standard library only, run **by path** under the interpreter that a trial's command
names (Python 3.8 or later): ``python3 warm.py FD [PADDING]``. ``FD`` is an inherited Unix socket
of type ``SOCK_SEQPACKET``; messages are described in ``docs/trial-protocol.md``. Nothing here may
import another file of `nni`: the interpreter need not have it.

Generations. The first process has imported nothing. When a trial ends it tells which modules of
the standard library and of site-packages it imported; the server then forks a *successor* that
imports those while the server goes on starting trials. A successor that turns out unfit (a module
left a thread, opened a GPU, crashed) just ends and is tried again without that module. A fit one
takes the control socket over; its parent stays only to reap its own trials and to step in again
should the successor die. Modules of the code directory are never among the preloaded.

It is longer than a module should be because it must be one file.
"""
# ruff: noqa: E402 - what a bare interpreter has loaded is taken before the other imports
# ruff: noqa: PTH100, PTH109, PTH112, PTH115, PTH118, PTH119, PTH120, PTH123, PTH208
# - pathlib would cost every warm interpreter and trial memory and milliseconds
# ruff: noqa: ANN401 - what comes from a script, a module table or a socket has no type
# ruff: noqa: T201 - the interpreter's own words are printed as the interpreter does

from __future__ import annotations

import sys

# Taken before anything else is imported: what a bare interpreter has loaded, and what names it
# gives the module of a script, differ between versions of Python.
BASELINE = frozenset(sys.modules)
SCRIPT_NAMES = tuple(name for name in globals() if name.startswith("__"))

import array
import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import io
import itertools
import json
import mmap
import os
import resource
import select
import socket
import time
import types
from functools import partial

TYPE_CHECKING = False  # `typing` costs milliseconds and memory in every trial
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn
else:
    import _signal as signal  # what `signal` wraps in enums, at a cost to every trial

OWN_NAME = "nni.trial.warm"
"""Module name under which `nni` finds `report_imports`."""
MESSAGE_BYTES = 256 * 1024
"""Longest message either side may send; also the room given to the socket's buffers."""
MAX_GENERATIONS = 8
"""Largest number of successors with learned modules; each one costs a page table and a sleep."""
GROWTH_MODULES = 4
"""The n-th successor but the first waits for n times as many modules: small finds are collected."""
BLAS_VARIABLE = "OPENBLAS_NUM_THREADS"
"""OpenBLAS starts its pool when it is loaded, and no pool survives a fork."""
BLAS_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
BLAS_TIMEOUT_BITS = "20"
"""Idle OpenBLAS threads spin for 2^26 cycles by default: 25 ms of CPU for a trial of 5."""
BLAS_FALLBACKS = ("GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that OpenBLAS reads if its own is not set, in this order."""
LOAD_TIME_PREFIXES = (
    "OMP_", "OPENBLAS_", "GOTO_", "MKL_", "KMP_", "NUMEXPR_", "NUMBA_", "TF_", "KERAS_", "JAX_",
    "XLA_", "MPLBACKEND",
)  # fmt: skip
"""Variables that libraries read when they are loaded, and scripts set just before that."""
SITE_FOLDERS = ("site-packages", "dist-packages")
PROGRESS_BYTES = 4
"""Room for the index of a module in shared memory."""
GPU_DEVICES = ("/dev/nvidia", "/dev/kfd")
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
TOKEN_VARIABLE = "NNI_TRIAL_TOKEN"  # noqa: S105 - the name of a variable
START_FAILED = 126
"""Exit code of a trial whose process could not be set up (the reason is on its stderr)."""
UNFLUSHED = 120
"""Python's own exit code when standard output could not be written at the end."""


class StartError(Exception):
    """Error: a trial cannot be started; the text with the reason is for the agent."""


class Start:
    """Checked message to start a trial: command line, environment, folder and pipes."""

    def __init__(self, message: dict[str, Any], descriptors: list[int]) -> None:
        """Check the fields of a ``start`` message and store them; StartError if one is wrong.

        Raises:
            StartError: a field is missing or of the wrong type.
        """
        argv = message.get("argv")
        if not (isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv)):
            raise StartError("argv must be a non-empty list of strings")
        if len(descriptors) != len(("stdout", "stderr")):
            raise StartError("start needs two descriptors: stdout, stderr")
        self.id = str(message.get("id", ""))
        self.argv: list[str] = argv
        self.cwd = str(message.get("cwd") or ".")
        self.set: dict[str, str] = dict(message.get("environment") or {})
        self.unset: list[str] = list(message.get("unset") or ())
        self.unbuffered = bool(message.get("unbuffered", False))
        self.title: list[str] = list(
            message.get("title") or [os.path.basename(sys.executable), *argv]
        )
        self.limits: dict[str, int] = dict(message.get("limits") or {})
        self.stdout, self.stderr = descriptors


# --- the process of a trial -----------------------------------------------------------------


class _Interpreter:
    """Start-up facts of this interpreter: signals, OpenBLAS settings, command-line memory."""

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.sigmask = set(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        self.on_interrupt = signal.getsignal(signal.SIGINT)
        self.on_terminate = signal.getsignal(signal.SIGTERM)
        self.on_hangup = signal.getsignal(signal.SIGHUP)
        self.blas = {name: os.environ.get(name) for name in (BLAS_VARIABLE, BLAS_TIMEOUT)}
        """What the user has set for OpenBLAS."""
        self.title_start = 0
        self.title_bytes = 0
        self.token_start = 0
        """Address of the value of the trial token in the initial environment; 0: there is none."""
        self.token_bytes = 0
        self.library_roots: tuple[str, ...] = ()
        parts = os.environ["PYTHONPATH"].split(os.pathsep) if os.environ.get("PYTHONPATH") else ()
        self.relative = {os.path.abspath(part): part for part in parts if part[:1] != "/"}
        """Relative parts of the search path, by what the interpreter has made of them."""


_process = _Interpreter()


def protect(parent: int) -> None:
    """Ask the kernel to kill this process with its parent; exit if the parent is dead already."""
    _process.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def start_time(pid: int) -> int:
    """Return when a process started, in clock ticks since boot (field 22 of its stat)."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def measure_title() -> None:
    """Record address and size of this process's command line in memory."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # fields 48 and 49 of proc(5)
    _process.title_start, _process.title_bytes = start, end - start


def set_title(words: list[str]) -> None:
    """Show ``words`` as the command line, cut at the room that the arguments of main had.

    The kernel prints up to the first zero byte, and no further, when the last byte of that room
    is not zero; that is its rule for programs that write their own title.
    """
    room = _process.title_bytes
    text = b" ".join(os.fsencode(word) for word in words)[: room - 2]
    area = text.ljust(room - 1, b"\0") + b" "
    ctypes.memmove(_process.title_start, area, room)
    _process.libc.prctl(PR_SET_NAME, os.path.basename(os.fsencode(words[0]))[:15], 0, 0, 0)


def measure_token() -> None:
    """Remove the token from the environment; record the address of its room in memory.

    The kernel shows the initial environment of a process and of all its forks. A token in it marks
    every descendant of a trial, also one that has left its group and session.
    """
    token = os.environ.pop(TOKEN_VARIABLE, "")
    with open("/proc/self/stat", "rb") as file:
        start = int(file.read().rpartition(b")")[2].split()[47])  # field 50 of proc(5)
    with open("/proc/self/environ", "rb") as file:
        place = (b"\0" + file.read()).find(f"\0{TOKEN_VARIABLE}={token}\0".encode())
    if token and place >= 0:
        _process.token_start = start + place + len(TOKEN_VARIABLE) + 1
        _process.token_bytes = len(token)


def show_token(token: str) -> None:
    """Write the token of a trial into the initial environment, if it fits."""
    text = os.fsencode(token)
    if text and len(text) <= _process.token_bytes:
        area = text.ljust(_process.token_bytes, b"\0")
        ctypes.memmove(_process.token_start, area, _process.token_bytes)


def restore_signals() -> None:
    """Put handlers and mask back to what a new interpreter has."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, _process.on_interrupt)
    signal.signal(signal.SIGTERM, _process.on_terminate)
    signal.signal(signal.SIGHUP, _process.on_hangup)
    signal.pthread_sigmask(signal.SIG_SETMASK, _process.sigmask)


def open_stdio(start: Start) -> None:
    """Point descriptors 0-2 at null and the given pipes and make fresh objects for them."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (start.stdout, 1), (start.stderr, 2)):
        os.dup2(source, target)  # inheritable, as standard streams are
        if source != target:
            os.close(source)
    unbuffered = start.unbuffered or getattr(sys.__stdout__, "write_through", False)
    streams = [
        _text_stream(number, model, unbuffered=unbuffered)
        for number, model in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__))
    ]
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]


def _text_stream(number: int, model: Any, *, unbuffered: bool) -> io.TextIOWrapper:
    """Open a standard stream as the interpreter does when it is no terminal."""
    name = ("<stdin>", "<stdout>", "<stderr>")[number]
    mode = "w" if number else "r"
    buffering = 0 if unbuffered and number else -1
    buffer: Any = open(number, mode + "b", buffering, closefd=False)  # noqa: SIM115
    getattr(buffer, "raw", buffer).name = name
    stream = io.TextIOWrapper(
        buffer,
        encoding=getattr(model, "encoding", "utf-8"),
        errors=getattr(model, "errors", "strict"),
        newline="\n" if number else None,
        line_buffering=name == "<stderr>" and not unbuffered and sys.version_info >= (3, 9),
        write_through=unbuffered,
    )
    stream.mode = mode  # type: ignore[misc] # as the interpreter does
    return stream


def set_environment(start: Start) -> None:
    """Restore the variables of OpenBLAS; unset and set the variables of the trial."""
    for name, value in _process.blas.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    for name in start.unset:
        os.environ.pop(name, None)
    for name, value in start.set.items():
        os.environ[name] = value
    if "TZ" in start.set or "TZ" in start.unset:
        time.tzset()


def reseed() -> None:
    """Reseed numpy and torch; renew multiprocessing's start folder and key."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch_generator = getattr(sys.modules.get("torch"), "default_generator", None)
    if torch_generator is not None:
        torch_generator.seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined] # spawn needs it
        process.current_process().authkey = os.urandom(32)


def blas_pools() -> list[tuple[Callable[[int], object], int]]:
    """Return, for each OpenBLAS that is loaded, how to set its threads and to how many."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").partition("/")[2] for line in file if "openblas" in line}
    settings = [_process.blas[BLAS_VARIABLE], *map(os.environ.get, BLAS_FALLBACKS)]
    wanted = next((int(value) for value in settings if value and value.isdigit()), 0)
    pools = []
    for path in sorted(paths):
        library = ctypes.CDLL("/" + path)
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_", "_64"):
                setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                count = getattr(library, f"{prefix}openblas_get_num_procs{suffix}", None)
                if setter is not None and count is not None:
                    pools.append((setter, wanted or int(count())))
    return pools


def forget_shadowed(directory: str, packages: set[str], known: set[str]) -> None:
    """Unload preloaded ``packages`` that a file in the program's folder shadows."""
    try:
        names = {entry.partition(".")[0] for entry in os.listdir(directory)}
    except OSError:
        return
    names &= packages
    if names:
        for module in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[module]
            known.discard(module)


def script_module(path: str) -> types.ModuleType:
    """Return a fresh ``__main__`` with the names that the interpreter gives a script."""
    module = types.ModuleType("__main__")
    values: dict[str, Any] = {
        "__annotations__": {},
        "__builtins__": sys.modules["builtins"],
        "__file__": path,
        "__loader__": importlib.machinery.SourceFileLoader("__main__", path),
    }
    for name in SCRIPT_NAMES:
        if name not in module.__dict__ or name in values:
            module.__dict__[name] = values.get(name)
    return module


def set_search_path(directory: str, packages: set[str], known: set[str]) -> None:
    """Put a program's folder first on the search path; unload packages that it shadows."""
    if _process.relative:  # the trial need not start where this process did
        sys.path[:] = [os.path.abspath(_process.relative.get(part, part)) for part in sys.path]
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, directory)
    forget_shadowed(directory, packages, known)


def run_module(argv: list[str], packages: set[str], known: set[str]) -> int:
    """Run a module as `python -m` would; arguments and result are those of `run_script`."""
    set_search_path(os.getcwd(), packages, known)
    sys.argv = ["-m", *argv[1:]]  # as the interpreter has it while the module is searched
    sys.modules["__main__"] = script_module("")
    import runpy

    try:
        # What the interpreter itself calls for `-m`.
        runpy._run_module_as_main(argv[0])  # type: ignore[attr-defined] # noqa: SLF001
    except SystemExit as error:
        return exit_code(error)
    except BaseException as error:  # noqa: BLE001 - the rim of the user's program
        show_traceback(error)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def run_script(argv: list[str], packages: set[str], known: set[str]) -> int:
    """Run a script, or a module given by `-m`; return its exit code, or minus a signal's number.

    Args:
        argv: the script, or `-m` and the name of a module, and the arguments.
        packages: top-level names of the modules that a new interpreter would not have.
        known: full names of all that are loaded; corrected here.

    Returns:
        The exit code, or minus the number of the signal to die of.
    """
    if argv[0] == "-m":
        return run_module(argv[1:], packages, known)
    given = argv[0]
    path = given
    if sys.version_info >= (3, 9) and not given.startswith("/"):
        path = os.path.join(os.getcwd(), given)
    directory = os.path.dirname(os.path.realpath(given))
    sys.argv = list(argv)
    set_search_path(directory, packages, known)
    try:
        with open(given, "rb") as file:
            source = file.read()
    except OSError as error:
        text = f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}"
        print(text, file=sys.stderr)
        return 2
    module = script_module(path)
    sys.modules["__main__"] = module
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        del source
        exec(code, module.__dict__)  # noqa: S102 - this is what the process is for
    except SystemExit as error:
        return exit_code(error)
    except BaseException as error:  # noqa: BLE001 - the rim of the user's program
        show_traceback(error)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def exit_code(error: SystemExit) -> int:
    """Return the exit code of ``sys.exit(...)``; print an argument that is no number to stderr."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        if -(2**63) <= code < 2**63:
            return code & 0xFF
        if sys.version_info >= (3, 13):
            print("Exception ignored on threading shutdown:", file=sys.stderr)
        if sys.version_info >= (3, 12):
            print("OverflowError: Python int too large to convert to C long", file=sys.stderr)
        return 0xFF
    print(code, file=sys.stderr)
    return 1


def show_traceback(error: BaseException) -> None:
    """Report an uncaught exception as the interpreter does, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, trace)
    except BaseException as second:  # noqa: BLE001 - a hook of the user's
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(second), second, second.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)


_report_names: Callable[[], None] | None = None
"""In a trial: sends the names of modules to the server."""


def report_imports() -> None:
    """Report this trial's imports to the server, so that the next trial finds them loaded.

    `nni` calls this when a trial asks for its parameters, after its imports as a rule; what comes
    later is reported at the end.
    """
    if _report_names is not None:
        with contextlib.suppress(Exception):  # only a head start is lost
            _report_names()


def finish(code: int, known: set[str]) -> NoReturn:
    """End the process as the interpreter would, but without taking apart what was preloaded.

    Args:
        code: exit code, or minus the number of the signal to die of.
        known: modules that were there before the script.
    """
    threading = sys.modules.get("threading")
    if threading is not None:
        _guarded(threading._shutdown)  # noqa: SLF001
    _guarded(atexit._run_exitfuncs)  # noqa: SLF001 - what Py_Finalize calls
    failed = not flush(sys.stdout, loud=True) or not flush(sys.stderr)
    report_imports()
    destroy_modules(known)
    failed = failed or not flush(sys.stdout) or not flush(sys.stderr)
    _process.libc.fflush(None)  # what extension modules have printed
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(UNFLUSHED if failed else code)


def _guarded(call: Callable[[], object]) -> None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - the end must come
        sys.__excepthook__(type(error), error, error.__traceback__)


def flush(stream: Any, *, loud: bool = False) -> bool:
    """Flush a stream; return False on a failure, which is printed to stderr if `loud`."""
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except BaseException as error:  # noqa: BLE001 - a full disk, a stream of the user's
        if loud:
            place = f"in: {stream!r}" if sys.version_info < (3, 13) else "on flushing sys.stdout:"
            text = f"Exception ignored {place}\n{type(error).__name__}: {error}"
            print(text, file=sys.stderr)
        return False
    return True


def destroy_modules(known: set[str]) -> None:
    """Run the destructors of what the script made, and flush the files it left open.

    Modules that were preloaded or come from site-packages stay: the kernel frees them faster.
    """
    for name in new_modules(known):
        if not installed(sys.modules.get(name)):
            sys.modules.pop(name, None)
    sys.modules.pop("__main__", None)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    gc.collect()
    writers = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    for candidate in gc.get_objects():
        if issubclass(type(candidate), writers):
            flush(candidate)


# --- what may be preloaded ------------------------------------------------------------------


def library_roots() -> tuple[str, ...]:
    """Return the folders whose modules no trial edits: standard library, site-packages, nni."""
    roots = [os.path.dirname(os.__file__)]
    folders = (*SITE_FOLDERS, "lib-dynload")
    roots += [path for path in sys.path if os.path.basename(path) in folders]
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    roots += [own, f"{own}_wire"]  # `nni`, and the package beside it that it imports
    return tuple(root + os.sep for root in roots)


def installed(module: Any) -> bool:
    """Return True if a module is built in, of another type, or comes from a library folder."""
    if type(module) is not types.ModuleType:  # a lazy module loads when it is looked at
        return True
    file = module.__dict__.get("__file__")
    return file is None or (isinstance(file, str) and file.startswith(_process.library_roots))


def new_modules(known: set[str]) -> list[str]:
    """Return the modules imported since the fork, in order.

    Looks from the end only as far as needed: each old entry that is merely looked at has its
    reference count written, which copies a page.
    """
    names = list(itertools.takewhile(lambda name: name not in known, reversed(sys.modules)))
    names.reverse()
    return names


def imported(known: set[str], tried: set[str]) -> list[str]:
    """Return the modules imported from library folders beyond ``known``, in order.

    Args:
        known: all modules that were loaded when the process began.
        tried: modules and top-level names that are not to be preloaded (again).
    """
    names = []
    for name in new_modules(known):
        module = sys.modules[name]
        if (
            tried.isdisjoint((name, name.partition(".")[0]))
            and type(module) is types.ModuleType
            and module.__dict__.get("__file__") is not None
            and installed(module)
        ):
            names.append(name)
    return names


def load_time_variables() -> dict[str, str]:
    """Return the variables of this process's environment that matter when libraries are loaded."""
    return {k: v for k, v in os.environ.items() if k.startswith(LOAD_TIME_PREFIXES)}


def site_packages(names: list[str]) -> list[str]:
    """Return the top-level names among loaded modules that come from site-packages."""
    packages = set()
    for name in names:
        file = str(getattr(sys.modules.get(name), "__file__", ""))
        if any(f"/{folder}/" in file for folder in SITE_FOLDERS):
            packages.add(name.partition(".")[0])
    return sorted(packages)


_register_at_exit = atexit.register
_removals_at_exit: list[str] = []
"""Calls registered for the exit that remove files, which all trials would share."""


def _noting_register(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Register an exit function; record those of shutil, tempfile and posix."""
    if getattr(call, "__module__", None) in {"shutil", "tempfile", "posix"}:
        _removals_at_exit.append(getattr(call, "__name__", ""))
    return _register_at_exit(call, *args, **kwargs)


def unfit_reason(added: list[str]) -> str | None:
    """Return why this process must not be forked after modules were ``added``; None if it may."""
    for name in added:
        if not installed(sys.modules[name]):
            return f"it imports {name} from outside the libraries"
    if len(os.listdir("/proc/self/task")) > 1:
        return "it leaves a thread running"
    if _removals_at_exit:
        return f"it calls {_removals_at_exit[0]} at exit"
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(GPU_DEVICES):
            return f"it opens {target}"
    return None


def preload(names: Iterable[str], progress: mmap.mmap) -> tuple[list[str], str] | None:
    """Import modules, skipping failures; return modules and reason if forks would be unsafe.

    One that cannot be imported alone is left out: the trial had prepared something for it.

    Args:
        names: full names of modules.
        progress: shared with the parent, which reads there what this process died of.

    Returns:
        The modules that make the process unfit for forking, and why; None if all went well.
    """
    atexit.register = _noting_register  # type: ignore[assignment] # restored below
    for index, name in enumerate(names):
        if name in sys.modules:
            continue
        progress[:] = index.to_bytes(len(progress), "little")
        before = len(sys.modules)
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001, S112 - code of others, and only a head start is lost
            continue
        added = itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - before))
        reason = unfit_reason(list(added))
        if reason is not None:
            return [name], reason
    atexit.register = _register_at_exit
    return None


# --- the server -----------------------------------------------------------------------------


def forget_folders() -> None:
    """Drop the import system's caches of folders outside the libraries."""
    for path, finder in list(sys.path_importer_cache.items()):
        if finder is None or not f"{path}/".startswith(_process.library_roots):
            del sys.path_importer_cache[path]


def keep_finalizers() -> None:
    """Turn off the calls of all `weakref.finalize` objects at exit.

    A folder made by an import would be removed by the first trial that ends; and torch takes 80 ms
    to unregister its operators in memory that every trial would have to copy first.
    """
    weakref = sys.modules.get("weakref")
    if weakref is not None:
        for finalizer in list(weakref.finalize._registry):  # noqa: SLF001 - no public way
            finalizer.atexit = False


class Successor:
    """Forked server that is to take over: process, link, state, modules that it imports."""

    def __init__(self, pid: int, link: socket.socket, names: list[str], done: mmap.mmap) -> None:
        self.pid = pid
        self.link = link
        self.serving = False
        self._names = names
        self._done = done

    def importing(self) -> str:
        """Return the module that it imports, or imported last."""
        return self._names[int.from_bytes(self._done[:], "little")]


class Server:
    """Fork server of one generation: starts trials, reaps them, starts its successor."""

    def __init__(self, control: socket.socket, generation: int, tried: set[str]) -> None:
        self._control = control
        self._generation = generation
        self._tried = tried
        """Modules that were to be preloaded before, and top-level names that were dropped."""
        self._known = set(sys.modules)
        self._packages = {name.partition(".")[0] for name in self._known - BASELINE}
        self._wanted: list[str] = []
        self._variables: set[str] = set()
        """Load-time variables that trials have found set, or changed, at their end."""
        self._environment = {**load_time_variables(), **_process.blas}
        self._running: dict[int, str] = {}
        self._successor: Successor | None = None
        self._draining = False
        self._notes, self._notes_out = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._notes_inode = os.fstat(self._notes_out.fileno()).st_ino
        self._wake, self._wake_out = os.pipe()
        os.set_blocking(self._wake_out, False)
        self._blas = blas_pools()
        keep_finalizers()
        forget_folders()

    def serve(self) -> NoReturn:
        """Serve until a quit message or the agent's end, then exit the process."""
        signal.signal(signal.SIGCHLD, _on_child)
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        self._announce()
        gc.collect()
        gc.disable()
        self._reap()
        while not (self._draining and not self._running and self._successor is None):
            for number in self._poll():
                self._attend(number)
        os._exit(0)

    def _announce(self) -> None:
        self._send(
            {
                "event": "ready",
                "pid": os.getpid(),
                "generation": self._generation,
                "preloaded": top_level(self._known - BASELINE - {OWN_NAME}),
            }
        )

    def _poll(self) -> list[int]:
        successor = self._successor
        poller = select.poll()
        # A server that has handed over watches the control socket only for its end.
        idle = self._draining or (successor is not None and successor.serving)
        poller.register(self._control, 0 if idle else select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        poller.register(self._notes, select.POLLIN)
        if successor is not None and not successor.serving:
            poller.register(successor.link, select.POLLIN)
        ready = poller.poll()
        control = self._control.fileno()
        for number, events in ready:
            if number == control and events & ~select.POLLIN:
                os._exit(0)  # the agent is gone: its trials go with this process
        return [number for number, _ in ready]

    def _attend(self, number: int) -> None:
        if number == self._wake:
            os.read(self._wake, 4096)
            self._reap()
        elif number == self._control.fileno():
            self._handle_control()
        elif number == self._notes.fileno():
            self._read_note(self._notes.recv(MESSAGE_BYTES))
        elif self._successor is not None and number == self._successor.link.fileno():
            self._hear_successor(self._successor)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except OSError:
            os._exit(0)  # the agent is gone

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._running:
                name = self._running.pop(pid)
                self._send({"event": "exited", "id": name, "pid": pid, "status": status})
            elif self._successor is not None and pid == self._successor.pid:
                self._lose_successor(self._successor, status)

    # control socket

    def _handle_control(self) -> None:
        room = socket.CMSG_SPACE(8 * array.array("i").itemsize)
        data, control, _, _ = self._control.recvmsg(MESSAGE_BYTES, room, socket.MSG_CMSG_CLOEXEC)
        if not data:
            os._exit(0)
        descriptors = array.array("i")
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(content[: len(content) - len(content) % 4])
        name = ""
        try:
            message = json.loads(data)  # one that was cut short is refused for its syntax
            name = str(message.get("id", ""))
            self._obey(message, list(descriptors))
        except (StartError, ValueError, TypeError, AttributeError, OSError) as error:
            self._send({"event": "refused", "id": name, "reason": str(error)})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _obey(self, message: dict[str, Any], descriptors: list[int]) -> None:
        operation = message.get("op")
        if operation == "start":
            self._start(Start(message, descriptors))
        elif operation == "preload":
            self._learn([str(name) for name in message["modules"]], [])
        elif operation == "quit":
            self._draining = True
            if self._successor is not None:
                os.kill(self._successor.pid, signal.SIGKILL)
        else:
            raise StartError(f"op must be start, preload or quit, got {operation!r}")

    def _start(self, start: Start) -> None:
        gc.freeze()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(start, parent)
        self._running[pid] = start.id

    def _become(self, start: Start, parent: int) -> NoReturn:
        """Run the trial in this fork; never return to the caller's frames."""
        try:
            protect(parent)
            os.setsid()
            restore_signals()
            pid = os.getpid()
            self._send(
                {"event": "started", "id": start.id, "pid": pid, "start_time": start_time(pid)}
            )
            self._leave()
            open_stdio(start)
            set_environment(start)
            os.chdir(start.cwd)
            set_title(start.title)
            show_token(start.set.get(TOKEN_VARIABLE, ""))
            reseed()
            for name, limit in start.limits.items():
                resource.setrlimit(getattr(resource, name), (limit, limit))
            for set_threads, count in self._blas:
                set_threads(count)
            if hasattr(sys, "orig_argv"):
                sys.orig_argv = list(start.title)
            gc.enable()
        except BaseException as error:  # noqa: BLE001 - shown on the trial's stderr
            text = f"nni: the trial cannot be started: {type(error).__name__}: {error}\n"
            os.write(2, text.encode(errors="backslashreplace"))
            os._exit(START_FAILED)
        if not is_source(start.argv[0]):
            flags = ["-u"] if start.unbuffered else []
            os.execv(sys.executable, [sys.executable, *flags, *start.argv])  # noqa: S606
        try:
            global _report_names  # noqa: PLW0603 - one process is one trial
            _report_names = partial(self._report, pid, start)
            code = run_script(start.argv, self._packages, self._known)
            finish(code, self._known)
        finally:
            os._exit(1)  # this fork must never go on as a server

    def _leave(self) -> None:
        """Close the server's descriptors in a forked trial, except the one for its imports."""
        for descriptor in (
            self._control.detach(),
            self._notes.detach(),
            self._wake,
            self._wake_out,
        ):
            os.close(descriptor)
        if self._successor is not None:
            self._successor.link.close()

    def _report(self, pid: int, start: Start) -> None:
        """Send a trial's new imports and changed variables to the server.

        Raises:
            OSError: the socket is full or closed; another trial will tell.
        """
        if os.getpid() != pid or self._generation >= MAX_GENERATIONS:
            return
        if os.fstat(self._notes_out.fileno()).st_ino != self._notes_inode:
            return  # the script has closed our descriptor, and may have reused its number
        names = imported(self._known, self._tried)
        if names:
            self._tried.update(names)  # in this process: tell them once
            expected = {**self._environment, **start.set}
            now = load_time_variables()
            changed = [name for name, value in now.items() if expected.get(name) != value]
            note = json.dumps({"modules": names, "variables": changed})
            self._notes_out.send(note.encode(), socket.MSG_DONTWAIT)

    # successors

    def _read_note(self, data: bytes) -> None:
        try:
            note = json.loads(data)
            names, variables = [*map(str, note["modules"])], [*map(str, note["variables"])]
        except (ValueError, TypeError, LookupError):
            return  # a script has written to a descriptor that is not its own
        self._learn(names, variables)

    def _learn(self, names: list[str], variables: list[str]) -> None:
        self._variables.update(variables)
        known = self._known.union(self._wanted)
        self._wanted += [name for name in names if name not in known]
        if self._successor is None and not self._draining:
            self._raise_successor()

    def _raise_successor(self) -> None:
        names = [name for name in self._wanted if name.partition(".")[0] not in self._tried]
        enough = max(1, GROWTH_MODULES * self._generation)
        if len(names) < enough or self._generation >= MAX_GENERATIONS:
            return
        parent = os.getpid()
        try:
            progress = mmap.mmap(-1, PROGRESS_BYTES)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            pid = os.fork()
        except OSError:
            return  # no room for a process now: the next note tries again
        if pid == 0:
            try:
                protect(parent)
                ours.close()
                self._grow(names, theirs, progress)
            finally:
                os._exit(1)  # nor must this one go on as its parent
        theirs.close()
        self._successor = Successor(pid, ours, names, progress)

    def _grow(self, names: list[str], link: socket.socket, progress: mmap.mmap) -> NoReturn:
        """In the fork: import, then wait for the parent to hand over, then serve."""
        signal.set_wakeup_fd(-1)
        for descriptor in (
            self._notes.detach(),
            self._notes_out.detach(),
            self._wake,
            self._wake_out,
        ):
            os.close(descriptor)
        gc.enable()
        before = load_time_variables()
        fault = preload(names, progress) or self._foreseen_too_late(names, before)
        if fault is not None:
            link.send(json.dumps({"modules": fault[0], "reason": fault[1]}).encode())
            os._exit(0)
        server = Server(self._control, self._generation + 1, self._tried.union(names))
        link.send(b"{}")
        if not link.recv(16):
            os._exit(0)
        link.close()
        server.serve()

    def _foreseen_too_late(
        self, names: list[str], before: dict[str, str]
    ) -> tuple[list[str], str] | None:
        """Return packages that scripts configure before import, with the reason; or None."""
        now = load_time_variables()
        scripts = sorted(v for v in self._variables if now.get(v) == before.get(v))
        packages = site_packages(names)
        if scripts and packages:
            return packages, f"the script sets {', '.join(scripts)}"
        return None

    def _hear_successor(self, successor: Successor) -> None:
        data = successor.link.recv(MESSAGE_BYTES)
        if not data:
            return  # it has died; its end is reaped
        fault = json.loads(data)
        if fault:
            for module in fault["modules"]:
                self._refuse(module, fault["reason"])
            return
        self._wanted = []
        successor.serving = True
        try:
            successor.link.send(b"go")
        except OSError:
            successor.serving = False

    def _refuse(self, module: str, reason: str) -> None:
        self._tried.add(module.partition(".")[0])
        self._send({"event": "dropped", "module": module, "reason": reason})

    def _lose_successor(self, successor: Successor, status: int) -> None:
        successor.link.close()
        self._successor = None
        if successor.serving and status == 0:
            self._draining = True  # a quit message came
        elif not self._draining:
            if successor.serving:
                self._announce()
            elif status != 0:
                self._refuse(successor.importing(), f"wait status {status} of its import")
            self._raise_successor()


def _on_child(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor is written for signals with a Python handler only."""


def is_source(path: str) -> bool:
    """Return True if a path is named like Python source, which this file can run itself."""
    return not path.endswith((".pyc", ".zip", ".pyz", ".egg")) and not os.path.isdir(path)


def top_level(names: Iterable[str]) -> list[str]:
    """Return the public top-level packages among module names."""
    return sorted({name.partition(".")[0] for name in names if not name.startswith("_")})


def main(arguments: list[str]) -> NoReturn:
    """Prepare this interpreter as a fork server, and serve on the socket of the first argument."""
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath(here):
        del sys.path[0]  # its files must not answer to the imports of a trial
    _process.library_roots = library_roots()
    os.environ[BLAS_VARIABLE] = "1"
    os.environ.setdefault(BLAS_TIMEOUT, BLAS_TIMEOUT_BITS)
    measure_title()
    measure_token()
    set_title([os.path.basename(sys.executable), os.path.basename(__file__)])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the command line
    # It ends with the agent's socket. On TERM, or HUP, to all processes its trials end by
    # themselves, and the agent learns their ends.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        control.setsockopt(socket.SOL_SOCKET, option, MESSAGE_BYTES)
    sys.argv = [""]
    sys.modules[OWN_NAME] = sys.modules["__main__"]
    compile("", "", "exec")  # the first one in a process sets the compiler up: 1.5 ms
    Server(control, 0, set()).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
