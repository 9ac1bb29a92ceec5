"""Final results that the built-in algorithms cannot learn from."""

from __future__ import annotations

import numpy as np
import pytest

import nni
from nni.trial.api import use_channel
from nni.trial.result_check import unlearnable_reason
from tests.support.trial_channels import InMemoryTrialChannel


@pytest.mark.parametrize(
    "metric",
    [
        *(0, 0.5, -1, 10**400, float("inf"), np.float32(0.5), np.int64(3)),
        *({"default": 1}, {"default": np.float64(0.5), "note": "x"}),
    ],
)
def test_numbers_can_be_learned_from(metric: object) -> None:
    assert unlearnable_reason(metric) == ""


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ({"accuracy": 0.5}, "no key 'default', only ['accuracy']"),
        ({"default": "high"}, "its key 'default' is no number, got 'high'"),
        ({"default": float("nan")}, "its key 'default' is no number, got nan"),
        ({}, "it is no number, got {}"),
        ("0.5", "it is no number, got '0.5'"),
        (float("nan"), "it is no number, got nan"),
        (True, "it is no number, got True"),
        (None, "it is no number, got None"),
        ([0.5], "it is no number"),
    ],
)
def test_other_results_are_named_with_the_remedy(metric: object, expected: str) -> None:
    reason = unlearnable_reason(metric)

    assert expected in reason
    assert "report a number, or a dict whose key 'default' is a number" in reason


def test_trial_sees_the_error_at_once_and_the_result_is_still_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    channel = InMemoryTrialChannel({"x": 1})
    use_channel(channel)
    try:
        nni.get_next_parameter()
        nni.report_intermediate_result({"accuracy": 0.4})
        assert capsys.readouterr().err == ""
        nni.report_final_result({"accuracy": 0.5})
    finally:
        use_channel(None)

    assert "ERROR (nni) the final result has no key 'default'" in capsys.readouterr().err
