"""Training of one cell's network on scikit-learn's digits.

The network is that of NAS-Bench-201, narrow: a convolution, a cell, a reduction, a cell, and a
linear layer on the means. It needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from nni.nas.benchmark.nasbench201.constants import (
    AVG_POOL_3X3,
    CONV_1X1,
    CONV_3X3,
    EDGES,
    SKIP_CONNECT,
)

TRAINING_IMAGES: Final = 600
VALIDATION_IMAGES: Final = 600
"""The remaining 597 images are for tests."""
_SPLIT_SEED: Final = 7
_BATCH: Final = 50
_LEARNING_RATE: Final = 0.05


@dataclass(frozen=True, slots=True)
class EpochResult:
    """Accuracies, losses and training time of a network after an epoch.

    Examples:
        >>> EpochResult(1, 90.0, 88.0, 87.0, 0.3, 0.4, 0.5, 1.5).valid_acc
        88.0
    """

    epoch: int
    """Elapsed epochs."""
    train_acc: float
    """Accuracy on training images, 0 to 100."""
    valid_acc: float
    """Accuracy on validation images, 0 to 100."""
    test_acc: float
    """Accuracy on test images, 0 to 100."""
    train_loss: float
    """Cross entropy on training images."""
    valid_loss: float
    """Cross entropy on validation images."""
    test_loss: float
    """Cross entropy on test images."""
    seconds: float
    """Seconds of training so far."""


class CellNetwork(nn.Module):
    """Classifier of digits with two copies of a cell, the second one with twice the channels.

    Args:
        cell: edge, such as `0_1`, to operation.
        channels: channels of the first cell; the second one has twice as many.

    Examples:
        >>> from nni_benchmark.nas.cells import cell_of
        >>> CellNetwork(cell_of(4711), 4)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, cell: Mapping[str, str], channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            _Cell(cell, channels),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * channels),
            _Cell(cell, 2 * channels),
            nn.BatchNorm2d(2 * channels),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * channels, 10),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of the ten classes, `(images, 10)`.

        Args:
            images: `(batch, 1, 8, 8)`.

        Returns:
            `(batch, 10)`.
        """
        scores: Tensor = self.layers(images)
        return scores


class _Cell(nn.Module):
    """Cell of four nodes; edges without an operation are left out."""

    def __init__(self, cell: Mapping[str, str], channels: int) -> None:
        super().__init__()
        made = {edge: _operation(cell[edge], channels) for edge in EDGES}
        self.edges = nn.ModuleDict({edge: one for edge, one in made.items() if one is not None})

    def forward(self, images: Tensor) -> Tensor:
        nodes = [images]
        for node in range(1, 4):
            parts = [
                self.edges[edge](nodes[source])
                for source in range(node)
                if (edge := f"{source}_{node}") in self.edges
            ]
            nodes.append(torch.stack(parts).sum(0) if parts else torch.zeros_like(images))
        return nodes[-1]


def _operation(name: str, channels: int) -> nn.Module | None:
    match name:
        case str(name) if name == SKIP_CONNECT:
            return nn.Identity()
        case str(name) if name == AVG_POOL_3X3:
            return nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
        case str(name) if name in {CONV_1X1, CONV_3X3}:
            kernel = 1 if name == CONV_1X1 else 3
            return nn.Sequential(
                nn.ReLU(),
                nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False),
                nn.BatchNorm2d(channels),
            )
        case _:
            return None


def train_cell(
    cell: Mapping[str, str], *, seed: int, epochs: int, channels: int, images: int = TRAINING_IMAGES
) -> list[EpochResult]:
    """Train a new network of a cell on digits; return accuracies and losses after each epoch.

    Args:
        cell: edge to operation.
        seed: seed of the weights and of the order of the images.
        epochs: number of epochs.
        channels: channels of the first cell.
        images: number of training images.

    Examples:
        >>> from nni_benchmark.nas.cells import cell_of
        >>> results = train_cell(cell_of(0), seed=0, epochs=1, channels=2, images=50)
        >>> len(results)
        1
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CellNetwork(cell, channels)
    return train_network(network, seed=seed, epochs=epochs, images=images)


def train_network(
    network: nn.Module, *, seed: int, epochs: int, images: int = TRAINING_IMAGES
) -> list[EpochResult]:
    """Train a network in place on digits; return accuracies and losses after each epoch.

    Stochastic gradient descent with momentum; the learning rate falls to 0 by a cosine.

    Args:
        network: takes images of the shape `(batch, 1, 8, 8)`, returns `(batch, 10)`.
        seed: seed of the order of the images.
        epochs: number of epochs.
        images: number of training images.

    Examples:
        >>> layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        >>> train_network(layers, seed=0, epochs=2, images=50)[-1].epoch
        2
    """
    data, classes = _digits()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=_LEARNING_RATE, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    steps = epochs * (images // _BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    results, seconds = [], 0.0
    for epoch in range(1, epochs + 1):
        start = time.perf_counter()
        network.train()
        order = torch.randperm(images, generator=generator)
        for batch in torch.split(order, _BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(network(data[batch]), classes[batch])
            loss.backward()  # type: ignore[no-untyped-call] # torch does not declare it
            optimizer.step()
            schedule.step()
        seconds += time.perf_counter() - start
        results.append(_evaluated(network, epoch, images, seconds))
    return results


@torch.no_grad()
def _evaluated(network: nn.Module, epoch: int, images: int, seconds: float) -> EpochResult:
    data, classes = _digits()
    network.eval()
    start, end = TRAINING_IMAGES, TRAINING_IMAGES + VALIDATION_IMAGES
    accuracies, losses = [], []
    for part in (slice(0, images), slice(start, end), slice(end, None)):
        scores = network(data[part])
        accuracies.append(100 * (scores.argmax(1) == classes[part]).double().mean().item())
        losses.append(nn.functional.cross_entropy(scores, classes[part]).item())
    return EpochResult(
        epoch,
        train_acc=accuracies[0],
        valid_acc=accuracies[1],
        test_acc=accuracies[2],
        train_loss=losses[0],
        valid_loss=losses[1],
        test_loss=losses[2],
        seconds=seconds,
    )


@cache
def _digits() -> tuple[Tensor, Tensor]:
    """Return the images, `(1797, 1, 8, 8)`, and their classes, in one fixed order."""
    data, classes = load_digits(return_X_y=True)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(_SPLIT_SEED))
    images = torch.tensor(data, dtype=torch.float32)[order].reshape(-1, 1, 8, 8) / 16 - 0.3
    return images, torch.tensor(classes)[order]
