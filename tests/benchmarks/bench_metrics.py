"""How many intermediate results a second reach the log, and what does one report cost its trial?

Four trials report as fast as they can, each report acknowledged by the agent; the clock runs from
the first report taken over to the moment the log holds the last one. The peer in the same run is
Optuna's journal file, where a report is an append to a file that is locked for it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.benchmarks.optuna_storage import journal_file

TRIALS = 4
REPORTS = 5000
PEER_REPORTS = 2000
TRIAL = f"""\
import os, time
import nni
nni.get_next_parameter()
start, cpu = time.perf_counter(), time.process_time()
for step in range({REPORTS}):
    nni.report_intermediate_result(step * 0.5)
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
nni.report_final_result(0.0)
with open(os.environ["BENCH_COSTS"], "a") as file:
    file.write(f"{{wall / {REPORTS}}} {{cpu / {REPORTS}}}\\n")
"""


def measure_ours(trials: int) -> tuple[float, list[tuple[float, float]]]:
    """Return reports per second into the log, and seconds per report (wall, CPU) of each trial."""
    from nni.experiment import Experiment

    with private_home() as home:
        code = home / "code"
        code.mkdir()
        (code / "trial.py").write_text(TRIAL, "utf-8")
        os.environ["BENCH_COSTS"] = str(home / "costs")
        experiment = Experiment("local")
        config = experiment.config
        config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        config.trial_command = "python3 trial.py"
        config.trial_code_directory = code
        config.trial_concurrency = trials
        config.max_trial_number = trials
        config.tuner.name = "Random"
        config.experiment_working_directory = home / "experiments"
        experiment.start(0)
        try:
            experiment.wait_completion()
            done = time.time()
            metrics = experiment.get_job_metrics()
            first = min(records[0].timestamp for records in metrics.values()) / 1000
            count = sum(len(records) for records in metrics.values())
            assert count == trials * (REPORTS + 1), count
            rows = [line.split() for line in (home / "costs").read_text("ascii").splitlines()]
            return count / (done - first), [(float(wall), float(cpu)) for wall, cpu in rows]
        finally:
            experiment.stop()
            os.system(f"{sys.executable} -m nni.cli.main down >/dev/null 2>&1")


def measure_optuna() -> float:
    """Return seconds per `trial.report` with Optuna's journal file."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        study = optuna.create_study(storage=journal_file(f"{folder}/log"))
        trial = study.ask()
        start = time.perf_counter()
        for step in range(PEER_REPORTS):
            trial.report(step * 0.5, step)
        return (time.perf_counter() - start) / PEER_REPORTS


def main() -> None:
    """Print the figures."""
    print_header(__doc__ or "", packages=["optuna"])
    peer = measure_optuna()
    print_figure("Optuna journal file, one report", [peer * 1000], "ms")
    _, alone = measure_ours(1)
    wall = [row[0] * 1000 for row in alone]
    cpu = [row[1] * 1000 for row in alone]
    print_figure("one report, one trial, wall", wall, "ms", target="<= 0.3", peer=peer * 1000)
    print_figure("one report, one trial, CPU of the trial", cpu, "ms")
    rate, costs = measure_ours(TRIALS)
    print_figure("reports into the log, 4 trials", [rate], "/s", target=">= 5000")
    print_figure("one report, 4 trials on all cores, CPU", [row[1] * 1000 for row in costs], "ms")


if __name__ == "__main__":
    main()
