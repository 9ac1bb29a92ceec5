"""Command lines of a worker's program, for adapters that reach a machine by any transport.

An adapter runs `command.line` by the shell of the machine's user, writes `command.chunks()` to its
stdin, closes that, and hands stdout, stderr and the exit status to `read_report`:

    commands = WorkerCommands(folder="~/.nni")
    facts = read_facts(await run(commands.probe()))  # of `worker_facts`; nothing is installed
    check_facts(facts)  # raises PlatformError with a remedy
    bundle = await store.bundle(facts.python, facts.platform_tag)
    commands = commands.with_interpreter(facts.interpreter)
    if bundle_digest(bundle) not in facts.bundles:
        read_report(await run(commands.unpack(bundle)))
    read_report(await run(commands.start(str(name), bundle_digest(bundle), settings)))

`start` raises PlatformError with the code `bundle_missing` if the bundle was removed in between:
unpack and start again. A command that was cut can be repeated: none does its work twice.
"""

import inspect
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from nni_wire import tar_reader
from svc_trial_runner.fleet.adapters.bundles import (
    worker,
    worker_agents,
    worker_bundles,
    worker_folders,
    worker_machine,
    worker_processes,
    worker_supervisor,
)
from svc_trial_runner.fleet.ports import PlatformError

DEFAULT_FOLDER: Final = "~/.nni"
MINIMUM_PYTHON: Final = (3, 11)
_MODULES: Final = (
    tar_reader,
    worker_folders,
    worker_machine,
    worker_bundles,
    worker_processes,
    worker_supervisor,
    worker_agents,
    worker,
)
"""Modules of the program, each behind those that it imports."""
_COMPILED_PARTS: Final = ("zlib", "_lzma", "_ssl", "_ctypes", "fcntl", "_posixsubprocess")
"""Modules that a Python built without the headers of a library does not have."""
_INTERPRETERS: Final = "python3 python3.13 python3.12 python3.11 python"
_LOGIN_SHELL: Final = 'case "$SHELL" in */bash|*/zsh|*/ksh) S=$SHELL;; *) S=sh;; esac'
"""Sets `S` to a shell that reads the profile of the user and takes commands in POSIX syntax."""
_NO_PYTHON_STATUS: Final = 97
_CHUNK_BYTES: Final = 256 * 1024
_SHOWN_CHARACTERS: Final = 500


class WorkerFailure(PlatformError):
    """Error that a worker's program reported.

    Attributes:
        code: of the error, e.g. `bundle_missing`, `disk_full`, `not_writable`, `no_python`.
    """

    def __init__(
        self, code: str, message: str, remedy: str = "", *, permanent: bool = False
    ) -> None:
        super().__init__(message, remedy, permanent=permanent)
        self.code = code


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """Command line for the shell of a worker, with its stdin: program, then payload."""

    line: str
    """One line without `!` and backslashes, so that any shell of a user can run it."""
    program: bytes = field(repr=False)
    """First part of stdin."""
    payload: bytes | Path = field(default=b"", repr=False)
    """Second part of stdin: content, or the file that has it."""

    def chunks(self) -> Iterator[bytes]:
        """Yield all of stdin in pieces; a file is read while they are taken.

        Raises:
            OSError: the file cannot be read.
        """
        yield self.program
        if isinstance(self.payload, bytes):
            if self.payload:
                yield self.payload
            return
        with self.payload.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


@dataclass(frozen=True, slots=True)
class WorkerCommands:
    """Builder of a machine's `WorkerCommand`s (probe, unpack, start, status, stop); runs none."""

    folder: str = DEFAULT_FOLDER
    """Folder of NNI there; `~` is the home of its user."""
    python_path: str = ""
    """Folder that is searched first for Python; `~` as above; empty: none."""
    interpreter: str = ""
    """Absolute path of Python there; empty: the first one on the PATH that is new enough, else
    that of the login environment."""

    def with_interpreter(self, interpreter: str) -> "WorkerCommands":
        """Return a copy of these commands that uses the interpreter found by a probe."""
        return replace(self, interpreter=interpreter)

    def probe(self) -> WorkerCommand:
        """Return the command that reports facts about a machine; see `read_facts`."""
        return self._command("probe")

    def unpack(self, bundle: Path) -> WorkerCommand:
        """Return the command that sends a bundle and unpacks it, unless it is unpacked already."""
        return self._command("unpack", bundle_digest(bundle), payload=bundle)

    def write_settings(self, name: str, digest: str, settings: bytes) -> WorkerCommand:
        """Return the command that writes the settings of an agent of a bundle, for `run_line`."""
        return self._command("settings", name, digest, payload=settings)

    def start(
        self, name: str, digest: str, settings: bytes, *, login: bool = False
    ) -> WorkerCommand:
        """Return the command that starts an agent, detached, unless it runs; settings on stdin.

        Its report has the fields of `status`, and `started`: False if the agent ran already.

        Args:
            name: of the agent.
            digest: of the unpacked bundle.
            settings: content of the file of settings, which the agent reads and removes.
            login: True if it runs in the login environment; an agent makes that itself for trials.
        """
        return self._command("start", name, digest, payload=settings, login=login)

    def run_line(self, name_word: str, digest: str) -> str:
        """Return a line for a script that runs an agent until it ends.

        The script's own environment is that of the agent. It replaces the shell of the script.
        The settings are read and removed; after TERM they are written again, as a batch system may
        run the script once more.

        Args:
            name_word: a word of the shell, e.g. `"$NAME"`, inserted as it is.
            digest: of the unpacked bundle.
        """
        program = f"{self._folder_word()}/bundles/{digest}/run.py"
        python = shlex.quote(self.interpreter or "python3")
        return (
            f"exec {python} -I -S {program} worker --folder {self._folder_word()}"
            f" run {name_word} {digest}"
        )

    def status(self, prefix: str = "") -> WorkerCommand:
        """Return the command that reports the states of agents whose names begin with a prefix.

        Its report has `agents`, mappings with `name`, `state` (`prepared`, `running`, `ended`, or
        `elsewhere` for an agent of another machine that shares the home), `host`, `bundle`,
        `started_at`, and of an ended one `exit_code` and `reason`, its last line of output.
        """
        return self._command("status", *([prefix] if prefix else []))

    def stop(self, names: Sequence[str], grace_s: float = 10.0) -> WorkerCommand:
        """Return the command that ends agents and trials: TERM, and KILL after `grace_s`."""
        return self._command("stop", "--grace", str(grace_s), *names)

    def remove(self, names: Sequence[str], grace_s: float = 10.0) -> WorkerCommand:
        """Return the command that ends agents as `stop` does and removes their folders."""
        return self._command("remove", "--grace", str(grace_s), *names)

    def clean(self, prefix: str, grace_s: float = 10.0, *, bundles: bool = False) -> WorkerCommand:
        """Return the command that ends and removes a prefix's agents, and on demand bundles.

        Args:
            prefix: of names, which end in a number: `nni-<installation>-<pool>-`.
            grace_s: time between the request to end and the kill.
            bundles: True if bundles that no agent uses go as well, so that nothing is left.
        """
        options = ["--bundles"] if bundles else []
        return self._command("clean", "--grace", str(grace_s), *options, prefix)

    def log(self, name: str) -> WorkerCommand:
        """Return the command that reads the tail of an agent's log; the report has `log`."""
        return self._command("log", name)

    def _command(
        self, *words: str, payload: bytes | Path = b"", login: bool = False
    ) -> WorkerCommand:
        program = worker_program()
        arguments = " ".join(map(shlex.quote, words))
        load = f"import sys; f = sys.stdin.buffer; exec(f.read({len(program)}))"
        call = f'-I -S -c "{load}" --folder {self._folder_word()} {arguments}'
        script = self._search(call)
        if login:
            # A profile must not read the settings, and its output goes before the report.
            inner = shlex.quote(f"{script} <&3")
            script = f'exec 3<&0; {_LOGIN_SHELL}; exec "$S" -l -c {inner} </dev/null'
        return WorkerCommand(f"exec sh -c {shlex.quote(script)}", program, payload)

    def _search(self, call: str) -> str:
        """Return a shell script that runs a call by the known interpreter, else by one it finds."""
        if self.interpreter:
            return f"umask 077; exec {shlex.quote(self.interpreter)} {call}"
        path = f"PATH={_home_word(self.python_path)}:$PATH; " if self.python_path else ""
        old_enough = f"import sys; sys.exit(sys.version_info < {MINIMUM_PYTHON})"
        find = (
            f"for p in {_INTERPRETERS}; do "
            f'if "$p" -c "{old_enough}" >/dev/null 2>&1; then command -v "$p"; break; fi; done'
        )
        in_login = shlex.quote(find)
        return (
            f"umask 077; {path}P=$({find}); "
            f'if [ -z "$P" ]; then {_LOGIN_SHELL}; '
            f'P=$("$S" -l -c {in_login} </dev/null 2>/dev/null | tail -n 1); fi; '
            'if [ -z "$P" ]; then '
            f"for p in {_INTERPRETERS}; do "
            '"$p" -V 2>&1 && command -v "$p"; done 2>/dev/null; '
            f"cat >/dev/null; exit {_NO_PYTHON_STATUS}; fi; "
            f'exec "$P" {call}'
        )

    def _folder_word(self) -> str:
        return _home_word(self.folder)


def _home_word(path: str) -> str:
    """Quote a path for the shell, with a leading `~/` as the home folder."""
    if path == "~":
        return '"$HOME"'
    if path.startswith("~/"):
        return '"$HOME"/' + shlex.quote(path[2:])
    return shlex.quote(path)


def bundle_digest(bundle: Path) -> str:
    """Return the content hash in the name of a bundle's file."""
    return bundle.name.removesuffix(".tar.gz").rpartition("-")[2]


@cache
def worker_program() -> bytes:
    """Return the program that is sent before each command: its modules, and a call of `main`."""
    remedy = "set pythonPath to the folder of a complete Python, e.g. that of the distribution"
    sources = [(module.__name__, inspect.getsource(module)) for module in _MODULES]
    return (
        "import json, os, sys, types\n"
        "from importlib.util import find_spec\n"
        f"left = [name for name in {_COMPILED_PARTS!r} if find_spec(name) is None]\n"
        "if left:\n"
        "    where = f'{sys.executable} on {os.uname().nodename}'\n"
        "    said = f'{where} was built without ' + ', '.join(left)\n"
        f"    error = dict(code='wrong_python', message=said, remedy={remedy!r}, permanent=True)\n"
        f"    sys.exit(print({worker.MARKER!r} + json.dumps(dict(error=error))) or 1)\n"
        f"for name, source in {sources!r}:\n"
        "    module = types.ModuleType(name)\n"
        "    sys.modules[name] = module\n"
        "    package, _, last = name.rpartition('.')\n"
        "    parent = sys.modules.setdefault(package, types.ModuleType(package))\n"
        "    setattr(parent, last, module)\n"
        "    exec(compile(source, name, 'exec'), module.__dict__)\n"
        f"sys.exit(sys.modules[{worker.__name__!r}].main(sys.argv[1:], sys.stdin.buffer))\n"
    ).encode()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Output, error output and exit status of a command."""

    output: bytes
    error_output: bytes = b""
    exit_status: int | None = None
    """None: killed, or not known."""


def read_report(result: CommandResult, host: str = "the machine") -> dict[str, Any]:
    """Parse a command's report from its output; raise WorkerFailure for an error or none.

    Args:
        result: output of the command.
        host: name of the machine, for messages.

    Raises:
        WorkerFailure: the command reported an error, or did not run.
    """
    for line in reversed(result.output.decode("utf-8", "replace").splitlines()):
        _, marker, text = line.partition(worker.MARKER)
        if marker:
            report: dict[str, Any] = json.loads(text)
            if "error" in report:
                failure = report["error"]
                raise WorkerFailure(
                    failure["code"],
                    failure["message"],
                    failure["remedy"],
                    permanent=failure["permanent"],
                )
            return report
    if result.exit_status == _NO_PYTHON_STATUS:
        found = ", ".join(result.output.decode("utf-8", "replace").split("\n")).strip(", ")
        wanted = ".".join(map(str, MINIMUM_PYTHON))
        raise WorkerFailure(
            "no_python",
            f"{host} has no Python >= {wanted} on its PATH"
            + (f" (found: {found[:_SHOWN_CHARACTERS]})" if found else ""),
            f"install Python {wanted} or newer there, or set pythonPath to its folder",
            permanent=True,
        )
    said = (result.error_output or result.output).decode("utf-8", "replace").strip()
    raise WorkerFailure(
        "command_failed",
        f"a command on {host} ended with {result.exit_status}: {said[-_SHOWN_CHARACTERS:]}",
    )
