"""Carries out what follows from facts; everything here is safe to repeat."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable

from nni_proto.runner.v1 import task_pb2
from nni_wire.values import blob_of
from svc_common import subjects
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_common.tasks import TaskOwner
from svc_manager.big_values import BigValues
from svc_manager.converters.tasks import (
    drop_to_bytes,
    forget_to_bytes,
    spec_of,
    stop_to_bytes,
    task_of,
)
from svc_manager.domain import effects as f
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState
from svc_manager.ports import Agents, Listeners


class Performer:
    """Performs the effects of one experiment.

    It reads the experiment's state at the time of the effect and never changes it. Effects that
    wait for the bus run in tasks of their own, so the experiment goes on meanwhile.

    Args:
        experiment: whose effects; the live state.
        bus: where tasks and orders go.
        listeners: ports of experiments.
        write_summary: keeps what lists show of the experiment.
        agents: who is told that the experiment is over.
        big_values: where large parameters lie.
        log_sequence: tells how far the log has been read, which agents compare.
    """

    def __init__(
        self,
        experiment: Experiment,
        bus: Bus,
        listeners: Listeners,
        write_summary: Callable[[], Coroutine[object, object, None]],
        agents: Agents,
        big_values: BigValues,
        log_sequence: Callable[[], int],
    ) -> None:
        self._experiment = experiment
        self._bus = bus
        self._listeners = listeners
        self._write_summary = write_summary
        self._agents = agents
        self._big_values = big_values
        self._log_sequence = log_sequence
        self._tasks = TaskOwner(self._failed)
        self._published: dict[str, asyncio.Future[int]] = {}
        self._withdrawals: set[asyncio.Task[None]] = set()
        self._spec = spec_of(experiment)

    async def perform(self, effects: Iterable[f.Effect]) -> None:
        """Begin to carry out effects, in order; a port is free again when this returns."""
        for effect in effects:
            if isinstance(effect, f.CloseListener):
                await self._listeners.close_listener(self._experiment.id)
            else:
                self._perform(effect)

    def moved(self) -> None:
        """Take note that the experiment's folder lies elsewhere."""
        self._spec = spec_of(self._experiment)

    async def drain(self) -> None:
        """Wait until everything that was begun is done."""
        await self._tasks.drain()

    async def aclose(self) -> None:
        """Give up what is not done; the next manager does it again."""
        await self._tasks.aclose()

    def _perform(self, effect: f.Effect) -> None:
        experiment = self._experiment
        match effect:
            case f.PublishTask():
                self._publish(effect)
            case f.WithdrawTask(trial_id):
                withdrawal = self._tasks.start(self._withdraw(trial_id), f"withdraw {trial_id}")
                self._withdrawals.add(withdrawal)
                withdrawal.add_done_callback(self._withdrawals.discard)
            case f.SendStop(runner_id):
                self._order(runner_id, stop_to_bytes(experiment.id, effect, self._log_sequence()))
            case f.SendDrop(runner_id):
                self._order(runner_id, drop_to_bytes(experiment.id, effect, self._log_sequence()))
            case f.OpenListener(port, url_prefix):
                self._tasks.start(self._listen(port, url_prefix), "open listener")
            case f.ForgetExperiment():
                self._tasks.start(self._forget(self._log_sequence()), "forget experiment")
            case f.WriteSummary():
                self._tasks.start(self._write_summary(), "write summary")
            case f.CloseListener():  # pragma: no cover - awaited by `perform`
                raise AssertionError("closing is awaited")

    def _publish(self, effect: f.PublishTask) -> None:
        trial = self._experiment.trials[effect.trial_id]
        if trial.state is not TrialState.WAITING or trial.attempt != effect.attempt:
            return
        task = task_of(self._experiment.id, trial, self._spec, self._log_sequence())
        self._tasks.start(self._send(task, trial.pool), "publish task")

    async def _send(self, task: task_pb2.TrialTask, pool: str) -> None:
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._published[task.trial_id] = sent
        message_id = f"{task.experiment_id}.{task.trial_id}.{task.attempt}"
        try:
            if blob_of(task.parameters) is not None:  # agents have no key to the byte store
                task.parameters.CopyFrom(await self._big_values.load(task.parameters))
            payload = task.SerializeToString()
            sent.set_result(await self._bus.tasks.publish(pool, payload, message_id=message_id))
        finally:
            if not sent.done():
                sent.cancel()

    def taken(self, trial_id: str) -> None:
        """Take note that an agent has the task of a trial, so it cannot be withdrawn."""
        self._published.pop(trial_id, None)

    async def _withdraw(self, trial_id: str) -> None:
        sent = self._published.pop(trial_id, None)
        if sent is not None:  # unknown after a restart: then its agent is told to drop it
            await self._bus.tasks.delete(await sent)

    async def _forget(self, log_sequence: int) -> None:
        """Tell agents that all is over, once no task can be pulled any more.

        It ends attempts that were cancelled while the word of their start was on the way, but not
        those of a later life: the experiment may be resumed meanwhile.
        """
        if self._withdrawals:
            await asyncio.wait(self._withdrawals)
        runner_ids = set(self._agents.of_pools(self._experiment.settings.pools))
        runner_ids.update(trial.runner_id for trial in self._experiment.trials.values())
        for runner_id in runner_ids:
            self._order(runner_id, forget_to_bytes(self._experiment.id, log_sequence))

    def _order(self, runner_id: str, payload: bytes) -> None:
        if runner_id:
            self._bus.signals.publish(subjects.control_subject(runner_id), payload)

    async def _listen(self, port: int, url_prefix: str) -> None:
        try:
            await self._listeners.open_listener(port, self._experiment.id, url_prefix)
        except ServiceError as error:
            # Only after a restart: at creation the port was opened before it became a fact.
            get_logger().warning(
                "listener not opened",
                experiment=self._experiment.id,
                port=port,
                error=error.message,
            )

    def _failed(self, name: str, error: BaseException) -> None:
        get_logger().error(
            "effect failed", experiment=self._experiment.id, effect=name, exc_info=error
        )
