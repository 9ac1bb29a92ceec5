"""Reuse of trial processes: a process that has ended its trial runs another of the same kind.

A process asks for this itself, with `next` on the socket of trials, see `docs/trial-protocol.md`.
Every trial has a process as far as the rest of the agent knows: a `LeasedProcess`, which ends when
its trial does.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeAlias

from svc_common.logs import get_logger
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.launch import TOKEN_VARIABLE
from svc_trial_runner.ports import (
    LaunchRequest,
    NextTrial,
    Processes,
    TrialProcess,
    WaitingProcess,
)

HANDOVER_TIMEOUT_S: Final = 30.0
"""Time for a process to make the first request of a trial that it was given, or to end when there
is none."""

_Kind: TypeAlias = tuple[str, int, str, str, str | None]
"""Group, identity of the shared variables, command, code, visible GPUs."""


class _Worker:
    """Process that runs trials one after another, and the kind of trials that it may run.

    Args:
        process: the process.
        request: that of its first trial.
        on_end: called when the process has ended.
    """

    def __init__(
        self, process: TrialProcess, request: LaunchRequest, on_end: Callable[["_Worker"], None]
    ) -> None:
        self.process = process
        self._on_end = on_end
        self.kind = _kind(request)
        self.base = request.base
        """Shared variables: while they are referred to, no others have their identity."""
        self.code = request.code
        self.variables = set(request.variables)
        """Names of the variables that the process was given for its trials."""
        self.token = request.variables.get(TOKEN_VARIABLE, "")
        """Secret of its present or last trial."""
        self.lease: LeasedProcess | None = LeasedProcess(self)
        """That of the present trial; None: it waits for one."""
        self.waiting: WaitingProcess | None = None
        self.timer: asyncio.TimerHandle | None = None
        process.ended.add_done_callback(self.ended)

    def ended(self, done: asyncio.Future[int | None]) -> None:
        """Resolve the end of the current trial with the wait status of its ended process."""
        if self.timer is not None:
            self.timer.cancel()
        if self.lease is not None and not self.lease.ended.done():
            self.lease.ended.set_result(None if done.cancelled() else done.result())
        self._on_end(self)


class LeasedProcess:
    """Handle of one trial on a process that may run further trials after this one has ended."""

    __slots__ = ("ended", "handed_back", "worker")

    def __init__(self, worker: _Worker) -> None:
        self.worker = worker
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.handed_back = False
        """True if the trial has ended and the process has not ended with it."""

    @property
    def identity(self) -> ProcessIdentity:
        """Leader of the process group; trials of one process have the same."""
        return self.worker.process.identity

    @property
    def warm(self) -> bool:
        """True if it was started by a warm interpreter."""
        return self.worker.process.warm


class ReusedProcesses:
    """Launcher of trial processes that prefers a waiting process to a new one.

    Args:
        processes: starts and ends processes.
        idle_s: time for which a process without a trial is kept, in seconds.
        handover_timeout_s: time for a process to make the first request of a trial, or to end when
            there is none, in seconds; it is killed then.
    """

    def __init__(
        self,
        processes: Processes,
        idle_s: float,
        handover_timeout_s: float = HANDOVER_TIMEOUT_S,
    ) -> None:
        self._processes = processes
        self._idle_s = idle_s
        self._handover_timeout_s = handover_timeout_s
        self._waiting: defaultdict[_Kind, list[_Worker]] = defaultdict(list)
        """Those that have waited for the shortest time are last, and taken first."""

    @property
    def warm_count(self) -> int:
        """Number of warm interpreters."""
        return self._processes.warm_count

    @property
    def waiting_count(self) -> int:
        """Number of processes that wait for a trial."""
        return sum(map(len, self._waiting.values()))

    async def launch(self, request: LaunchRequest) -> TrialProcess:
        """Hand a trial to a waiting process of its kind, or start one.

        Raises:
            LaunchError: no process can be started.
        """
        if not request.reuse_group or request.isolated:
            return await self._processes.launch(request)
        kind = _kind(request)
        while (worker := self._take(kind)) is not None:
            lease = await self._hand_over(worker, request)
            if lease is not None:
                return lease
        process = await self._processes.launch(request)
        started = _Worker(process, request, self._forget).lease
        assert started is not None
        return started

    def wait_for_next(self, process: TrialProcess, waiting: WaitingProcess) -> bool:
        """End a trial with success, keep its process for the next one; False: it may not be kept.

        Args:
            process: of the trial.
            waiting: the caller on the socket.

        Returns:
            False: the caller is not the leader of the trial's process group, or the trial may
            share no process.
        """
        if not isinstance(process, LeasedProcess) or process.ended.done():
            return False
        worker = process.worker
        if waiting.pid != worker.process.identity.pid or worker.process.ended.done():
            return False
        process.handed_back = True
        process.ended.set_result(0)
        worker.lease, worker.waiting = None, waiting
        self._waiting[worker.kind].append(worker)
        loop = asyncio.get_running_loop()
        worker.timer = loop.call_later(self._idle_s, self._release, worker)
        return True

    def _take(self, kind: _Kind) -> _Worker | None:
        """Remove and return the latest waiting process of a kind that still runs; None: none."""
        workers = self._waiting.get(kind, [])
        while workers:
            worker = workers.pop()
            if not workers:
                del self._waiting[kind]
            if worker.timer is not None:
                worker.timer.cancel()
            if not worker.process.ended.done():
                return worker
        return None

    async def _hand_over(self, worker: _Worker, request: LaunchRequest) -> LeasedProcess | None:
        """Send a trial to a waiting process; kill it and return None if it does not take it."""
        assert worker.waiting is not None
        waiting, worker.waiting = worker.waiting, None
        worker.token = token = request.variables[TOKEN_VARIABLE]
        unset = frozenset(worker.variables - request.variables.keys())
        trial = NextTrial(
            token, request.directory, request.variables, unset, request.stdout, request.stderr
        )
        # Its end, and an end by a stop of the trial, are ends of the trial from now on.
        worker.lease = lease = LeasedProcess(worker)
        worker.variables |= request.variables.keys()
        accepted = waiting.hand_over(trial)
        await asyncio.wait({accepted}, timeout=self._handover_timeout_s)
        if accepted.done() and accepted.result():
            return lease
        worker.lease = None
        get_logger().info("process lost while it waited", pid=lease.identity.pid)
        self._processes.kill(worker.process, token)
        return None

    def _release(self, worker: _Worker) -> None:
        """Reply to a waiting process that no trial follows; kill it unless it ends in time."""
        self._forget(worker)
        if worker.timer is not None:
            worker.timer.cancel()
        if worker.waiting is not None:
            worker.waiting.release()
            worker.waiting = None
        loop = asyncio.get_running_loop()
        worker.timer = loop.call_later(self._handover_timeout_s, self._kill_released, worker)

    def _forget(self, worker: _Worker) -> None:
        """Remove a process from those that wait; do nothing if it does not wait."""
        workers = self._waiting.get(worker.kind, [])
        if worker in workers:
            workers.remove(worker)
            if not workers:
                del self._waiting[worker.kind]

    def _kill_released(self, worker: _Worker) -> None:
        if not worker.process.ended.done():
            self._processes.kill(worker.process, worker.token)

    # ends

    def terminate(self, process: TrialProcess, token: str) -> None:
        """Send TERM to the group and to descendants that left it, unless the trial has ended."""
        target = _target(process)
        if target is not None:
            self._processes.terminate(target, token)

    def kill(self, process: TrialProcess, token: str) -> None:
        """Send KILL to the group and to all descendants, unless the trial has ended."""
        target = _target(process)
        if target is not None:
            self._processes.kill(target, token)

    def has_leftovers(self, process: TrialProcess) -> bool:
        """Return whether processes of the trial outlive their leader; False if the leader waits."""
        target = _target(process)
        return target is not None and self._processes.has_leftovers(target)

    def kill_orphans(self, older_than: int | None) -> int:
        """Kill adopted processes that no running trial owns; return their number.

        Args:
            older_than: start time from which on a process may be of a running trial, or None.
        """
        return self._processes.kill_orphans(older_than)

    def release(self, code: str) -> None:
        """End waiting processes and idle interpreters of a code folder."""
        found = [w for workers in self._waiting.values() for w in workers if w.code == code]
        for worker in found:
            self._release(worker)
        self._processes.release(code, {worker.process.identity.pid for worker in found})

    def release_idle(self, idle_s: float) -> None:
        """End interpreters that have been idle for `idle_s` or longer."""
        self._processes.release_idle(idle_s)

    def continue_stopped(self) -> None:
        """Send SIGCONT to process servers that a trial may have stopped."""
        self._processes.continue_stopped()


def _kind(request: LaunchRequest) -> _Kind:
    # A program reads the variable for its GPUs once.
    gpus = request.variables.get("CUDA_VISIBLE_DEVICES")
    return (request.reuse_group, id(request.base), request.command, request.code, gpus)


def _target(process: TrialProcess) -> TrialProcess | None:
    """Return the process to signal for a trial; None: it belongs to no or another trial now."""
    if not isinstance(process, LeasedProcess):
        return process
    return None if process.handed_back else process.worker.process
