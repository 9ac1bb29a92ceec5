"""Architecture search under ten kills: of its process, trials, agent, manager and bus in turn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.wait import until

__all__ = ["local_shape"]  # a fixture

COUNT: Final = 20
"""Number of models of the space."""
SLOTS: Final = 2
VICTIMS: Final = ("search", "trial", "trial-runner", "manager", "nats")
TIMEOUT_S: Final = 120.0
SPACE: Final = """\
import os, pathlib, time
import nni
from nni.mutable import Categorical, Mutable, ensure_frozen


class Widths(Mutable):  # no network: importing torch would take most of the time
    def __init__(self, count):
        self.choice = Categorical(list(range(1, count + 1)), label="width")
        self.width = ensure_frozen(self.choice, strict=False)

    def leaf_mutables(self, is_leaf):
        return self.choice.leaf_mutables(is_leaf)

    def check_contains(self, sample):
        return self.choice.check_contains(sample)

    def freeze(self, sample):
        return self.choice.freeze(sample)


def evaluate(model, folder):
    folder, width = pathlib.Path(folder), model.width
    marker = folder / f"running-{width}"
    marker.with_suffix(".new").write_text(str(os.getpid()))
    marker.with_suffix(".new").replace(marker)
    while int((folder / "gate").read_text() or 0) < width:
        time.sleep(0.02)
    nni.report_final_result(width / 2)
"""
SEARCH: Final = """\
import json, sys
import nni
from space import Widths, evaluate
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.strategy import Chain, GridSearch
from nni.nas.strategy.middleware import FailureHandler

act, folder, count, slots = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
config = NasExperimentConfig(
    "ts", "simplified", "local", trial_concurrency=slots, max_trial_retries=10,
    experiment_working_directory=folder + "/searches",
)
search = NasExperiment(
    nni.trace(Widths)(count),
    FunctionalEvaluator(evaluate, folder=folder),
    Chain(GridSearch(shuffle=False), FailureHandler(retry_patience=10)),
    config,
    id="search",
)
assert getattr(search, act)(port=0)
models = [(model.sample["width"], model.metric) for model in search.strategy.list_models()]
counted = len(search.state_dict()["models"])
search.stop()
print(json.dumps({"counted": counted, "models": models}))
"""


class KilledSearch:
    """Search whose models wait until a gate lets them pass, in the order of the grid."""

    def __init__(self, shape: LocalShape, folder: Path) -> None:
        self.shape = shape
        self.folder = folder
        (folder / "space.py").write_text(SPACE)
        (folder / "search.py").write_text(SEARCH)
        self.open_gate(0)
        self.process = self.start("run")

    def start(self, act: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "search.py", act, str(self.folder), str(COUNT), str(SLOTS)],
            cwd=self.folder,
            env=self.shape.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def open_gate(self, width: int) -> None:
        """Let the models up to a width pass."""
        draft = self.folder / "gate.new"
        draft.write_text(str(width))
        draft.replace(self.folder / "gate")

    def wait_for_model(self, width: int) -> int:
        """Wait until a model is being evaluated; return the process id of its trial."""
        marker = self.folder / f"running-{width}"
        until(marker.exists, TIMEOUT_S, f"the evaluation of model {width}")
        return int(marker.read_text())

    def close(self) -> None:
        """End the search if it runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def kill(self, victim: str, trial_pid: int) -> None:
        """Kill a process; a killed search is resumed."""
        if victim == "trial":
            os.kill(trial_pid, signal.SIGKILL)
        elif victim == "search":
            self.process.kill()
            self.process.communicate()
            self.process = self.start("resume")
        else:
            self.shape.kill(victim)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_candidate_of_a_search_under_ten_kills_is_counted_once(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    local_shape.start()
    with closing(KilledSearch(local_shape, tmp_path)) as search:
        for number in range(COUNT // SLOTS):
            passed = number * SLOTS
            pids = [search.wait_for_model(passed + slot) for slot in range(1, SLOTS + 1)]
            search.kill(VICTIMS[number % len(VICTIMS)], pids[0])
            search.open_gate(passed + SLOTS)
        output, _ = search.process.communicate(timeout=TIMEOUT_S)

    assert search.process.returncode == 0
    found = json.loads(output.splitlines()[-1])
    # An undisturbed search evaluates each model of the grid once; its metric is half its width.
    assert sorted(found["models"]) == [[width, width / 2] for width in range(1, COUNT + 1)]
    assert found["counted"] == COUNT
