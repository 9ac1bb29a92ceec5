"""Tries a class in a child process, under the interpreter that would host it."""

import asyncio
import json
import sys
from typing import Any, cast

from nni.hpo.registry import factory
from svc_common import environment as names
from svc_dispatcher.ports import ClassChoice

_STDERR_LIMIT = 2_000


class ChildClassChecker:
    """`ClassChecker` with `python -m nni.hpo.host --check`.

    Args:
        inherited: environment of the child.
        timeout_s: how long the import may take.
    """

    def __init__(self, inherited: dict[str, str], timeout_s: float) -> None:
        private = {names.NNI_TOKEN, names.NNI_NATS_URL, names.NNI_READY_FD}
        self._environment = {key: value for key, value in inherited.items() if key not in private}
        self._timeout_s = timeout_s
        self._good: set[tuple[ClassChoice, str]] = set()

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        """See `ClassChecker.check`; a named class that was good once is not tried again."""
        if (choice, interpreter) in self._good or _is_at_hand(choice, interpreter):
            return ""
        wrong = await self._try(choice, interpreter)
        if choice.name and not wrong:
            self._good.add((choice, interpreter))
        return wrong

    async def _try(self, choice: ClassChoice, interpreter: str) -> str:
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
            )
        except OSError as error:
            return f"the interpreter {command[0]!r} cannot be started: {error}"
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, noise = await process.communicate(json.dumps(request).encode())
        except TimeoutError:
            return f"its import took longer than {self._timeout_s:g} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _verdict(answer, noise, process.returncode)


def _is_at_hand(choice: ClassChoice, interpreter: str) -> bool:
    """Whether a class needs nothing but the library that this process has itself."""
    if not choice.name or interpreter not in {"", sys.executable}:
        return False
    return not factory.find(cast("factory.Kind", choice.kind), choice.name).extra


def _verdict(answer: bytes, noise: bytes, code: int | None) -> str:
    try:
        verdict: dict[str, Any] = json.loads(answer.splitlines()[-1])
    except (ValueError, IndexError):
        tail = noise.decode(errors="replace").strip()[-_STDERR_LIMIT:]
        return f"the process that imported it ended with code {code}: {tail}"
    return "" if verdict["ok"] else str(verdict["error"])
