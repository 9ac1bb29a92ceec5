"""Converter of NAS-Bench-201, on a file in the original format, made here."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.nasbench201 import NB201_SCHEMA
from nni.nas.benchmark.nasbench201.conversion import architecture_of, convert_nasbench201
from nni.nas.benchmark.writer import create_database

TEXT = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_3x3~0|none~1|skip_connect~2|"
NAN = float("nan")


def trial(dataset: str, epochs: int, splits: tuple[str, ...]) -> dict[str, Any]:
    """Return the state of one training, as the original writes it; evaluated at the end only."""
    last = epochs - 1
    return {
        "name": dataset,
        "seed": 777,
        "epochs": epochs,
        "params": 0.073,
        "flop": 10.3,
        "arch_config": {"channel": 16, "num_cells": 5, "arch_str": TEXT},
        "latency": [0.010, 0.014],
        "train_acc1es": {epoch: 50.0 + epoch for epoch in range(epochs)},
        "train_losses": {epoch: 2.0 - epoch / 10 for epoch in range(epochs)},
        "train_times": dict.fromkeys(range(epochs), 7.5),
        "eval_names": list(splits),
        "eval_acc1es": {f"{split}@{last}": 60.0 + at for at, split in enumerate(splits)},
        "eval_losses": {f"{split}@{last}": NAN for split in splits},
        "eval_times": {f"{split}@{last}": 1.0 + at for at, split in enumerate(splits)},
    }


def original_file(path: Path) -> Path:
    def results(epochs: int) -> dict[str, Any]:
        return {
            "arch_index": 0,
            "arch_str": TEXT,
            "all_results": {
                ("cifar10-valid", 777): trial("cifar10-valid", epochs, ("x-valid", "ori-test")),
                ("cifar10", 777): trial("cifar10", epochs, ("ori-test",)),
                ("ImageNet16-120", 777): trial(
                    "ImageNet16-120", epochs, ("x-valid", "x-test", "ori-test")
                ),
            },
        }

    torch.save(
        {
            "meta_archs": [TEXT],
            "arch2infos": {0: {"less": results(2), "full": results(3)}},
            "evaluated_indexes": [0],
        },
        path,
    )
    return path


@pytest.fixture
def database(tmp_path: Path) -> BenchmarkDatabase:
    source = original_file(tmp_path / "NAS-Bench-201.pth")
    with create_database(tmp_path / "a.db", NB201_SCHEMA) as writer:
        convert_nasbench201(source, writer)
    return BenchmarkDatabase(tmp_path / "a.db", NB201_SCHEMA)


def test_notation_is_read_edge_by_edge() -> None:
    assert architecture_of(TEXT) == {
        "0_1": "avg_pool_3x3",
        "0_2": "conv_1x1",
        "1_2": "skip_connect",
        "0_3": "conv_3x3",
        "1_3": "none",
        "2_3": "skip_connect",
    }


def test_each_schedule_and_data_set_is_a_config(database: BenchmarkDatabase) -> None:
    configs = [row["config"] for row in database.query({})]

    assert {(one["dataset"], one["num_epochs"]) for one in configs} == {
        (dataset, epochs)
        for dataset in ("cifar10-valid", "cifar10", "imagenet16-120")
        for epochs in (2, 3)
    }


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("cifar10-valid", (60.0, 61.0, 61.0)),
        ("cifar10", (60.0, 60.0, 60.0)),  # it was evaluated on its test set only
        ("imagenet16-120", (60.0, 61.0, 62.0)),
    ],
)
def test_splits_become_validation_test_and_original_test(
    dataset: str, expected: tuple[float, ...], database: BenchmarkDatabase
) -> None:
    row = next(database.query({"dataset": dataset, "num_epochs": 3}))

    assert (row["valid_acc"], row["test_acc"], row["ori_test_acc"]) == expected


def test_numbers_are_in_seconds_and_millions(database: BenchmarkDatabase) -> None:
    row = next(database.query({"dataset": "cifar10", "num_epochs": 3}))

    assert row["training_time"] == 3 * 7.5
    assert row["latency"] == pytest.approx(0.012)
    assert (row["parameters"], row["flops"]) == (0.073, 10.3)
    assert row["test_loss"] is None


def test_epoch_without_an_evaluation_has_none(database: BenchmarkDatabase) -> None:
    row = next(database.query({"dataset": "cifar10", "num_epochs": 2}, include_intermediates=True))

    assert [one["valid_acc"] for one in row["intermediates"]] == [None, 60.0]
    assert [one["train_acc"] for one in row["intermediates"]] == [50.0, 51.0]


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(1)}, tmp_path / "a.pth")

    with (
        pytest.raises(ValueError, match="has no entry arch2infos"),
        create_database(tmp_path / "a.db", NB201_SCHEMA) as writer,
    ):
        convert_nasbench201(tmp_path / "a.pth", writer)


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    torch.save({"arch2infos": functools.partial(print)}, tmp_path / "a.pth")

    with (
        pytest.raises(Exception, match="Weights only load failed"),
        create_database(tmp_path / "a.db", NB201_SCHEMA) as writer,
    ):
        convert_nasbench201(tmp_path / "a.pth", writer)
