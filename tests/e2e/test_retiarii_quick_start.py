"""First example of the documentation of NNI 2.x, on random images, as trials of the services."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import shared_shape
from tests.support.search_scripts import run_search

__all__ = ["shared_shape"]  # a fixture

DATA = """\
import torch


class MNIST(torch.utils.data.Dataset):
    def __init__(self, root, train, download):
        generator = torch.Generator().manual_seed(int(train))
        self.images = torch.randn(20, 1, 28, 28, generator=generator)
        self.labels = torch.randint(0, 10, (20,), generator=generator)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], int(self.labels[index])
"""
EXAMPLE = """\
import sys
import torch
import torch.nn.functional as F
import nni.retiarii.nn.pytorch as nn
from nni.retiarii import model_wrapper
from mnist import MNIST


class DepthwiseSeparableConv(nn.Module):
    def __init__(self, in_ch, out_ch):
        super().__init__()
        self.depthwise = nn.Conv2d(in_ch, in_ch, kernel_size=3, groups=in_ch)
        self.pointwise = nn.Conv2d(in_ch, out_ch, kernel_size=1)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


@model_wrapper
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.LayerChoice([
            nn.Conv2d(32, 64, 3, 1),
            DepthwiseSeparableConv(32, 64)
        ])
        self.dropout1 = nn.Dropout(nn.ValueChoice([0.25, 0.5, 0.75]))
        self.dropout2 = nn.Dropout(0.5)
        feature = nn.ValueChoice([64, 128, 256])
        self.fc1 = nn.Linear(9216, feature)
        self.fc2 = nn.Linear(feature, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(self.conv2(x), 2)
        x = torch.flatten(self.dropout1(x), 1)
        x = self.fc2(self.dropout2(F.relu(self.fc1(x))))
        output = F.log_softmax(x, dim=1)
        return output


import nni.retiarii.strategy as strategy

simple_strategy = strategy.Random(dedup=True)

import nni.retiarii.evaluator.pytorch.lightning as pl
from nni.retiarii import serialize

train_dataset = serialize(MNIST, root='data/mnist', train=True, download=True)
test_dataset = serialize(MNIST, root='data/mnist', train=False, download=True)
trainer = pl.Classification(train_dataloader=pl.DataLoader(train_dataset, batch_size=100),
                            val_dataloaders=pl.DataLoader(test_dataset, batch_size=100),
                            max_epochs=2)

from nni.retiarii.experiment.pytorch import RetiariiExeConfig, RetiariiExperiment

base_model = Net()
exp = RetiariiExperiment(base_model, trainer, [], simple_strategy)
exp_config = RetiariiExeConfig('local')
exp_config.experiment_name = 'mnist_search'
exp_config.trial_concurrency = 2
exp_config.max_trial_number = 2
exp_config.training_service.use_active_gpu = False
exp_config.experiment_working_directory = sys.argv[1]
exp.run(exp_config, 0)
for model_code in exp.export_top_models(formatter='dict'):
    print(model_code)
exp.stop()
"""
"""Lines of the documentation, but for the data set, the number of trials, folder and port."""


@pytest.mark.claim("nas", 86)
@pytest.mark.timeout(300)
def test_example_of_nni_2_finds_a_best_model(shared_shape: LocalShape, tmp_path: Path) -> None:
    files = {"mnist.py": DATA, "search.py": EXAMPLE}

    architecture = ast.literal_eval(run_search(shared_shape, tmp_path, files))

    assert architecture["_mutation_1"] in {"0", "1"}
    assert architecture["_mutation_2"] in {0.25, 0.5, 0.75}
    assert architecture["_mutation_3"] in {64, 128, 256}
