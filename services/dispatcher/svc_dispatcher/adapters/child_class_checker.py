"""Import of an algorithm class in a child process, under the interpreter of its host."""

import asyncio
import json
import sys
from typing import Any, cast

from nni.hpo.registry import factory
from svc_common import environment as names
from svc_common.code_user import SAME_USER, CodeUser
from svc_dispatcher.ports import ClassChoice

_STDERR_LIMIT = 2_000


class ChildClassChecker:
    """`ClassChecker` that imports a class in a child, `python -m nni.hpo.host --check`.

    Args:
        inherited: environment of the child.
        timeout_s: time limit for the import.
        code_user: account of the child.
    """

    def __init__(
        self, inherited: dict[str, str], timeout_s: float, code_user: CodeUser = SAME_USER
    ) -> None:
        self._code_user = code_user
        private = {names.NNI_TOKEN, names.NNI_NATS_URL, names.NNI_READY_FD}
        self._environment = {key: value for key, value in inherited.items() if key not in private}
        self._timeout_s = timeout_s
        self._importable: set[tuple[ClassChoice, str]] = set()

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        """Import a class in a child unless known to succeed; return why it fails, else empty."""
        if (choice, interpreter) in self._importable or _is_importable_here(choice, interpreter):
            return ""
        problem = await self._import_class(choice, interpreter)
        if choice.name and not problem:
            self._importable.add((choice, interpreter))
        return problem

    async def _import_class(self, choice: ClassChoice, interpreter: str) -> str:
        request = {
            "kind": choice.kind,
            "name": choice.name,
            "class_name": choice.class_name,
            "code_directory": choice.code_directory,
        }
        command = (interpreter or sys.executable, "-m", "nni.hpo.host", "--check")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                start_new_session=True,  # SIGCONT reaches all of a session
                **self._code_user.process_options,
            )
        except OSError as error:
            return f"the interpreter {command[0]!r} cannot be started: {error}"
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, stderr = await process.communicate(json.dumps(request).encode())
        except TimeoutError:
            return f"its import took longer than {self._timeout_s:g} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _checked(answer, stderr, process.returncode)


def _is_importable_here(choice: ClassChoice, interpreter: str) -> bool:
    """Return whether a class is NNI's, runs in this interpreter and needs no extra packages."""
    if not choice.name or interpreter not in {"", sys.executable}:
        return False
    return not factory.find(cast("factory.Kind", choice.kind), choice.name).extra


def _checked(answer: bytes, stderr: bytes, code: int | None) -> str:
    try:
        result: dict[str, Any] = json.loads(answer.splitlines()[-1])
    except (ValueError, IndexError):
        tail = stderr.decode(errors="replace").strip()[-_STDERR_LIMIT:]
        return f"the process that imported it ended with code {code}: {tail}"
    return "" if result["ok"] else str(result["error"])
