"""Penalties and filters on the cost of architectures."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from nni.mutable import Categorical, Sample
from nni.nas.oneshot.pytorch.profiler import (
    ExpectationProfilerPenalty,
    RangeProfilerFilter,
    SampleProfilerPenalty,
    expectation_penalty,
    sample_filter,
    sample_penalty,
)

KERNEL = Categorical([3, 5, 7], label="kernel")
PROBABILITIES = {"kernel": torch.tensor([0.2, 0.3, 0.5])}


@dataclass
class Flops:
    """Profiler of one convolution: 9k, 25k or 49k operations."""

    expression: Any = 1000 * KERNEL * KERNEL

    def profile(self, sample: Sample) -> float:
        return float(self.expression.freeze(sample))


@pytest.mark.claim("nas", 58)
def test_worked_value_of_the_specification() -> None:
    penalty = ExpectationProfilerPenalty(Flops(), baseline=20_000, scale=2)

    loss, details = penalty(torch.tensor(42.0), PROBABILITIES)

    assert float(loss) == pytest.approx(43.38)
    assert float(details["penalty"]) == pytest.approx(33_800)
    assert float(details["normalized_penalty"]) == pytest.approx(0.69)
    assert float(details["loss_original"]) == 42
    assert float(details["loss_final"]) == pytest.approx(43.38)


@pytest.mark.claim("nas", 58)
def test_multiplied_penalty_of_the_specification() -> None:
    penalty = ExpectationProfilerPenalty(Flops(), 20_000, 2, aggregate="mul")

    assert float(penalty(torch.tensor(42.0), PROBABILITIES)[0]) == pytest.approx(42 * 1.69**2)


@pytest.mark.parametrize(
    ("nonlinear", "kernel", "expected"),
    [
        ("linear", 3, -0.55),
        ("positive", 3, 0.0),
        ("positive", 7, 1.45),
        ("negative", 7, 0.0),
        ("negative", 3, -0.55),
        ("absolute", 3, 0.55),
    ],
)
def test_nonlinearities(nonlinear: Any, kernel: int, expected: float) -> None:
    penalty = SampleProfilerPenalty(Flops(), 20_000, nonlinear=nonlinear)

    assert float(penalty(torch.tensor(0.0), {"kernel": kernel})[0]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "arguments", [{"baseline": 0}, {"nonlinear": "cubic"}, {"aggregate": "max"}]
)
def test_penalty_refuses_other_values(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must"):
        SampleProfilerPenalty(Flops(), **{"baseline": 1, **arguments})


def test_expectation_needs_an_expression() -> None:
    class Measured:
        def profile(self, sample: Sample) -> float:
            return len(sample)

    with pytest.raises(TypeError, match="must have an expression"):
        ExpectationProfilerPenalty(Measured(), 1)


def test_bounds_of_a_range_are_included() -> None:
    admits = RangeProfilerFilter(Flops(), min=9_000, max=25_000)

    assert [admits({"kernel": kernel}) for kernel in (3, 5, 7)] == [True, True, False]


def test_range_without_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="min or max"):
        RangeProfilerFilter(Flops())


def test_dicts_build_penalties_and_filters() -> None:
    arguments = {"profiler": Flops(), "baseline": 10}

    assert isinstance(expectation_penalty(arguments), ExpectationProfilerPenalty)
    assert isinstance(sample_penalty(arguments), SampleProfilerPenalty)
    assert isinstance(sample_filter({"profiler": Flops(), "max": 1}), RangeProfilerFilter)
    assert expectation_penalty(None) is sample_penalty(None) is sample_filter(None) is None


def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="penalty must"):
        expectation_penalty(SampleProfilerPenalty(Flops(), 1))
    with pytest.raises(TypeError, match="penalty must"):
        sample_penalty(3)
    with pytest.raises(TypeError, match="filter must"):
        sample_filter(3)
