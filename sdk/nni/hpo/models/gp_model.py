"""A Gaussian process that is kept up to date with the results of an experiment.

What its parameters are is learnt anew now and then only; what it believes, at every ask.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, Protocol, TypeVar

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gaussian_process import representatives

_MOST_FITTED: Final = 150
"""Results from which parameters are learnt."""
_FEW: Final = 40
"""Results up to which the search for parameters also starts afresh: they are still uncertain."""
_EVALUATIONS: Final = 12
"""Of the posterior of the parameters, per start."""
_REFIT_SHARE: Final = 0.02
"""Share of new results after which parameters are learnt anew."""


class Process(Protocol):
    """What is believed of a function of `d` columns."""

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` of the function at `(m, d)` points."""
        ...


ProcessT = TypeVar("ProcessT", bound=Process)


@dataclass(frozen=True, slots=True)
class Belief(Generic[ProcessT]):
    """What is believed now, on a scale of its own."""

    model: ProcessT
    points: Floats
    """`(n, d)`, the results that the model is made of."""
    targets: Floats
    """`(n,)`, their losses on the model's scale."""
    kept: Ints
    """`(n,)`, their positions among all results."""

    @property
    def best(self) -> float:
        """The least loss, on the model's scale."""
        return float(self.targets.min())


class LearntProcess(ABC, Generic[ProcessT]):
    """Parameters, and how many results they were learnt from.

    They are logarithms of the lengths of `a` axes and of the noise, then those that the subclass
    adds.
    """

    added: ClassVar[int] = 0
    """Parameters after the noise."""

    def __init__(self) -> None:
        self._parameters: Floats | None = None
        self._fitted = 0

    def believe_in(self, rows: Floats, targets: Floats, kept: Ints, count: int) -> Belief[ProcessT]:
        """Return what to believe after some of the results, already on the model's scale.

        Args:
            rows: `(n, d)`, their points; n >= 1.
            targets: `(n,)`, mean 0 and variance 1.
            kept: `(n,)`, their positions among all results.
            count: how many results there are in all.
        """
        parameters = self._parameters
        if parameters is None or self._due(count):
            parameters = self._parameters = self._fit(rows, targets)
            self._fitted = count
        model = self._process(rows, targets, parameters)
        return Belief(model, rows, targets, kept)

    def _due(self, count: int) -> bool:
        """Return whether parameters are to be learnt anew with so many results."""
        return count > self._fitted * (1.0 + _REFIT_SHARE)

    def expecting(self, belief: Belief[ProcessT], running: list[Floats]) -> ProcessT:
        """Return the belief if running trials come out as predicted."""
        if not running:
            return belief.model
        open_points = np.array(running)
        means, _ = belief.model.predict(open_points)
        assert self._parameters is not None
        return self._process(
            np.concatenate([belief.points, open_points]),
            np.concatenate([belief.targets, means]),
            self._parameters,
        )

    def lengths(self) -> Floats:
        """Return the length of every axis `(a,)`, as learnt last."""
        assert self._parameters is not None
        lengths: Floats = np.exp(self._parameters[: self._noise_place])
        return lengths

    def noise(self) -> float:
        """Return the noise as learnt last, relative to the variance of the process."""
        assert self._parameters is not None
        return float(np.exp(self._parameters[self._noise_place]))

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

    @abstractmethod
    def _process(self, rows: Floats, targets: Floats, parameters: Floats) -> ProcessT:
        """Return the process after results, for given parameters."""

    @abstractmethod
    def _first(self, columns: int) -> Floats:
        """Return parameters of a process over so many columns, where a search may start."""

    @abstractmethod
    def _search(
        self, rows: Floats, targets: Floats, starts: list[Floats], evaluations: int
    ) -> Floats:
        """Return the most plausible parameters that are found from any of the starts."""

    @property
    def _noise_place(self) -> int:
        return -1 - self.added

    def _fit(self, rows: Floats, targets: Floats) -> Floats:
        kept = representatives(targets, _MOST_FITTED)
        first = self._first(rows.shape[1])
        starts = [first] if self._parameters is None else [self._parameters]
        if self._parameters is not None and len(targets) <= _FEW:
            starts.append(first)
        return self._search(rows[kept], targets[kept], starts, _EVALUATIONS)
