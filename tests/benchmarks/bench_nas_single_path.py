"""What does a step of a single-path supernet cost, against the plain network of the same path?

After each step of `RandomOneShot` the frozen network of its path takes one with an optimizer of its
own, so that both meet the same paths and the same load.
"""

from __future__ import annotations

import copy
import statistics
import sys
from collections.abc import Callable

import torch
from torch import nn

from nni.nas.strategy.oneshot import RandomOneShot
from tests.benchmarks.measure import print_figure, print_header
from tests.benchmarks.oneshot_space import (
    STEPS,
    THREADS,
    WARM_UP,
    CellNet,
    Classifying,
    alternate,
    batch,
    repeated,
    weight_optimizer,
)


def main() -> int:
    """Print the ratio of the medians."""
    print_header(__doc__ or "", seed=0, packages=["torch", "pytorch-lightning"])
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    images, classes = batch()
    strategy = RandomOneShot()
    space = strategy.mutate_model(CellNet())
    module = strategy.configure_oneshot_module(Classifying(space))

    def prepare() -> Callable[[], None]:
        network = copy.deepcopy(space.freeze(strategy.path.sample)).train()
        optimizer = weight_optimizer(network)

        def step() -> None:
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(network(images), classes))
            optimizer.step()

        return step

    times = alternate(module, repeated((images, classes), STEPS + WARM_UP), prepare)
    for name, values in (("single path", times.ours), ("plain network", times.other)):
        print_figure(f"step, {name}", [1000 * one for one in values], "ms")
    ratios = [ours / other for ours, other in zip(times.ours, times.other, strict=True)]
    print_figure(
        "step of a path to one of its plain network",
        [statistics.median(ratios)],
        "x",
        target="<= 1.15",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
