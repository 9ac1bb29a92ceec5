"""Budgets and the rule by which a step breaks one."""

from __future__ import annotations

from typing import Any

import pytest

from nni.compression.pipeline.budget import SIZES, Budget, BudgetError, Measurement, check_budget

FOUND = Measurement(metric=0.9, parameters=70, size_bytes=280, flops=60, latency_ms=8.0)
TRAINS = frozenset({"metric"})


@pytest.mark.parametrize(
    ("limits", "broken"),
    [
        ({}, []),
        ({"metric": 0.9, "parameters": 70, "latency_ms": 8}, []),
        ({"metric": 0.91}, ["metric"]),
        ({"flops": 59, "size_bytes": 1}, ["flops", "size_bytes"]),
    ],
)
def test_limits_hold_at_their_value(limits: dict[str, Any], broken: list[str]) -> None:
    assert list(Budget(**limits).broken(FOUND)) == broken


def test_metric_that_is_no_number_keeps_no_limit() -> None:
    found = Measurement(float("nan"), 1, 1, 1, 1.0)

    assert list(Budget(metric=0).broken(found)) == ["metric"]


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({"latency_ms": 0}, ValueError, r"budget\.latency_ms must be above 0, got 0"),
        ({"parameters": -1}, ValueError, r"budget\.parameters"),
        ({"metric": float("inf")}, ValueError, "must be finite"),
        ({"flops": "8"}, TypeError, r"budget\.flops must be a number"),
        ({"flops": True}, TypeError, r"budget\.flops must be a number"),
    ],
)
def test_wrong_limit_is_refused(
    limits: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Budget(**limits)


def test_limit_that_a_later_step_may_mend_is_no_error_yet() -> None:
    check_budget(Budget(metric=0.95, flops=10), "prune", FOUND, [TRAINS, SIZES])  # type: ignore[list-item] # names of quantities


def test_first_step_after_which_nothing_mends_a_limit_is_named() -> None:
    with pytest.raises(BudgetError) as refusal:
        check_budget(Budget(latency_ms=4), "prune 0.5", FOUND, [TRAINS])  # type: ignore[list-item] # as above

    error = refusal.value
    assert (error.step, error.quantity, error.found, error.limit) == (
        "prune 0.5", "latency_ms", 8.0, 4,
    )  # fmt: skip
    assert "after the step 'prune 0.5' latency_ms is 8, but the budget wants at most 4" in str(
        error
    )


def test_metric_below_its_limit_asks_for_training() -> None:
    with pytest.raises(BudgetError, match=r"at least 0\.95.*train longer"):
        check_budget(Budget(metric=0.95), "fine-tune", FOUND, [])
