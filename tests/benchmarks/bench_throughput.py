"""How many no-op Python trials a second, each in its own process, and what does one cost?

Ours: 8 slots, a process per trial. Peers in the same run: both of Optuna's local stores, SQLite and
the journal file, with 8 worker processes that isolate nothing: their trial is a function call. Each
side runs the same number of trials, and the same ones count: all after the warm-up, which is the
first quarter, at most a hundred. The figures say what each does to survive the loss of power.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from svc_standalone.commands import BUS_CONFIGURATION
from tests.benchmarks.guard import private_folder_prefix
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.benchmarks.optuna_storage import journal_file
from tests.support import processes

TRIALS = int(os.environ.get("NNI_BENCH_TRIALS", "600"))
SLOTS = 8
STORES = {
    "SQLite": "each commit is synced to the disk (journal_mode=delete, synchronous=full)",
    "journal file": "each entry is synced to the disk",
}
"""What Optuna's stores do, with their defaults."""
SYNCED = {
    False: "the bus writes each append at once and syncs it to the disk within two minutes",
    True: "the bus syncs each append to the disk",
}
"""What ours does, by whether the configuration of the bus says so."""
PARTS = ["nats-server", "svc_manager", "svc_dispatcher", "nni.hpo.host", "svc_trial_runner"]
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "randint", "_value": [0, 9]}}
TRIAL = """\
import nni
p = nni.get_next_parameter()
nni.report_final_result(p["x"])
"""


def warm_up(trials: int) -> int:
    """Return how many trials do not count: a quarter, at most a hundred."""
    return min(100, trials // 4)


def steady_rate(ends_s: Sequence[float], trials: int) -> float:
    """Return trials per second, without the trials of the warm-up.

    Raises:
        ValueError: not all trials ended.
    """
    if len(ends_s) != trials:
        raise ValueError(f"{trials} trials must have ended, got {len(ends_s)}")
    steady = sorted(ends_s)[warm_up(trials) :]
    return (len(steady) - 1) / (steady[-1] - steady[0])


def shares(trials: int, workers: int) -> list[int]:
    """Return how many trials each worker runs; the sum is ``trials``."""
    return [trials // workers + (index < trials % workers) for index in range(workers)]


@dataclass(frozen=True, slots=True)
class Ours:
    """Figures of this project."""

    rate: float
    """Trials per second."""
    cpu_s: float
    """CPU seconds per trial, all processes."""
    cpu_by_part_s: dict[str, float]
    synced: bool
    """True if the bus syncs each append."""


def measure_ours(trials: int, slots: int) -> Ours:
    """Run the trials through all services."""
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
            assert all(job.status == "SUCCEEDED" for job in jobs), {job.status for job in jobs}
            rate = steady_rate([(job.endTime or 0) / 1000 for job in jobs], trials)
            parts = {part: (after_parts[part] - before_parts[part]) / trials for part in PARTS}
            bus = Path(os.environ["NNI_HOME"], BUS_CONFIGURATION).read_text("utf-8")
            return Ours(rate, cpu, parts, "sync_interval: always" in bus)
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


def measure_optuna(store: str, trials: int, slots: int) -> float:
    """Return trials per second of ``slots`` worker processes that share one store."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory(prefix=private_folder_prefix()) as folder:
        storage = f"sqlite:///{folder}/s.db" if store == "SQLite" else f"journal:{folder}/s.log"
        study = optuna.create_study(study_name="s", storage=_storage(storage))
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=_optuna_worker, args=(storage, share))
            for share in shares(trials, slots)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        complete = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
        ends = [one.datetime_complete for one in complete if one.datetime_complete is not None]
        return steady_rate([end.timestamp() for end in ends], trials)


def main() -> None:
    """Print the figures."""
    print_header(__doc__ or "", packages=["optuna"])
    counted = TRIALS - warm_up(TRIALS)
    print(f"   {TRIALS} trials on each side, {SLOTS} at a time; the last {counted} count")
    peers = {}
    for store, durability in STORES.items():
        peers[store] = measure_optuna(store, TRIALS, SLOTS)
        print_figure(f"Optuna, {store}", [peers[store]], "trials/s")
        print(f"     a trial is a function call in one of {SLOTS} processes; {durability}")
    ours = measure_ours(TRIALS, SLOTS)
    print_figure("ours", [ours.rate], "trials/s", target=">= 100")
    print(f"     a trial is a process of its own; {SYNCED[ours.synced]}")
    for store, rate in peers.items():
        print_figure(f"  ours beside Optuna, {store}", [ours.rate / rate], "x")
    print_figure("CPU of all processes", [ours.cpu_s * 1000], "ms/trial", target="<= 12")
    for part, seconds in ours.cpu_by_part_s.items():
        print_figure(f"  of which {part}", [seconds * 1000], "ms/trial")


if __name__ == "__main__":
    main()
