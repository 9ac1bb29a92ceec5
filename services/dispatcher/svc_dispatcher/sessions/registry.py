"""Watches the logs of all experiments and serves each one that wants an algorithm."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from google.protobuf.message import DecodeError

from svc_common.errors import UnavailableError
from svc_common.logs import bind_task, get_logger
from svc_common.messaging.ports import LogMessage
from svc_common.tasks import TaskOwner
from svc_dispatcher.converters import log_messages
from svc_dispatcher.sessions.experiment_session import Experiment
from svc_dispatcher.sessions.generation import Surroundings

_RETRY_S: Final = 2.0
"""Pause before an experiment whose serving failed unexpectedly is served again."""


class Experiments:
    """All experiments of an installation; one follower of the bus feeds them all.

    Args:
        surroundings: what each experiment is served with.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._served: dict[str, Experiment] = {}
        self._tasks = TaskOwner(self._task_failed)

    async def run(self) -> None:
        """Serve until cancelled, or until the bus is closed."""
        events = self._around.events
        known = await events.experiments()
        after = await self._last_sequence(known)
        # What came before `after` is read by the experiments themselves; those that began between
        # the two lists are among the later ones.
        for experiment_id in await events.experiments():
            await self._open(experiment_id)
        async with aclosing(events.follow_all(after)) as messages:
            async for message in messages:
                self._route(message)

    async def aclose(self) -> None:
        """End all hosts; may be called twice."""
        await self._tasks.aclose()

    async def _last_sequence(self, experiment_ids: list[str]) -> int:
        lasts = await asyncio.gather(*(self._around.events.last(id_) for id_ in experiment_ids))
        return max((last.sequence for last in lasts if last is not None), default=0)

    async def _open(self, experiment_id: str) -> None:
        last = await self._around.events.last(experiment_id)
        if (
            last is not None
            and not last.is_loading
            and self._told(log_messages.ends_experiment, last) is False
        ):
            self._serve(experiment_id)

    def _route(self, message: LogMessage) -> None:
        experiment = self._served.get(message.experiment_id)
        if experiment is not None:
            experiment.deliver(message)
        elif not message.is_loading and self._told(log_messages.wants_algorithm, message):
            self._serve(message.experiment_id)

    @staticmethod
    def _told(question: Callable[[bytes], bool], message: LogMessage) -> bool | None:
        """Answer a question about a batch; `None` if it is none: others must not suffer from it."""
        try:
            return question(message.payload)
        except DecodeError as error:
            get_logger().error(
                "log cannot be read",
                experiment=message.experiment_id,
                sequence=message.sequence,
                error=str(error),
            )
            return None

    def _serve(self, experiment_id: str) -> None:
        if experiment_id not in self._served:
            experiment = Experiment(experiment_id, self._around)
            self._served[experiment_id] = experiment
            self._tasks.start(self._serving(experiment), f"serve {experiment_id}")

    async def _serving(self, experiment: Experiment) -> None:
        bind_task(experiment=experiment.id)
        log = get_logger()
        log.info("experiment served")
        try:
            while not await self._served_to_its_end(experiment):
                await self._around.clock.sleep(_RETRY_S)
        finally:
            del self._served[experiment.id]
            await experiment.aclose()
        log.info("experiment released")

    @staticmethod
    async def _served_to_its_end(experiment: Experiment) -> bool:
        try:
            await experiment.serve()
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - rim: one experiment's trouble is not the others'
            get_logger().exception("serving an experiment failed", experiment=experiment.id)
            return False
        return True

    @staticmethod
    def _task_failed(name: str, error: BaseException) -> None:
        if not isinstance(error, UnavailableError):  # else the bus is closed: this process ends
            get_logger().error("task failed", task=name, exc_info=error)
