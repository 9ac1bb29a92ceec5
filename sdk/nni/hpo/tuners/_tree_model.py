"""What `auto` believes of a loss, kept up to date with the results of an experiment.

How far an axis reaches, how noisy results are and how much they owe to single axes is learnt anew
now and then only; what to believe, at every ask.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._blended_process import (
    BlendedProcess,
    blended_process,
    default_parameters,
    fitted_parameters,
)
from nni.hpo.tuners._gaussian_process import representatives
from nni.hpo.tuners._parzen import Floats, Ints
from nni.hpo.tuners._targets import warped

_MOST_FITTED: Final = 150
"""Results from which parameters are learnt."""
_MOST_MODELLED: Final = 400
"""Results from which losses are predicted."""
_FEW: Final = 40
"""Results up to which the search for parameters also starts afresh: they are still uncertain."""
_EVALUATIONS: Final = 12
"""Of the posterior of the parameters, per start."""
_REFIT_SHARE: Final = 0.02
"""Share of new results after which parameters are learnt anew."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is believed now, on a scale of its own."""

    model: BlendedProcess
    points: Floats
    """`(n, f)`, features of the results that the model is made of."""
    targets: Floats
    """`(n,)`, their losses on the model's scale."""
    kept: Ints
    """`(n,)`, their positions among all results."""

    @property
    def best(self) -> float:
        """The least loss, on the model's scale."""
        return float(self.targets.min())


class TreeModel:
    """Parameters of a blended process, and how many results they were learnt from.

    Args:
        owners: `(f,)`, the axis of each feature, ascending from 0.
    """

    def __init__(self, owners: Ints) -> None:
        self._owners = owners
        self._axes = int(owners[-1]) + 1 if len(owners) else 0
        self._parameters: Floats | None = None
        self._fitted = 0

    def believe(self, points: list[Floats], losses: list[float]) -> Belief:
        """Return what to believe after results; there is at least one."""
        known = np.array(losses)
        kept = representatives(known, _MOST_MODELLED)
        rows, targets = np.array(points)[kept], warped(known[kept])
        if self._parameters is None or len(losses) > self._fitted * (1.0 + _REFIT_SHARE):
            self._parameters = self._fit(rows, targets)
            self._fitted = len(losses)
        return Belief(self._process(rows, targets), rows, targets, kept)

    def expecting(self, belief: Belief, running: list[Floats]) -> BlendedProcess:
        """Return the belief if running trials come out as predicted."""
        if not running:
            return belief.model
        open_points = np.array(running)
        means, _ = belief.model.predict(open_points)
        return self._process(
            np.concatenate([belief.points, open_points]), np.concatenate([belief.targets, means])
        )

    def lengths(self) -> Floats:
        """Return the length of every axis `(a,)`, as learnt last."""
        assert self._parameters is not None
        lengths: Floats = np.exp(self._parameters[: self._axes])
        return lengths

    def noise(self) -> float:
        """Return the noise as learnt last, relative to the variance of the process."""
        assert self._parameters is not None
        return float(np.exp(self._parameters[self._axes]))

    def forget(self) -> None:
        """Begin again, for another space."""
        self._parameters, self._fitted = None, 0

    def state(self) -> JsonValue:
        """Return what `load_state` needs, as JSON."""
        parameters = None if self._parameters is None else self._parameters.tolist()
        return [parameters, self._fitted]

    def load_state(self, state: JsonValue) -> None:
        """Take over what `state` gave."""
        parameters, self._fitted = state
        self._parameters = None if parameters is None else np.array(parameters, dtype=np.float64)

    def _process(self, rows: Floats, targets: Floats) -> BlendedProcess:
        assert self._parameters is not None
        return blended_process(rows, targets, self._owners, self._parameters)

    def _fit(self, rows: Floats, targets: Floats) -> Floats:
        kept = representatives(targets, _MOST_FITTED)
        default = default_parameters(self._axes)
        starts = [default] if self._parameters is None else [self._parameters]
        if self._parameters is not None and len(targets) <= _FEW:
            starts.append(default)
        return fitted_parameters(
            rows[kept], targets[kept], self._owners, starts, evaluations=_EVALUATIONS
        )
