"""Agent: registry of the tasks that it runs, and handlers of orders to stop, drop or drain."""

import asyncio
import secrets
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from svc_common.errors import ServiceError, UnavailableError
from svc_common.experiment_events.causes import LossCause, LossReason
from svc_common.logs import bind_task, get_logger
from svc_common.messaging.limits import ACK_WAIT_S
from svc_common.messaging.ports import Task, TaskQueue
from svc_common.tasks import TaskOwner
from svc_common.telemetry.trace_ids import trace_text
from svc_trial_runner.attempts.dependencies import AttemptDependencies
from svc_trial_runner.attempts.execution import AttemptRun
from svc_trial_runner.converters import work_from_payload
from svc_trial_runner.domain.attempt import Phase, StopTrigger
from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claimed,
    Closed,
    DirectoryKnown,
    Progressed,
    Redelivered,
    TaskDecision,
    decide_task,
    is_outdated,
)
from svc_trial_runner.domain.tasks import TrialWork

ACK_WAIT: Final = timedelta(seconds=ACK_WAIT_S)
"""Time without renewal after which the bus delivers a task again, as its stream is configured."""
RENEW_EVERY_S: Final = 10.0
_AGENT_STOPPED: Final = LossReason(LossCause.AGENT_STOPPED)
_ENDED_KEPT: Final = 100_000
"""Number of ended attempts remembered, so that a task delivered twice does not run twice."""


@dataclass(slots=True)
class _Held:
    """Claimed task: run of its attempt, acknowledgement subject and time of the last renewal."""

    run: AttemptRun
    ack_subject: str
    renewed_at_s: float


class Agent:
    """Registry of this machine's running attempts: takes, renews, stops and releases tasks.

    Args:
        dependencies: what attempts share.
        queue: renews and acknowledges tasks.
        tasks: owner of all background tasks.
        loses_unrenewed: whether a trial is ended when its task could not be renewed for
                `ack_wait`, since another agent may have it by then. False where the bus is on this
                machine: if this agent cannot reach it, no other agent can.
        slots: concurrent attempts; None: no limit.
        task_limit: number of tasks after which the agent drains; None: no limit.
        ack_wait: time without renewal after which the bus delivers a task again.
    """

    def __init__(
        self,
        dependencies: AttemptDependencies,
        queue: TaskQueue,
        tasks: TaskOwner,
        *,
        loses_unrenewed: bool,
        slots: int | None = None,
        task_limit: int | None = None,
        ack_wait: timedelta = ACK_WAIT,
    ) -> None:
        self._dependencies = dependencies
        self._queue = queue
        self._tasks = tasks
        self._loses_unrenewed = loses_unrenewed
        self._slots = slots
        self._left_to_take = task_limit
        self._ack_wait_s = ack_wait.total_seconds()
        self._held: dict[AttemptKey, _Held] = {}
        self._ended: dict[AttemptKey, None] = {}
        self._draining = False
        self._drain_begun = asyncio.Event()
        self._drained = asyncio.Event()
        self._on_change: list[Callable[[], None]] = []

    # --- tasks

    @property
    def room(self) -> int | None:
        """Return how many more tasks may be taken, by slots, task limit and draining; None: any."""
        if self._draining:
            return 0
        limits = [
            limit
            for limit in (
                None if self._slots is None else self._slots - len(self._held),
                self._left_to_take,
            )
            if limit is not None
        ]
        return max(0, min(limits)) if limits else None

    @property
    def slots(self) -> int | None:
        """Concurrent attempts; None: no limit."""
        return self._slots

    def set_slots(self, slots: int) -> None:
        """Set the number of concurrent attempts, ignoring one below 1; attempts that run continue.

        Args:
            slots: at least 1; smaller numbers are ignored.
        """
        if slots >= 1 and slots != self._slots:
            self._slots = slots
            self._changed()

    def take(self, task: Task) -> None:
        """Run a task; renew a running one, ack an ended one, nak if full, drop a malformed one."""
        try:
            work = work_from_payload(task.payload)
        except (ValueError, LookupError, TypeError) as error:
            get_logger().error("task dropped", sequence=task.sequence, error=str(error))
            self._later(partial(self._queue.term, task.ack_subject), "drop task")
            return
        verdict = decide_task(work.key, self._held, self._ended)
        if self._dependencies.telemetry is not None:
            self._dependencies.telemetry.task_pulled(verdict, work)
        match verdict:
            case TaskDecision.RUNNING:
                held = self._held[work.key]
                held.ack_subject = task.ack_subject
                held.renewed_at_s = self._dependencies.clock.monotonic_s()
                self._dependencies.journal.append(Redelivered(held.run.claim_id, task.ack_subject))
            case TaskDecision.ENDED:
                self._later(partial(self._queue.ack, task.ack_subject), "acknowledge again")
            case TaskDecision.TAKE if self.room == 0:
                self._forget_times(work.key)
                self._later(partial(self._queue.nak, task.ack_subject), "give task back")
            case TaskDecision.TAKE:
                self._claim(work, task.ack_subject)

    def _claim(self, work: TrialWork, ack_subject: str) -> None:
        claim_id, token = secrets.token_hex(8), secrets.token_hex(16)
        journal = self._dependencies.journal
        known = journal.state.directories.get(work.key.experiment_id)
        directory = work.spec.experiment_directory
        if directory and directory != known:
            journal.append(DirectoryKnown(work.key.experiment_id, directory))
        journal.append(Claimed(work.key, claim_id, token, ack_subject))
        run = AttemptRun(work, claim_id, token, self._dependencies, self._over)
        self._held[work.key] = _Held(run, ack_subject, self._dependencies.clock.monotonic_s())
        if self._left_to_take is not None:
            self._left_to_take -= 1
            if self._left_to_take == 0:
                self.drain()
        self._tasks.start(self._run(run), f"trial {work.key.trial_id}")
        self._changed()

    async def _run(self, run: AttemptRun) -> None:
        key = run.key
        bind_task(
            experiment=key.experiment_id,
            trial=key.trial_id,
            attempt=key.attempt,
            trace=trace_text(key.experiment_id, run.work.parameter_id),
        )
        get_logger().debug("attempt begins", sequence=run.work.sequence_id)
        try:
            await run.run()
        except Exception as error:  # noqa: BLE001 - rim: one trial must not end the agent
            get_logger().error("attempt failed", trial=run.key.trial_id, exc_info=error)
            failure = f"the agent failed: {error!r}"
            run.abandon(LossReason(LossCause.AGENT_FAILED, detail=failure))

    def _over(self, run: AttemptRun) -> None:
        """Move an attempt to the ended ones, acknowledge its task and kill its daemons."""
        held = self._held.pop(run.key)
        self.remember_ended(run.key)
        self._forget_times(run.key)
        self.kill_orphans()
        self._later(partial(self._release, held.ack_subject, run.claim_id), "acknowledge")
        self._changed()
        self._check_drained()

    def _forget_times(self, key: AttemptKey) -> None:
        if self._dependencies.telemetry is not None:
            self._dependencies.telemetry.forget(key)

    def kill_orphans(self) -> None:
        """Kill daemons that ended trials have left and that no running trial can have started.

        To be called also when an adopted process has ended: what it has adopted, or forked as its
        last act, is a child of the agent from then on.
        """
        runs = [held.run for held in self._held.values()]
        if any(run.phase is Phase.LAUNCHING for run in runs):
            return  # its process may run already, and has not been reported by its starter
        started = [run.process.identity.start_time for run in runs if run.process is not None]
        self._dependencies.processes.kill_orphans(min(started, default=None))

    async def _release(self, ack_subject: str, claim_id: str) -> None:
        await self._queue.ack(ack_subject)
        self._dependencies.journal.append(Closed(claim_id))

    def remember_ended(self, key: AttemptKey) -> None:
        """Add an attempt to the bounded list of ended ones, which this agent must not run again."""
        self._ended[key] = None
        if len(self._ended) > _ENDED_KEPT:
            del self._ended[next(iter(self._ended))]

    def note_progress(self) -> None:
        """Write each running attempt's next report number to the claim journal."""
        records = [
            Progressed(held.run.claim_id, held.run.next_report) for held in self._held.values()
        ]
        self._dependencies.journal.append(*records)

    # --- orders; each has the log position of its sender, see `claims.is_outdated`

    def stop_trial(self, key: AttemptKey, log_sequence: int = 0) -> None:
        """Stop an attempt that this agent runs and report its end, unless the order is outdated."""
        held = self._held.get(key)
        if held is not None and not is_outdated(log_sequence, held.run.work.log_sequence):
            held.run.stop(StopTrigger.STOPPED)

    def drop_trial(self, key: AttemptKey, claim_id: str, log_sequence: int = 0) -> None:
        """End an attempt of this claim without a report, unless the order is outdated."""
        held = self._held.get(key)
        if held is None or claim_id not in {"", held.run.claim_id}:
            return
        if not is_outdated(log_sequence, held.run.work.log_sequence):
            held.run.stop(StopTrigger.DROPPED)

    def forget_experiment(self, experiment_id: str, log_sequence: int = 0) -> None:
        """Stop an ended experiment's attempts without report; drop its caches if it is not resumed.

        An attempt that is still here was cancelled before its first report arrived, or belongs to a
        later generation of the experiment: then the cache is kept.
        """
        resumed = False
        for key, held in list(self._held.items()):
            if key.experiment_id != experiment_id:
                continue
            if is_outdated(log_sequence, held.run.work.log_sequence):
                resumed = True
            else:
                held.run.stop(StopTrigger.DROPPED)
        if resumed:
            return
        for directory in self._dependencies.plans.forget(experiment_id):
            self._dependencies.processes.release(directory)
        self._dependencies.reporter.forget(experiment_id)
        for key in [key for key in self._ended if key.experiment_id == experiment_id]:
            del self._ended[key]

    def drain(self) -> None:
        """Accept no more tasks; `wait_drained` returns once the last attempt is over."""
        self._draining = True
        self._drain_begun.set()
        self._changed()
        self._check_drained()

    @property
    def draining(self) -> bool:
        """True if new tasks are refused."""
        return self._draining

    async def wait_draining(self) -> None:
        """Wait until draining begins."""
        await self._drain_begun.wait()

    async def wait_drained(self) -> None:
        """Wait until the agent drains and its last attempt is over."""
        await self._drained.wait()

    def _check_drained(self) -> None:
        if self._draining and not self._held:
            self._drained.set()

    def lose_all(self) -> None:
        """Drain, and stop all attempts with the report that they are lost; do not wait."""
        self.drain()
        for held in list(self._held.values()):
            held.run.stop(StopTrigger.LOST, _AGENT_STOPPED)

    async def abandon_all(self, grace_s: float) -> None:
        """Stop all attempts as lost; after `grace_s` kill those that still run."""
        self.lose_all()
        try:
            async with asyncio.timeout(grace_s):
                await self._drained.wait()
        except TimeoutError:
            get_logger().warning("attempts killed", count=len(self._held))
            for held in list(self._held.values()):
                held.run.abandon(_AGENT_STOPPED)

    # --- renewal

    async def renew(self, within_s: float = RENEW_EVERY_S) -> None:
        """Renew all held tasks; with a bus elsewhere, lose attempts not renewed for `ack_wait`.

        Args:
            within_s: time limit for one renewal; a late one is repeated the next time.
        """
        await asyncio.gather(*(self._renew(held, within_s) for held in self._held.values()))
        if not self._loses_unrenewed:
            return
        limit_s = self._dependencies.clock.monotonic_s() - self._ack_wait_s
        expired = LossReason(LossCause.CLAIM_EXPIRED, silence_ms=int(self._ack_wait_s * 1000))
        for held in list(self._held.values()):
            if held.renewed_at_s < limit_s:
                held.run.stop(StopTrigger.LOST, expired)

    async def _renew(self, held: _Held, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self._queue.in_progress(held.ack_subject)
        except (TimeoutError, ServiceError):
            return
        held.renewed_at_s = self._dependencies.clock.monotonic_s()

    # --- queries

    @property
    def attempts(self) -> Collection[AttemptRun]:
        """Runs of the attempts whose task this agent has claimed and not yet acknowledged."""
        return [held.run for held in self._held.values()]

    def find(self, experiment_id: str, trial_id: str) -> AttemptRun | None:
        """Return the run of a trial's attempt that is not over; None: there is none."""
        for key, held in self._held.items():
            if key[:2] == (experiment_id, trial_id) and held.run.phase is not Phase.OVER:
                return held.run
        return None

    def directory_of(self, experiment_id: str) -> str | None:
        """Return the folder of an experiment that had trials on this agent; None if unknown."""
        return self._dependencies.journal.state.directories.get(experiment_id)

    def on_change(self, call: Callable[[], None]) -> None:
        """Register a callback for changes of the held tasks or of draining."""
        self._on_change.append(call)

    def _changed(self) -> None:
        for call in self._on_change:
            call()

    def _later(self, work: Callable[[], Coroutine[object, object, None]], name: str) -> None:
        self._tasks.start(_unless_closed(work), name)


async def _unless_closed(work: Callable[[], Coroutine[object, object, None]]) -> None:
    """Do the work, ignoring a closed bus: the next agent process repeats it by the journal."""
    with suppress(UnavailableError):
        await work()
