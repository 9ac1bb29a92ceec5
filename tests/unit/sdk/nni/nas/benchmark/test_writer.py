"""Writing of a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.nlp import NLP_SCHEMA, NlpIntermediateStats, NlpTrialConfig, NlpTrialStats
from nni.nas.benchmark.writer import create_database

NAN = float("nan")


def trial(dataset: str = "ptb", loss: float = 4.0) -> NlpTrialStats:
    return NlpTrialStats(NlpTrialConfig({"node_0_op": "linear"}, dataset), loss, loss, loss, 1.0)


def write_and_fail(path: Path) -> None:
    with create_database(path, NLP_SCHEMA) as writer:
        writer.add(trial("wikitext-2"))
        writer.add(trial("wikitext-2"))
        raise KeyError


def test_interrupted_writing_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        write_and_fail(tmp_path / "a.db")

    assert list(tmp_path.iterdir()) == []


def test_interrupted_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with create_database(path, NLP_SCHEMA) as writer:
        writer.add(trial())
    with pytest.raises(KeyError):
        write_and_fail(path)

    assert len(list(BenchmarkDatabase(path, NLP_SCHEMA).query({}))) == 1


def test_equal_configs_are_stored_once(tmp_path: Path) -> None:
    with create_database(tmp_path / "a.db", NLP_SCHEMA) as writer:
        writer.add(trial())
        writer.add(trial(loss=5.0))
        writer.add(trial("wikitext-2"))
    rows = BenchmarkDatabase(tmp_path / "a.db", NLP_SCHEMA).query({})

    assert [row["config"]["id"] for row in rows] == [1, 1, 2]


def test_loss_that_was_nan_is_read_as_none(tmp_path: Path) -> None:
    with create_database(tmp_path / "a.db", NLP_SCHEMA) as writer:
        writer.add(trial(loss=NAN), [NlpIntermediateStats(trial(), 1, NAN, 5.0, 5.0, 1.0)])
    (row,) = BenchmarkDatabase(tmp_path / "a.db", NLP_SCHEMA).query({}, include_intermediates=True)

    assert row["train_loss"] is None
    assert row["intermediates"][0]["train_loss"] is None


def test_missing_measurement_is_refused_with_its_name(tmp_path: Path) -> None:
    stats = NlpTrialStats(NlpTrialConfig({}, "ptb"), 4.0, 4.0, 4.0, NAN)

    with (
        pytest.raises(ValueError, match="training_time must be a float, got NaN or None"),
        create_database(tmp_path / "a.db", NLP_SCHEMA) as writer,
    ):
        writer.add(stats)
