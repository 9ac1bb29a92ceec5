"""Environment of trials on another machine: that of a login shell after the setup lines."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from svc_common.logs import get_logger
from svc_trial_runner.adapters.trial_api import PYTHON_PATH, with_trial_api
from svc_trial_runner.ports import ClientEnvironment, LaunchError

LIMIT_S: Final = 60.0
"""Longest run of the login scripts and the lines; environment modules on a busy share take long."""
_OF_THE_SHELL: Final = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
_ERROR_CHARACTERS: Final = 500
_READ_LIMIT_BYTES: Final = 16 * 1024 * 1024


def without_bundle(variables: Mapping[str, str], roots: Sequence[str]) -> dict[str, str]:
    """Return variables without the folders of the agent's own packages on `PYTHONPATH`.

    Args:
        variables: of the agent.
        roots: folders of its packages.
    """
    own = {os.path.realpath(root) for root in roots}
    folders = [
        folder
        for folder in variables.get(PYTHON_PATH, "").split(os.pathsep)
        if folder and os.path.realpath(folder) not in own
    ]
    rest = {name: value for name, value in variables.items() if name != PYTHON_PATH}
    return {**rest, PYTHON_PATH: os.pathsep.join(folders)} if folders else rest


def own_roots() -> list[str]:
    """Return the folders from which this process has imported its packages and modules."""
    roots = set()
    for name in [name for name in sys.modules if "." not in name]:
        module = sys.modules[name]
        roots |= {str(Path(folder).parent) for folder in getattr(module, "__path__", ())}
        if (file := getattr(module, "__file__", None)) and not hasattr(module, "__path__"):
            roots.add(str(Path(file).parent))
    return sorted(roots)


class LoginEnvironments:
    """Environment of a bash login shell after the platform's setup lines, captured once.

    Variables are all that passes on to trials: they also start warm.

    Args:
        own: variables of the agent, from which the login starts.
        setup_lines: complete command lines of bash, of which each has to succeed.
        python_path: folder that is put first on the PATH; empty: none.
        hook: folder of the trial API for `PYTHONPATH`.
        limit_s: longest run of the scripts and lines, in seconds.
    """

    def __init__(
        self,
        own: Mapping[str, str],
        setup_lines: Sequence[str],
        python_path: str,
        hook: Path,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._own = dict(own)
        self._lines = tuple(setup_lines)
        self._python_path = str(Path(python_path).expanduser()) if python_path else ""
        self._hook = hook
        self._limit_s = limit_s
        self._lock = asyncio.Lock()
        self._captured: ClientEnvironment | None = None

    async def load(self, path: str) -> ClientEnvironment:
        """Return the variables after login scripts and setup lines, run once; ignore the path.

        Args:
            path: file of the client's environment, which is of another machine; without effect.

        Raises:
            LaunchError: a line has failed, or lasts too long; the next call tries again.
        """
        del path
        async with self._lock:
            if self._captured is None:
                variables = await self._capture()
                if self._python_path:
                    before = variables.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
                    variables["PATH"] = f"{self._python_path}:{before}"
                self._captured = ClientEnvironment(with_trial_api(variables, self._hook), None)
        return self._captured

    async def _capture(self) -> dict[str, str]:
        try:
            return await asyncio.to_thread(self._run)
        except LaunchError as error:
            if self._lines:
                raise
            # A broken login script must not keep trials from running that do not need it.
            get_logger().warning("login environment not used", error=str(error))
            return dict(self._own)

    def _run(self) -> dict[str, str]:
        """Run login scripts and setup lines within a time limit; return the variables. Blocks.

        Files in memory take variables and messages: a pipe would have no end while a program that
        a login script has left in the background holds it open.
        """
        with _memory_file() as variables, _memory_file() as messages:
            home = self._own.get("HOME", "")
            try:
                process = subprocess.Popen(
                    ["bash", "-lc", _script(self._lines, variables.fileno())],
                    env=self._own,
                    cwd=home if Path(home).is_dir() else "/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=messages,
                    pass_fds=(variables.fileno(),),
                    # Of its own, to be ended as a whole; its session is that of the agent, which
                    # takes processes of other sessions for orphans of trials.
                    process_group=0,
                )
            except OSError as error:
                raise LaunchError(f"bash cannot be started: {error}") from error
            try:
                process.wait(self._limit_s)
            except subprocess.TimeoutExpired as error:
                raise LaunchError(
                    f"login scripts and lines of the platform took more than {self._limit_s:g} s"
                    f"{_last_words(messages)}"
                ) from error
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            # Its exit status may have been collected by the reaper of the agent.
            data = _content(variables)
            if not data:
                raise LaunchError(f"a line of the platform has failed{_last_words(messages)}")
        pairs = (item.partition("=") for item in os.fsdecode(data).split("\0") if item)
        return {name: value for name, _, value in pairs if name not in _OF_THE_SHELL}


def _script(lines: Sequence[str], descriptor: int) -> str:
    checked = [
        f"eval {quoted} || {{ echo in the line {quoted} >&2; exit 1; }}"
        for quoted in map(shlex.quote, lines)
    ]
    return "\n".join([*checked, f"env -0 >&{descriptor}"])


def _memory_file() -> BinaryIO:
    return open(os.memfd_create("nni-login"), "w+b", buffering=0)  # noqa: PTH123 - a descriptor


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(_READ_LIMIT_BYTES)


def _last_words(file: BinaryIO) -> str:
    """Return the tail of stderr, for a message; empty if there is none."""
    text = _content(file).decode("utf-8", "replace").strip()
    return f": {text[-_ERROR_CHARACTERS:]}" if text else ""
