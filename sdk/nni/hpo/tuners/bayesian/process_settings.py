"""How Gaussian processes model results, and how much work an ask may be."""

from dataclasses import dataclass

from nni.hpo.models.matern import Matern


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """See the arguments of `GPTuner`."""

    kernel: Matern
    alpha: float
    cold_start: int
    """Results before which points are random, where the search has no design of its own."""
    most_samples: int
    most_climbs: int
    time_limit_s: float
