"""Figures of the platform `remote`, measured over OpenSSH's `sshd` on loopback."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from nni.experiment import Experiment
from nni.experiment.config import TrainingServiceConfig
from svc_trial_runner.fleet.adapters.bundles.worker_processes import MARK
from tests.benchmarks.bench_throughput import steady_rate
from tests.benchmarks.figures import Figure, at_least, at_most
from tests.benchmarks.measure import private_home
from tests.support import wait
from tests.support.local_shape import LocalShape
from tests.support.ssh_workers import SshWorker, remote_config, ssh_workers

RATE_TRIALS: Final = 300
TURNS: Final = 3
REPORTERS: Final = 4
REPORTS: Final = 2500
BURST: Final = 400
LIMIT: Final = 8
IDLE_S: Final = 5.0
LONG_S: Final = 15.0
"""Of the last trial of the burst, during which the other agents exceed their idle time."""
TIMEOUT_S: Final = 300.0
_EVERY_S: Final = 0.2
FIRST_LINE: Final = """\
import time
first_line = time.time_ns()
import nni
nni.get_next_parameter()
nni.report_final_result(0.0)
with open({file!r}, "a") as file:
    file.write(f"{{first_line}}\\n")
"""
NO_OP: Final = """\
import nni
p = nni.get_next_parameter()
nni.report_final_result(p["x"])
"""
METRICS: Final = f"""\
import nni
nni.get_next_parameter()
for step in range({REPORTS}):
    nni.report_intermediate_result(step * 0.5)
nni.report_final_result(0.0)
"""
BURST_TRIAL: Final = f"""\
import os, time
import nni
nni.get_next_parameter()
time.sleep({LONG_S} if os.environ["NNI_TRIAL_SEQ_ID"] == "{BURST - 1}" else 0.1)
nni.report_final_result(0.0)
"""


@contextmanager
def services() -> Iterator[LocalShape]:
    """Start services in a home of their own, which this process then uses."""
    with private_home() as home:
        shape = LocalShape(home)
        os.environ["PATH"] = shape.environment["PATH"]
        shape.start()
        try:
            yield shape
        finally:
            shape.stop()


def experiment_of(
    shape: LocalShape,
    script: str,
    trials: int,
    slots: int,
    platform: TrainingServiceConfig | None = None,
) -> Experiment:
    """Return an experiment of a script that is not started; on this machine without a platform."""
    code = shape.folder / f"code-{time.monotonic_ns()}"
    code.mkdir()
    (code / "trial.py").write_text(script, "utf-8")
    experiment = Experiment("local")
    config = experiment.config
    config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config.trial_command = "python3 trial.py"
    config.trial_code_directory = code
    config.trial_concurrency = slots
    config.max_trial_number = trials
    config.tuner.name = "Random"
    config.experiment_working_directory = shape.root
    if platform is not None:
        config.training_service = platform
    return experiment


def first_lines() -> list[Figure]:
    """Measure from `create` to the first line of a trial: packed and sent, sent, and there."""
    with services() as shape, ssh_workers(shape.folder, 2) as (one, other):
        packed_s = _first_line_s(shape, one)
        sent_s = _first_line_s(shape, other)
        again_s = [_first_line_s(shape, worker) for worker in (one, other, one)]
        local_s = _first_line_s(shape, None)
    note = f"local in this run {local_s:.1f} s, {load()}"
    return [
        at_most("create to first line over SSH, bundle packed and sent", packed_s, 6, " s", note),
        at_most("create to first line over SSH, bundle sent", sent_s, 6, " s"),
        at_most("create to first line over SSH, second time", sorted(again_s)[1], 2.5, " s"),
    ]


def _first_line_s(shape: LocalShape, worker: SshWorker | None) -> float:
    file = shape.folder / "first lines"
    file.unlink(missing_ok=True)
    platform = None if worker is None else remote_config([worker], 1)
    experiment = experiment_of(shape, FIRST_LINE.format(file=str(file)), 1, 1, platform)
    begin_ns = time.time_ns()
    experiment.start(shape.free_port())
    experiment.wait_completion()
    experiment.stop()
    return (int(file.read_text("ascii").split()[0]) - begin_ns) / 1e9


def rates(trials: int = RATE_TRIALS) -> list[Figure]:
    """Measure no-op trials per second of two workers with 4 slots each, beside 8 slots here.

    Both take turns, and the median of the ratios counts: the load of the machine changes.
    """
    found = []
    with services() as shape, ssh_workers(shape.folder, 2) as workers:
        for _ in range(TURNS):
            local = rate(experiment_of(shape, NO_OP, trials, 8), shape)
            remote = rate(experiment_of(shape, NO_OP, trials, 8, remote_config(workers, 4)), shape)
            found.append((remote / local * 100, remote, local))
    note = ", ".join(f"{remote:.0f}/s beside {local:.0f}/s" for _, remote, local in found)
    median = sorted(found)[TURNS // 2][0]
    return [at_least("no-op trials/s, remote beside local", median, 60, " %", f"{note}, {load()}")]


def rate(experiment: Experiment, shape: LocalShape) -> float:
    """Return trials per second after the warm-up."""
    experiment.start(shape.free_port())
    experiment.wait_completion()
    jobs = experiment.list_trial_jobs()
    experiment.stop()
    assert {job.status for job in jobs} == {"SUCCEEDED"}
    return steady_rate([(job.endTime or 0) / 1000 for job in jobs], len(jobs))


def metrics() -> list[Figure]:
    """Measure intermediate metrics per second into the log, from trials on a worker."""
    with services() as shape, ssh_workers(shape.folder, 1) as workers:
        found = [
            _metrics_per_s(experiment_of(shape, METRICS, REPORTERS, REPORTERS, platform), shape)
            for platform in (remote_config(workers, REPORTERS), None)
        ]
    note = f"{found[1]:.0f}/s local in this run, {load()}"
    return [at_least("metrics into the log over the SSH forward", found[0], 2000, " /s", note)]


def _metrics_per_s(experiment: Experiment, shape: LocalShape) -> float:
    experiment.start(shape.free_port())
    experiment.wait_completion()
    done_s = time.time()
    records = [one for found in experiment.get_job_metrics().values() for one in found]
    experiment.stop()
    assert len(records) == REPORTERS * (REPORTS + 1), len(records)
    return len(records) / (done_s - min(one.timestamp for one in records) / 1000)


def burst() -> list[Figure]:
    """Count agents while 400 trials run in a pool of at most 8 agents that may idle for 5 s."""
    with services() as shape, ssh_workers(shape.folder, LIMIT) as workers:
        platform = remote_config(workers, 1)
        platform.max_agents, platform.idle_time = LIMIT, f"{IDLE_S:g}s"
        experiment = experiment_of(shape, BURST_TRIAL, BURST, BURST, platform)
        experiment.start(shape.free_port())
        seen = _watched(experiment, workers)
        statuses = Counter(job.status for job in experiment.list_trial_jobs())
        experiment.stop()
        wait.until(lambda: not _agents(workers), TIMEOUT_S, "the end of the agents")
    counts = [len(names) for names in seen]
    twice = max(max(names.values(), default=0) for names in seen)
    launched = len({name for names in seen for name in names})
    note = f"{launched} agents in all, {counts[-1]} at the end of the last trial, {load()}"
    return [
        Figure("burst: most agents at once", str(max(counts)), str(LIMIT), max(counts) == LIMIT),
        Figure("burst: agents after the idle time", str(counts[-1]), "1", counts[-1] == 1, note),
        Figure("burst: processes of one agent", str(twice), "1", twice == 1),
        Figure("burst: trials", str(statuses["SUCCEEDED"]), "400", statuses["SUCCEEDED"] == BURST),
    ]


def _watched(experiment: Experiment, workers: Sequence[SshWorker]) -> list[Counter[str]]:
    """Return the names of the agents and the number of their processes, again and again."""
    seen = []
    end_s = time.monotonic() + TIMEOUT_S
    while experiment.get_status() not in {"DONE", "ERROR"} and time.monotonic() < end_s:
        seen.append(_agents(workers))
        time.sleep(_EVERY_S)
    return seen


def _agents(workers: Sequence[SshWorker]) -> Counter[str]:
    """Return the names of the agents that run, and how many processes each has."""
    homes = [worker.home for worker in workers]
    found: Counter[str] = Counter()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["agent", "-"]:
                folder = Path(process.environ().get(MARK, "/"))
                if any(folder.is_relative_to(home) for home in homes):
                    found[folder.name] += 1
    return found


def load() -> str:
    """Return the load of this machine, in words."""
    return f"load {os.getloadavg()[0]:.1f}"
