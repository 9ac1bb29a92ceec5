"""Converter of the NLP benchmark, on logs in the original format, made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nni.nas.benchmark.database import BenchmarkDatabase
from nni.nas.benchmark.nlp import NLP_SCHEMA
from nni.nas.benchmark.nlp.conversion import convert_nlp, flat_recipe
from nni.nas.benchmark.writer import create_database

RECIPE = {
    "node_0": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "activation_tanh", "input": ["node_0"]},
}


def log(path: Path, losses: list[float]) -> None:
    content = {
        "recepie": json.dumps(RECIPE),
        "data": "data/wikitext-2",
        "status": "OK",
        **{f"{split}_losses": losses for split in ("train", "val", "test")},
        "wall_times": [100.0 + at for at in range(len(losses))],
    }
    path.write_text(json.dumps(content))


def test_recipe_is_flattened() -> None:
    assert flat_recipe(RECIPE) == {
        "node_0_op": "linear",
        "node_0_input_0": "x",
        "node_0_input_1": "h_prev_0",
        "h_new_0_op": "activation_tanh",
        "h_new_0_input_0": "node_0",
    }


def test_logs_of_all_subfolders_are_converted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log(tmp_path / "logs" / "one.json", [7.0, 6.0, float("nan")])
    log(tmp_path / "logs" / "ended_early.json", [])
    with create_database(tmp_path / "a.db", NLP_SCHEMA) as writer:
        convert_nlp(tmp_path, writer)
    (row,) = BenchmarkDatabase(tmp_path / "a.db", NLP_SCHEMA).query({}, include_intermediates=True)

    assert row["config"]["dataset"] == "wikitext-2"
    assert (row["val_loss"], row["training_time"]) == (None, 102.0)
    assert [one["val_loss"] for one in row["intermediates"]] == [7.0, 6.0, None]


def test_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="must be a folder with the"),
        create_database(tmp_path / "a.db", NLP_SCHEMA) as writer,
    ):
        convert_nlp(tmp_path, writer)
