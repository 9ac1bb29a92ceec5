"""Statistics of batch normalization, computed anew for one architecture of a supernet.

The running statistics of a supernet are averages over all sampled paths, so they fit none of them:
a candidate that inherits weights is measured far below its worth until its own are computed.

Source: Guo et al., Single Path One-Shot Neural Architecture Search with Uniform Sampling, 2020,
section 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytorch_lightning
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

Forward = Callable[[Any], object]
"""Function of a batch that computes the network."""


def recalibrate_batch_norm(
    network: nn.Module, batches: Iterable[Any], forward: Forward | None = None
) -> int:
    """Replace batch-norm statistics, in place, by averages over batches; return how many batches.

    Weights do not change, dropout is switched off, and all modes are restored. A layer that no
    batch reaches, or that tracks no statistics, stays as it is.

    Args:
        network: frozen network, or a supernet that computes the wanted path.
        batches: training data: tensors, or sequences of which the first part is the input. About
            as many samples as have stable statistics; the paper takes 20,000 of ImageNet.
        forward: function of a batch that computes the network; None: `network(inputs)` with the
            inputs moved to its device.

    Returns:
        Number of batches; with 0 nothing has changed.

    Examples:
        >>> network = nn.Sequential(nn.BatchNorm1d(1)).eval()
        >>> recalibrate_batch_norm(network, [torch.tensor([[4.0], [8.0]])])
        1
        >>> network[0].running_mean, network.training
        (tensor([6.]), False)
    """
    compute = _forward_of(network) if forward is None else forward
    norms = [
        module
        for module in network.modules()
        if isinstance(module, _NormBase) and module.track_running_stats
    ]
    count = 0
    with _averaging(network, norms), torch.no_grad():
        for batch in batches:
            compute(batch)
            count += 1
    return count


@contextmanager
def _averaging(network: nn.Module, norms: list[_NormBase]) -> Iterator[None]:
    """Within a block, let reset norms average over all batches, the rest in eval mode."""
    modes = {module: module.training for module in network.modules()}
    momenta = {norm: norm.momentum for norm in norms}
    before = {norm: [(one, one.clone()) for one in norm.buffers()] for norm in norms}
    network.eval()
    for norm in norms:
        norm.train()
        norm.momentum = None  # a cumulative average
        norm.reset_running_stats()
    try:
        yield
    finally:
        for norm, momentum in momenta.items():
            norm.momentum = momentum
            if not norm.num_batches_tracked:
                for buffer, value in before[norm]:
                    buffer.copy_(value)
        for module, mode in modes.items():
            module.training = mode


def _forward_of(network: nn.Module) -> Forward:
    parameter = next(network.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device

    def forward(batch: Any) -> object:  # noqa: ANN401 - any batch
        if isinstance(batch, Mapping):
            raise TypeError(
                "batches must be tensors or sequences that begin with the input, got a mapping "
                f"with {', '.join(map(str, batch))}; pass a function as forward"
            )
        inputs = batch if isinstance(batch, Tensor) else batch[0]
        return network(inputs.to(device))

    return forward


class BatchNormRecalibration(pytorch_lightning.Callback):
    """Callback of an evaluator that only validates: each candidate gets statistics of its own.

    Give it to the trainer of the second search on a supernet, as
    `Classification(..., callbacks=[BatchNormRecalibration(loader)], val_dataloaders=...)`. A
    validation within a training is left alone.

    Args:
        batches: training data, see `recalibrate_batch_norm`; it is read once for each candidate.
        max_batches: number of batches to use; None for all.

    Raises:
        ValueError: `max_batches` is below 1.

    Examples:
        >>> BatchNormRecalibration([torch.zeros(2, 1)], max_batches=0)
        Traceback (most recent call last):
        ValueError: max_batches must be >= 1, or None for all batches; got 0
    """

    def __init__(self, batches: Iterable[Any], max_batches: int | None = None) -> None:
        if max_batches is not None and max_batches < 1:
            raise ValueError(
                f"max_batches must be >= 1, or None for all batches; got {max_batches}"
            )
        self.batches = batches
        self.max_batches = max_batches

    def __deepcopy__(self, memo: dict[int, Any]) -> BatchNormRecalibration:
        """Return a callback with the same data: an evaluator copies callbacks for each model."""
        return type(self)(self.batches, self.max_batches)

    def on_validation_start(
        self, trainer: pytorch_lightning.Trainer, pl_module: pytorch_lightning.LightningModule
    ) -> None:
        """Recalibrate the network that is validated, unless within a training."""
        if trainer.state.fn == "validate":
            network: Any = pl_module.model
            recalibrate_batch_norm(network, islice(self.batches, self.max_batches))
