"""Faults of disks in mid-run: full, or read-only, for the folders of an installation.

An experiment runs while the disk below one folder fails, is mended after a while, and must then end
with all trials, counted once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from nni_wire.folders import BUS_FOLDER
from tests.support import processes, wait
from tests.support.experiments import write_experiment
from tests.support.faulty_disks import FaultyDisk, faulty_disk
from tests.support.local_shape import LocalShape

_TRIAL: Final = """\
import pathlib, time
import nni
p = nni.get_next_parameter()
nni.report_intermediate_result(p["x"])
while nni.get_sequence_id() >= {third} and not pathlib.Path({gate!r}).exists():
    time.sleep(0.02)
nni.report_final_result(p["x"] ** 2)
"""


class Place(Enum):
    """Folder whose disk fails."""

    EXPERIMENT = "experiment"
    HOME = "services"
    BUS = "bus"


class Fault(Enum):
    """Fault of the disk."""

    FULL = "full"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """Experiment and the fault that disturbs it."""

    place: Place
    fault: Fault
    trials: int = 60
    slots: int = 4
    megabytes: int = 256
    timeout_s: float = 240.0


@dataclass(slots=True)
class DiskOutcome:
    """Outcome of an experiment whose disk failed for a while."""

    reason: str
    """What the experiment waited for, before the disk was mended."""
    ended_before: int
    """Trials that had ended when it was mended."""
    violations: list[str] = field(default_factory=list)
    """Broken invariants, in words."""


def run_with_fault(plan: DiskPlan, shape: LocalShape, folder: Path) -> DiskOutcome:
    """Run an experiment, let a disk fail in mid-run and mend it; check the result.

    Args:
        plan: experiment and fault.
        shape: services of its own, which are not up yet.
        folder: for code and image.
    """
    places = {
        Place.EXPERIMENT: shape.root,
        Place.HOME: shape.home,
        Place.BUS: shape.home / BUS_FOLDER,
    }
    with faulty_disk(folder / "image", places[plan.place], plan.megabytes) as disk:
        config = write_experiment(
            folder / "code",
            _TRIAL.format(third=plan.trials // 3, gate=str(folder / "gate")),
            maxTrialNumber=plan.trials,
            trialConcurrency=plan.slots,
            maxTrialRetries=0,
            experimentWorkingDirectory=str(shape.root),
        )
        experiment = shape.create(config)
        supervisor = int(shape.endpoint()["pid"])
        try:
            return _disturbed(plan, shape, experiment, disk, folder / "gate")
        finally:
            _stop(shape, supervisor)


def _stop(shape: LocalShape, supervisor: int) -> None:
    """Stop the services, although a repaired disk has other files than those that they locked."""
    shape.stop()
    pids = [process.pid for process in processes.tree(supervisor)]
    with contextlib.suppress(ProcessLookupError):
        os.kill(supervisor, signal.SIGTERM)
    wait.until(lambda: not list(processes.alive(pids)), 60, "the end of all services")


def _disturbed(
    plan: DiskPlan, shape: LocalShape, experiment: str, disk: FaultyDisk, gate: Path
) -> DiskOutcome:
    third = plan.trials // 3
    wait.until(lambda: _ended(shape, experiment) == third, plan.timeout_s, f"{third} ended trials")
    with failing(disk, plan.fault):
        gate.touch()
        reason = wait.until(
            lambda: _reason(shape, experiment), plan.timeout_s, "a reason why it waits"
        )
        ended = _ended(shape, experiment)
    wait.until(lambda: shape.state(experiment) == "DONE", plan.timeout_s, "the experiment's end")
    outcome = DiskOutcome(reason, ended)
    outcome.violations = _violations(plan, shape, experiment)
    return outcome


@contextmanager
def failing(disk: FaultyDisk, fault: Fault) -> Iterator[None]:
    """Let a disk fail inside the block."""
    if fault is Fault.FULL:
        disk.fill()
        yield
        disk.free()
    else:
        disk.break_off()
        yield
        disk.repair()


def _status(shape: LocalShape, experiment: str) -> dict[str, Any]:
    done = shape.nnictl("experiment", "status", experiment, check=False)
    with contextlib.suppress(ValueError):
        status: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        return status
    return {}


def _ended(shape: LocalShape, experiment: str) -> int:
    counts = Counter(trial["status"] for trial in shape.trials(experiment))
    return counts["SUCCEEDED"] + counts["FAILED"]


def _reason(shape: LocalShape, experiment: str) -> str:
    status = _status(shape, experiment)
    text = str(status.get("waitingFor") or "")
    return text if "disk" in text or "in a row" in text else ""


def _violations(plan: DiskPlan, shape: LocalShape, experiment: str) -> list[str]:
    trials = shape.trials(experiment)
    violations = []
    states = Counter(trial["status"] for trial in trials)
    if states != {"SUCCEEDED": plan.trials}:
        violations.append(f"trials are {dict(states)}")
    if sorted(trial["sequenceId"] for trial in trials) != list(range(plan.trials)):
        violations.append(f"{len(trials)} trials instead of {plan.trials}")
    silent = [trial["trialJobId"] for trial in trials if not trial.get("finalMetricData")]
    if silent:
        violations.append(f"trials without a result: {silent[:5]}")
    return violations
