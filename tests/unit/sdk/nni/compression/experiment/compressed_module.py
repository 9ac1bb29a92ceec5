"""Code of a user whose model an auto-compression experiment compresses."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from nni.compression.experiment.interface import AbstractAutoCompressionModule

INPUTS = torch.eye(4)


def network() -> nn.Sequential:
    """Return a small network, always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def train_epoch(model: nn.Module, optimizer: Optimizer, criterion: Any, epoch: int) -> None:
    """Train for one step; the epoch does not count."""
    del epoch
    optimizer.zero_grad()
    criterion(model(INPUTS), torch.zeros(4, 2)).backward()
    optimizer.step()


class Plain(AbstractAutoCompressionModule):
    """Model whose metric is the number of weights that are zero; nothing is trained."""

    @classmethod
    def model(cls) -> nn.Module:
        """Return the network."""
        return network()

    @classmethod
    def evaluator(cls) -> Callable[[nn.Module], float]:
        """Return the number of zeros in the first layer."""
        return lambda model: float((model.get_submodule("0").weight == 0).sum())


class Trained(Plain):
    """The same with training, fine-tuning and measurements."""

    @classmethod
    def optimizer_factory(cls) -> Callable[[Iterable[nn.Parameter]], Optimizer]:
        """Return a function that makes an optimizer with a momentum."""
        return lambda parameters: SGD(parameters, lr=0.1, momentum=0.9)

    @classmethod
    def criterion(cls) -> Callable[..., Tensor]:
        """Return the loss."""
        return nn.MSELoss()

    @classmethod
    def sparsifying_trainer(cls, compress_algorithm_name: str) -> Any:
        """Return the training."""
        return train_epoch

    @classmethod
    def post_compress_finetuning_trainer(cls, compress_algorithm_name: str) -> Any:
        """Return the training."""
        return train_epoch

    @classmethod
    def post_compress_finetuning_epochs(cls, compress_algorithm_name: str) -> int:
        """Return a few epochs."""
        return 3

    @classmethod
    def dummy_input(cls) -> Tensor:
        """Return one input."""
        return INPUTS[:1]
