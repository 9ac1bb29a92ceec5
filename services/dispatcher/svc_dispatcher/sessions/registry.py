"""Registry of the experiment sessions, fed by one follower of all logs."""

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
from svc_dispatcher.sessions.experiment_session import ExperimentSession
from svc_dispatcher.sessions.generation import SessionDependencies

_RETRY_S: Final = 2.0
"""Pause before a session that failed unexpectedly is started again."""


class SessionRegistry:
    """Registry of experiments' sessions, fed by one follower of all logs.

    Args:
        dependencies: ports and limits that all sessions share.
    """

    def __init__(self, dependencies: SessionDependencies) -> None:
        self._dependencies = dependencies
        self._sessions: dict[str, ExperimentSession] = {}
        self._tasks = TaskOwner(self._task_failed)

    async def run(self) -> None:
        """Open a session for each experiment in the logs; pass on new messages until cancelled."""
        events = self._dependencies.events
        known = await events.experiments()
        after = await self._last_sequence(known)
        # Messages up to `after` are read by the sessions themselves; experiments created between
        # the two lists are among the later messages.
        for experiment_id in await events.experiments():
            await self._open(experiment_id)
        async with aclosing(events.follow_all(after)) as messages:
            async for message in messages:
                self._route(message)

    async def aclose(self) -> None:
        """Close all sessions with their hosts; may be called twice."""
        await self._tasks.aclose()

    async def _last_sequence(self, experiment_ids: list[str]) -> int:
        lasts = await asyncio.gather(
            *(self._dependencies.events.last(id_) for id_ in experiment_ids)
        )
        return max((last.sequence for last in lasts if last is not None), default=0)

    async def _open(self, experiment_id: str) -> None:
        last = await self._dependencies.events.last(experiment_id)
        if (
            last is not None
            and not last.is_loading
            and self._ask(log_messages.ends_experiment, last) is False
        ):
            self._serve(experiment_id)

    def _route(self, message: LogMessage) -> None:
        session = self._sessions.get(message.experiment_id)
        if session is not None:
            session.deliver(message)
        elif not message.is_loading and self._ask(log_messages.wants_algorithm, message):
            self._serve(message.experiment_id)

    @staticmethod
    def _ask(question: Callable[[bytes], bool], message: LogMessage) -> bool | None:
        """Return ``question``'s answer about a batch; None, with a log line, if it is damaged."""
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
        if experiment_id not in self._sessions:
            session = ExperimentSession(experiment_id, self._dependencies)
            self._sessions[experiment_id] = session
            self._tasks.start(self._run(session), f"serve {experiment_id}")

    async def _run(self, session: ExperimentSession) -> None:
        bind_task(experiment=session.id)
        log = get_logger()
        log.info("experiment session opened")
        try:
            while not await self._serve_to_its_end(session):
                await self._dependencies.clock.sleep(_RETRY_S)
        finally:
            del self._sessions[session.id]
            await session.aclose()
        log.info("experiment session closed")

    @staticmethod
    async def _serve_to_its_end(session: ExperimentSession) -> bool:
        try:
            await session.serve()
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - rim: a failure of one experiment must not reach the others
            get_logger().exception("experiment session failed", experiment=session.id)
            return False
        return True

    @staticmethod
    def _task_failed(name: str, error: BaseException) -> None:
        if not isinstance(error, UnavailableError):  # else the bus is closed: this process ends
            get_logger().error("task failed", task=name, exc_info=error)
