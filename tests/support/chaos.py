"""An experiment under random SIGKILLs, and what must be true of it afterwards."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from nni.errors import NniError
from nni.experiment import Experiment, ReplayResult
from tests.support import processes, wait
from tests.support.local_shape import LocalShape

VICTIMS: Final = (
    "svc_manager", "nni.hpo.host", "svc_trial_runner", "svc_dispatcher", "nats-server",
)  # fmt: skip
"""Words in the command lines of what is killed."""
_TRIAL: Final = """\
import os, time
import nni
p = nni.get_next_parameter()
nni.report_intermediate_result(p["x"])
time.sleep({duration_s})
nni.report_final_result(p["x"] ** 2)
with open({witness!r}, "a") as file:
    file.write(nni.get_trial_id() + "\\n")
"""
_LAST_KILL: Final = 0.85
"""Part of the trials that have ended when the last kill is due."""


@dataclass(frozen=True, slots=True)
class Storm:
    """One experiment and what befalls it."""

    trials: int
    slots: int
    kills: int
    seed: int
    trial_s: float = 0.15
    tuner: str = "TPE"
    timeout_s: float = 600.0

    def plan(self) -> list[tuple[int, str, float]]:
        """Give (ended trials when it is due, victim, further seconds) of every kill, in order."""
        dice = random.Random(self.seed)
        victims = list(itertools.islice(itertools.cycle(VICTIMS), self.kills))
        dice.shuffle(victims)
        dues = sorted(dice.randint(0, int(self.trials * _LAST_KILL)) for _ in victims)
        return [
            (due, victim, dice.random() * 0.3) for due, victim in zip(dues, victims, strict=True)
        ]


@dataclass(slots=True)
class Aftermath:
    """What was left."""

    status: str
    killed: Counter[str]
    duration_s: float
    attempts: int
    """How many trial processes came to their end."""
    replay: ReplayResult
    faults: list[str] = field(default_factory=list)
    """What is not as it must be, in words; empty if all is well."""


def live_through(storm: Storm, shape: LocalShape, folder: Path) -> Aftermath:
    """Run the experiment, kill as planned, and look at what is left.

    Args:
        storm: what happens.
        shape: services of its own; this process must use them (`NNI_HOME`).
        folder: for the code.
    """
    witness = folder / "witness"
    witness.touch()
    code = folder / "code"
    code.mkdir()
    (code / "trial.py").write_text(
        _TRIAL.format(duration_s=storm.trial_s, witness=str(witness)), "utf-8"
    )
    experiment = _configured(storm, shape, code)
    began_s = time.monotonic()
    experiment.start(shape.free_port())
    killed = _kill_as_planned(storm, shape, witness)
    wait.until(lambda: _finished(experiment), storm.timeout_s, "the experiment's end")
    duration_s = time.monotonic() - began_s
    result = experiment.replay()
    aftermath = Aftermath(
        status=experiment.get_status(),
        killed=killed,
        duration_s=duration_s,
        attempts=len(_lines(witness)),
        replay=result,
    )
    aftermath.faults = _faults(storm, experiment, aftermath, set(_lines(witness)))
    experiment.stop()
    return aftermath


def _configured(storm: Storm, shape: LocalShape, code: Path) -> Experiment:
    experiment = Experiment("local")
    experiment.config.search_space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = code
    experiment.config.trial_concurrency = storm.slots
    experiment.config.max_trial_number = storm.trials
    experiment.config.max_trial_retries = storm.kills
    experiment.config.tuner.name = storm.tuner
    experiment.config.tuner.class_args["optimize_mode"] = "minimize"
    experiment.config.experiment_working_directory = shape.root
    return experiment


def _kill_as_planned(storm: Storm, shape: LocalShape, witness: Path) -> Counter[str]:
    supervisor = int(json.loads((shape.home / "endpoint.json").read_text("utf-8"))["pid"])
    killed: Counter[str] = Counter()
    for number, (due, word, further_s) in enumerate(storm.plan()):
        wait.until(
            partial(_enough, witness, due),
            storm.timeout_s,
            f"{due} trials ended before kill {number} ({word})",
        )
        time.sleep(further_s)  # a moment that no event announces
        wait.until(partial(_kill_one, supervisor, word), 60, f"a {word} to kill")
        killed[word] += 1
    return killed


def _kill_one(supervisor: int, word: str) -> bool:
    for victim in processes.named(supervisor, word):
        with contextlib.suppress(psutil.NoSuchProcess):
            os.kill(victim.pid, signal.SIGKILL)
            return True
    return False


def _lines(witness: Path) -> list[str]:
    return witness.read_text("ascii").split()


def _enough(witness: Path, count: int) -> bool:
    return len(set(_lines(witness))) >= count


def _finished(experiment: Experiment) -> bool:
    with contextlib.suppress(NniError):
        return experiment.get_status() in {"DONE", "ERROR", "STOPPED"}
    return False


def _faults(
    storm: Storm, experiment: Experiment, aftermath: Aftermath, witnessed: set[str]
) -> list[str]:
    faults = []
    jobs, results = experiment.list_trial_jobs(), experiment.export_data()
    ids = [job.trialJobId for job in jobs]
    states = Counter(job.status for job in jobs)
    if aftermath.status != "DONE":
        faults.append(f"the experiment is {aftermath.status}")
    if sorted(job.sequenceId for job in jobs) != list(range(storm.trials)):
        faults.append(f"{len(jobs)} trials instead of {storm.trials}")
    if len(set(ids)) != len(ids):
        faults.append("two trials have one id")
    if states != {"SUCCEEDED": storm.trials}:
        faults.append(f"trials are {dict(states)}")
    if sorted(result.trialJobId for result in results) != sorted(ids):
        faults.append(f"{len(results)} results of {len(ids)} trials")
    wrong = [r.trialJobId for r in results if r.value != r.parameter["x"] ** 2]
    if wrong:
        faults.append(f"results under the parameters of others: {wrong[:5]}")
    if not set(ids) <= witnessed:
        faults.append(f"trials that never ran: {sorted(set(ids) - witnessed)[:5]}")
    if not aftermath.replay.repeatable or aftermath.replay.equal != aftermath.replay.suggestions:
        faults.append(f"replay: {aftermath.replay.reason}")
    if aftermath.replay.suggestions < storm.trials:
        faults.append(f"the log holds {aftermath.replay.suggestions} suggestions")
    return faults
