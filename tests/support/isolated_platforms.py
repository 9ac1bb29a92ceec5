"""Platforms in child processes of tests, with faults that the section orders by its options.

`faultAt` names a method, `fault` what happens at its first call: `kill` and `kill after` end the
child before and after the effect, `exit` ends it in order, `block` blocks its loop, `error` and
`refuse` raise. Each fault happens once in a folder, so that another child goes on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from svc_common.clock import Clock
from svc_trial_runner.fleet.adapters.isolated.adapter import (
    LIMITS_S,
    CallLimits,
    IsolatedAdapter,
)
from svc_trial_runner.fleet.adapters.isolated.child import run_child
from svc_trial_runner.fleet.adapters.isolated.peer import CANCEL_S
from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError
from tests.support.local_platforms import SLEEPER, local_context

T = TypeVar("T")
ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    "from tests.support.isolated_platforms import main; main(int(sys.argv[1]))"
)
COMMAND: Final = (sys.executable, "-P", "-c", PROGRAM)
METHODS: Final = ("check", "prepare", "capacity", "launch", "agents", "terminate", "clean")


class FaultyAdapter:
    """Adapter of the platform `local` with sleeping agents, and one fault."""

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self._local = LocalAgentsAdapter(context, SLEEPER)

    async def check(self) -> list[PlatformProblem]:
        return await self._with_fault("check", self._local.check)

    async def prepare(self) -> None:
        options = self._context.section.options
        if options.get("asksFleet"):
            bundle = await self._context.bundles.bundle((3, 12), "manylinux_2_17_x86_64")
            endpoint = await self._context.front.open()
            raise PlatformError(f"{bundle} {endpoint.address} {endpoint.authority}")
        if options.get("showsProcess"):
            environment = Path("/proc/self/environ").read_text()
            raise PlatformError(f"{sys.argv} {environment} {self._context.section.secrets}")
        await self._with_fault("prepare", self._local.prepare)
        (self._context.folder / f"prepared-{os.getpid()}").touch()

    async def capacity(self) -> int | None:
        return await self._with_fault("capacity", self._local.capacity)

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        return await self._with_fault("launch", lambda: self._local.launch(orders))

    async def agents(self) -> list[PlatformAgent]:
        return await self._with_fault("agents", self._local.agents)

    async def terminate(self, names: Sequence[AgentName]) -> None:
        await self._with_fault("terminate", lambda: self._local.terminate(names))

    async def clean(self) -> None:
        await self._with_fault("clean", self._local.clean)

    async def leftovers(self) -> list[Leftover]:
        return await self._local.leftovers()

    async def clean_rest(self) -> None:
        await self._local.clean_rest()

    async def wait_changed(self) -> None:
        await self._local.wait_changed()

    async def aclose(self) -> None:
        await self._local.aclose()

    async def _with_fault(self, method: str, call: Callable[[], Awaitable[T]]) -> T:
        options = self._context.section.options
        done = self._context.folder / "fault"
        fault = options.get("fault") if options.get("faultAt") == method else None
        if fault is None or done.exists():
            return await call()
        if fault == "kill after":
            await call()
        if not options.get("repeats"):
            done.touch()
        await _fail(str(fault))
        raise AssertionError(fault)


async def _fail(fault: str) -> None:
    match fault:
        case "error":
            raise ZeroDivisionError("of the test")
        case "refuse":
            raise PlatformError("no quota is left", "ask for more", permanent=True)
        case "exit":
            os._exit(3)
        case "block":
            time.sleep(1_000)  # noqa: ASYNC251 - that is the fault
        case "wait":
            await asyncio.Event().wait()
        case _:
            os.kill(os.getpid(), signal.SIGKILL)


def main(descriptor: int) -> None:
    """Run a child with a faulty adapter."""
    run_child(descriptor, lambda _: FaultyAdapter)


def isolated_adapter(
    context: AdapterContext,
    clock: Clock | None = None,
    limits_s: Mapping[str, float] | None = None,
    cancel_s: float = CANCEL_S,
) -> IsolatedAdapter:
    """Return an adapter whose child has a faulty adapter."""
    limits = CallLimits({**LIMITS_S, **(limits_s or {})}, cancel_s)
    return IsolatedAdapter(context, COMMAND, clock, limits)


def faulty_adapter(
    folder: Path, installation: str, pool: str, **options: object
) -> IsolatedAdapter:
    """Return an isolated adapter of the platform `local` with the options of a fault."""
    folder.mkdir(parents=True, exist_ok=True)
    return isolated_adapter(local_context(folder, installation, pool, options))
