"""Queries of the NLP benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.nas.benchmark.nlp import (
    NLP_SCHEMA,
    NlpIntermediateStats,
    NlpTrialConfig,
    NlpTrialStats,
    query_nlp_trial_stats,
)
from nni.nas.benchmark.writer import create_database

ARCH1 = {
    "h_new_0_input_0": "node_3",
    "h_new_0_input_1": "node_2",
    "h_new_0_input_2": "node_1",
    "h_new_0_op": "blend",
    "node_0_input_0": "x",
    "node_0_input_1": "h_prev_0",
    "node_0_op": "linear",
    "node_1_input_0": "node_0",
    "node_1_op": "activation_tanh",
    "node_2_input_0": "h_prev_0",
    "node_2_input_1": "node_1",
    "node_2_input_2": "x",
    "node_2_op": "linear",
    "node_3_input_0": "node_2",
    "node_3_op": "activation_leaky_relu",
}
ARCH2 = {
    "h_new_0_input_0": "node_0",
    "h_new_0_input_1": "node_1",
    "h_new_0_op": "elementwise_sum",
    "node_0_input_0": "x",
    "node_0_input_1": "h_prev_0",
    "node_0_op": "linear",
    "node_1_input_0": "node_0",
    "node_1_op": "activation_tanh",
}
GOLDEN = NlpTrialStats(
    NlpTrialConfig(ARCH1, "ptb"),
    train_loss=4.132040537087838,
    val_loss=4.707944253177966,
    test_loss=4.680262297102549,
    training_time=177.05208373069763,
)
COURSE = (
    (46, 6.4866799231542664, 6.326836978687959, 6.233430054978619, 146.5680329799652),
    (47, 6.485401405247535, 6.3239741605870865, 6.2402057403023825, 146.05511450767517),
)


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NASBENCHMARK_DIR", str(tmp_path))
    with create_database(tmp_path / "nlp.db", NLP_SCHEMA) as writer:
        writer.add(GOLDEN, trial_id=16291, config_id=20003)
        stats = NlpTrialStats(NlpTrialConfig(ARCH2, "wikitext-2"), 6.4, 6.3, 6.2, 145.0)
        writer.add(stats, [NlpIntermediateStats(stats, *numbers) for numbers in reversed(COURSE)])


@pytest.mark.claim("nas", 82)
def test_published_row_is_reproduced_digit_for_digit() -> None:
    """The published database is not at hand: its row is written and queried."""
    rows = list(query_nlp_trial_stats(arch=ARCH1, dataset="ptb"))

    assert rows == [
        {
            "config": {"arch": ARCH1, "dataset": "ptb", "id": 20003},
            "id": 16291,
            "test_loss": 4.680262297102549,
            "train_loss": 4.132040537087838,
            "training_time": 177.05208373069763,
            "val_loss": 4.707944253177966,
        }
    ]


def test_query_without_any_condition_has_every_row() -> None:
    assert len(list(query_nlp_trial_stats(None, None))) == 2


def test_course_of_a_training_is_ordered_and_exact() -> None:
    (row,) = query_nlp_trial_stats(ARCH2, "wikitext-2", include_intermediates=True)

    assert [
        tuple(one[key] for key in ("current_epoch", "train_loss", "val_loss", "test_loss"))
        for one in row["intermediates"]
    ] == [numbers[:4] for numbers in COURSE]


def test_mean_is_by_config() -> None:
    rows = list(query_nlp_trial_stats(None, None, reduction="mean"))

    assert {row["config"]["dataset"] for row in rows} == {"wikitext-2", "ptb"}
    assert all(row["id"] is None for row in rows)
