"""Converter of NDS, on files in the original format, made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.nds import NDS_SCHEMA
from nni.nas.benchmark.nds.conversion import convert_nds
from nni.nas.benchmark.writer import create_database

GENOTYPE = {
    "normal": [["avg_pool_3x3", 0], ["conv_7x1_1x7", 1], ["sep_conv_3x3", 2], ["skip_connect", 0]],
    "normal_concat": [2, 3],
    "reduce": [["sep_conv_5x5", 0], ["none", 1]],
    "reduce_concat": [2],
}


def job(net: dict[str, Any]) -> dict[str, Any]:
    return {
        "job_id": 1,
        "rng_seed": 5,
        "params": 2_500_000,
        "flops": 40_000_000,
        "iter_time": 0.1,
        "net": net,
        "optim": {"base_lr": 0.1, "wd": 5e-4, "max_ep": 3},
        "train_ep_top1": [50.0, 20.0, 25.0],
        "test_ep_top1": [60.0, 35.0, 30.0],
        "train_ep_loss": [2.0, float("nan"), 1.0],
    }


def converted(folder: Path) -> list[dict[str, Any]]:
    with create_database(folder / "a.db", NDS_SCHEMA) as writer:
        convert_nds(folder, writer)
    database = BenchmarkDatabase(folder / "a.db", NDS_SCHEMA)
    return list(database.query({}, include_intermediates=True))


def test_cells_are_flattened_and_counted_each_by_itself(tmp_path: Path) -> None:
    net = {"genotype": GENOTYPE, "depth": 12, "width": 32, "aux": False, "drop_prob": 0.0}
    (tmp_path / "DARTS_fix-w-d.json").write_text(json.dumps([job(net)]))

    (row,) = converted(tmp_path)

    config = row["config"]
    assert (config["model_family"], config["proposer"]) == ("nas_cell", "darts")
    assert (config["generator"], config["dataset"]) == ("fix_w_d", "cifar10")
    assert config["model_spec"] == {
        "num_nodes_normal": 2,
        "num_nodes_reduce": 1,
        "depth": 12,
        "width": 32,
        "aux": False,
        "drop_prob": 0.0,
    }
    assert config["cell_spec"] == {
        "normal_0_op_x": "avg_pool_3x3",
        "normal_0_input_x": 0,
        "normal_0_op_y": "conv_7x1_1x7",
        "normal_0_input_y": 1,
        "normal_1_op_x": "sep_conv_3x3",
        "normal_1_input_x": 2,
        "normal_1_op_y": "skip_connect",
        "normal_1_input_y": 0,
        "normal_concat": [2, 3],
        "reduce_0_op_x": "sep_conv_5x5",
        "reduce_0_input_x": 0,
        "reduce_0_op_y": "none",
        "reduce_0_input_y": 1,
        "reduce_concat": [2],
    }


def test_errors_become_accuracies_and_nan_is_missing(tmp_path: Path) -> None:
    net = {"block_type": "vanilla_block", "ds": [1, 2], "ss": [1, 2], "ws": [16, 32], "num_gs": []}
    (tmp_path / "Vanilla_lr-wd_in.json").write_text(json.dumps([job(net)]))

    (row,) = converted(tmp_path)

    assert (row["final_train_acc"], row["best_train_acc"]) == (75.0, 80.0)
    assert (row["final_test_acc"], row["best_test_acc"]) == (70.0, 70.0)
    assert (row["final_train_loss"], row["best_train_loss"]) == (1.0, 1.0)
    assert (row["parameters"], row["flops"]) == (2.5, 40.0)
    assert [one["train_loss"] for one in row["intermediates"]] == [2.0, None, 1.0]
    config = row["config"]
    assert (config["dataset"], config["generator"]) == ("imagenet", "tune_lr_wd")
    assert config["model_spec"] == {"ds": [1, 2], "ss": [1, 2], "ws": [16, 32]}
    assert config["cell_spec"] == {}


@pytest.mark.parametrize(
    ("block", "family"),
    [
        ("res_bottleneck_block", "residual_bottleneck"),
        ("res_basic_block", "residual_basic"),
    ],
)
def test_both_lists_of_a_sweep_are_converted(block: str, family: str, tmp_path: Path) -> None:
    sweep = {key: [job({"block_type": block, "ds": [1]})] for key in ("top", "mid")}
    (tmp_path / "ResNeXt-A.json").write_text(json.dumps(sweep))

    rows = converted(tmp_path)

    assert [row["config"]["model_family"] for row in rows] == [family, family]
    assert rows[0]["config"]["proposer"] == "resnext-a"


def test_unknown_block_is_refused(tmp_path: Path) -> None:
    (tmp_path / "A.json").write_text(json.dumps([job({"block_type": "dense"})]))

    with pytest.raises(ValueError, match="block_type must name one of"):
        converted(tmp_path)


def test_folder_without_sweeps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a folder with the"):
        converted(tmp_path)
