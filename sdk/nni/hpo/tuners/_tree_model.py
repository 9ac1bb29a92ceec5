"""What is believed of a loss over a tree of parameters, kept up to date with the results.

How far an axis reaches, how noisy results are and how much they owe to single axes is learnt anew
now and then only; what to believe, at every ask.
"""

from typing import ClassVar, Final

import numpy as np

from nni.hpo.tuners._blended_process import (
    Blend,
    BlendedProcess,
    blended_process,
    default_parameters,
    fitted_parameters,
)
from nni.hpo.tuners._covering import covering
from nni.hpo.tuners._learnt_process import Belief, LearntProcess
from nni.hpo.tuners._parzen import Floats
from nni.hpo.tuners._targets import standardised, warped

_MOST_MODELLED: Final = 500
"""Results from which losses are predicted."""


class TreeModel(LearntProcess[BlendedProcess]):
    """A blended process over the features of a tree of parameters.

    Args:
        blend: what the process is made of.
    """

    added: ClassVar[int] = 1

    def __init__(self, blend: Blend) -> None:
        super().__init__()
        self._blend = blend

    def believe(self, points: list[Floats], losses: list[float]) -> Belief[BlendedProcess]:
        """Return what to believe after results; there is at least one.

        Args:
            points: `(f,)` each, their features.
            losses: of the points.
        """
        known, rows = np.array(losses), np.array(points)
        kept = covering(rows, known, _MOST_MODELLED)
        targets = warped(known)
        if len(kept) < len(known):
            # Warped before the choice, which has made the worse half another one.
            rows, targets = rows[kept], standardised(targets[kept])
        return self.believe_in(rows, targets, kept, len(losses))

    def _process(self, rows: Floats, targets: Floats, parameters: Floats) -> BlendedProcess:
        return blended_process(rows, targets, self._blend, parameters)

    def _first(self, columns: int) -> Floats:
        del columns
        return default_parameters(self._blend.axes)

    def _search(
        self, rows: Floats, targets: Floats, starts: list[Floats], evaluations: int
    ) -> Floats:
        return fitted_parameters(rows, targets, self._blend, starts, evaluations=evaluations)
