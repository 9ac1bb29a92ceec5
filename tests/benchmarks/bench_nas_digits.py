"""Are the networks that one-shot strategies export better than most of their space?

Each strategy searches with 300 images of digits, half of them for the architecture. Its export and
20 random architectures are trained from scratch, five times each. `NNI_BENCH_RETRAININGS` and
`NNI_BENCH_RANDOM` make it shorter, `NNI_BENCH_SEED` is the seed of the searches.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import warnings
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import nni
from nni.mutable import Sample
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.evaluator.pytorch import Classification, DataLoader
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.oneshot.pytorch import Controller, recalibrate_batch_norm
from nni.nas.space import RawFormatModelSpace, model_context
from nni.nas.strategy import RegularizedEvolution
from nni.nas.strategy.oneshot import (
    DARTS,
    ENAS,
    GumbelDARTS,
    OneShotStrategy,
    Proxyless,
    RandomOneShot,
)
from tests.benchmarks.measure import print_figure, print_header

TRAIN = 300
"""Images of all trainings, of 1,797; the others are the test."""
CHANNELS = 8
PLACES = 4
BATCH = 30
SEARCH_EPOCHS = 40
EPOCHS = 20
RATE = 5e-3
POLICY_RATE = 3e-3
"""Of the policy of ENAS, which sees 150 rewards; it stays uniform with the default one.

It was chosen with search seed 0, so only other seeds tell what ENAS reaches.
"""
SEED = int(os.environ.get("NNI_BENCH_SEED", "1"))
"""Of the searches."""
RETRAININGS = int(os.environ.get("NNI_BENCH_RETRAININGS", "5"))
RANDOM = int(os.environ.get("NNI_BENCH_RANDOM", "20"))
Data = tuple[Tensor, Tensor]


class NarrowNet(ModelSpace):
    """Four places with five layers: 625 networks of 8 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS))
        self.places = nn.ModuleList(
            LayerChoice(
                {
                    "conv3": convolution(3, 1),
                    "conv1": convolution(1, 1),
                    "depthwise": convolution(5, CHANNELS),
                    "pool": nn.MaxPool2d(3, 1, 1),
                    "skip": nn.Identity(),
                },
                label=f"place{index}",
            )
            for index in range(PLACES)
        )
        self.head = nn.Sequential(nn.MaxPool2d(4), nn.Flatten(), nn.Linear(4 * CHANNELS, 10))

    def forward(self, images: Tensor) -> Tensor:
        features = self.stem(images)
        for place in self.places:
            features = place(features)
        logits: Tensor = self.head(features)
        return logits


def convolution(size: int, groups: int) -> nn.Module:
    """Return a convolution with normalization."""
    return nn.Sequential(
        nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
    )


def digits() -> tuple[Data, Data]:
    """Return images and labels of the trainings, and of the test."""
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, test = order[:TRAIN], order[TRAIN:]
    return (images[train], labels[train]), (images[test], labels[test])


def accuracy(network: nn.Module, data: Data) -> float:
    """Return the accuracy in percent."""
    network.eval()
    with torch.no_grad():
        correct: Tensor = network(data[0]).argmax(1) == data[1]
    return 100 * float(correct.float().mean())


def retrained(sample: Sample, train: Data, test: Data) -> float:
    """Return the mean accuracy of a network after trainings from scratch."""
    results = []
    for seed in range(RETRAININGS):
        torch.manual_seed(seed)
        with model_context(sample):
            network = NarrowNet()
        optimizer = torch.optim.Adam(network.parameters(), RATE)
        for _ in range(EPOCHS):
            for rows in torch.split(torch.randperm(TRAIN), BATCH):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(network(train[0][rows]), train[1][rows])
                torch.autograd.backward(loss)
                optimizer.step()
        results.append(accuracy(network, test))
    return statistics.fmean(results)


def searched(strategy: OneShotStrategy, train: Data) -> NarrowNet:
    """Return the supernet that a strategy has trained with half of the images for each part."""
    torch.manual_seed(SEED)
    half = TRAIN // 2
    weights, architecture = (
        DataLoader(TensorDataset(train[0][rows], train[1][rows]), batch_size=BATCH, shuffle=True)
        for rows in (slice(half), slice(half, TRAIN))
    )
    evaluator = Classification(
        learning_rate=RATE,
        num_classes=10,
        train_dataloaders=weights,
        val_dataloaders=architecture,
        max_epochs=SEARCH_EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    space = NarrowNet()
    strategy(RawFormatModelSpace(space, evaluator), SequentialExecutionEngine())
    return space


def evolved(space: NarrowNet, train: Data) -> Sample:
    """Return the best of 100 architectures of a supernet, measured with its weights."""
    half = TRAIN // 2

    def evaluate(network: nn.Module) -> None:
        recalibrate_batch_norm(network, [train[0][:half]])
        nni.report_final_result(accuracy(network, (train[0][half:], train[1][half:])))

    strategy = RegularizedEvolution(population_size=30, sample_size=8, mutation_prob=0.3, seed=0)
    engine = SequentialExecutionEngine(max_model_count=100)
    strategy(RawFormatModelSpace(space, FunctionalEvaluator(evaluate)), engine)
    return dict(strategy.list_models(limit=1)[0].sample or {})


def main() -> int:
    """Print the accuracy of each export beside the 75th percentile of random architectures."""
    print_header(__doc__ or "", seed=SEED, packages=["torch", "pytorch-lightning", "scikit-learn"])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    train, test = digits()
    draws = random.Random(0)
    samples = [NarrowNet().random_sample(random_state=draws) for _ in range(RANDOM)]
    others = [retrained(sample, train, test) for sample in samples]
    bound = statistics.quantiles(others, n=4, method="inclusive")[2]
    print_figure("random architectures", others, "%")
    strategies: dict[str, Callable[[], OneShotStrategy]] = {
        "DARTS": lambda: DARTS(arc_learning_rate=0.02),
        "DARTS, second order": lambda: DARTS(arc_learning_rate=0.02, unrolled=True),
        "GumbelDARTS": lambda: GumbelDARTS(arc_learning_rate=0.02),
        "Proxyless": lambda: Proxyless(arc_learning_rate=0.02),
        "ENAS": lambda: ENAS(
            batches_per_update=10,
            replay_buffer_size=40,
            warmup_epochs=SEARCH_EPOCHS // 4,
            policy_fn=lambda sizes: Controller(sizes, learning_rate=POLICY_RATE),
        ),
        "RandomOneShot, evolution": RandomOneShot,
    }
    for name, make in strategies.items():
        strategy = make()
        space = searched(strategy, train)
        found = evolved(space, train) if make is RandomOneShot else strategy.export()
        print(f"   {name}: {found}")
        value = retrained(found, train, test)
        print_figure(f"export of {name}", [value], "%", target=f">= {bound:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
