"""What is believed of a loss over a tree of parameters, kept up to date with the results.

How far an axis reaches, how noisy results are, how much they owe to single axes and on which scale
they are best predicted is learnt anew now and then only; what to believe, at every ask.
"""

from typing import ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import Belief, LearntProcess
from nni.hpo.models.gp_regression import (
    Blend,
    BlendedProcess,
    blended_process,
    default_parameters,
    fitted_parameters,
)
from nni.hpo.models.subsets import covering
from nni.hpo.models.targets import SCALES, Scale, Targets, scaled, standardised

_MOST_MODELLED: Final = 500
"""Results from which losses are predicted."""
_PLAIN_ODDS: Final = 2.0
"""Logarithm of the odds of the first scale against each other one, before any result."""


class TreeModel(LearntProcess[BlendedProcess]):
    """A blended process over the features of a tree of parameters.

    Args:
        blend: what the process is made of.
    """

    added: ClassVar[int] = 1

    def __init__(self, blend: Blend) -> None:
        super().__init__()
        self._blend = blend
        self.scale: Scale = SCALES[0]
        """Of the losses, as learnt last."""

    def believe(self, points: list[Floats], losses: list[float]) -> Belief[BlendedProcess]:
        """Return what to believe after results; there is at least one.

        Args:
            points: `(f,)` each, their features.
            losses: of the points.
        """
        known, rows = np.array(losses), np.array(points)
        kept = covering(rows, known, _MOST_MODELLED)
        if self._parameters is not None and len(kept) == len(known) and self._due(len(known)):
            self.scale = self._best_scale(rows, known, self._parameters)
        targets = scaled(known, self.scale).values
        if len(kept) < len(known):
            # Scaled before the choice, which has made the worse half another one.
            rows, targets = rows[kept], standardised(targets[kept])
        return self.believe_in(rows, targets, kept, len(losses))

    def forget(self) -> None:
        """See the base."""
        super().forget()
        self.scale = SCALES[0]

    def state(self) -> JsonValue:
        """See the base."""
        return [*super().state(), self.scale]

    def load_state(self, state: JsonValue) -> None:
        """See the base."""
        *learnt, self.scale = state
        super().load_state(learnt)

    def _best_scale(self, rows: Floats, losses: Floats, parameters: Floats) -> Scale:
        """Return the scale on which each good result is predicted best by all others."""
        options = [scaled(losses, scale) for scale in SCALES]
        process = self._process(rows, options[0].values, parameters)
        evidence = [_evidence(process, targets) for targets in options]
        evidence[0] += _PLAIN_ODDS
        return SCALES[int(np.argmax(evidence))]

    def _process(self, rows: Floats, targets: Floats, parameters: Floats) -> BlendedProcess:
        return blended_process(rows, targets, self._blend, parameters)

    def _first(self, columns: int) -> Floats:
        del columns
        return default_parameters(self._blend.axes)

    def _search(
        self, rows: Floats, targets: Floats, starts: list[Floats], evaluations: int
    ) -> Floats:
        return fitted_parameters(rows, targets, self._blend, starts, evaluations=evaluations)


def _evidence(process: BlendedProcess, targets: Targets) -> float:
    """Return the logarithm of how probable good losses are, each given all others."""
    means, deviations = process.left_out(targets.values)
    aside = ((targets.values - means) / deviations)[targets.better]
    spread = np.log(deviations[targets.better])
    return float((targets.stretch - 0.5 * aside * aside - spread).sum())
