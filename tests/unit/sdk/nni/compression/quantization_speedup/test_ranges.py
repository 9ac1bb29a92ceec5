"""Thresholds of histograms against distributions with known answers."""

from __future__ import annotations

import pytest
import torch

from nni.compression.quantization_speedup.ranges import (
    BINS,
    entropy_threshold,
    quantile_threshold,
)


def histogram_of(values: torch.Tensor) -> tuple[torch.Tensor, float]:
    largest = float(values.abs().max())
    return torch.histc(values.abs(), BINS, 0.0, largest), largest


def test_a_single_outlier_is_clipped() -> None:
    values = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
    values[0] = 100.0

    threshold = entropy_threshold(*histogram_of(values))

    assert 3 < threshold < 10


def test_a_uniform_distribution_is_not_clipped() -> None:
    values = torch.rand(100_000, generator=torch.Generator().manual_seed(0))

    assert entropy_threshold(*histogram_of(values)) > 0.95


def test_values_that_are_all_zero_keep_their_range() -> None:
    counts = torch.zeros(BINS)
    counts[0] = 10.0

    assert entropy_threshold(counts, 0.0) == 0.0


@pytest.mark.parametrize(("quantile", "expected"), [(0.5, 5.0), (0.9, 9.0), (1.0, 10.0)])
def test_a_quantile_is_the_end_of_its_bin(quantile: float, expected: float) -> None:
    assert quantile_threshold(torch.ones(10), 10.0, quantile) == pytest.approx(expected, abs=1.0)
