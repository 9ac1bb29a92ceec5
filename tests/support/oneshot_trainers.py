"""Network, data and arguments for tests of the one-shot trainers of NNI 2.x."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import nni.retiarii.nn.pytorch as legacy


class Zero(nn.Module):
    """Layer that cannot fit anything."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs[:, :2] * 0


class TwoBranches(nn.Module):
    """Choice between a layer that computes zeros and one that fits the data, and an input."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = legacy.LayerChoice([Zero(), nn.Linear(3, 2)], label="branch")

    def forward(self, inputs: Tensor) -> Any:
        return self.branch(inputs)


def points(count: int = 64) -> TensorDataset:
    """Return points of two classes, which a plane divides."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, 3, generator=generator)
    return TensorDataset(inputs, (inputs.sum(1) > 0).long())


def metrics(output: Any, target: Any) -> dict[str, float]:
    return {"accuracy": float((output.argmax(1) == target).float().mean())}


def reward(output: Any, target: Any) -> float:
    return metrics(output, target)["accuracy"]


def arguments(model: nn.Module, epochs: int = 1) -> dict[str, Any]:
    """Return the arguments that all trainers have."""
    return {
        "model": model,
        "loss": nn.functional.cross_entropy,
        "metrics": metrics,
        "optimizer": torch.optim.SGD(model.parameters(), 0.5),
        "num_epochs": epochs,
        "batch_size": 16,
        "workers": 0,
        "device": "cpu",
    }
