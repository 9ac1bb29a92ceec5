"""Snippets of the NAS pages of NNI's documentation, as written there, on digits."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor
from torch import nn as torch_nn
from torch.utils.data import TensorDataset

import nni
import nni.retiarii.evaluator.pytorch.lightning as pl
import nni.retiarii.nn.pytorch as nn
from nni.experiment import RemoteConfig, RemoteMachineConfig
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.execution.cgo import CrossGraphOptimization
from nni.nas.space import GraphModelSpace
from nni.retiarii import model_wrapper, strategy
from nni.retiarii.evaluator import FunctionalEvaluator
from nni.retiarii.evaluator.pytorch.cgo.evaluator import Classification
from nni.retiarii.experiment.pytorch import RetiariiExeConfig, RetiariiExperiment
from tests.support.lightning_tasks import QUIET

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
EPOCHS = 2


@functools.cache
def digits() -> tuple[Tensor, Tensor]:
    found = load_digits()
    return torch.tensor(found.images, dtype=torch.float32)[:, None] / 16, torch.tensor(found.target)


@nni.trace
def digits_dataset(train: bool) -> TensorDataset:
    """Return 600 images for training, or 200 others."""
    images, labels = digits()
    rows = slice(600) if train else slice(600, 800)
    return TensorDataset(images[rows].flatten(1), labels[rows])


class PoolBN(torch_nn.Module):
    """Stand for the operator of the documentation with this signature."""

    def __init__(self, pool: str, channels: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        pools = {"max": torch_nn.MaxPool2d, "avg": torch_nn.AvgPool2d}
        self.pool = pools[pool](kernel, stride, padding)
        self.bn = torch_nn.BatchNorm2d(channels)

    def forward(self, inputs: Tensor) -> Any:
        return self.bn(self.pool(inputs))


class SepConv(torch_nn.Sequential):
    """Stand for the operator of the documentation with this signature."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__(
            torch_nn.Conv2d(inputs, inputs, kernel, stride, padding, groups=inputs),
            torch_nn.Conv2d(inputs, outputs, 1),
        )


with warnings.catch_warnings(action="ignore"):

    @model_wrapper
    class Primitives(torch_nn.Module):
        """Network of the primitives that the page *Construct Model Space* shows."""

        def __init__(self) -> None:
            super().__init__()
            channels = 4
            self.conv = nn.Conv2d(1, channels, kernel_size=nn.ValueChoice([1, 3]), padding="same")
            self.layer = nn.LayerChoice(
                [
                    PoolBN("max", channels, 3, 1, 1),
                    SepConv(channels, channels, 3, 1, 1),
                    nn.Identity(),
                ]
            )
            self.input_switch = nn.InputChoice(n_candidates=3, n_chosen=1)
            self.net = nn.Sequential(
                nn.Linear(4 * 64, nn.ValueChoice([8, 16], label="hidden_dim")),
                nn.Linear(nn.ValueChoice([8, 16], label="hidden_dim"), 10),
            )

        def forward(self, x: Tensor) -> Any:
            tensor1 = self.conv(x.view(-1, 1, 8, 8))
            tensor2 = self.layer(tensor1)
            out = self.input_switch([tensor1, tensor2, tensor1 + tensor2])
            return self.net(out.flatten(1))

    @model_wrapper
    class ValueOfAFunction(torch_nn.Module):
        """Network of the documentation that gets a value in `forward`."""

        def __init__(self) -> None:
            super().__init__()
            self.dropout_rate = nn.ValueChoice([0.0, 1.0])

        def forward(self, x: Tensor) -> Any:
            return F.dropout(x, self.dropout_rate())

    @model_wrapper
    class SharedInstance(torch_nn.Module):
        """Network of the documentation with one value choice in two places."""

        def __init__(self) -> None:
            super().__init__()
            hidden_dim = nn.ValueChoice([12, 51])
            self.fc = nn.Sequential(nn.Linear(64, hidden_dim), nn.Linear(hidden_dim, 10))

        def forward(self, x: Tensor) -> Any:
            return self.fc(x)


class Widths(torch_nn.Module):
    """Network of the page *Execution Engines*: without `model_wrapper`."""

    def __init__(self) -> None:
        super().__init__()
        hidden_dim = nn.ValueChoice([8, 16], label="hidden_dim")
        self.fc = nn.Sequential(nn.Linear(64, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 10))

    def forward(self, x: Tensor) -> Any:
        return self.fc(x)


def fit(model_cls: Any, dataset: Any) -> None:
    """Train a network of digits a little, and report its accuracy."""
    torch.manual_seed(0)
    model = model_cls()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    images, labels = dataset.tensors
    for _ in range(EPOCHS):
        for rows in torch.arange(len(images)).split(100):  # type: ignore[no-untyped-call]  # torch
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows]), labels[rows]).backward()  # type: ignore[no-untyped-call]  # torch
            optimizer.step()
    images, labels = digits_dataset(train=False).tensors
    acc = (model(images).argmax(1) == labels).float().mean().item()
    nni.report_final_result(acc)


def searched(network: Any, count: int, folder: Path) -> RetiariiExperiment:
    evaluator = FunctionalEvaluator(fit, dataset=digits_dataset(train=True))
    experiment = RetiariiExperiment(network, evaluator, [], strategy.Random(dedup=True))
    config = RetiariiExeConfig(
        execution_engine="sequential", experiment_working_directory=folder, max_trial_number=count
    )
    assert experiment.run(config, 8081)
    experiment.stop()
    return experiment


def test_network_of_all_primitives_is_searched(tmp_path: Path) -> None:
    experiment = searched(Primitives(), 4, tmp_path)

    [best] = experiment.export_top_models(formatter="dict")
    assert best["_mutation_1"] in {1, 3}
    assert best["_mutation_2"] in {"0", "1", "2"}
    assert best["_mutation_3"] in {0, 1, 2}
    assert best["hidden_dim"] in {8, 16}


def test_shared_value_choice_is_one_dimension() -> None:
    space: Any = SharedInstance()

    widths = [network.fc[0].out_features for network in space.grid()]

    assert widths == [12, 51]


def test_value_choice_is_called_in_forward() -> None:
    space: Any = ValueOfAFunction()

    outputs = [network(torch.ones(4)).tolist() for network in space.grid()]

    assert outputs == [[1.0] * 4, [0.0] * 4]


def test_layers_of_a_dictionary_are_deleted_and_replaced() -> None:
    op_choice = nn.LayerChoice(
        OrderedDict(
            [
                ("conv3x3", nn.Conv2d(3, 16, 128)),
                ("conv5x5", nn.Conv2d(5, 16, 128)),
                ("conv7x7", nn.Conv2d(7, 16, 128)),
            ]
        )
    )

    del op_choice["conv5x5"]
    op_choice[1] = nn.Conv3d(7, 16, 128)

    assert op_choice.names == ["conv3x3", "conv7x7"]
    assert isinstance(op_choice["conv7x7"], torch_nn.Conv3d)


def test_configuration_of_merged_models_is_written_step_by_step() -> None:
    config = RetiariiExeConfig("remote")
    config.execution_engine = "cgo"
    config.max_concurrency_cgo = 3
    config.batch_waiting_time = 10
    rm_conf = RemoteMachineConfig()
    rm_conf.host = "10.0.0.7"
    rm_conf.user = "ann"
    rm_conf.password = "secret"
    rm_conf.gpu_indices = [0, 1, 2, 3]
    config.training_service.machine_list = [rm_conf]

    translated = config.translated()

    assert translated.execution_engine.max_concurrency_cgo == 3
    assert isinstance(translated.training_service, RemoteConfig)
    assert translated.training_service.machine_list[0].gpu_indices == [0, 1, 2, 3]


def test_models_of_the_documented_trainer_are_trained_together() -> None:
    trainer = Classification(
        train_dataloader=pl.DataLoader(digits_dataset(train=True), batch_size=100),
        val_dataloaders=pl.DataLoader(digits_dataset(train=False), batch_size=100),
        max_epochs=1,
        limit_train_batches=0.2,
        **QUIET,
    )
    engine = CrossGraphOptimization(SequentialExecutionEngine(), max_concurrency_cgo=2)

    strategy.GridSearch(shuffle=False)(GraphModelSpace.from_model(Widths(), trainer), engine)
    engine.wait_models()
    engine.shutdown()

    metrics: list[Any] = [model.metric for model in engine.list_models()]
    assert len(metrics) == 2
    assert all(0.0 <= metric <= 1.0 for metric in metrics)
    assert len(list(engine.engine.list_models())) == 1
