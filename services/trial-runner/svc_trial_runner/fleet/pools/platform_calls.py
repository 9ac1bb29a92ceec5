"""Calls of one platform of a pool: opens its adapter, performs actions, waits for changes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.tasks import wait_first
from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.needs import PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import (
    ActionCompleted,
    ActionFailed,
    AgentsLaunched,
    AgentsListed,
    AgentsTerminated,
    CleanPlatform,
    LaunchAgents,
    ListAgents,
    OpenPlatform,
    PlatformAction,
    PlatformChanged,
    PlatformCleaned,
    PlatformOpened,
    TerminateAgents,
)
from svc_trial_runner.fleet.ports import (
    CredentialStore,
    PlatformAdapter,
    PlatformError,
    PlatformOpener,
)

LIMITS_S: Final[dict[type[PlatformAction], float]] = {
    OpenPlatform: 900.0,  # a bundle may go over a slow line
    ListAgents: 120.0,
    LaunchAgents: 600.0,
    TerminateAgents: 180.0,
    CleanPlatform: 300.0,
}
"""Time limits of actions, in seconds."""
WATCH_AGAIN_S: Final = 30.0
"""Delay after a failed wait for changes; lists by the clock go on."""
_CLOSE_LIMIT_S: Final = 10.0


class PlatformCalls:
    """Caller of one platform's adapter for a pool: one action at a time, errors as results.

    One action at a time; `perform` never raises, so that an adapter's error ends nothing else.

    Args:
        pool: name of the pool.
        key: of the platform in its pool.
        opener: opens the adapter.
        credentials: of agents.
        clock: delays waits that have failed.
        changed: called when the list of agents may have changed.
    """

    def __init__(
        self,
        pool: str,
        key: str,
        opener: PlatformOpener,
        credentials: CredentialStore,
        clock: Clock,
        changed: Callable[[PlatformChanged], None],
    ) -> None:
        self._pool = pool
        self._key = key
        self._opener = opener
        self._credentials = credentials
        self._clock = clock
        self._changed = changed
        self._adapter: PlatformAdapter | None = None
        self._listed = asyncio.Event()
        self._issued: dict[AgentName, AgentCredentials] = {}
        """Credentials of launches that have no result yet; a repeated launch uses them again."""

    async def perform(
        self, action: PlatformAction, section: PoolPlatform | None
    ) -> ActionCompleted | ActionFailed:
        """Perform an action within its time limit; return its result or failure, never raise.

        Args:
            action: what to do.
            section: present section of the platform; None: it has left the pool.
        """
        limit_s = LIMITS_S[type(action)]
        try:
            async with asyncio.timeout(limit_s):
                return await self._perform(action, section)
        except TimeoutError:
            return ActionFailed(self._key, action, f"no answer within {limit_s:g} s")
        except PlatformError as error:
            return ActionFailed(
                self._key, action, error.message, error.remedy, permanent=error.permanent
            )
        except ServiceError as error:
            return ActionFailed(self._key, action, error.message)
        except Exception as error:  # noqa: BLE001 - rim: an adapter may be of others
            get_logger().exception("platform failed", pool=self._pool, platform=self._key)
            return ActionFailed(self._key, action, _first_words(error))

    async def watch(self) -> None:
        """Report changes of the list of agents, for ever; wait anew after each listing."""
        while True:
            await self._listed.wait()
            self._listed.clear()
            adapter = self._adapter
            if adapter is None:
                continue
            try:
                # A wait may concern what was listed when it began.
                await wait_first(adapter.wait_changed(), self._listed.wait())
            except Exception:  # noqa: BLE001 - rim: an adapter may be of others
                get_logger().exception("watch failed", pool=self._pool, platform=self._key)
                await self._clock.sleep(WATCH_AGAIN_S)
            if not self._listed.is_set():
                self._changed(PlatformChanged(self._key))

    async def aclose(self) -> None:
        """Close the adapter within a limit; log its errors; agents run on. May be called twice."""
        adapter, self._adapter = self._adapter, None
        if adapter is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_LIMIT_S):
                await adapter.aclose()
        except Exception:  # noqa: BLE001 - rim: an adapter may be of others
            get_logger().exception("close failed", pool=self._pool, platform=self._key)

    async def _perform(
        self, action: PlatformAction, section: PoolPlatform | None
    ) -> ActionCompleted | ActionFailed:
        if isinstance(action, OpenPlatform):
            await self.aclose()
        adapter = self._adapter or await self._open(section)
        match action:
            case OpenPlatform():
                return await self._check(adapter, action)
            case ListAgents():
                agents = await adapter.agents()
                capacity = await adapter.capacity()
                self._listed.set()
                return AgentsListed(self._key, tuple(agents), capacity)
            case LaunchAgents():
                return await self._launch(adapter, action)
            case TerminateAgents():
                await adapter.terminate(action.names)
                await self._revoke(action.names)
                return AgentsTerminated(self._key)
            case CleanPlatform(agents=tuple(some)):
                await adapter.terminate(some)
                if not await adapter.agents():  # else another section has agents there
                    await adapter.clean()
                await self._revoke([*some, *self._issued])
                return PlatformCleaned(self._key)
            case CleanPlatform():
                names = [agent.name for agent in await adapter.agents()]
                await adapter.clean()
                await self._revoke([*names, *self._issued])
                return PlatformCleaned(self._key)

    async def _open(self, section: PoolPlatform | None) -> PlatformAdapter:
        if section is None:
            raise PlatformError("the platform has left the pool", permanent=True)
        self._adapter = await self._opener.open(
            self._pool, self._key, section.platform, section.options, section.secrets_id
        )
        return self._adapter

    async def _check(
        self, adapter: PlatformAdapter, action: OpenPlatform
    ) -> ActionCompleted | ActionFailed:
        problems = await adapter.check()
        if any(one.permanent for one in problems):
            words = "; ".join(map(_words, problems))
            remedies = "; ".join(one.remedy for one in problems if one.remedy)
            return ActionFailed(self._key, action, words, remedies, permanent=True)
        # Machines that are away now do not hold up the others; without any, this raises.
        await adapter.prepare()
        return PlatformOpened(self._key)

    async def _launch(self, adapter: PlatformAdapter, action: LaunchAgents) -> AgentsLaunched:
        orders = []
        for agent in action.agents:
            if agent.name not in self._issued:
                self._issued[agent.name] = await self._credentials.issue(agent.name)
            orders.append(
                AgentOrder(
                    agent.name,
                    self._issued[agent.name],
                    agent.slots,
                    agent.max_trials,
                    agent.gpus_per_trial,
                )
            )
        failures = await adapter.launch(orders)
        for order in orders:
            self._issued.pop(order.name, None)
        await self._revoke([failure.name for failure in failures])
        return AgentsLaunched(self._key, tuple(failures))

    async def _revoke(self, names: Sequence[AgentName]) -> None:
        """Revoke credentials; only log a failure, because the agents are gone."""
        if not names:
            return
        for name in names:
            self._issued.pop(name, None)
        try:
            await self._credentials.revoke(names)
        except ServiceError as error:
            get_logger().warning("credentials not revoked", pool=self._pool, error=error.message)


def _words(problem: PlatformProblem) -> str:
    shown = f", got {problem.value!r}" if problem.value else ""
    return f"{problem.field} {problem.rule}{shown}"


def _first_words(error: Exception) -> str:
    """Return kind and text of an error, or of the first one in a group of errors."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:1000]
