"""Small data and quiet trainers for tests of Lightning evaluators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import nni
from nni.nas.evaluator.pytorch import DataLoader

QUIET: dict[str, Any] = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}
"""Arguments of a trainer that writes and prints nothing."""
FEATURES = 4


@nni.trace
class Points(Dataset[tuple[Tensor, Tensor]]):
    """Points of normal distribution; the target tells on which side of a plane they are."""

    def __init__(self, length: int, *, classes: bool = True, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        values = generator.normal(size=(length, FEATURES)).astype("float32")
        self.inputs = torch.from_numpy(values)
        sums = self.inputs.sum(1)
        self.targets = (sums > 0).long() if classes else sums[:, None]

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.inputs[index], self.targets[index]


def loader(length: int = 32, batch_size: int = 16, **kwargs: Any) -> Any:
    return DataLoader(Points(length, **kwargs), batch_size)


def network(outputs: int = 2) -> nn.Module:
    """Return a linear network, always with the same parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(FEATURES, outputs)


def reports_of(run: Callable[[], object]) -> tuple[list[Any], list[Any]]:
    """Return the intermediate results, and the results, that a call reports."""
    from nni.nas.evaluator.trial_reports import reports_to

    intermediates: list[Any] = []
    finals: list[Any] = []
    with reports_to(None, intermediates.append, finals.append):
        run()
    return intermediates, finals
