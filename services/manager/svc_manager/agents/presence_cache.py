"""Keeps what agents said last, so that a manager that starts knows them before they speak again."""

import asyncio
from contextlib import aclosing

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import task_pb2
from svc_common import subjects
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Signals
from svc_manager.agents.liveness import GONE_AFTER_S, AgentMonitor
from svc_manager.ports import Presences


class PresenceCache:
    """Writes presences down and reads them at the start; all managers share what is written.

    Call order: `recall` once, before experiments are loaded; then `listen` and `write` as tasks.
    Trouble with the store is logged: agents are then known when they speak.

    Args:
        signals: where agents speak.
        presences: where it is kept.
        agents: those who are told.
    """

    def __init__(self, signals: Signals, presences: Presences, agents: AgentMonitor) -> None:
        self._signals = signals
        self._presences = presences
        self._agents = agents
        self._heard: dict[str, bytes] = {}
        self._left: set[str] = set()
        self._news = asyncio.Event()
        self._away = False

    async def recall(self) -> None:
        """Let the manager know the agents that were there lately."""
        try:
            kept = await self._presences.all()
        except ServiceError as error:
            get_logger().warning("presences not read", error=error.message)
            return
        for payload in kept.values():
            presence = _decoded(payload)
            if presence is not None:
                self._agents.handle_presence(presence)

    async def listen(self) -> None:
        """Take in presences until cancelled."""
        feed = await self._signals.subscribe(subjects.ALL_PRESENCES)
        async with aclosing(feed):
            async for signal in feed:
                presence = _decoded(signal.payload)
                if presence is None:
                    continue  # the watch of agents reports it
                if presence.leaving:
                    self._heard.pop(presence.runner_id, None)
                    self._left.add(presence.runner_id)
                else:
                    self._heard[presence.runner_id] = signal.payload
                self._news.set()

    async def write(self) -> None:
        """Write down what was heard until cancelled; what comes meanwhile makes the next batch."""
        while True:
            await self._news.wait()
            self._news.clear()
            heard, self._heard = self._heard, {}
            left, self._left = self._left, set()
            try:
                if heard:
                    await self._presences.keep(heard, GONE_AFTER_S)
                for runner_id in left - heard.keys():
                    await self._presences.forget(runner_id)
            except ServiceError as error:
                if not self._away:
                    get_logger().warning("presences not kept", error=error.message)
                self._away = True
            else:
                self._away = False


def _decoded(payload: bytes) -> task_pb2.RunnerPresence | None:
    try:
        return task_pb2.RunnerPresence.FromString(payload)
    except DecodeError:
        return None
