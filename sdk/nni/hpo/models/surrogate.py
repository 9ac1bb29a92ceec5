"""A Gaussian process with a length for every axis, kept up to date with the results."""

from typing import Final

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.gaussian_process import (
    Posterior,
    default_parameters,
    fitted_parameters,
    posterior,
    shared,
)
from nni.hpo.models.gp_model import Belief, LearntProcess
from nni.hpo.models.matern import Matern
from nni.hpo.models.subsets import covering
from nni.hpo.models.targets import standardised, warped

MOST_MODELLED: Final = 500
"""Results from which values are predicted."""


class Surrogate(LearntProcess[Posterior]):
    """Lengths and noise, and how many results they were learnt from.

    Args:
        kernel: the correlation.
        alpha: least noise, relative to the variance of the process.
        owners: `(d,)`, for every column the axis whose length it shares; see `fitted_parameters`.
    """

    def __init__(self, kernel: Matern, alpha: float, owners: Ints | None = None) -> None:
        super().__init__()
        self._kernel = kernel
        self._alpha = alpha
        self._owners = owners

    def believe(self, points: list[Floats], losses: list[float]) -> Belief[Posterior]:
        """Return what to believe after results.

        Args:
            points: `(d,)` each, one at least.
            losses: of the points.
        """
        known = np.array(losses)
        rows = np.array(points)
        kept = covering(rows, known, MOST_MODELLED)
        # Warped before the choice, which has made the worse half another one.
        rows, targets = rows[kept], standardised(warped(known)[kept])
        return self.believe_in(rows, targets, kept, len(losses))

    def _process(self, rows: Floats, targets: Floats, parameters: Floats) -> Posterior:
        owners = self._owners
        expanded = parameters if owners is None else shared(parameters, owners)
        return posterior(rows, targets, self._kernel, self._alpha, expanded)

    def _first(self, columns: int) -> Floats:
        owners = self._owners
        return default_parameters(columns if owners is None else int(owners[-1]) + 1)

    def _search(
        self, rows: Floats, targets: Floats, starts: list[Floats], evaluations: int
    ) -> Floats:
        return fitted_parameters(
            rows,
            targets,
            self._kernel,
            self._alpha,
            starts,
            evaluations=evaluations,
            owners=self._owners,
        )
