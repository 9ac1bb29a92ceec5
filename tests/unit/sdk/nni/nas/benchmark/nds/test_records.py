"""Fields of NDS."""

from dataclasses import fields

import pytest

from nni.nas.benchmark.nds import NDS_SCHEMA

CONFIG = "model_family model_spec cell_spec dataset generator proposer base_lr weight_decay"
FINAL = "final_train_acc final_train_loss final_test_acc"
BEST = "best_train_acc best_train_loss best_test_acc"


@pytest.mark.parametrize(
    ("row_type", "expected"),
    [
        (NDS_SCHEMA.config, f"{CONFIG} num_epochs"),
        (NDS_SCHEMA.stats, f"config seed {FINAL} {BEST} parameters flops iter_time"),
        (NDS_SCHEMA.intermediate, "trial current_epoch train_loss train_acc test_acc"),
    ],
)
def test_fields_are_those_of_the_specification(row_type: type, expected: str) -> None:
    assert {field.name for field in fields(row_type)} == set(expected.split())
