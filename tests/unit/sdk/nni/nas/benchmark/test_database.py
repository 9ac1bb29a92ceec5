"""The query of all benchmarks."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from nni.nas.benchmark.database import BenchmarkDatabase, check_reduction
from nni.nas.benchmark.nlp import NLP_SCHEMA, NlpIntermediateStats, NlpTrialConfig, NlpTrialStats
from nni.nas.benchmark.writer import create_database

ARCH = {"node_1_op": "linear", "node_0_op": "blend"}


@pytest.fixture
def database(tmp_path: Path) -> BenchmarkDatabase:
    path = tmp_path / "nlp.db"
    with create_database(path, NLP_SCHEMA) as writer:
        for dataset in ("ptb", "wikitext-2"):
            for loss in (4.0, 5.0):
                stats = NlpTrialStats(NlpTrialConfig(ARCH, dataset), loss, loss, loss, 1.0)
                rows = [
                    NlpIntermediateStats(stats, epoch, loss + epoch, loss, loss, 1.0)
                    for epoch in (3, 2, 1)
                ]
                writer.add(stats, rows)
    return BenchmarkDatabase(path, NLP_SCHEMA)


def test_none_is_a_wildcard(database: BenchmarkDatabase) -> None:
    assert len(list(database.query({"arch": None, "dataset": None}))) == 4
    assert len(list(database.query({"arch": ARCH, "dataset": "ptb"}))) == 2


@pytest.mark.claim("nas", 84)
def test_order_of_keys_does_not_matter(database: BenchmarkDatabase) -> None:
    reordered = dict(reversed(ARCH.items()))

    assert list(database.query({"arch": reordered})) == list(database.query({"arch": ARCH}))
    assert list(reordered) != list(ARCH)


def test_dictionaries_match_in_files_with_blanks_in_their_texts(
    database: BenchmarkDatabase,
) -> None:
    connection = sqlite3.connect(database.path)
    connection.execute("UPDATE nlptrialconfig SET arch = ?", (json.dumps(ARCH, sort_keys=True),))
    connection.commit()
    connection.close()

    assert len(list(database.query({"arch": ARCH}))) == 4


def test_mean_has_one_row_for_each_config(database: BenchmarkDatabase) -> None:
    rows = list(database.query({}, reduction="mean"))

    assert [(row["config"]["dataset"], row["val_loss"]) for row in rows] == [
        ("ptb", 4.5),
        ("wikitext-2", 4.5),
    ]
    assert rows[0]["id"] is None


def test_intermediates_are_ordered_by_epoch_without_their_trial(
    database: BenchmarkDatabase,
) -> None:
    row = next(database.query({}, include_intermediates=True))

    assert [one["current_epoch"] for one in row["intermediates"]] == [1, 2, 3]
    assert set(row["intermediates"][0]) == {
        *("id", "current_epoch", "train_loss", "val_loss", "test_loss", "training_time")
    }


def test_intermediates_of_a_mean_are_means_at_each_epoch(database: BenchmarkDatabase) -> None:
    row = next(database.query({}, reduction="mean", include_intermediates=True))

    assert [one["train_loss"] for one in row["intermediates"]] == [5.5, 6.5, 7.5]
    assert [one["current_epoch"] for one in row["intermediates"]] == [1, 2, 3]


def test_an_abandoned_query_closes_its_file(database: BenchmarkDatabase) -> None:
    rows = database.query({})
    next(rows)
    rows.close()

    assert list(rows) == []


def test_values_are_bound_not_pasted(database: BenchmarkDatabase) -> None:
    assert list(database.query({"dataset": "' OR 1 = 1 --"})) == []


@pytest.mark.parametrize("reduction", [None, "none", "mean"])
def test_known_reductions_pass(reduction: str | None) -> None:
    check_reduction(reduction)

    assert True


def test_unknown_reduction_is_refused_before_the_first_row(database: BenchmarkDatabase) -> None:
    with pytest.raises(ValueError, match="reduction must be None, 'none' or 'mean', got 'sum'"):
        database.query({}, reduction="sum")
