"""How many no-op Python trials a second, each in its own process, and what does one cost?

Ours: 8 slots, every step in a durable log. Peers in the same run: Optuna with SQLite and with a
journal file, 8 worker processes, which isolate nothing: their trial is a function call.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.benchmarks.optuna_storage import journal_file
from tests.support import processes

TRIALS = int(os.environ.get("NNI_BENCH_TRIALS", "600"))
SLOTS = 8
PEER_TRIALS = 120
PARTS = ["nats-server", "svc_manager", "svc_dispatcher", "nni.hpo.host", "svc_trial_runner"]
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "randint", "_value": [0, 9]}}
TRIAL = """\
import nni
p = nni.get_next_parameter()
nni.report_final_result(p["x"])
"""


def measure_ours(trials: int, slots: int) -> tuple[float, float, dict[str, float]]:
    """Return trials per second, CPU seconds per trial in all, and the latter by process."""
    from nni.experiment import Experiment

    with private_home() as home:
        code = home / "code"
        code.mkdir()
        (code / "trial.py").write_text(TRIAL, "utf-8")
        experiment = Experiment("local")
        config = experiment.config
        config.search_space = SPACE
        config.trial_command = "python3 trial.py"
        config.trial_code_directory = code
        config.trial_concurrency = slots
        config.max_trial_number = trials
        config.tuner.name = "Random"
        config.experiment_working_directory = home / "experiments"
        experiment.start(0)
        try:
            endpoint = json.loads(Path(os.environ["NNI_HOME"], "endpoint.json").read_text("utf-8"))
            supervisor = endpoint["pid"]
            before = processes.cpu_seconds(supervisor)
            before_parts = processes.cpu_seconds_by_name(supervisor, PARTS)
            experiment.wait_completion()
            cpu = (processes.cpu_seconds(supervisor) - before) / trials
            after_parts = processes.cpu_seconds_by_name(supervisor, PARTS)
            jobs = experiment.list_trial_jobs()
            assert len(jobs) == trials, f"{len(jobs)} trials of {trials}"
            assert all(job.status == "SUCCEEDED" for job in jobs), {job.status for job in jobs}
            # The first hundred warm up interpreters and caches.
            ends = sorted(job.endTime or 0 for job in jobs)
            steady = ends[min(100, trials // 4) :]
            rate = (len(steady) - 1) / ((steady[-1] - steady[0]) / 1000)
            parts = {part: (after_parts[part] - before_parts[part]) / trials for part in PARTS}
            return rate, cpu, parts
        finally:
            experiment.stop()
            os.system(f"{sys.executable} -m nni.cli.main down >/dev/null 2>&1")


def _storage(address: str) -> Any:
    if address.startswith("journal:"):
        return journal_file(address.removeprefix("journal:"))
    return address


def _optuna_worker(storage: str, trials: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(
        study_name="s", storage=_storage(storage), sampler=optuna.samplers.RandomSampler()
    )
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=trials)


def measure_optuna(kind: str, trials: int, slots: int) -> float:
    """Return trials per second of ``slots`` worker processes that share one storage."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{folder}/s.db" if kind == "sqlite" else f"journal:{folder}/s.log"
        optuna.create_study(study_name="s", storage=_storage(storage))
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=_optuna_worker, args=(storage, trials // slots))
            for _ in range(slots)
        ]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return trials / (time.perf_counter() - start)


def main() -> None:
    """Print the figures."""
    print_header(__doc__ or "", packages=["optuna"])
    sqlite = measure_optuna("sqlite", PEER_TRIALS, SLOTS)
    journal = measure_optuna("journal", PEER_TRIALS, SLOTS)
    print_figure("Optuna, SQLite, 8 workers", [sqlite], "trials/s")
    print_figure("Optuna, journal file, 8 workers", [journal], "trials/s")
    rate, cpu, parts = measure_ours(TRIALS, SLOTS)
    print_figure("ours, a process each, 8 slots", [rate], "trials/s", target=">= 100", peer=sqlite)
    print_figure("CPU of all processes", [cpu * 1000], "ms/trial", target="<= 12")
    for part, seconds in parts.items():
        print_figure(f"  of which {part}", [seconds * 1000], "ms/trial")


if __name__ == "__main__":
    main()
