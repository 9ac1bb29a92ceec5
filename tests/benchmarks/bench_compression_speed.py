"""How small and how fast are models after half of their channels, beside Torch-Pruning?

Five classifiers of torchvision with BatchNorm and random weights are pruned by
`nni.compression.prune(model, x, 0.5)` and by Torch-Pruning with the same ratio. Printed are
parameters and floating-point operations as parts of the original, and how much faster a forward
pass is on one thread for batches of 1 and 16; the original and both smaller models take turns.
Times are CPU milliseconds of that thread, which other programs on the machine disturb less.

`--only NAME` picks models by name, `--runs N` sets the number of timed passes.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from nni.compression import prune
from nni.compression.utils import count_flops_params
from tests.benchmarks.compression_models import CLASSES, REMEDY, Subject, missing_libraries
from tests.benchmarks.figures import Figure, at_least, at_most, print_figures
from tests.benchmarks.measure import print_header

PEER: Final = "torch_pruning"
NAMES: Final = ("resnet18", "resnet50", "mobilenet_v2", "vgg16_bn", "densenet121")
BATCHES: Final = (1, 16)
RATIO: Final = 0.5
NOISE: Final = 0.95
"""Part of the peer's speed that counts as no worse: the spread of repeated measurements."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a model."""

    parameters: int
    flops: int


def size_of(model: nn.Module, images: Tensor) -> Size:
    flops, parameters, _ = count_flops_params(copy.deepcopy(model), images, verbose=False)
    return Size(parameters, flops)


def pruned_by_peer(model: nn.Module, images: Tensor) -> nn.Module:
    """Return a copy that Torch-Pruning has pruned by the L1 norm of groups, the head kept."""
    peer: Any = importlib.import_module(PEER)
    smaller = copy.deepcopy(model)
    heads = [
        one
        for one in smaller.modules()
        if isinstance(one, nn.Linear) and one.out_features == CLASSES
    ]
    peer.pruner.MagnitudePruner(
        smaller,
        images,
        importance=peer.importance.GroupMagnitudeImportance(p=1),
        pruning_ratio=RATIO,
        ignored_layers=heads,
    ).step()
    return smaller


def latencies_ms(models: Sequence[nn.Module], inputs: Sequence[Tensor], runs: int) -> list[float]:
    """Return the median CPU time of a forward pass of each model in ms, measured in turn."""
    found: list[list[float]] = [[] for _ in models]
    with torch.no_grad():
        for model in models:
            model(*inputs)
        for _ in range(runs):
            for model, times in zip(models, found, strict=True):
                start = time.thread_time()
                model(*inputs)
                times.append(1000 * (time.thread_time() - start))
    return [statistics.median(times) for times in found]


def speed_figures(
    name: str, models: Sequence[nn.Module], inputs: Sequence[Tensor], runs: int
) -> list[Figure]:
    """Return how much faster the second model is than the first; the third is the peer's.

    Args:
        name: Name of the model.
        models: The original, ours and the peer's.
        inputs: Inputs with a batch of 1.
        runs: Number of timed passes.
    """
    figures = []
    for batch in BATCHES:
        many = [one.expand(batch, *one.shape[1:]).contiguous() for one in inputs]
        before, after, peers = latencies_ms(models, many, runs)
        what = f"{name}: times as fast, batch {batch}"
        note = (
            f"{before:.1f} -> {after:.1f} ms, peer {peers:.1f} ms; "
            f"target is {NOISE:g} of the peer's"
        )
        figures.append(at_least(what, before / after, NOISE * before / peers, note=note))
    return figures


def figures_of(name: str, runs: int) -> list[Figure]:
    subject = Subject(name, 224)
    model, images = subject.build(), subject.images(0)
    ours, report = prune(copy.deepcopy(model), images, RATIO)
    theirs = pruned_by_peer(model, images)
    models = [one.eval() for one in (model, ours, theirs)]
    dense, small, peer = (size_of(one, images) for one in models)
    figures = [
        at_most(f"{name}: error", report.error, 1e-4),
        at_most(
            f"{name}: parameters",
            small.parameters / dense.parameters,
            peer.parameters / dense.parameters * 1.005,
        ),
        at_most(f"{name}: FLOPs", small.flops / dense.flops, peer.flops / dense.flops * 1.005),
    ]
    figures += speed_figures(name, models, [images], runs)
    return figures


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of the models")
    parser.add_argument("--runs", type=int, default=15, help="number of timed passes")
    chosen = parser.parse_args(words)
    print_header("Models after half of their channels, beside Torch-Pruning", packages=["torch"])
    missing = [one for one in missing_libraries() if one == "torchvision"]
    if missing or importlib.util.find_spec(PEER) is None:
        print(f"   skipped: {REMEDY} torch-pruning==1.6.1")
        return
    torch.set_num_threads(1)
    figures: list[Figure] = []
    for name in NAMES:
        if chosen.only in name:
            figures += figures_of(name, chosen.runs)
    print_figures(figures)


if __name__ == "__main__":
    main()
