"""Architecture search whose models are trained together, in trials of the services."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.remote_machines import Machines
from tests.support.search_scripts import run_search
from tests.support.wait import until

__all__ = ["shared_shape"]  # a fixture

TIMEOUT_S = 240.0

SPACE = """\
import nni
import torch
import torchmetrics
from torch import nn
from nni.nas.nn.pytorch import ModelSpace, MutableLinear


class Net(ModelSpace):
    def __init__(self):
        super().__init__()
        self.head = MutableLinear(4, nni.choice("width", [1, 2, 3]))

    def forward(self, inputs):
        return self.head(inputs)


class Width(torchmetrics.Metric):  # tells the models of a trial apart
    def __init__(self):
        super().__init__()
        self.add_state("width", torch.tensor(0))

    def update(self, outputs, targets):
        self.width = torch.tensor(outputs.shape[1])

    def compute(self):
        return self.width


Width = nni.trace(Width)


def loss(outputs, targets):
    return (outputs.mean(1) - targets).square().mean()


@nni.trace
def points():
    return torch.utils.data.TensorDataset(torch.ones(8, 4), torch.ones(8))
"""
SEARCH = """\
import json, sys
from space import Net, Width, loss, points
from nni.nas.evaluator.pytorch import DataLoader, Lightning
from nni.nas.execution import TrainingServiceExecutionEngine
from nni.nas.execution.cgo import (
    CrossGraphOptimization, MultiModelLightningModule, MultiModelTrainer,
)
from nni.nas.experiment import NasExperimentConfig
from nni.nas.experiment.platform_trials import ManagerTrialPlatform
from nni.nas.space import GraphModelSpace
from nni.nas.strategy import GridSearch

strategy = GridSearch(seed=0)
trainer = MultiModelTrainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
)
evaluator = Lightning(
    MultiModelLightningModule(loss, Width()), trainer,
    DataLoader(points(), 4), DataLoader(points(), 4),
)
config = NasExperimentConfig(
    "ts", "graph", "local", experiment_working_directory=sys.argv[1], worker_reuse=True,
).canonical(Net(), evaluator, strategy)
platform = ManagerTrialPlatform(config)
engine = CrossGraphOptimization(
    TrainingServiceExecutionEngine(platform), max_concurrency_cgo=2, batch_waiting_time=3600,
)
strategy(GraphModelSpace.from_model(Net(), evaluator), engine)
engine.wait_models()
models = engine.list_models()
found = {
    "models": [[one.sample["width"], one.metric, one.metrics.intermediates] for one in models],
    "reports": [one.finalMetricData[0].data for one in platform.experiment.list_trial_jobs()],
}
engine.shutdown()
print(json.dumps(found))
"""


@pytest.mark.timeout(360)
def test_models_of_a_merged_trial_get_their_own_metrics(
    shared_shape: LocalShape, tmp_path: Path
) -> None:
    files = {"space.py": SPACE, "search.py": SEARCH}

    found = json.loads(run_search(shared_shape, tmp_path, files))

    assert sorted(found["models"]) == [[width, width, [width]] for width in (1, 2, 3)]
    # The first two models are one trial, the last one is a trial of its own.
    order = [width for width, _, _ in found["models"]]
    assert found["reports"] == [order[:2], order[2]]


GATED_SPACE = (
    SPACE.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]")
    + """

import os, pathlib, time


@nni.trace
class Gated:  # the loss; each process of a trial leaves a file, and waits for the gate
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def __call__(self, outputs, targets):
        marker = self.folder / f"running-{os.getpid()}"
        marker.with_suffix(".new").write_text(os.environ["HOME"])
        marker.with_suffix(".new").replace(marker)
        while not (self.folder / "gate").exists():
            time.sleep(0.02)
        return loss(outputs, targets)
"""
)
REMOTE_SEARCH = """\
import json, sys
from space import Gated, Net, Width, points
from nni.experiment import RemoteConfig
from nni.nas.evaluator.pytorch import DataLoader, Lightning
from nni.nas.execution.cgo import MultiModelLightningModule, MultiModelTrainer
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.experiment.config import CgoEngineConfig
from nni.nas.strategy import GridSearch

folder, machines = sys.argv[1], json.loads(sys.argv[2])
trainer = MultiModelTrainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
)
evaluator = Lightning(
    MultiModelLightningModule(Gated(folder), Width()), trainer,
    DataLoader(points(), 4), DataLoader(points(), 4),
)
config = NasExperimentConfig(
    CgoEngineConfig(max_concurrency_cgo=2, batch_waiting_time=3600), "graph",
    training_service=RemoteConfig(machine_list=machines), trial_concurrency=2,
    max_trial_retries=5, experiment_working_directory=folder + "/searches",
)
search = NasExperiment(Net(), evaluator, GridSearch(seed=0), config, id="merged")
assert search.run(port=0)
models = [[one.sample["width"], one.metric] for one in search.strategy.list_models()]
found = {
    "models": models,
    "counted": len(search.state_dict()["models"]),
    "best": search.export_top_models(2, formatter="dict"),
    "trials": [[one.status, one.finalMetricData[0].data] for one in search.list_trial_jobs()],
}
search.stop()
print(json.dumps(found))
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Two machines behind SSH servers, each with a home of its own."""
    pytest.importorskip("asyncssh")
    folder = tmp_path / "machines"
    folder.mkdir()
    with closing(Machines(folder, count=2)) as opened:
        opened.start()
        yield opened


class MergedSearch:
    """Search in a process of its own, whose trials wait for a gate on two machines."""

    def __init__(self, shape: LocalShape, folder: Path, machines: Machines) -> None:
        self.folder = folder
        (folder / "space.py").write_text(GATED_SPACE)
        (folder / "search.py").write_text(REMOTE_SEARCH)
        fields = {"hostKeyPolicy": "accept-new", "gpuIndices": [0, 1], "slots": 1}
        entries = json.dumps([machines.entry(index, **fields) for index in range(2)])
        self.process = subprocess.Popen(
            [sys.executable, "search.py", str(folder), entries],
            cwd=folder,
            env=shape.environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def trials(self) -> dict[int, str]:
        """Return the home of each process that trains models, by process id."""
        assert self.process.poll() is None, "the search has ended before its trials"
        found = self.folder.glob("running-*[0-9]")
        return {int(path.name.partition("-")[2]): path.read_text() for path in found}

    def close(self) -> None:
        """End the search, and let trials that were left end."""
        (self.folder / "gate").touch()
        self.process.kill()
        self.process.communicate()


@pytest.mark.timeout(600)
def test_experiment_trains_models_together_on_two_machines_of_which_one_is_lost(
    shared_shape: LocalShape, tmp_path: Path, machines: Machines
) -> None:
    with closing(MergedSearch(shared_shape, tmp_path, machines)) as search:
        homes = {str(home) for home in machines.homes}
        until(lambda: set(search.trials().values()) == homes, TIMEOUT_S, "a trial on each machine")
        lost = next(iter(search.trials()))
        os.kill(psutil.Process(lost).ppid(), signal.SIGKILL)
        (tmp_path / "gate").touch()
        output, _ = search.process.communicate(timeout=TIMEOUT_S)

    assert search.process.returncode == 0
    found = json.loads(output.splitlines()[-1])
    assert sorted(found["models"]) == [[width, width] for width in range(1, 7)]
    assert found["counted"] == 6
    assert found["best"] == [{"width": 6}, {"width": 5}]
    # Six models in three trials of two, one of which began again on a machine that was left.
    assert len(list(tmp_path.glob("running-*"))) == 4
    assert [status for status, _ in found["trials"]] == ["SUCCEEDED"] * 3
    assert sorted(len(metrics) for _, metrics in found["trials"]) == [2, 2, 2]
