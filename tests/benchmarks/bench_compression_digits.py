"""How well do the pruners of channels choose, beside random channels?

A convolutional network is trained on the handwritten digits of scikit-learn. Each pruner removes
half of the channels of each convolution, really, by the speedup; then the smaller network is
trained for five epochs. The table has mean and standard deviation of the test accuracy over seeds,
each with its own split, initial weights and batches.

`--seeds N` sets their number; 10 without it.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from nni.compression import TorchEvaluator
from nni.compression.base import Pruner
from nni.compression.pruning import (
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
    ADMMPruner,
    FPGMPruner,
    L1NormPruner,
    L2NormPruner,
    SlimPruner,
    TaylorPruner,
)
from nni.compression.speedup import ModelSpeedup
from tests.benchmarks.figures import at_most, print_figures
from tests.benchmarks.measure import print_header

SEEDS: Final = 10
DENSE_EPOCHS: Final = 15
TUNING_EPOCHS: Final = 5
BATCH: Final = 32
RATE: Final = 5e-3
TEST: Final = 450
TRAINING_STEPS: Final = 40
"""Batches that pruners observe or train on."""
POINTS: Final = 1.0
"""Largest loss of accuracy, in percentage points."""


class RandomPruner(Pruner):
    """Masks random channels: what every other pruner should beat."""

    default_granularity = "out_channel"

    def calculate_metrics(self) -> dict[tuple[str, str], Tensor]:
        return {key: torch.rand(blocks.shape[:-1]) for key, blocks in self.weight_blocks()}


class Digits:
    """Training and test images of one seed."""

    def __init__(self, seed: int) -> None:
        found = load_digits()
        images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
        labels = torch.tensor(found.target)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
        self.train = images[order[TEST:]], labels[order[TEST:]]
        self.test = images[order[:TEST]], labels[order[:TEST]]

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        images, labels = self.train
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            yield images[rows], labels[rows]

    def accuracy(self, model: nn.Module) -> float:
        """Return the accuracy on the test images in percent."""
        images, labels = self.test
        model.eval()
        with torch.no_grad():
            right = (model(images).argmax(1) == labels).float().mean()
        return 100 * float(right)


def network() -> nn.Sequential:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def training_step(batch: tuple[Tensor, Tensor], model: nn.Module) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def train(model: nn.Module, digits: Digits, epochs: int, rate: float) -> None:
    """Train with a rate that falls to zero along a cosine."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    steps = epochs * -(-len(digits.train[0]) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model.train()
    for _ in range(epochs):
        for batch in digits.batches():
            optimizer.zero_grad()
            training_step(batch, model).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def evaluator(model: nn.Module, digits: Digits) -> TorchEvaluator:
    def training(
        model: nn.Module, optimizer: Any, step: Any, schedulers: Any, max_steps: Any, epochs: Any
    ) -> None:
        model.train()
        endless = (batch for _ in itertools.count() for batch in digits.batches())
        limit = max_steps or epochs * -(-len(digits.train[0]) // BATCH)
        for batch in itertools.islice(endless, limit):
            optimizer.zero_grad()
            step(batch, model).backward()
            optimizer.step()

    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    return TorchEvaluator(training, optimizer, training_step, dummy_input=digits.test[0][:2])


CONVOLUTIONS: Final = [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]
NORMS: Final = [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}]
PRUNERS: Final[dict[str, Callable[[nn.Module, TorchEvaluator], Pruner]]] = {
    "random channels": lambda model, _: RandomPruner(model, CONVOLUTIONS),
    "L1NormPruner": lambda model, _: L1NormPruner(model, CONVOLUTIONS),
    "L2NormPruner": lambda model, _: L2NormPruner(model, CONVOLUTIONS),
    "FPGMPruner": lambda model, _: FPGMPruner(model, CONVOLUTIONS),
    "SlimPruner": lambda model, trained: SlimPruner(
        model, NORMS, trained, TRAINING_STEPS, regular_scale=1e-3, mode="normal"
    ),
    "ActivationAPoZRankPruner": lambda model, trained: ActivationAPoZRankPruner(
        model, CONVOLUTIONS, trained, TRAINING_STEPS
    ),
    "ActivationMeanRankPruner": lambda model, trained: ActivationMeanRankPruner(
        model, CONVOLUTIONS, trained, TRAINING_STEPS
    ),
    "TaylorPruner": lambda model, trained: TaylorPruner(
        model, CONVOLUTIONS, trained, TRAINING_STEPS
    ),
    "ADMMPruner": lambda model, trained: ADMMPruner(
        model, [{**CONVOLUTIONS[0], "granularity": "out_channel"}], trained, 3, 1
    ),
}


def pruned(state: dict[str, Tensor], name: str, digits: Digits, seed: int) -> tuple[float, int]:
    """Return the accuracy after fine-tuning in percent, and the parameters that are left."""
    torch.manual_seed(seed)
    model = network()
    model.load_state_dict(state)
    pruner = PRUNERS[name](model, evaluator(model, digits))
    _, masks = pruner.compress()
    pruner.unwrap_model()
    smaller = ModelSpeedup(model, digits.test[0][:2], masks).speedup_model()
    train(smaller, digits, TUNING_EPOCHS, RATE)
    return digits.accuracy(smaller), sum(one.numel() for one in smaller.parameters())


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    seeds = parser.parse_args(words).seeds
    print_header("Accuracy after half of the channels was removed")
    torch.set_num_threads(1)
    dense: list[float] = []
    found: dict[str, list[float]] = {name: [] for name in PRUNERS}
    sizes: dict[str, int] = {}
    for seed in range(seeds):
        digits = Digits(seed)
        torch.manual_seed(seed)
        model = network()
        train(model, digits, DENSE_EPOCHS, RATE)
        dense.append(digits.accuracy(model))
        state = {key: value.clone() for key, value in model.state_dict().items()}
        for name in PRUNERS:
            accuracy, sizes[name] = pruned(state, name, digits, seed)
            found[name].append(accuracy)
    parameters = sum(one.numel() for one in network().parameters())
    print(f"   dense: {statistics.mean(dense):.2f} %, {parameters} parameters, {seeds} seeds")
    print_figures(
        at_most(
            name,
            statistics.mean(dense) - statistics.mean(values),
            float("inf") if name == "random channels" else POINTS,
            " points lost",
            f"{statistics.mean(values):.2f} % +- {statistics.pstdev(values):.2f}, "
            f"{sizes[name]} parameters",
        )
        for name, values in found.items()
    )


if __name__ == "__main__":
    main()
