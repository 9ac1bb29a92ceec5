"""Experiment under random SIGKILLs, and checks of its result."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from nni.errors import NniError
from nni.experiment import Experiment, ReplayResult
from nni.experiment.config import TrainingServiceConfig
from tests.support import processes, wait
from tests.support.local_shape import LocalShape

VICTIMS: Final = (
    "svc_manager", "nni.hpo.host", "svc_trial_runner", "svc_dispatcher", "nats-server",
)  # fmt: skip
"""Words in the command lines of the processes to kill."""
_TRIAL: Final = """\
import os, time
import nni
p = nni.get_next_parameter()
nni.report_intermediate_result(p["x"])
time.sleep({duration_s})
nni.report_final_result(p["x"] ** 2)
with open({record_file!r}, "a") as file:
    file.write(nni.get_trial_id() + "\\n")
"""
_LAST_KILL_FRACTION: Final = 0.85
"""Fraction of the trials that have ended when the last kill is due."""


@dataclass(frozen=True, slots=True)
class KillPlan:
    """Experiment and the kills that disturb it."""

    trials: int
    slots: int
    kills: int
    seed: int
    trial_s: float = 0.15
    tuner: str = "TPE"
    timeout_s: float = 600.0
    victims: Sequence[str] = VICTIMS

    def schedule(self) -> list[tuple[int, str, float]]:
        """Return (ended trials when it is due, victim, extra delay) of every kill, in order."""
        generator = random.Random(self.seed)
        victims = list(itertools.islice(itertools.cycle(self.victims), self.kills))
        generator.shuffle(victims)
        dues = sorted(generator.randint(0, int(self.trials * _LAST_KILL_FRACTION)) for _ in victims)
        return [
            (due, victim, generator.random() * 0.3)
            for due, victim in zip(dues, victims, strict=True)
        ]


@dataclass(slots=True)
class ChaosResult:
    """Result of the experiment after all kills."""

    status: str
    killed: Counter[str]
    duration_s: float
    attempts: int
    """Number of trial processes that ran to their end."""
    replay: ReplayResult
    resumed: int = 0
    """How often it was found STOPPED, and resumed."""
    violations: list[str] = field(default_factory=list)
    """Broken invariants, in words."""


@dataclass(slots=True)
class Disturbed:
    """Running experiment that is being disturbed."""

    experiment: Experiment
    record_file: Path
    """Has a line for each trial process that has ended."""
    port: int
    """Of the experiment's page."""
    resumed: int = 0
    """How often it was found STOPPED, and resumed."""

    def has_ended(self, count: int) -> bool:
        """Return whether so many trials have ended."""
        return _has_records(self.record_file, count)

    def reconnect(self) -> None:
        """Connect to services that were started again; resume the experiment if it is STOPPED."""
        found = wait.until(self._connected, 60, f"the experiment on port {self.port}")
        assert found is not None, "a true result"
        self.experiment = found

    def _connected(self) -> Experiment | None:
        with contextlib.suppress(NniError):
            (found,) = Experiment.get_all_experiments_metadata()
            if found["status"] != "STOPPED":
                return Experiment.connect(self.port)
            self.resumed += 1
            return Experiment.resume(str(found["id"]), self.port, wait_completion=False)
        return None


def run_under_kills(plan: KillPlan, shape: LocalShape, folder: Path) -> ChaosResult:
    """Run the experiment, kill processes as planned, and check the result.

    Args:
        plan: experiment and kills.
        shape: services of its own; this process must use them (`NNI_HOME`).
        folder: for the code.
    """
    return run_disturbed(
        plan,
        shape,
        folder,
        lambda run: hit_as_planned(plan, run.record_file, partial(kill_service, shape)),
    )


def run_disturbed(
    plan: KillPlan,
    shape: LocalShape,
    folder: Path,
    disturb: Callable[[Disturbed], Counter[str]],
    platform: TrainingServiceConfig | None = None,
) -> ChaosResult:
    """Run the experiment, disturb it, and check the result.

    Args:
        plan: the experiment.
        shape: services of its own; this process must use them (`NNI_HOME`).
        folder: for the code.
        disturb: called when the experiment has started; returns what it did.
        platform: on which the trials run; None: `local`.
    """
    record_file = folder / "records"
    record_file.touch()
    code = folder / "code"
    code.mkdir()
    (code / "trial.py").write_text(
        _TRIAL.format(duration_s=plan.trial_s, record_file=str(record_file)), "utf-8"
    )
    run = Disturbed(_configured(plan, shape, code), record_file, shape.free_port())
    if platform is not None:
        run.experiment.config.training_service = platform
    began_s = time.monotonic()
    run.experiment.start(run.port)
    killed = disturb(run)
    experiment = run.experiment
    wait.until(lambda: _finished(experiment), plan.timeout_s, "the experiment's end")
    duration_s = time.monotonic() - began_s
    result = experiment.replay()
    outcome = ChaosResult(
        status=experiment.get_status(),
        killed=killed,
        duration_s=duration_s,
        attempts=len(_lines(record_file)),
        replay=result,
        resumed=run.resumed,
    )
    outcome.violations = _violations(plan, experiment, outcome, set(_lines(record_file)))
    experiment.stop()
    return outcome


def _configured(plan: KillPlan, shape: LocalShape, code: Path) -> Experiment:
    experiment = Experiment("local")
    experiment.config.search_space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
    experiment.config.trial_command = "python3 trial.py"
    experiment.config.trial_code_directory = code
    experiment.config.trial_concurrency = plan.slots
    experiment.config.max_trial_number = plan.trials
    experiment.config.max_trial_retries = plan.kills
    experiment.config.tuner.name = plan.tuner
    experiment.config.tuner.class_args["optimize_mode"] = "minimize"
    experiment.config.experiment_working_directory = shape.root
    return experiment


def hit_as_planned(plan: KillPlan, record_file: Path, hit: Callable[[str], bool]) -> Counter[str]:
    """Disturb an experiment at the moments of a plan; return what was hit how often.

    Args:
        plan: experiment and kills.
        record_file: has a line for each trial process that has ended.
        hit: disturbs a victim; false: there is none now, and it is called again.
    """
    hits: Counter[str] = Counter()
    for number, (due, victim, delay_s) in enumerate(plan.schedule()):
        wait.until(
            partial(_has_records, record_file, due),
            plan.timeout_s,
            f"{due} trials ended before kill {number} ({victim})",
        )
        time.sleep(delay_s)  # a moment that no event announces
        wait.until(partial(hit, victim), 60, f"a {victim} to kill")
        hits[victim] += 1
    return hits


def kill_service(shape: LocalShape, victim: str) -> bool:
    """Kill the process of a service by a word of its command line; false: there is none now."""
    return _kill_one(int(shape.endpoint()["pid"]), victim)


def _kill_one(supervisor: int, victim: str) -> bool:
    for process in processes.named(supervisor, victim):
        with contextlib.suppress(psutil.NoSuchProcess):
            os.kill(process.pid, signal.SIGKILL)
            return True
    return False


def _lines(record_file: Path) -> list[str]:
    return record_file.read_text("ascii").split()


def _has_records(record_file: Path, count: int) -> bool:
    return len(set(_lines(record_file))) >= count


def _finished(experiment: Experiment) -> bool:
    with contextlib.suppress(NniError):
        return experiment.get_status() in {"DONE", "ERROR", "STOPPED"}
    return False


def _violations(
    plan: KillPlan, experiment: Experiment, outcome: ChaosResult, recorded: set[str]
) -> list[str]:
    violations = []
    jobs, results = experiment.list_trial_jobs(), experiment.export_data()
    ids = [job.trialJobId for job in jobs]
    states = Counter(job.status for job in jobs)
    if outcome.status != "DONE":
        violations.append(f"the experiment is {outcome.status}")
    if sorted(job.sequenceId for job in jobs) != list(range(plan.trials)):
        violations.append(f"{len(jobs)} trials instead of {plan.trials}")
    if len(set(ids)) != len(ids):
        violations.append("two trials have one id")
    if states != {"SUCCEEDED": plan.trials}:
        violations.append(f"trials are {dict(states)}")
    if sorted(result.trialJobId for result in results) != sorted(ids):
        violations.append(f"{len(results)} results of {len(ids)} trials")
    wrong = [r.trialJobId for r in results if r.value != r.parameter["x"] ** 2]
    if wrong:
        violations.append(f"results under the parameters of others: {wrong[:5]}")
    if not set(ids) <= recorded:
        violations.append(f"trials that never ran: {sorted(set(ids) - recorded)[:5]}")
    if not outcome.replay.repeatable or outcome.replay.equal != outcome.replay.suggestions:
        violations.append(f"replay: {outcome.replay.reason}")
    if outcome.replay.suggestions < plan.trials:
        violations.append(f"the log holds {outcome.replay.suggestions} suggestions")
    return violations
