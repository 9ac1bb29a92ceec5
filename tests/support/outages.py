"""Outages of a whole installation in the middle of an experiment, and faults of the bus's store."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from tests.support import processes, wait
from tests.support.chaos import ChaosResult, Disturbed, KillPlan, run_disturbed
from tests.support.cut_disk import CutDisk
from tests.support.local_shape import LocalShape

_STREAMS: Final = Path("jetstream", "jetstream")
_DUE_TIMEOUT_S: Final = 240.0


@dataclass(frozen=True, slots=True)
class Outage:
    """Moment at which all services are cut off, and what happens before they are started again."""

    due: int
    """Number of trials that have ended by then."""
    fault: Callable[[LocalShape], None]
    """Cuts the services off, and changes what they find at their next start."""
    prepare: Callable[[LocalShape], None] | None = None
    """Called when half of the trials before the outage have ended; None: nothing."""


def run_with_outages(
    plan: KillPlan, shape: LocalShape, folder: Path, outages: Sequence[Outage]
) -> ChaosResult:
    """Run the experiment with outages, and check its result as after kills."""

    def disturb(run: Disturbed) -> Counter[str]:
        for number, outage in enumerate(outages):
            if outage.prepare is not None:
                _wait_for_ends(run, outage.due // 2, number)
                outage.prepare(shape)
            _wait_for_ends(run, outage.due, number)
            outage.fault(shape)
            shape.start()
            run.reconnect()
        return Counter(outage=len(outages))

    return run_disturbed(plan, shape, folder, disturb)


def _wait_for_ends(run: Disturbed, count: int, number: int) -> None:
    what = f"{count} trials ended before outage {number}"
    wait.until(lambda: run.has_ended(count), _DUE_TIMEOUT_S, what)


def cut_power(disk: CutDisk, seed: int) -> Callable[[LocalShape], None]:
    """Return the fault that cuts the power of the disk with the installation, and restores it."""

    def fault(shape: LocalShape) -> None:
        time.sleep(random.Random(seed).random() * 0.5)  # a moment that no event announces
        running = processes.tree(int(shape.endpoint()["pid"]))
        disk.cut()
        _kill(running)
        wait.until(lambda: _free(disk), _DUE_TIMEOUT_S, "no process uses the disk")
        disk.restore()

    return fault


def start_on_copy(disk: CutDisk, seed: int) -> Callable[[LocalShape], None]:
    """Return the fault that copies the disk in use, and replaces it by the copy."""

    def fault(shape: LocalShape) -> None:
        time.sleep(random.Random(seed).random() * 0.5)
        disk.copy()
        kill_all(shape)
        wait.until(lambda: _free(disk), _DUE_TIMEOUT_S, "no process uses the disk")
        disk.restore_copy()

    return fault


def _free(disk: CutDisk) -> bool:
    """Return whether no process uses the disk; kill those that do."""
    users = _users_of(disk.path)
    _kill(users)
    return not users


def _users_of(folder: Path) -> list[psutil.Process]:
    """Return the processes that work in a folder or hold a file of it open."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            places = [process.cwd(), *(file.path for file in process.open_files())]
            if any(Path(place).is_relative_to(folder) for place in places):
                found.append(process)
    return found


def kill_all(shape: LocalShape) -> None:
    """Kill all processes of an installation at once, and wait for their end."""
    _kill(processes.tree(int(shape.endpoint()["pid"])))


def _kill(running: Sequence[psutil.Process]) -> None:
    for process in running:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(running, timeout=30)


def streams_of(shape: LocalShape) -> Path:
    """Return the folder with the streams of an installation's bus."""
    (account,) = [path for path in (shape.home / _STREAMS).iterdir() if (path / "streams").is_dir()]
    return account / "streams"


def emptied_inbox(shape: LocalShape) -> None:
    """Kill all processes, and delete the stream of reports."""
    kill_all(shape)
    shutil.rmtree(streams_of(shape) / "INBOX")


def flipped_inbox(shape: LocalShape) -> None:
    """Kill all processes, and change a byte in the middle of each file with reports."""
    kill_all(shape)
    for block in (streams_of(shape) / "INBOX" / "msgs").glob("*.blk"):
        data = bytearray(block.read_bytes())
        if data:
            data[len(data) // 2] ^= 0xFF
            block.write_bytes(data)


def lost_stream(name: str) -> Callable[[LocalShape], None]:
    """Return the fault that deletes a stream while the bus is down, and the other services run."""

    def fault(shape: LocalShape) -> None:
        supervisor = psutil.Process(int(shape.endpoint()["pid"]))
        supervisor.suspend()
        try:
            bus = psutil.Process(shape.pids()["nats"])
            bus.kill()
            ended = {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
            wait.until(lambda: bus.status() in ended, _DUE_TIMEOUT_S, "the end of the bus")
            shutil.rmtree(streams_of(shape) / name)
        finally:
            supervisor.resume()

    return fault


def halved_consumers(shape: LocalShape) -> None:
    """Kill all processes, and cut the states of the bus's consumers in half, as a crash may do."""
    kill_all(shape)
    states = [path for path in streams_of(shape).glob("*/obs/*/o.dat") if path.stat().st_size]
    assert states, "no consumer has a state yet"
    for path in states:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])


@dataclass(slots=True)
class OlderCopy:
    """Earlier copy of a part of the bus's data, which an outage puts back."""

    folder: Path
    """Place of the copy."""
    part: str = ""
    """Name of a stream; empty: all of the bus's data."""

    def take(self, shape: LocalShape) -> None:
        """Copy the data as they are now; the bus may be writing them."""
        shutil.rmtree(self.folder, ignore_errors=True)
        wait.until(lambda: self._copied(shape), _DUE_TIMEOUT_S, "a whole copy")

    def _copied(self, shape: LocalShape) -> bool:
        try:
            shutil.copytree(self._source(shape), self.folder)
        except (shutil.Error, OSError):  # a file was deleted meanwhile
            shutil.rmtree(self.folder, ignore_errors=True)
            return False
        return True

    def put_back(self, shape: LocalShape) -> None:
        """Kill all processes, and replace the data by the copy."""
        kill_all(shape)
        target = self._source(shape)
        shutil.rmtree(target)
        shutil.copytree(self.folder, target)

    def _source(self, shape: LocalShape) -> Path:
        return streams_of(shape) / self.part if self.part else shape.home / _STREAMS.parent
