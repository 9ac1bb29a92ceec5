"""Publisher of the agent's presence messages (heartbeats): periodic, and after each change."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from nni_proto.runner.v1 import task_pb2
from svc_common.clock import Clock
from svc_common.experiment_events.cause_text import wait_text
from svc_common.messaging.ports import Signals
from svc_common.subjects import presence_subject
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.attempts.execution import AttemptRun
from svc_trial_runner.converters import write_wait

PRESENCE_EVERY_S: Final = 5.0
RESTART_SHOWN_S: Final = 12.0
"""Time for which a restart is published: two presences more than one that may be lost."""
AFTER_CHANGE_S: Final = 0.5
"""Changes within this time are published together: hundreds of trials may end in a second."""


@dataclass(frozen=True, slots=True)
class RunnerIdentity:
    """Ids, pool, host, version and address by which managers know this agent."""

    runner_id: str
    """The same after a restart."""
    boot_id: str
    """Different at each start."""
    pool: str
    host_name: str
    version: str
    grpc_address: str = ""
    """gRPC address; empty: not serving yet."""
    restarted: bool = False
    """True if an earlier process had this id."""


class Presence:
    """Publisher of this agent's presence message, with its trials, periodically and on changes.

    Args:
        agent: source of the attempts.
        identity: of this process.
        signals: where the presence is published.
        clock: times the publications.
        gpu_count: number of GPUs of the machine.
        uploads: returns the number of outputs that are not stored yet.
        debounce_s: changes within this time are published together, in seconds.
    """

    def __init__(
        self,
        agent: Agent,
        identity: RunnerIdentity,
        signals: Signals,
        clock: Clock,
        gpu_count: int,
        *,
        uploads: Callable[[], int] = lambda: 0,
        debounce_s: float = AFTER_CHANGE_S,
    ) -> None:
        self._agent = agent
        self._identity = identity
        self._signals = signals
        self._clock = clock
        self._gpu_count = gpu_count
        self._uploads = uploads
        self._debounce_s = debounce_s
        self._started_s = clock.monotonic_s()
        self._settled_at_s = clock.monotonic_s() + RESTART_SHOWN_S
        self._due: asyncio.TimerHandle | None = None
        agent.on_change(self._changed)

    async def run(self) -> None:
        """Publish the agent's presence every `PRESENCE_EVERY_S` seconds, for ever."""
        while True:
            self.publish()
            await self._clock.sleep(PRESENCE_EVERY_S)

    def publish(self, *, leaving: bool = False) -> None:
        """Publish the agent's presence now, in place of a pending one; `leaving`: its last."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        identity = self._identity
        message = task_pb2.RunnerPresence(
            runner_id=identity.runner_id,
            boot_id=identity.boot_id,
            pool=identity.pool,
            host_name=identity.host_name,
            trials=map(_held_trial, self._agent.attempts),
            gpu_count=self._gpu_count,
            draining=self._agent.draining,
            slots=self._agent.slots or 0,
            uploads=self._uploads(),
            leaving=leaving,
            grpc_address=identity.grpc_address,
            version=identity.version,
            restarted=identity.restarted and self._clock.monotonic_s() < self._settled_at_s,
        )
        running_s = self._clock.monotonic_s() - self._started_s
        message.running_time.FromTimedelta(timedelta(seconds=running_s))
        message.sent_at.FromDatetime(self._clock.now())
        subject = presence_subject(identity.runner_id)
        self._signals.publish(subject, message.SerializeToString())

    def _changed(self) -> None:
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(self._debounce_s, self.publish)


def _held_trial(run: AttemptRun) -> task_pb2.HeldTrial:
    held = task_pb2.HeldTrial(
        experiment_id=run.key.experiment_id,
        trial_id=run.key.trial_id,
        attempt=run.key.attempt,
        claim_id=run.claim_id,
    )
    if run.wait is not None:
        held.waiting_for = wait_text(run.wait)
        write_wait(held.wait, run.wait)
    return held
