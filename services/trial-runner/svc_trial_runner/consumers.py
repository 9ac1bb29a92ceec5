"""Tasks and controls from the bus, handed to the agent."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from nni_proto.runner.v1 import task_pb2
from svc_common.logs import get_logger
from svc_common.messaging.ports import Signal, TaskFeed
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.domain.claims import AttemptKey

_MANY: Final = 1000
"""Tasks that may come at once where nothing limits them."""


class TaskConsumer:
    """Pulls tasks for the agent, as many as it has room for.

    Args:
        feed: a standing pull; closed by `finish` or when the agent drains.
        agent: who takes them.
    """

    def __init__(self, feed: TaskFeed, agent: Agent) -> None:
        self._feed = feed
        self._agent = agent
        agent.on_change(self._ask)

    async def run(self) -> None:
        """Hand tasks over until `finish`."""
        self._ask()
        async for task in self._feed:
            self._agent.take(task)
            self._ask()

    async def close_when_draining(self) -> None:
        """Stop the pull as soon as the agent wants no more."""
        await self._agent.wait_draining()
        await self.finish()

    async def finish(self) -> None:
        """Pull no more; what was delivered and not yet taken is given back."""
        await self._feed.aclose()

    def _ask(self) -> None:
        """Ask for as many tasks as there is room for."""
        if self._agent.draining:
            return
        room = self._agent.room
        granted = self._feed.granted
        if room is not None:
            self._feed.grant(max(0, room - granted))
        elif granted < _MANY // 2:
            self._feed.grant(_MANY - granted)


class ControlConsumer:
    """Carries out what managers ask of this agent; each order may come twice.

    Args:
        signals: of `nni.control.<runner>`.
        agent: who obeys.
    """

    def __init__(self, signals: AsyncGenerator[Signal, None], agent: Agent) -> None:
        self._signals = signals
        self._agent = agent

    async def run(self) -> None:
        """Obey until the bus is closed."""
        async with aclosing(self._signals):
            async for signal in self._signals:
                try:
                    control = task_pb2.RunnerControl.FromString(signal.payload)
                    self._obey(control)
                except Exception as error:  # noqa: BLE001 - rim: a bad order must not end the agent
                    get_logger().error("order refused", exc_info=error)

    def _obey(self, control: task_pb2.RunnerControl) -> None:
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
