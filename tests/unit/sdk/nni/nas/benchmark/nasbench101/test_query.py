"""Queries of NAS-Bench-101, on cells that were trained for this test.

The published database is 10 GB and not at hand; schedules here are 1 and 2 epochs, not 4 to 108.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.nas.benchmark.nasbench101 import query_nb101_trial_stats
from nni.nas.benchmark.nasbench101.graph_util import hash_module
from tests.unit.sdk.nni.nas.benchmark.conftest import NB101_ARCHS

ARCH = NB101_ARCHS[0]
MIRRORED: dict[str, Any] = {
    "op1": "maxpool3x3",
    "op2": "conv3x3-bn-relu",
    "input1": [0],
    "input2": [0],
    "input3": [1, 2],
}
"""The same graph with its two inner vertices exchanged."""


@pytest.mark.claim("nas", 80)
@pytest.mark.usefixtures("databases")
def test_a_cell_and_a_schedule_have_three_trials_and_one_mean() -> None:
    trials = list(query_nb101_trial_stats(ARCH, 2))
    means = list(query_nb101_trial_stats(ARCH, 2, reduction="mean"))

    assert len(trials) == 3
    assert len(means) == 1
    mean = sum(trial["valid_acc"] for trial in trials) / 3
    assert means[0]["valid_acc"] == pytest.approx(mean)


@pytest.mark.claim("nas", 80)
@pytest.mark.usefixtures("databases")
def test_another_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match="reduction must be"):
        query_nb101_trial_stats(ARCH, 2, reduction="sum")


@pytest.mark.usefixtures("databases")
def test_isomorphic_cells_match_unless_that_is_switched_off() -> None:
    assert len(list(query_nb101_trial_stats(MIRRORED, 2))) == 3
    assert list(query_nb101_trial_stats(MIRRORED, 2, isomorphism=False)) == []
    assert len(list(query_nb101_trial_stats(ARCH, 2, isomorphism=False))) == 3


@pytest.mark.usefixtures("databases")
def test_wildcards_match_every_cell_and_schedule() -> None:
    assert len(list(query_nb101_trial_stats(None, None))) == 2 * 2 * 3


@pytest.mark.usefixtures("databases")
def test_row_has_the_fields_of_the_tables() -> None:
    row = next(query_nb101_trial_stats(ARCH, 2, include_intermediates=True))

    assert row["config"]["hash"] == hash_module(ARCH, 4)
    assert row["config"]["arch"] == ARCH
    assert set(row) == {
        *("id", "config", "train_acc", "valid_acc", "test_acc", "parameters", "training_time"),
        "intermediates",
    }
    assert row["intermediates"][-1]["valid_acc"] == row["valid_acc"]


def test_missing_benchmark_is_an_error_at_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(tmp_path))

    with pytest.raises(FileNotFoundError, match="nasbench101"):
        query_nb101_trial_stats(None, None)
