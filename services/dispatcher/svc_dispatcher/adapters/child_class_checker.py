"""Tries a custom class in a child process, under the interpreter that would host it."""

import asyncio
import json
import sys
from typing import Any

from svc_common import environment as names
from svc_dispatcher.ports import CustomClass

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

    async def check(self, custom: CustomClass, interpreter: str) -> str:
        """See `ClassChecker.check`."""
        request = {
            "kind": custom.kind,
            "class_name": custom.class_name,
            "code_directory": custom.code_directory,
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


def _verdict(answer: bytes, noise: bytes, code: int | None) -> str:
    try:
        verdict: dict[str, Any] = json.loads(answer.splitlines()[-1])
    except (ValueError, IndexError):
        tail = noise.decode(errors="replace").strip()[-_STDERR_LIMIT:]
        return f"the process that imported it ended with code {code}: {tail}"
    return "" if verdict["ok"] else str(verdict["error"])
