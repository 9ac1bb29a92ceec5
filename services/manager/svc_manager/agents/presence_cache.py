"""Cache of agents' last presence messages, from which a starting manager knows the agents."""

import asyncio
from contextlib import aclosing

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import task_pb2
from svc_common import subjects
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.decoding import decode_off_loop
from svc_common.messaging.ports import Signals
from svc_common.rpc.message_parts import FEW_PARTS
from svc_manager.agents.liveness import GONE_AFTER_S, AgentMonitor
from svc_manager.ports import Presences


class PresenceCache:
    """Cache of agents' presence messages in a shared store, for a manager that restarts.

    Call order: `recall` once, before experiments are loaded; then `listen` and `write` as tasks.
    Failures of the store are logged: agents are then known from their next presence.

    Args:
        signals: source of presences.
        presences: the store.
        agents: monitor that gets the recalled presences.
    """

    def __init__(self, signals: Signals, presences: Presences, agents: AgentMonitor) -> None:
        self._signals = signals
        self._presences = presences
        self._agents = agents
        self._pending: dict[str, bytes] = {}
        self._left: set[str] = set()
        self._changed = asyncio.Event()
        self._away = False

    async def recall(self) -> None:
        """Pass all stored presence messages to the agent monitor; only log a failed read."""
        try:
            kept = await self._presences.all()
        except ServiceError as error:
            get_logger().warning("presences not read", error=error.message)
            return
        for payload in kept.values():
            presence = await _decoded(payload)
            if presence is not None:
                self._agents.handle_presence(presence)

    async def listen(self) -> None:
        """Collect agents' newest and last presence messages for the next write; until cancelled."""
        feed = await self._signals.subscribe(subjects.ALL_PRESENCES)
        async with aclosing(feed):
            async for signal in feed:
                presence = await _decoded(signal.payload)
                if presence is None:
                    continue  # the monitor logs it
                if presence.leaving:
                    self._pending.pop(presence.runner_id, None)
                    self._left.add(presence.runner_id)
                else:
                    self._pending[presence.runner_id] = signal.payload
                self._changed.set()

    async def write(self) -> None:
        """Store collected presence messages and delete those of agents that left, for ever.

        Presences that arrive meanwhile make the next batch.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            changed, self._pending = self._pending, {}
            left, self._left = self._left, set()
            try:
                if changed:
                    await self._presences.keep(changed, GONE_AFTER_S)
                for runner_id in left - changed.keys():
                    await self._presences.forget(runner_id)
            except ServiceError as error:
                if not self._away:
                    get_logger().warning("presences not written", error=error.message)
                self._away = True
            else:
                self._away = False


async def _decoded(payload: bytes) -> task_pb2.RunnerPresence | None:
    try:
        return await decode_off_loop(task_pb2.RunnerPresence, payload, FEW_PARTS)
    except DecodeError:
        return None
