"""Trainers of transformers for a model with a handful of weights."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from torch import Tensor, nn

ROWS = 32
INPUTS = torch.linspace(-1, 1, ROWS * 3).reshape(-1, 3)


class Rows(torch.utils.data.Dataset[Mapping[str, Tensor]]):
    """Rows of inputs and labels by name."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Mapping[str, Tensor]:
        return {"inputs": INPUTS[index], "labels": INPUTS[index].sum()[None]}


class Line(nn.Module):
    """Linear model that computes its own loss, as those of transformers do.

    Args:
        scale: of the initial weights.
    """

    def __init__(self, scale: float = 0.0) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        nn.init.constant_(self.layer.weight, scale)

    def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return loss and output."""
        output = self.layer(inputs)
        return {"loss": nn.functional.mse_loss(output, labels), "output": output}


def tiny_trainer(*, given: Any = None, **arguments: Any) -> transformers.Trainer:
    """Return a Trainer of `Line` that evaluates after each epoch.

    Args:
        given: further arguments of `Trainer`.
        arguments: those of `TrainingArguments`.
    """
    gc.freeze()  # the Trainer collects garbage, which takes long with all modules loaded
    defaults = {
        "output_dir": "output",
        "num_train_epochs": 2,
        "per_device_train_batch_size": 16,
        "learning_rate": 0.1,
        "eval_strategy": "epoch",
        "logging_strategy": "epoch",
        "save_strategy": "no",
        "use_cpu": True,
        "report_to": "none",
        "disable_tqdm": True,
    }
    return transformers.Trainer(
        args=transformers.TrainingArguments(**{**defaults, **arguments}),
        train_dataset=Rows(),
        eval_dataset=Rows(),
        **(given or {"model": Line()}),
    )
