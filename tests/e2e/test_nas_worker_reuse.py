"""Architecture search whose candidates share processes, with failures and kills in mid-search."""

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
import os, pathlib, time
import nni
from torch import nn
from nni.nas.nn.pytorch import ModelSpace, MutableLinear


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        width = nni.choice("width", list(range(1, 200)))
        self.head = MutableLinear(4, width)

    def forward(self, inputs):
        return self.head(inputs)


def evaluate(model, gate):
    width = model.head.out_features
    print(os.getpid(), nni.get_trial_id(), os.environ["NNI_OUTPUT_DIR"], width, flush=True)
    while nni.get_sequence_id() >= 3 and not pathlib.Path(gate).exists():
        time.sleep(0.02)
    if width % 5 == 0:
        raise ValueError(f"no width of {width}")
    nni.report_final_result(float(width))
"""
SEARCH = """\
import json, sys
from space import Net, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import Random

root, gate, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
config = NasExperimentConfig(
    "ts", "simplified", "local", trial_concurrency=3, max_trial_number=count,
    experiment_working_directory=root, worker_reuse=True,
)
search = NasExperiment(Net(), FunctionalEvaluator(evaluate, gate=gate), Random(seed=0), config)
search.run(port=0)
models = [(model.sample["width"], model.metric) for model in search.strategy.list_models()]
counted = len(search.state_dict()["models"])
search.stop()
print(json.dumps({"counted": counted, "models": models}))
"""
COUNT = 30
TIMEOUT_S = 120.0


class ReusingSearch:
    """Process of one search whose candidates share processes, in a folder with its space."""

    def __init__(self, shape: LocalShape, folder: Path) -> None:
        self.shape = shape
        self.folder = folder
        self.gate = folder / "gate"
        """The first three candidates evaluate at once, the others when this file exists."""
        (folder / "space.py").write_text(SPACE)
        (folder / "search.py").write_text(SEARCH)
        self.process = subprocess.Popen(
            [sys.executable, "search.py", str(folder / "searches"), str(self.gate), str(COUNT)],
            cwd=folder,
            env={**shape.environment, "NNI_RUNNER_REUSE_IDLE_S": "3600"},
            stdout=subprocess.PIPE,
            text=True,
        )

    def outcome(self) -> tuple[int, list[list[Any]]]:
        """Return the number of models that were counted, and width and metric of each."""
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0
        found: dict[str, Any] = json.loads(output.splitlines()[-1])
        return found["counted"], found["models"]

    def lines(self) -> list[list[str]]:
        """Return pid, trial, folder and width, as each trial has printed them in its own file.

        A file without the end of its line is being written.
        """
        texts = [file.read_text() for file in self.folder.glob("searches/*/trials/*/stdout")]
        return [text.split() for text in texts if text.endswith("\n")]

    def waiting(self) -> list[int]:
        """Return the processes of three later candidates, which wait for the gate."""
        if not (self.shape.home / "endpoint.json").exists():
            return []  # the search has not started the services yet
        supervisor = int(self.shape.endpoint()["pid"])
        running = {process.pid for process in named(supervisor, "nni.nas.execution")}
        later = sorted(self.lines(), key=lambda line: line[1])
        found = {int(line[0]) for line in later} & running
        return sorted(found) if len(self.lines()) == 6 else []


def expected(models: list[list[Any]]) -> bool:
    """Return whether each model has its own metric."""
    return all(metric == width for width, metric in models)


@pytest.mark.timeout(240)
def test_candidates_share_processes_and_each_is_a_trial_of_its_own(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = ReusingSearch(shared_shape, tmp_path)
    search.gate.touch()

    counted, models = search.outcome()

    lines = search.lines()
    failed = [int(width) for _, _, _, width in lines if int(width) % 5 == 0]
    assert counted == len(lines) == COUNT
    assert len(models) == COUNT - len(failed)
    assert failed  # some have crashed in the middle of the search
    assert expected(models)
    assert len({trial for _, trial, _, _ in lines}) == COUNT
    assert all(folder.endswith(f"/trials/{trial}") for _, trial, folder, _ in lines)
    # A failure ends its process: one is started for each of the three at once, and each failure.
    assert len({pid for pid, _, _, _ in lines}) <= 3 + len(failed) < COUNT


@pytest.mark.timeout(240)
def test_killed_process_fails_its_present_candidate_only(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    search = ReusingSearch(shared_shape, tmp_path)
    until(lambda: len(search.waiting()) == 3, TIMEOUT_S, "three candidates that wait")

    os.kill(search.waiting()[0], signal.SIGKILL)
    search.gate.touch()
    counted, models = search.outcome()

    failed = [int(width) for _, _, _, width in search.lines() if int(width) % 5 == 0]
    assert counted == COUNT
    assert len(models) in {COUNT - len(failed) - 1, COUNT - len(failed)}
    assert expected(models)


@pytest.mark.timeout(240)
def test_killed_agent_loses_no_candidate(shared_shape: LocalShape, tmp_path: Path) -> None:
    search = ReusingSearch(shared_shape, tmp_path)
    until(lambda: len(search.waiting()) == 3, TIMEOUT_S, "three candidates that wait")

    shared_shape.kill("trial-runner")
    search.gate.touch()
    counted, models = search.outcome()

    failed = [int(width) for _, _, _, width in search.lines() if int(width) % 5 == 0]
    assert counted == COUNT
    assert len(models) == COUNT - len(failed)
    assert expected(models)
