"""Measurement of importance in a child process, which imports numpy and may compute for long."""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from svc_common import environment as names
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import FailedPreconditionError, UnavailableError
from svc_dispatcher.ports import Importance, TrialOutcome

_STDERR_LIMIT = 2_000
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ChildImportanceMeter:
    """`ImportanceMeter` that fits in a child, `python -m nni.hpo.host --importance`, one at a time.

    One child at a time: each uses a core.

    Args:
        inherited: environment of the child.
        timeout_s: time limit of a child.
        code_user: account of the child.
    """

    def __init__(
        self, inherited: dict[str, str], timeout_s: float, code_user: CodeUser = SAME_USER
    ) -> None:
        self._code_user = code_user
        private = {names.NNI_TOKEN, names.NNI_NATS_URL, names.NNI_READY_FD}
        kept = {key: value for key, value in inherited.items() if key not in private}
        self._environment = kept | dict.fromkeys(_THREAD_LIMITS, "1")
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()

    async def measure(
        self,
        search_space: object,
        outcomes: Sequence[TrialOutcome],
        metric: str,
        optimize_mode: str,
    ) -> Importance:
        """Fit results in a child, one call at a time; return shares of variance or raise."""
        request = {
            "search_space": search_space,
            "trials": [(outcome.parameters, outcome.metric) for outcome in outcomes],
            "metric": metric,
            "optimize_mode": optimize_mode,
        }
        async with self._turn:
            answer = await self._ask(await asyncio.to_thread(json.dumps, request))
        if "error" in answer:
            raise FailedPreconditionError(str(answer["error"]))
        return Importance(
            tuple((str(name), float(share)) for name, share in answer["shares"]),
            float(answer["interactions"]),
            int(answer["trials"]),
        )

    async def _ask(self, request: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "nni.hpo.host",
            "--importance",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # SIGCONT reaches all of a session
            **self._code_user.process_options,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, stderr = await process.communicate(request.encode())
        except TimeoutError:
            raise UnavailableError(
                f"importance was not computed within {self._timeout_s:g} s; try again later"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            found: dict[str, Any] = json.loads(answer)
        except ValueError:
            tail = stderr.decode(errors="replace").strip()[-_STDERR_LIMIT:]
            raise UnavailableError(
                f"the process that computes importance ended with code {process.returncode}: {tail}"
            ) from None
        return found
