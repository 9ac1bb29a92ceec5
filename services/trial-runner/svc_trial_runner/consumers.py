"""Consumers of tasks and control messages from the bus."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from nni_proto.runner.v1 import task_pb2
from svc_common.logs import get_logger
from svc_common.messaging.ports import Signal, TaskFeed
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.domain.claims import AttemptKey

_MANY: Final = 1000
"""Tasks requested at once where no limit applies."""


class TaskConsumer:
    """Consumer that pulls as many tasks from the pool as the agent has room for.

    Args:
        feed: a standing pull; closed by `finish` or when the agent drains.
        agent: takes the tasks.
    """

    def __init__(self, feed: TaskFeed, agent: Agent) -> None:
        self._feed = feed
        self._agent = agent
        agent.on_change(self._request_tasks)

    async def run(self) -> None:
        """Pass delivered tasks to the agent and request more, until the feed is closed."""
        self._request_tasks()
        async for task in self._feed:
            self._agent.take(task)
            self._request_tasks()

    async def close_when_draining(self) -> None:
        """Stop the pull as soon as the agent drains."""
        await self._agent.wait_draining()
        await self.finish()

    async def finish(self) -> None:
        """Stop the pull; tasks that were delivered and not yet taken are given back."""
        await self._feed.aclose()

    def _request_tasks(self) -> None:
        """Grant the feed as many deliveries as the agent has room for; none while it drains."""
        if self._agent.draining:
            return
        room = self._agent.room
        granted = self._feed.granted
        if room is not None:
            self._feed.grant(max(0, room - granted))
        elif granted < _MANY // 2:
            self._feed.grant(_MANY - granted)


class ControlConsumer:
    """Consumer of managers' orders to this agent: stop, drop, forget, drain, slots.

    Args:
        signals: of `nni.control.<runner>`.
        agent: carries out the orders.
    """

    def __init__(self, signals: AsyncGenerator[Signal, None], agent: Agent) -> None:
        self._signals = signals
        self._agent = agent

    async def run(self) -> None:
        """Decode and apply each order to the agent until the bus closes; log invalid ones."""
        async with aclosing(self._signals):
            async for signal in self._signals:
                try:
                    control = task_pb2.RunnerControl.FromString(signal.payload)
                    self._apply(control)
                except Exception as error:  # noqa: BLE001 - rim: an invalid order must not end the agent
                    get_logger().error("order refused", exc_info=error)

    def _apply(self, control: task_pb2.RunnerControl) -> None:
        match control.WhichOneof("kind"):
            case "stop_trial":
                stop = control.stop_trial
                key = AttemptKey(stop.experiment_id, stop.trial_id, stop.attempt)
                self._agent.stop_trial(key, control.log_sequence)
            case "drop_trial":
                drop = control.drop_trial
                key = AttemptKey(drop.experiment_id, drop.trial_id, drop.attempt)
                self._agent.drop_trial(key, drop.claim_id, control.log_sequence)
            case "forget_experiment":
                experiment_id = control.forget_experiment.experiment_id
                self._agent.forget_experiment(experiment_id, control.log_sequence)
            case "drain_runner":
                self._agent.drain()
            case "set_runner_slots":
                self._agent.set_slots(control.set_runner_slots.slots)
