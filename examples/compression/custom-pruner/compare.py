"""Compare a pruner of one's own with L1NormPruner and with random channels."""

import argparse
import copy

import torch
from peak_pruner import PeakPruner
from sklearn.datasets import load_digits
from torch import nn

from nni.compression.base import Pruner
from nni.compression.pruning import L1NormPruner
from nni.compression.speedup import ModelSpeedup

TEST = 450
"""Images of the test, of 1,797."""
BATCH = 32


class RandomPruner(Pruner):
    """Masks random channels: what every other pruner should beat."""

    default_granularity = "out_channel"

    def calculate_metrics(self):
        return {key: torch.rand(blocks.shape[:-1]) for key, blocks in self.weight_blocks()}


PRUNERS = {"random": RandomPruner, "L1": L1NormPruner, "peak": PeakPruner}


def load(seed):
    """Return images and labels for training and for the test."""
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(found.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    train, test = order[TEST:], order[:TEST]
    return (images[train], labels[train]), (images[test], labels[test])


def make_network():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 16, 10),
    )


def train(model, data, epochs):
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(data[0])), BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data[0][rows]), data[1][rows]).backward()
            optimizer.step()


def accuracy(model, data):
    with torch.no_grad():
        return 100 * (model(data[0]).argmax(1) == data[1]).float().mean().item()


def prune(dense, kind, example, sparsity):
    """Return a smaller copy of a model, without the channels that a pruner of this kind masks."""
    config_list = [{"op_types": ["Conv2d"], "sparse_ratio": sparsity}]
    pruner = kind(copy.deepcopy(dense), config_list)
    _, masks = pruner.compress()
    return ModelSpeedup(pruner.unwrap_model(), example, masks).speedup_model()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5, help="of training the dense network")
    parser.add_argument("--seeds", type=int, default=5, help="runs to average")
    parser.add_argument("--sparsity", type=float, default=0.5, help="part of the channels to go")
    options = parser.parse_args()

    torch.set_num_threads(1)
    found = {name: [] for name in ["dense", *PRUNERS]}
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        training, test = load(seed)
        dense = make_network()
        train(dense, training, options.epochs)
        found["dense"].append((accuracy(dense, test), accuracy(dense, test)))
        for name, kind in PRUNERS.items():
            smaller = prune(dense, kind, test[0][:2], options.sparsity)
            before = accuracy(smaller, test)
            train(smaller, training, 1)
            found[name].append((before, accuracy(smaller, test)))

    print(f"{'accuracy in %':<16}{'pruned':>8}{'fine-tuned':>12}")
    for name, pairs in found.items():
        before, after = torch.tensor(pairs).mean(0).tolist()
        print(f"{name:<16}{before:>8.1f}{after:>12.1f}")


if __name__ == "__main__":
    main()
