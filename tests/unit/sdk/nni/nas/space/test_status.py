"""States of models."""

import json

from nni.nas.space import ModelStatus


def test_status_is_a_string() -> None:
    assert json.dumps(ModelStatus.Trained) == '"trained"'
    assert ModelStatus("retrying") is ModelStatus.Retrying


def test_only_spaces_are_not_frozen() -> None:
    assert {one for one in ModelStatus if not one.frozen()} == {"initialized", "mutating"}


def test_completed_states_expect_no_metric() -> None:
    completed = {one for one in ModelStatus if one.completed()}

    assert completed == {"trained", "failed", "interrupted", "invalid"}
