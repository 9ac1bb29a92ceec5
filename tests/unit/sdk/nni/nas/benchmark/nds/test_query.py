"""Queries of NDS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.nas.benchmark.nds import (
    NDS_SCHEMA,
    NdsIntermediateStats,
    NdsTrialConfig,
    NdsTrialStats,
    query_nds_trial_stats,
)
from nni.nas.benchmark.writer import create_database

BOTTLENECK = {
    "bot_muls": [0.0, 0.25, 0.25, 0.25],
    "ds": [1, 16, 1, 4],
    "num_gs": [1, 2, 1, 2],
    "ss": [1, 1, 2, 2],
    "ws": [16, 64, 128, 16],
}
BASIC = {"ds": [1, 12, 12, 12], "ss": [1, 1, 2, 2], "ws": [16, 24, 24, 40]}
CELL = {"normal_0_op_x": "avg_pool_3x3", "normal_0_input_x": 0, "normal_concat": [3, 5, 6]}
CONFIGS = [
    NdsTrialConfig(
        "residual_bottleneck", BOTTLENECK, {}, "resnext-a", 0.1, 5e-4, 100, "cifar10", "random"
    ),
    NdsTrialConfig("residual_basic", BASIC, {}, "resnet", 0.1, 5e-4, 100, "cifar10", "random"),
    NdsTrialConfig("vanilla", BASIC, {}, "vanilla", 0.1, 5e-4, 100, "imagenet", "tune_lr_wd"),
    NdsTrialConfig(
        "nas_cell", {"depth": 12, "width": 32}, CELL, "amoeba", 0.1, 5e-4, 50, "cifar10", "fix_w_d"
    ),
]


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(tmp_path))
    with create_database(tmp_path / "nds.db", NDS_SCHEMA) as writer:
        for config in CONFIGS:
            stats = NdsTrialStats(config, 1, 99.0, 0.1, 93.0, 99.5, None, 93.5, 1.2, 150.0, 0.2)
            writer.add(stats, [NdsIntermediateStats(stats, 1, None, 40.0, 39.0)])


@pytest.mark.parametrize(
    ("conditions", "families"),
    [
        (("residual_bottleneck", None, None, BOTTLENECK, None, "cifar10"), ["residual_bottleneck"]),
        (("residual_basic", "resnet", "random", BASIC, {}, "cifar10"), ["residual_basic"]),
        (("vanilla", None, None, None, None, None), ["vanilla"]),
        (("nas_cell", None, None, None, CELL, "cifar10"), ["nas_cell"]),
        ((None, "amoeba", None, None, None, None, None), ["nas_cell"]),
        ((None, None, None, None, None, None, 50), ["nas_cell"]),
        ((None, None, None, BASIC, None, None), ["residual_basic", "vanilla"]),
        (
            (None, None, None, None, {}, None),
            ["residual_bottleneck", "residual_basic", "vanilla"],
        ),
        ((None, None, None, {}, None, None), []),
    ],
)
def test_conditions_select_configs(conditions: tuple[Any, ...], families: list[str]) -> None:
    rows = query_nds_trial_stats(*conditions)

    assert [row["config"]["model_family"] for row in rows] == families


def test_row_holds_the_specification_as_it_was_given() -> None:
    row = next(
        query_nds_trial_stats("nas_cell", None, None, None, None, None, include_intermediates=True)
    )

    assert row["config"]["cell_spec"] == CELL
    assert row["best_train_loss"] is None
    assert row["intermediates"][0]["test_acc"] == 39.0
