"""Runner of the effects of one experiment; every effect is safe to repeat."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Final

from nni_proto.runner.v1 import task_pb2
from nni_wire.trial_blobs import LOAD_CHECKPOINT_KEY
from nni_wire.values import blob_of
from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_common.tasks import TaskOwner
from svc_manager.blobs.checkpoints import checkpoint_folder, saving_trial
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.tasks import (
    drop_to_bytes,
    forget_to_bytes,
    spec_of,
    stop_to_bytes,
    task_of,
)
from svc_manager.domain import effects, events
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState
from svc_manager.ports import Agents, Listeners

_LISTEN_AGAIN_S: Final = 1.0
"""Pause between two tries to open a port that is in use."""
PUBLISHED_AT_ONCE: Final = 100
"""Tasks published concurrently. Of thousands that become due together the rest waits, so that
reports are read meanwhile."""


class EffectRunner:
    """Runner of one experiment's effects: publishes tasks, orders agents, opens ports.

    It reads the experiment's state at the time of the effect and never changes it. Effects that
    wait for the bus run in tasks of their own, so the experiment goes on meanwhile.

    Args:
        experiment: its live state.
        bus: publishes tasks and control messages.
        listeners: ports of experiments.
        write_summary: stores the experiment's summary for lists.
        agents: agents that are notified when the experiment is over.
        large_values: store of large parameters.
        log_sequence: returns the sequence of the last appended batch, which agents compare.
        clock: for pauses.
        bytes_travel: whether agents share no folders with this manager.
        traceparent: returns the trace context of a trial by experiment and parameter id.
    """

    def __init__(  # noqa: PLR0913 - dependencies of effects, each from another place
        self,
        experiment: Experiment,
        bus: Bus,
        listeners: Listeners,
        write_summary: Callable[[], Coroutine[object, object, None]],
        agents: Agents,
        large_values: LargeValues,
        log_sequence: Callable[[], int],
        clock: Clock,
        *,
        bytes_travel: bool = False,
        traceparent: Callable[[str, int], str] = lambda _experiment, _parameter: "",
    ) -> None:
        self._experiment = experiment
        self._bus = bus
        self._listeners = listeners
        self._write_summary = write_summary
        self._agents = agents
        self._large_values = large_values
        self._log_sequence = log_sequence
        self._clock = clock
        self._tasks = TaskOwner(self._failed)
        self._published: dict[str, asyncio.Future[int]] = {}
        self._publishing = asyncio.Semaphore(PUBLISHED_AT_ONCE)
        self._summary_wanted = False
        self._summarizing = False
        self._withdrawals: set[asyncio.Task[None]] = set()
        self._bytes_travel = bytes_travel
        self._traceparent = traceparent
        self._spec = spec_of(experiment, bytes_travel=bytes_travel)
        self._held: dict[str, list[effects.PublishTask]] = {}
        """Tasks that wait for the checkpoint of another trial, by the id of that trial."""

    async def run(self, batch: Iterable[effects.Effect]) -> None:
        """Start each effect as a background task, in order; wait only for the closing of a port."""
        for effect in batch:
            if isinstance(effect, effects.CloseListener):
                await self._listeners.close_listener(self._experiment.id)
            else:
                self._start_effect(effect)

    def start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Start a coroutine as a named task, which `drain` awaits and `aclose` cancels."""
        self._tasks.start(work, name)

    def observe(self, event: events.Event) -> None:
        """Update published and held tasks by an event; publish those held for an ended trial."""
        if isinstance(event, events.TrialStarted):
            self._discard_published(event.trial_id)
        elif isinstance(event, events.ExperimentMoved):
            self._refresh_spec()
        elif isinstance(event, events.TrialEnded):
            self._release_held(event.trial_id)

    def _refresh_spec(self) -> None:
        """Read the experiment's folder from its state again."""
        self._spec = spec_of(self._experiment, bytes_travel=self._bytes_travel)

    async def drain(self) -> None:
        """Wait until all started effects are done."""
        await self._tasks.drain()

    async def aclose(self) -> None:
        """Cancel unfinished effects; the next manager repeats them."""
        await self._tasks.aclose()

    def _start_effect(self, effect: effects.Effect) -> None:
        experiment = self._experiment
        match effect:
            case effects.PublishTask():
                self._publish(effect)
            case effects.PublishAgain():
                self._publish_again(effect)
            case effects.WithdrawTask(trial_id):
                withdrawal = self._tasks.start(self._withdraw(trial_id), f"withdraw {trial_id}")
                self._withdrawals.add(withdrawal)
                withdrawal.add_done_callback(self._withdrawals.discard)
            case effects.SendStop(runner_id):
                self._order(runner_id, stop_to_bytes(experiment.id, effect, self._log_sequence()))
            case effects.SendDrop(runner_id):
                self._order(runner_id, drop_to_bytes(experiment.id, effect, self._log_sequence()))
            case effects.OpenListener(port, url_prefix):
                self._tasks.start(self._listen(port, url_prefix), "open listener")
            case effects.ForgetExperiment():
                self._tasks.start(self._forget(self._log_sequence()), "forget experiment")
            case effects.WriteSummary():
                self._summarize()
            case effects.CloseListener():  # pragma: no cover - awaited by `run`
                raise AssertionError("closing is awaited")

    def _summarize(self) -> None:
        """Store the experiment's summary in the background, coalesced: writes never overlap."""
        self._summary_wanted = True
        if not self._summarizing:
            self._summarizing = True
            self._tasks.start(self._write_summaries(), "write summary")

    async def _write_summaries(self) -> None:
        try:
            while self._summary_wanted:
                self._summary_wanted = False
                await self._write_summary()
        finally:
            self._summarizing = False

    def _publish_again(self, effect: effects.PublishAgain) -> None:
        """Replace the task that this runner published for an unclaimed trial; else do nothing."""
        trial = self._experiment.trials[effect.trial_id]
        if trial.id in self._published and not trial.claim_id:
            self._publish(effects.PublishTask(trial.id, effect.attempt), effect.boot_id)

    def _publish(self, effect: effects.PublishTask, again: str = "") -> None:
        trial = self._experiment.trials[effect.trial_id]
        if trial.state is not TrialState.WAITING or trial.attempt != effect.attempt:
            return
        task = task_of(self._experiment.id, trial, self._spec, self._log_sequence())
        task.traceparent = self._traceparent(self._experiment.id, trial.parameter_id)
        if self._spec.checkpoints_travel and not self._add_checkpoint(task, effect):
            return
        self._tasks.start(self._send(task, trial.pool, again), "publish task")

    def _add_checkpoint(self, task: task_pb2.TrialTask, effect: effects.PublishTask) -> bool:
        """Put a saved checkpoint into a task; hold its effect and return False while it is unsaved.

        Return False while it is still being written.
        """
        directory = checkpoint_folder(task.parameters, LOAD_CHECKPOINT_KEY)
        if not directory:
            return True
        saving = saving_trial(self._experiment, directory, besides=task.trial_id)
        if saving:
            self._held.setdefault(saving, []).append(effect)
            return False
        saved = self._experiment.checkpoints.get(directory)
        if saved is not None:
            task.load_checkpoint.sha256 = saved.sha256
            task.load_checkpoint.size_bytes = saved.size_bytes
        return True

    def _release_held(self, trial_id: str) -> None:
        """Publish the tasks that waited for the checkpoint of a trial that has ended."""
        for effect in self._held.pop(trial_id, ()):
            self._publish(effect)

    async def _send(self, task: task_pb2.TrialTask, pool: str, again: str = "") -> None:
        """Publish a trial's task to its pool, large parameters inline; delete the task it replaces.

        A non-empty ``again`` (part of the message id) replaces the first task. A retried trial is
        older than those that wait for their first attempt, and goes ahead of them.
        """
        first = self._published.get(task.trial_id) if again else None
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._published[task.trial_id] = sent
        message_id = f"{task.experiment_id}.{task.trial_id}.{task.attempt}"
        message_id += f".{again}" if again else ""
        try:
            if (
                blob_of(task.parameters) is not None
            ):  # agents have no credentials for the byte store
                task.parameters.CopyFrom(await self._large_values.load(task.parameters))
            async with self._publishing:
                payload = task.SerializeToString()
                sequence = await self._bus.tasks.publish(
                    pool, payload, message_id=message_id, ahead=task.attempt > 1
                )
                sent.set_result(sequence)
        finally:
            if not sent.done():
                sent.cancel()
        if first is not None and not first.cancelled() and await first != sent.result():
            # Deleted last: had the manager died in between, the trial would have no task, since the
            # bus takes another one with the first message id for a duplicate.
            await self._bus.tasks.delete(first.result())

    def _discard_published(self, trial_id: str) -> None:
        """Remove a trial from the published tasks that can still be withdrawn.

        An agent has claimed it, so it cannot be withdrawn.
        """
        self._published.pop(trial_id, None)

    async def _withdraw(self, trial_id: str) -> None:
        sent = self._published.pop(trial_id, None)
        if sent is not None:  # unknown after a restart: then its agent gets a drop order
            await self._bus.tasks.delete(await sent)

    async def _forget(self, log_sequence: int) -> None:
        """Order all agents of the pool to forget the ended experiment, after pending withdrawals.

        The order ends attempts that were cancelled while their start report was on the way, but not
        those of a later generation: the experiment may be resumed meanwhile.
        """
        if self._withdrawals:
            await asyncio.wait(self._withdrawals)
        runner_ids = set(self._agents.of_pools({self._experiment.settings.pool}))
        runner_ids.update(trial.runner_id for trial in self._experiment.trials.values())
        for runner_id in runner_ids:
            self._order(runner_id, forget_to_bytes(self._experiment.id, log_sequence))

    def _order(self, runner_id: str, payload: bytes) -> None:
        if runner_id:
            self._bus.signals.publish(subjects.control_subject(runner_id), payload)

    async def _listen(self, port: int, url_prefix: str) -> None:
        warned = False
        while self._experiment.port == port:
            try:
                await self._listeners.open_listener(port, self._experiment.id, url_prefix)
            except ServiceError as error:
                # Only after a restart: at creation the port is opened before the event is appended.
                # The holder may be a manager on this machine that is releasing the experiment.
                if not warned:
                    get_logger().warning(
                        "listener not opened",
                        experiment=self._experiment.id,
                        port=port,
                        error=error.message,
                    )
                warned = True
            else:
                return
            await self._clock.sleep(_LISTEN_AGAIN_S)

    def _failed(self, name: str, error: BaseException) -> None:
        get_logger().error(
            "effect failed", experiment=self._experiment.id, effect=name, exc_info=error
        )
