"""Fields of NAS-Bench-201."""

from dataclasses import fields

import pytest

from nni.nas.benchmark.nasbench201 import NB201_SCHEMA

CONFIG = "arch num_epochs num_channels num_cells dataset"
ACCURACIES = "train_acc valid_acc test_acc ori_test_acc"
LOSSES = "train_loss valid_loss test_loss ori_test_loss"
COSTS = "parameters latency flops"
TIMES = "training_time valid_evaluation_time test_evaluation_time ori_test_evaluation_time"


@pytest.mark.claim("nas", 81)
@pytest.mark.parametrize(
    ("row_type", "expected"),
    [
        (NB201_SCHEMA.config, CONFIG),
        (NB201_SCHEMA.stats, f"config seed {ACCURACIES} {LOSSES} {COSTS} {TIMES}"),
        (NB201_SCHEMA.intermediate, f"trial current_epoch {ACCURACIES} {LOSSES}"),
    ],
)
def test_fields_are_those_of_the_specification(row_type: type, expected: str) -> None:
    assert " ".join(field.name for field in fields(row_type)) == expected
