"""Architecture search whose candidates are trials of the services, with kills in mid-search."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.processes import named
from tests.support.wait import until

__all__ = ["shared_shape"]  # a fixture

SPACE = """\
import pathlib, time
import nni
from torch import nn
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        width = nni.choice("width", list(range(1, 41)))
        self.hidden = MutableLinear(4, width)
        self.activation = LayerChoice([nn.ReLU(), nn.Tanh()], label="activation")
        self.head = MutableLinear(width, 2)

    def forward(self, inputs):
        return self.head(self.activation(self.hidden(inputs)))


def evaluate(model, gate):
    width = model.hidden.out_features
    nni.report_intermediate_result(width / 2)
    while not pathlib.Path(gate).exists():
        time.sleep(0.02)
    nni.report_final_result(float(width))
"""
SEARCH = """\
import json, logging, sys
from space import Net, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import Random

act, root, gate, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
logging.basicConfig(level=logging.INFO)
config = NasExperimentConfig(
    "ts", "simplified", "local", trial_concurrency=3, max_trial_number=count,
    experiment_working_directory=root,
)
search = NasExperiment(
    Net(), FunctionalEvaluator(evaluate, gate=gate), Random(seed=0), config, id="search"
)
assert getattr(search, act)(port=0)
models = search.strategy.list_models()
outcome = [(model.sample["width"], model.sample["activation"], model.metric) for model in models]
counted = len(search.state_dict()["models"])
search.stop()
print(json.dumps({"counted": counted, "models": outcome}))
"""
TIMEOUT_S = 120.0


class Search:
    """Process of one search, in a folder with its space."""

    def __init__(self, shape: LocalShape, folder: Path, count: int) -> None:
        self.shape = shape
        self.folder = folder
        self.count = count
        self.gate = folder / "gate"
        (folder / "space.py").write_text(SPACE)
        (folder / "search.py").write_text(SEARCH)

    def start(self, act: str) -> subprocess.Popen[str]:
        root = str(self.folder / "searches")
        return subprocess.Popen(
            [sys.executable, "search.py", act, root, str(self.gate), str(self.count)],
            cwd=self.folder,
            env=self.shape.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def outcome(self, process: subprocess.Popen[str]) -> tuple[int, list[list[Any]]]:
        """Return the number of models that were counted, and those with a metric."""
        output, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
        found: dict[str, Any] = json.loads(output.splitlines()[-1])
        return found["counted"], found["models"]

    def trials(self) -> list[int]:
        """Return the process ids of the trials that run."""
        if not (self.shape.home / "endpoint.json").exists():
            return []  # the search has not started the services yet
        supervisor = int(self.shape.endpoint()["pid"])
        return [process.pid for process in named(supervisor, "nni.nas.execution")]

    def wait_for_trials(self) -> None:
        until(lambda: len(self.trials()) >= 3, TIMEOUT_S, "three trials")


@pytest.mark.timeout(240)
def test_search_survives_kills_of_a_trial_and_of_the_manager(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=20)

    process = search.start("run")
    search.wait_for_trials()
    victim = search.trials()[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in search.trials(), TIMEOUT_S, "the end of the killed trial")
    shared_shape.kill("manager")
    search.gate.touch()
    counted, models = search.outcome(process)

    assert counted == 20
    # The killed trial is a failed model, which has no metric.
    assert len({(width, activation) for width, activation, _ in models}) == 19
    assert all(metric == width for width, _, metric in models)


@pytest.mark.timeout(240)
def test_resumed_search_counts_each_candidate_once(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=12)
    first = search.start("run")
    search.wait_for_trials()
    first.kill()
    first.communicate()
    search.gate.touch()
    until(lambda: not search.trials(), TIMEOUT_S, "the end of the trials that were left")

    counted, models = search.outcome(search.start("resume"))

    assert counted == 12
    assert len({(width, activation) for width, activation, _ in models}) == 12
    assert all(metric == width for width, _, metric in models)


@pytest.mark.timeout(240)
def test_stopped_search_goes_on_with_a_larger_budget(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = Search(shared_shape, tmp_path, count=3)
    search.gate.touch()
    first, _ = search.outcome(search.start("run"))
    search.count = 5

    counted, models = search.outcome(search.start("resume"))

    assert (first, counted) == (3, 5)
    assert len({(width, activation) for width, activation, _ in models}) == 5
