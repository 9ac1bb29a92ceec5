"""Databases of NAS-Bench-101 and 201 in small: cells that are really trained, on a few digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nni.nas.benchmark.nasbench101 import (
    CONV1X1_BN_RELU,
    CONV3X3_BN_RELU,
    NB101_SCHEMA,
    Nb101IntermediateStats,
    Nb101TrialConfig,
    Nb101TrialStats,
)
from nni.nas.benchmark.nasbench101.graph_util import hash_module, infer_num_vertices
from nni.nas.benchmark.nasbench201 import (
    NB201_SCHEMA,
    Nb201IntermediateStats,
    Nb201TrialConfig,
    Nb201TrialStats,
)
from nni.nas.benchmark.writer import create_database
from nni_benchmark.nas.training import CellNetwork, EpochResult, train_network

IMAGES, CHANNELS, REPEATS = 100, 2, 3


class Nb101Network(nn.Module):
    """Network of one cell of NAS-Bench-101 between a convolution and a linear layer."""

    def __init__(self, arch: dict[str, Any]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, CHANNELS, 3, padding=1)
        self.sources = [arch[f"input{at}"] for at in range(1, infer_num_vertices(arch))]
        self.operations = nn.ModuleList(
            self._operation(arch[f"op{at}"]) for at in range(1, len(self.sources))
        )
        self.head = nn.Linear(CHANNELS, 10)

    @staticmethod
    def _operation(name: str) -> nn.Module:
        if name in {CONV1X1_BN_RELU, CONV3X3_BN_RELU}:
            kernel = 1 if name == CONV1X1_BN_RELU else 3
            convolution = nn.Conv2d(CHANNELS, CHANNELS, kernel, padding=kernel // 2)
            return nn.Sequential(convolution, nn.BatchNorm2d(CHANNELS), nn.ReLU())
        return nn.MaxPool2d(3, stride=1, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        vertices = [self.stem(images)]
        for at, sources in enumerate(self.sources):
            total = torch.stack([vertices[source] for source in sources]).sum(0)
            vertices.append(self.operations[at](total) if at < len(self.operations) else total)
        scores: Tensor = self.head(vertices[-1].mean((2, 3)))
        return scores


def million_parameters(network: nn.Module) -> float:
    return sum(one.numel() for one in network.parameters()) / 1e6


def train_nb101(path: Path, archs: Sequence[dict[str, Any]], epochs: Sequence[int]) -> None:
    """Train each cell three times at each schedule; write the database."""
    with create_database(path, NB101_SCHEMA) as writer:
        for arch in archs:
            vertices = infer_num_vertices(arch)
            for planned in epochs:
                config = Nb101TrialConfig(arch, vertices, hash_module(arch, vertices), planned)
                for seed in range(REPEATS):
                    torch.manual_seed(seed)
                    network = Nb101Network(arch)
                    results = train_network(network, seed=seed, epochs=planned, images=IMAGES)
                    last = results[-1]
                    stats = Nb101TrialStats(
                        config,
                        *(last.train_acc, last.valid_acc, last.test_acc),
                        million_parameters(network),
                        last.seconds,
                    )
                    writer.add(stats, [nb101_intermediate(stats, one) for one in results])


def nb101_intermediate(stats: Nb101TrialStats, one: EpochResult) -> Nb101IntermediateStats:
    return Nb101IntermediateStats(
        stats, one.epoch, one.train_acc, one.valid_acc, one.test_acc, one.seconds
    )


def train_nb201(
    path: Path, archs: Sequence[dict[str, str]], epochs: int, datasets: Sequence[str]
) -> None:
    """Train each cell three times for each data set, on digits; write the database."""
    with create_database(path, NB201_SCHEMA) as writer:
        for arch in archs:
            for dataset in datasets:
                config = Nb201TrialConfig(arch, epochs, CHANNELS, 1, dataset)
                for seed in range(REPEATS):
                    torch.manual_seed(seed)
                    network = CellNetwork(arch, CHANNELS)
                    results = train_network(network, seed=seed, epochs=epochs, images=IMAGES)
                    stats = nb201_stats(config, seed, network, results[-1])
                    writer.add(stats, [nb201_intermediate(stats, one) for one in results])


def nb201_stats(
    config: Nb201TrialConfig, seed: int, network: nn.Module, last: EpochResult
) -> Nb201TrialStats:
    return Nb201TrialStats(
        config=config,
        seed=seed,
        parameters=million_parameters(network),
        latency=0.001,
        flops=0.1,
        training_time=last.seconds,
        valid_evaluation_time=0.01,
        test_evaluation_time=0.01,
        ori_test_evaluation_time=0.01,
        **measured(last),
    )


def nb201_intermediate(stats: Nb201TrialStats, one: EpochResult) -> Nb201IntermediateStats:
    return Nb201IntermediateStats(trial=stats, current_epoch=one.epoch, **measured(one))


def measured(one: EpochResult) -> dict[str, float]:
    return {
        "train_acc": one.train_acc,
        "train_loss": one.train_loss,
        "valid_acc": one.valid_acc,
        "valid_loss": one.valid_loss,
        "test_acc": one.test_acc,
        "test_loss": one.test_loss,
        "ori_test_acc": one.test_acc,
        "ori_test_loss": one.test_loss,
    }
