"""How long from a trial's exit to the next trial's first line, and how fast does all come up?

Concurrency 1: a slot is empty for exactly this long. The peer is NNI 3.0, whose loop turns every
0.5 s and which was measured elsewhere (no wheel of it can share an environment with ours):
up to 1 s a gap, 2.8 s to the first trial.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from nni.experiment import Experiment
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support import processes

TRIALS = 80
STARTS = 3
TRIAL = """\
import time
first_line = time.time_ns()
import atexit, nni, os
p = nni.get_next_parameter()
nni.report_final_result(p["x"])
with open(os.environ["BENCH_TIMES"], "a") as file:
    file.write(f"{first_line} {time.time_ns()}\\n")
"""


def _experiment(home: Path, trials: int, tuner: str) -> Experiment:
    code = home / "code"
    code.mkdir(exist_ok=True)
    (code / "trial.py").write_text(TRIAL, "utf-8")
    os.environ["BENCH_TIMES"] = str(home / "times")
    experiment = Experiment("local")
    config = experiment.config
    config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config.trial_command = "python3 trial.py"
    config.trial_code_directory = code
    config.trial_concurrency = 1
    config.max_trial_number = trials
    config.tuner.name = tuner
    if tuner != "Random":
        config.tuner.class_args["optimize_mode"] = "minimize"
    config.experiment_working_directory = home / "experiments"
    return experiment


def measure_gaps(tuner: str) -> list[float]:
    """Return the gaps in ms between a trial's last line and the next one's first."""
    with private_home() as home:
        experiment = _experiment(home, TRIALS, tuner)
        experiment.start(0)
        try:
            experiment.wait_completion()
        finally:
            experiment.stop()
            _nnictl("down")
        rows = [line.split() for line in (home / "times").read_text("ascii").splitlines()]
    spans = sorted((int(first), int(last)) for first, last in rows)
    return [(b[0] - a[1]) / 1e6 for a, b in itertools.pairwise(spans[10:])]


def _nnictl(*words: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "nni.cli.main", *words], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def measure_start() -> tuple[float, float, float, float]:
    """Return seconds: shape up, create to first line; MB: idle shape, one more experiment."""
    with private_home() as home:
        up = _nnictl("up")
        endpoint = json.loads(Path(os.environ["NNI_HOME"], "endpoint.json").read_text("utf-8"))
        idle = processes.pss_bytes(endpoint["pid"]) / 1e6
        experiment = _experiment(home, 1, "TPE")
        start = time.time_ns()
        experiment.start(0)
        experiment.wait_completion()
        first = int((home / "times").read_text("ascii").split()[0])
        more = processes.pss_bytes(endpoint["pid"]) / 1e6 - idle
        experiment.stop()
        _nnictl("down")
        return up, (first - start) / 1e9, idle, more


def main() -> None:
    """Print the figures."""
    print_header(__doc__ or "")
    for tuner in ("Random", "TPE"):
        gaps = measure_gaps(tuner)
        print_figure(f"exit to next first line, {tuner}", gaps, "ms", target="median <= 25")
    starts = [measure_start() for _ in range(STARTS)]
    ups, firsts, idles, mores = (list(column) for column in zip(*starts, strict=True))
    print_figure("local shape up", ups, "s", target="<= 2.5")
    print_figure("create to the first trial's first line", firsts, "s", target="<= 1", peer=2.8)
    print_figure("idle shape, PSS of all processes", idles, "MB", target="<= 300")
    print_figure("a further experiment, PSS", mores, "MB", target="<= 60", peer=188.0)


if __name__ == "__main__":
    main()
