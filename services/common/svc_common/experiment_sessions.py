"""Sessions of a service: one per experiment that requests it, all fed by one log follower.

The dispatcher has sessions for experiments with an algorithm, the compressor for compression jobs.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from svc_common.clock import Clock
from svc_common.errors import UnavailableError
from svc_common.logs import bind_task, get_logger
from svc_common.messaging.ports import EventLog, LogMessage
from svc_common.tasks import TaskOwner

_RETRY_S: Final = 2.0
"""Pause before a session that failed unexpectedly is started again."""


class ExperimentSession(Protocol):
    """Interface of a service's work for one experiment: reads its log, then new messages."""

    @property
    def id(self) -> str:
        """Id of the experiment."""
        ...

    def deliver(self, message: LogMessage) -> None:
        """Queue a new message of the experiment's log, which `serve` may have read already."""
        ...

    async def serve(self) -> None:
        """Read the log, then handle new messages until the service is not wanted any more."""
        ...

    async def aclose(self) -> None:
        """Cancel the session's work in progress; may be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class SessionKind:
    """Functions by which a service opens its sessions and finds the experiments that want one."""

    open: Callable[[str], ExperimentSession]
    """Makes the session of an experiment id."""
    begins: Callable[[bytes], bool]
    """Whether an append to a log without a session wants one."""
    ends: Callable[[bytes], bool]
    """Whether a log whose last append is this one wants no session."""


class ExperimentSessions:
    """Registry of a service's sessions, fed by one follower of all logs; restarts failed ones.

    Args:
        events: the logs.
        clock: waits before a failed session is started again.
        kind: opens sessions.
    """

    def __init__(self, events: EventLog, clock: Clock, kind: SessionKind) -> None:
        self._events = events
        self._clock = clock
        self._kind = kind
        self._sessions: dict[str, ExperimentSession] = {}
        self._tasks = TaskOwner(self._task_failed)

    async def run(self) -> None:
        """Serve each experiment whose log needs a session, also later ones, until cancelled."""
        known = await self._events.experiments()
        after = await self._last_sequence(known)
        # Messages up to `after` are read by the sessions themselves; experiments created between
        # the two lists are among the later messages.
        for experiment_id in await self._events.experiments():
            await self._open(experiment_id)
        async with aclosing(self._events.follow_all(after)) as messages:
            async for message in messages:
                self._route(message)

    async def aclose(self) -> None:
        """Close all sessions; may be called twice."""
        await self._tasks.aclose()

    async def _last_sequence(self, experiment_ids: list[str]) -> int:
        lasts = await asyncio.gather(*(self._events.last(id_) for id_ in experiment_ids))
        return max((last.sequence for last in lasts if last is not None), default=0)

    async def _open(self, experiment_id: str) -> None:
        last = await self._events.last(experiment_id)
        if last is not None and not last.is_loading and self._ask(self._kind.ends, last) is False:
            self._serve(experiment_id)

    def _route(self, message: LogMessage) -> None:
        session = self._sessions.get(message.experiment_id)
        if session is not None:
            session.deliver(message)
        elif not message.is_loading and self._ask(self._kind.begins, message):
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
            session = self._kind.open(experiment_id)
            self._sessions[experiment_id] = session
            self._tasks.start(self._run(session), f"serve {experiment_id}")

    async def _run(self, session: ExperimentSession) -> None:
        bind_task(experiment=session.id)
        log = get_logger()
        log.info("experiment session opened")
        try:
            while not await self._serve_to_its_end(session):
                await self._clock.sleep(_RETRY_S)
        finally:
            del self._sessions[session.id]
            await session.aclose()
        log.info("experiment session closed")

    @staticmethod
    async def _serve_to_its_end(session: ExperimentSession) -> bool:
        try:
            await session.serve()
        except UnavailableError as error:  # of a disk, too: only a closed bus ends this process
            get_logger().warning("session waits", experiment=session.id, error=error.message)
            return False
        except Exception:  # noqa: BLE001 - rim: a failure of one experiment must not reach the others
            get_logger().exception("experiment session failed", experiment=session.id)
            return False
        return True

    @staticmethod
    def _task_failed(name: str, error: BaseException) -> None:
        if not isinstance(error, UnavailableError):  # else the bus is closed: this process ends
            get_logger().error("task failed", task=name, exc_info=error)
