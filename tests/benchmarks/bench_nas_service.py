"""How many candidates a second does an architecture search evaluate as trials of the services?

The evaluator costs nothing and the space is small, so the figure is the cost of a candidate: with a
process each, started from a warm interpreter, and with `worker_reuse`, where processes evaluate one
candidate after another; with the strategy in the NAS service, and in the process of the client.
Searches of all kinds take turns. NNI 3 needed about 20 s a candidate, by
its users.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measure import print_figure, print_header, private_home

CANDIDATES = int(os.environ.get("NNI_BENCH_CANDIDATES", "200"))
CONCURRENCY = 4
REPEATS = int(os.environ.get("NNI_BENCH_REPEATS", "3"))
KINDS = [(engine, processes) for engine in ("service", "ts") for processes in ("each", "reuse")]
TEXTS = {"each": "a process each", "reuse": "worker_reuse"}
TARGETS = {"each": ">= 12", "reuse": ">= 40"}
SPACE = """\
import nni
from torch import nn
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        width = nni.choice("width", list(range(1, 257)))
        self.hidden = MutableLinear(64, width)
        self.activation = LayerChoice([nn.ReLU(), nn.Tanh(), nn.Sigmoid()], label="activation")
        self.head = MutableLinear(width, 10)

    def forward(self, inputs):
        return self.head(self.activation(self.hidden(inputs)))


def evaluate(model):
    nni.report_final_result(float(model.hidden.out_features))
"""
SEARCH = """\
import json, sys, time
from space import Net, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.execution import ModelEventType
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import Random


class Timed(Random):
    ends = []

    def _initialize(self, model_space, engine):
        engine.register_model_event_callback(
            ModelEventType.TrainingEnd, lambda event: self.ends.append(time.monotonic())
        )
        return super()._initialize(model_space, engine)


engine = sys.argv[5]
config = NasExperimentConfig(
    engine, "simplified", "local",
    max_trial_number=int(sys.argv[1]), trial_concurrency=int(sys.argv[2]),
    experiment_working_directory=sys.argv[3], worker_reuse=sys.argv[4] == "reuse",
)
strategy = Timed(seed=0) if engine == "ts" else Random(seed=0)
search = NasExperiment(Net(), FunctionalEvaluator(evaluate), strategy, config)
search.run(port=0)
ends = Timed.ends or sorted(job.endTime / 1000 for job in search.list_trial_jobs())
search.stop()
print(json.dumps(ends))
"""


def warm_up(candidates: int) -> int:
    """Return how many candidates do not count: a quarter, in which modules are preloaded."""
    return candidates // 4


def measure(home: Path, processes: str, engine: str) -> float:
    """Run one search; return candidates per second after the warm-up.

    Args:
        home: folder for the search.
        processes: `each` for a process for each candidate, or `reuse`.
        engine: `ts` for a strategy in the process of the client, `service` for one in the service.
    """
    folder = home / "search"
    folder.mkdir(exist_ok=True)
    (folder / "space.py").write_text(SPACE, "utf-8")
    (folder / "search.py").write_text(SEARCH, "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "search.py", str(CANDIDATES), str(CONCURRENCY)),
            *(str(home / "searches"), processes, engine),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    ends: list[float] = json.loads(done.stdout.splitlines()[-1])
    if len(ends) != CANDIDATES:
        raise ValueError(f"{CANDIDATES} candidates must have ended, got {len(ends)}")
    steady = ends[warm_up(CANDIDATES) :]
    return (len(steady) - 1) / (steady[-1] - steady[0])


def main() -> int:
    """Print the figures."""
    print_header(__doc__ or "", seed=0, packages=["torch"])
    with private_home() as home:
        rounds = [
            {(engine, processes): measure(home, processes, engine) for engine, processes in KINDS}
            for _ in range(REPEATS)
        ]
        subprocess.run(
            [sys.executable, "-m", "nni.cli.main", "down"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    for engine, processes in KINDS:
        label = f"candidates, engine {engine}, {TEXTS[processes]}"
        figures = [one[engine, processes] for one in rounds]
        print_figure(label, figures, "/s", target=TARGETS[processes])
    return 0


if __name__ == "__main__":
    sys.exit(main())
