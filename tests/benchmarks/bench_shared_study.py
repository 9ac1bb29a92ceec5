"""How many trials a second do four processes ask and tell in one shared study, beside Optuna's?

Four processes of 60 trials each, two parameters, TPE, an objective that costs nothing. Both sides
are measured from the moment all processes have opened the study to the end of the last one: ours
through the services of this machine, Optuna's through a journal file.

./dev bench shared_study
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.figures import at_least, print_figures
from tests.benchmarks.guard import private_folder_prefix
from tests.benchmarks.measure import print_figure, print_header, private_home

PROCESSES = 4
TRIALS = 60
"""Of each process."""
TARGET = 5.0
SPACE = {
    "x": {"_type": "uniform", "_value": [-1, 1]},
    "y": {"_type": "uniform", "_value": [-1, 1]},
}
OURS = f"""\
import json, sys
from nni.experiment import SharedStudy
with SharedStudy("benched", {SPACE!r}, tuner="TPE", seed=1) as study:
    print("ready", flush=True)
    sys.stdin.readline()
    ids = []
    for _ in range({TRIALS}):
        trial = study.ask()
        study.tell(trial, trial.parameters["x"] ** 2 + trial.parameters["y"] ** 2)
        ids.append(trial.id)
    print(json.dumps(ids), flush=True)
"""
OPTUNA = f"""\
import json, sys
import optuna
from tests.benchmarks.optuna_storage import journal_file
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(
    study_name="s", storage=journal_file(sys.argv[1]), sampler=optuna.samplers.TPESampler()
)
print("ready", flush=True)
sys.stdin.readline()
ids = []
for _ in range({TRIALS}):
    trial = study.ask()
    x, y = trial.suggest_float("x", -1, 1), trial.suggest_float("y", -1, 1)
    study.tell(trial, x ** 2 + y ** 2)
    ids.append(trial.number)
print(json.dumps(ids), flush=True)
"""


def rate(script: str, *arguments: str) -> float:
    """Return trials per second of all processes together; each trial must be in one of them.

    Raises:
        AssertionError: a trial was in two processes, or in none.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    began_s = time.monotonic()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    ids: list[int] = []
    for worker in workers:
        assert worker.stdout is not None
        ids += json.loads(worker.stdout.readline())
    took_s = time.monotonic() - began_s
    for worker in workers:
        worker.communicate()
    assert sorted(ids) == list(range(PROCESSES * TRIALS))
    return len(ids) / took_s


def measure_ours() -> float:
    """Return the rate of a shared study on services of its own."""
    with private_home():
        try:
            return rate(OURS)
        finally:
            os.system(f"{sys.executable} -m nni.cli.main stop --all >/dev/null 2>&1")
            os.system(f"{sys.executable} -m nni.cli.main down >/dev/null 2>&1")


def measure_optuna() -> float:
    """Return the rate of a study in a journal file."""
    import optuna

    from tests.benchmarks.optuna_storage import journal_file

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory(prefix=private_folder_prefix()) as folder:
        path = f"{folder}/s.log"
        optuna.create_study(study_name="s", storage=journal_file(path))
        return rate(OPTUNA, path)


def main() -> None:
    """Measure both sides, and print the table."""
    print_header(__doc__ or "", packages=["optuna"])
    theirs, ours = measure_optuna(), measure_ours()
    print_figure("Optuna, journal file", [theirs], "trials/s")
    print_figure("ours", [ours], "trials/s")
    print_figures([at_least("ours beside Optuna, journal file", ours / theirs, TARGET, " x")])


if __name__ == "__main__":
    main()
