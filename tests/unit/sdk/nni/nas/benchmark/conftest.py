"""Small databases of really trained cells, in the folder that the queries look in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.nas_databases import train_nb101, train_nb201

NB101_ARCHS: list[dict[str, Any]] = [
    {"op1": "conv3x3-bn-relu", "op2": "maxpool3x3", "input1": [0], "input2": [0], "input3": [1, 2]},
    {"op1": "conv1x1-bn-relu", "input1": [0], "input2": [0, 1]},
]
NB201_ARCHS: list[dict[str, str]] = [
    {
        "0_1": "avg_pool_3x3",
        "0_2": "conv_1x1",
        "1_2": "skip_connect",
        "0_3": "conv_1x1",
        "1_3": "skip_connect",
        "2_3": "skip_connect",
    },
    {
        "0_1": "conv_3x3",
        "0_2": "none",
        "1_2": "none",
        "0_3": "none",
        "1_3": "conv_1x1",
        "2_3": "none",
    },
]


@pytest.fixture(scope="session")
def trained_databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nasbenchmark")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    train_nb101(folder / "nasbench101.db", NB101_ARCHS, epochs=(1, 2))
    train_nb201(folder / "nasbench201.db", NB201_ARCHS, 2, ("cifar10-valid", "cifar100"))
    torch.set_num_threads(threads)
    return folder


@pytest.fixture
def databases(trained_databases: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(trained_databases))
    return trained_databases
