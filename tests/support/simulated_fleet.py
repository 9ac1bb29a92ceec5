"""A thousand simulated agents in one process: the bus protocol of real agents without commands.

Each agent pulls tasks for its slots, claims and renews them, publishes its presence and the trials
it holds, and reports a start, one intermediate result, a result and the end of each trial.

Run as `python -m tests.support.simulated_fleet URL TOKEN AGENTS SLOTS DURATION_S`; TERM ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import inbox_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.pools import LOCAL_POOL
from svc_common import subjects
from svc_common.garbage_collection import GcFreezer
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.ports import Task

PRESENCE_S: Final = 5.0
PRESENCE_AFTER_CHANGE_S: Final = 0.5
RENEW_S: Final = 10.0


@dataclass(frozen=True)
class Plan:
    """Size of the simulation."""

    agents: int
    slots: int
    trial_duration_s: float
    """Mean duration of a trial; each takes half to one and a half of it."""


@dataclass
class Held:
    """A trial that an agent holds."""

    task: task_pb2.TrialTask
    ack_subject: str
    claim_id: str
    sequence: int = 0


class SimulatedAgent:
    """Simulated agent.

    Args:
        bus: an open connection.
        number: index of the agent.
        plan: size of the simulation.
        random_: source of the durations of its trials.
    """

    def __init__(self, bus: NatsBus, number: int, plan: Plan, random_: random.Random) -> None:
        self._bus = bus
        self._runner_id = f"agent-{number:04d}"
        self._plan = plan
        self._random = random_
        self._held: dict[str, Held] = {}
        self._claims = 0
        self._first = plan.slots
        self._trials: set[asyncio.Task[None]] = set()
        self._announcing: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Take tasks until cancelled."""
        feed = await self._bus.tasks.pull(LOCAL_POOL)
        self._announce()
        try:
            feed.grant(self._plan.slots)
            async for task in feed:
                self._begin(self._run_trial(task, lambda: feed.grant(1)))
        finally:
            for trial in self._trials:
                trial.cancel()
            await feed.aclose()

    def _begin(self, trial: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(trial)
        self._trials.add(task)
        task.add_done_callback(self._trials.discard)

    async def _run_trial(self, task: Task, give_back: Callable[[], None]) -> None:
        message = task_pb2.TrialTask.FromString(task.payload)
        if message.trial_id in self._held:  # delivered again, since its renewal was late
            give_back()
            return
        self._claims += 1
        held = Held(message, task.ack_subject, f"{self._runner_id}-{self._claims}")
        self._held[message.trial_id] = held
        self._changed()
        await self._report(held, _started())
        span_s = self._span_s()
        await self._stay(held, span_s / 2)
        await self._report(held, _metric(metric_pb2.METRIC_TYPE_PERIODICAL))
        await self._stay(held, span_s / 2)
        await self._report(held, _metric(metric_pb2.METRIC_TYPE_FINAL), _exited())
        del self._held[message.trial_id]
        self._changed()
        await self._bus.tasks.ack(held.ack_subject)
        give_back()

    def _span_s(self) -> float:
        mean_s = self._plan.trial_duration_s
        if self._first > 0:  # the first trials start together, but must not end together
            self._first -= 1
            return self._random.uniform(1.0, 1.5 * mean_s)
        return self._random.uniform(0.5 * mean_s, 1.5 * mean_s)

    async def _stay(self, held: Held, span_s: float) -> None:
        while span_s > RENEW_S:
            await asyncio.sleep(RENEW_S)
            span_s -= RENEW_S
            await self._bus.tasks.in_progress(held.ack_subject)
        await asyncio.sleep(span_s)

    async def _report(self, held: Held, *reports: report_pb2.TrialReport) -> None:
        first = held.sequence
        for report in reports:
            report.trial_id = held.task.trial_id
            report.attempt = held.task.attempt
            report.claim_id = held.claim_id
            report.sequence = held.sequence
            held.sequence += 1
        message = report_pb2.RunnerReports(runner_id=self._runner_id, reports=reports)
        payload = inbox_pb2.InboxMessage(runner_reports=message).SerializeToString()
        await self._bus.inbox.publish(
            held.task.experiment_id,
            self._runner_id,
            payload,
            message_id=f"{held.task.trial_id}.{held.claim_id}.{first}",
        )

    def _changed(self) -> None:
        """Publish the presence soon; changes within a while are published together."""
        loop = asyncio.get_running_loop()
        at_s = loop.time() + PRESENCE_AFTER_CHANGE_S
        if self._announcing is None or self._announcing.when() > at_s:
            if self._announcing is not None:
                self._announcing.cancel()
            self._announcing = loop.call_at(at_s, self._announce)

    def _announce(self) -> None:
        presence = task_pb2.RunnerPresence(
            runner_id=self._runner_id,
            boot_id="1",
            pool=LOCAL_POOL,
            trials=[
                task_pb2.HeldTrial(
                    experiment_id=held.task.experiment_id,
                    trial_id=held.task.trial_id,
                    attempt=held.task.attempt,
                    claim_id=held.claim_id,
                )
                for held in self._held.values()
            ],
        )
        self._bus.signals.publish(
            subjects.presence_subject(self._runner_id), presence.SerializeToString()
        )
        loop = asyncio.get_running_loop()
        self._announcing = loop.call_later(PRESENCE_S, self._announce)


def _started() -> report_pb2.TrialReport:
    report = report_pb2.TrialReport()
    report.started.started_at.FromNanoseconds(time.time_ns())
    return report


def _metric(kind: metric_pb2.MetricType.ValueType) -> report_pb2.TrialReport:
    report = report_pb2.TrialReport()
    report.metric.type = kind
    report.metric.value.float_value = random.random()
    report.metric.reported_at.FromNanoseconds(time.time_ns())
    return report


def _exited() -> report_pb2.TrialReport:
    report = report_pb2.TrialReport()
    report.exited.cause = report_pb2.EXIT_CAUSE_ENDED
    report.exited.exit_code = 0
    report.exited.ended_at.FromNanoseconds(time.time_ns())
    return report


async def run(url: str, token: str, plan: Plan) -> None:
    """Simulate until TERM."""
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGTERM,
        asyncio.current_task().cancel,  # type: ignore[union-attr] # we are one
    )
    async with NatsBus(NatsSettings(url, token)) as bus:
        agents = [SimulatedAgent(bus, n, plan, random.Random(n)) for n in range(plan.agents)]
        async with asyncio.TaskGroup() as group:
            for agent in agents:
                group.create_task(agent.run())
                await asyncio.sleep(0.001)  # machines do not come up in the same millisecond


if __name__ == "__main__":
    GcFreezer().start()
    with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(
            run(
                sys.argv[1],
                sys.argv[2],
                Plan(int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])),
            )
        )
