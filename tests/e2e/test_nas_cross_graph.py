"""Architecture search whose models are trained together, in trials of the services."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.search_scripts import run_search

__all__ = ["shared_shape"]  # a fixture

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
