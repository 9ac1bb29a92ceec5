"""A small network and the callbacks of NNI 2.x for it."""

from typing import Any

import torch
from torch import Tensor, nn


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 1), nn.BatchNorm2d(6)
    )


def images() -> Tensor:
    return torch.randn(3, 2, 4, 4, generator=torch.Generator().manual_seed(1))


def sgd(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def loss(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().mean()


class Trainer:
    """Trainer of one step an epoch, which counts its epochs."""

    def __init__(self) -> None:
        self.epochs: list[int | None] = []

    def __call__(self, model: nn.Module, optimizer: Any, criterion: Any, epoch: Any = None) -> None:
        self.epochs.append(epoch)
        optimizer.zero_grad()
        criterion(model(images()), torch.ones(3, 6, 4, 4)).backward()
        optimizer.step()


CONVS: list[dict[str, object]] = [{"op_types": ["Conv2d"], "sparsity": 0.5}]
NORMS: list[dict[str, object]] = [{"op_types": ["BatchNorm2d"], "sparsity": 0.5}]
