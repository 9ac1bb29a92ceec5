"""Settings of a Bayesian search, and how much work one ask may be.

Work is counted, not timed, so that the same calls give the same proposals on every machine.
"""

from dataclasses import dataclass

from nni.hpo.models.matern import Matern


@dataclass(frozen=True, slots=True)
class GPSettings:
    """Model and effort of a search; see the arguments of `GPTuner`."""

    matern: Matern
    least_noise: float
    """Noise variance, relative to the output scale, >= 0."""
    cold_start: int
    """Results before which proposals are random, where the search has no design of its own."""
    most_samples: int
    most_climbs: int
    time_limit_s: float
    cost_aware: bool = False
    """Whether the run times of trials are weighed."""
    cost_budget_s: float | None = None
    """See `cost_exponent`."""
    robust: bool = False
    """Whether results may have outliers; see `outliers`."""


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """Limits on the candidates, ascents and evaluations of one acquisition maximisation."""

    samples: int
    """Candidates that are evaluated; >= 1."""
    climbs: int
    """Candidates that gradient ascent starts from."""
    evaluations: int
    """Evaluations of the acquisition function, per ascent."""


def search_budget(count: int, seconds: float, most_samples: int, most_climbs: int) -> SearchBudget:
    """Return the budget of one ask that fits a time limit, with a model of `count` results.

    Args:
        count: >= 1.
        seconds: that the ask may take, the model itself included.
        most_samples: upper limit of the candidates.
        most_climbs: upper limit of the ascents.
    """
    per_sample = count * 4e-8 + count * count * 2e-10  # seconds, measured
    samples = int(min(0.25 * seconds / per_sample, 20_000 * seconds, most_samples))
    per_climb = 30 * (1e-4 + count * count * 8e-10)
    climbs = int(min(0.25 * seconds / per_climb, 50 * seconds, most_climbs))
    return SearchBudget(max(samples, 1), max(climbs, 1), evaluations=30)
