"""What does a step of DARTS cost, against a hand-written loop over the same supernet?

The hand-written one mixes the same operators, with a softmax for each choice, and takes a step of
the architecture and one of the weights. Steps of both alternate, so that they meet the same load.
"""

from __future__ import annotations

import statistics
import sys

import torch
from torch import Tensor, nn

from nni.nas.strategy.oneshot import DARTS
from tests.benchmarks.measure import print_figure, print_header
from tests.benchmarks.oneshot_space import (
    CELLS,
    CHANNELS,
    STEPS,
    THREADS,
    WARM_UP,
    CellNet,
    Classifying,
    alternate,
    batch,
    operators,
    repeated,
    weight_optimizer,
)


class HandMixed(nn.Module):
    """The same supernet without the library."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.cells = nn.ModuleList(nn.ModuleList(operators()) for _ in range(2 * CELLS))
        self.head = nn.Linear(CHANNELS, 10)

    def forward(self, images: Tensor, logits: list[Tensor]) -> Tensor:
        features = self.stem(images)
        for index in range(CELLS):
            mixed = features
            for place in range(2):
                weights = logits[place].softmax(0)
                candidates = self.cells[2 * index + place]
                assert isinstance(candidates, nn.ModuleList)
                mixed = sum(
                    weight * candidate(mixed)
                    for weight, candidate in zip(weights, candidates, strict=True)
                )
            features = features + mixed
        output: Tensor = self.head(features.mean((2, 3)))
        return output


def main() -> int:
    """Print the ratio of the medians."""
    print_header(__doc__ or "", seed=0, packages=["torch", "pytorch-lightning"])
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    train, val = batch(), batch()
    strategy = DARTS()
    module = strategy.configure_oneshot_module(Classifying(strategy.mutate_model(CellNet())))
    hand = HandMixed()
    logits = [(torch.randn(4) * 1e-3).requires_grad_() for _ in range(2)]
    of_weights = weight_optimizer(hand)
    of_logits = torch.optim.Adam(logits, 3e-4, betas=(0.5, 0.999), weight_decay=1e-3)

    def step() -> None:
        for optimizer, (images, classes) in ((of_logits, val), (of_weights, train)):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(hand(images, logits), classes))
            optimizer.step()

    count = STEPS + WARM_UP
    loaders = {"train": repeated(train, count), "val": repeated(val, count)}
    times = alternate(module, loaders, lambda: step)
    for name, values in (("DARTS", times.ours), ("hand-written", times.other)):
        print_figure(f"step, {name}", [1000 * one for one in values], "ms")
    ratio = statistics.median(times.ours) / statistics.median(times.other)
    print_figure("step of DARTS to a hand-written one", [ratio], "x", target="<= 1.10")
    return 0


if __name__ == "__main__":
    sys.exit(main())
