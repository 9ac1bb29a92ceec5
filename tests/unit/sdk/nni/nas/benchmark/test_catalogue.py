"""Benchmarks by name."""

from pathlib import Path

import pytest

from nni.nas.benchmark import load_benchmark


def test_benchmark_is_queried_by_any_field_of_its_config(databases: Path) -> None:
    rows = list(load_benchmark("nasbench201").query({"num_cells": 1, "dataset": "cifar100"}))

    assert len(rows) == 2 * 3
    assert load_benchmark("nasbench201").path == databases / "nasbench201.db"


def test_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="benchmark must be one of"):
        load_benchmark("nasbench301")
