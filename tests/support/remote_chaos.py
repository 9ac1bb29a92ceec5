"""Experiment on workers over SSH under random faults, and checks of what is left of it."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from tests.support import wait
from tests.support.chaos import (
    ChaosResult,
    Disturbed,
    KillPlan,
    hit_as_planned,
    kill_service,
    run_disturbed,
)
from tests.support.local_shape import LocalShape
from tests.support.ssh_workers import SshWorker, remote_config

AGENT: Final = "agent"
SESSION: Final = "session"
STOP: Final = "stopped connection"
FLEET: Final = "svc_trial_runner.fleet"
SERVICES: Final = (FLEET, "svc_manager", "nats-server")
FAULTS: Final = (AGENT, SESSION, STOP, *SERVICES)
"""What is disturbed: killed agents, connections and services; connections that stop for a while."""
_CLEAN_TIMEOUT_S: Final = 120.0


class RemoteFaults:
    """Faults of an experiment on workers.

    Args:
        shape: services of the experiment.
        workers: its machines.
        seed: of the choice of a machine.
        stop_s: how long a connection stops.
    """

    def __init__(
        self, shape: LocalShape, workers: Sequence[SshWorker], seed: int, stop_s: float
    ) -> None:
        self._shape = shape
        self._workers = workers
        self._generator = random.Random(seed)
        self._stop_s = stop_s
        self._timers: list[threading.Timer] = []

    def hit(self, victim: str) -> bool:
        """Disturb one victim; false: there is none now."""
        for worker in self._workers:
            worker.note_socket_folders()
        if victim in SERVICES:
            return kill_service(self._shape, victim)
        worker = self._generator.choice(self._workers)
        if victim == AGENT:
            return _signalled(worker.agents()[:1], signal.SIGKILL)
        if victim == SESSION:
            return _signalled(worker.sessions(), signal.SIGKILL)
        return self._stop(worker.sessions())

    def close(self) -> None:
        """Wait until all connections go on."""
        for timer in self._timers:
            timer.join()

    def _stop(self, sessions: Sequence[psutil.Process]) -> bool:
        stopped = _with_children(sessions)
        timer = threading.Timer(self._stop_s, _signalled, (stopped, signal.SIGCONT))
        timer.start()
        self._timers.append(timer)
        return _signalled(stopped, signal.SIGSTOP)


def run_remote_chaos(
    plan: KillPlan,
    shape: LocalShape,
    workers: Sequence[SshWorker],
    folder: Path,
    stop_s: float = 10.0,
) -> ChaosResult:
    """Run the experiment on workers, disturb it as planned, and check the result.

    Args:
        plan: experiment and faults; the slots are shared out evenly.
        shape: services of its own; this process must use them (`NNI_HOME`).
        workers: machines of the experiment.
        folder: for the code.
        stop_s: how long a connection stops.
    """
    faults = RemoteFaults(shape, workers, plan.seed, stop_s)

    def disturb(run: Disturbed) -> Counter[str]:
        try:
            return hit_as_planned(plan, run.record_file, faults.hit)
        finally:
            faults.close()

    outcome = run_disturbed(plan, shape, folder, disturb, remote_config(workers))
    with suppress(TimeoutError):
        wait.until(lambda: not _remains(workers), _CLEAN_TIMEOUT_S)
    outcome.violations += [f"left behind: {one}" for one in _remains(workers)]
    return outcome


def _remains(workers: Sequence[SshWorker]) -> list[str]:
    return [one for worker in workers for one in worker.remains()]


def _with_children(sessions: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return processes of connections and of their users, but not the commands below them."""
    found = []
    for session in sessions:
        with suppress(psutil.NoSuchProcess):
            below = [one for one in session.children() if one.name().startswith("sshd")]
            found += [session, *below]
    return found


def _signalled(targets: Sequence[psutil.Process], number: signal.Signals) -> bool:
    """Send a signal to processes; return whether there was one."""
    reached = False
    for process in targets:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
            reached = True
    return reached
