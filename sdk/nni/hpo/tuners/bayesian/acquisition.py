"""Acquisition functions of a normal prediction of the loss; larger is better.

All take means and standard deviations `(m,)` of the loss, the loss to improve on (the incumbent's,
as a rule), and a margin or weight; the logarithms keep a slope where plain values underflow.

Source: Ament et al., Unexpected Improvements to Expected Improvement, NeurIPS 2023, section 4.1.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.models.normal_distribution import (
    log_normal_cdf,
    log_normal_density,
    log_unit_improvement,
)

AcquisitionValue: TypeAlias = tuple[Floats, Floats, Floats]
"""Value, its derivative by the mean, its derivative by the standard deviation; each `(m,)`."""

AcquisitionFunction: TypeAlias = Callable[[Floats, Floats, float], AcquisitionValue]
"""Function of means `(m,)`, standard deviations `(m,)` and the loss to improve on."""


def expected_improvement(margin: float) -> AcquisitionFunction:
    """Return a function to the log expected improvement beyond a margin, and its derivatives."""

    def evaluate(mean: Floats, deviation: Floats, incumbent: float) -> AcquisitionValue:
        z = (incumbent - margin - mean) / deviation
        improvement = log_unit_improvement(z)
        # d log h / dz = Phi / h, with h = phi + z Phi.
        ratio = np.exp(log_normal_cdf(z) - improvement)
        by_mean = -ratio / deviation
        by_deviation = (1.0 - z * ratio) / deviation
        return np.log(deviation) + improvement, by_mean, by_deviation

    return evaluate


def probability_of_improvement(margin: float) -> AcquisitionFunction:
    """Return a function to the log probability of improvement beyond a margin, and derivatives."""

    def evaluate(mean: Floats, deviation: Floats, incumbent: float) -> AcquisitionValue:
        z = (incumbent - margin - mean) / deviation
        probability = log_normal_cdf(z)
        ratio = np.exp(log_normal_density(z) - probability)
        return probability, -ratio / deviation, -z * ratio / deviation

    return evaluate


def confidence_bound(weight: float) -> AcquisitionFunction:
    """Return a function to the confidence bound, `weight` deviations - mean, and derivatives."""

    def evaluate(mean: Floats, deviation: Floats, incumbent: float) -> AcquisitionValue:
        del incumbent
        return weight * deviation - mean, np.full_like(mean, -1.0), np.full_like(mean, weight)

    return evaluate


def posterior_deviation(mean: Floats, deviation: Floats, incumbent: float) -> AcquisitionValue:
    """Return the standard deviation, for pure exploration, with derivatives 0 and 1."""
    del incumbent
    return deviation, np.zeros_like(mean), np.ones_like(mean)
