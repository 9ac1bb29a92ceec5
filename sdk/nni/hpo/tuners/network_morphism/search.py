"""Chooses the next architecture: a Gaussian process over architectures, and a search of morphs.

Source: Jin, Song and Hu, Auto-Keras: An Efficient Neural Architecture Search System, KDD 2019,
sections 3.1 to 3.3.

Departures:
- The kernel is exp(-distance / length), whose negative eigenvalues are cut off, instead of a
  Gaussian of a random embedding; length and noise are the likeliest of a few.
- Losses are warped before they are modelled (see `targets`).
- With many results the best and the newest ones are modelled, so that an ask does not get slower.
- A step of the search looks at one random child of each kind, not at all.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final, TypeAlias

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.models.targets import warped
from nni.hpo.tuners.network_morphism.edit_distance import Outline, distances, outline_of
from nni.hpo.tuners.network_morphism.graph import Graph
from nni.hpo.tuners.network_morphism.layers import Layer, Shape
from nni.hpo.tuners.network_morphism.morphs import children

Architecture: TypeAlias = tuple[Shape, tuple[Layer, ...]]

_MOST_BEST: Final = 100
_MOST_NEW: Final = 100
"""Results that are modelled."""
_COOLING: Final = 0.7
"""Of the temperature, per step; with the default `t_min` a search has 26 steps."""
_MOST_LAYERS: Final = 150
"""Of an architecture: a process that hopes for the unknown would add some for ever."""
_LENGTHS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_NOISES: Final = (1e-3, 1e-2, 1e-1)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An architecture with its result."""

    model_id: int
    graph: Graph
    loss: float


@dataclass(frozen=True, slots=True)
class ArchitectureModel:
    """What is believed of the losses of architectures, on the scale of the warped ones."""

    outlines: tuple[Outline, ...]
    length: float
    precision: Floats
    """`(n, n)`, inverse of the covariance of the results."""
    weights: Floats
    """`(n,)`, precision times results."""

    def predict(self, apart: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(k,)` at distances `(k, n)` from the results."""
        covariance = np.exp(-apart / self.length)
        explained = ((covariance @ self.precision) * covariance).sum(axis=1)
        return covariance @ self.weights, np.sqrt(np.maximum(1.0 - explained, 1e-12))


def fitted_model(outlines: Sequence[Outline], apart: Floats, losses: Floats) -> ArchitectureModel:
    """Return the model of results whose length and noise explain them best.

    Args:
        outlines: of the architectures.
        apart: `(n, n)`, their distances.
        losses: `(n,)`, n >= 1.
    """
    targets = warped(losses)
    best: tuple[float, ArchitectureModel] | None = None
    for length in _LENGTHS:
        values, vectors = np.linalg.eigh(np.exp(-apart / length))
        turned = vectors.T @ targets
        for noise in _NOISES:
            spread = np.maximum(values, 0.0) + noise
            likelihood = -0.5 * float((turned * turned / spread + np.log(spread)).sum())
            if best is None or likelihood > best[0]:
                precision: Floats = (vectors / spread) @ vectors.T
                weights: Floats = precision @ targets
                model = ArchitectureModel(tuple(outlines), length, precision, weights)
                best = likelihood, model
    assert best is not None
    return best[1]


class BayesianOptimizer:
    """Proposes architectures that are promising or little known.

    Args:
        beta: weight of what is not known, in standard deviations.
        t_min: temperature at which a search ends, in (0, 1).
        max_model_size: most weights of an architecture.
    """

    def __init__(self, beta: float, t_min: float, max_model_size: int) -> None:
        self._beta = beta
        self._t_min = t_min
        self._max_model_size = max_model_size
        self._history: list[Evaluated] = []
        self._outlines: list[Outline] = []
        self._apart: Floats = np.empty((0, 0))
        """Distances `(n, n)` of what was learnt."""

    @property
    def history(self) -> Sequence[Evaluated]:
        """What was learnt, oldest first."""
        return self._history

    def add(self, evaluated: Evaluated) -> None:
        """Learn a result."""
        outline = outline_of(evaluated.graph)
        row = distances(outline, self._outlines)
        self._apart = np.pad(self._apart, (0, 1))
        self._apart[-1, :-1] = self._apart[:-1, -1] = row
        self._history.append(evaluated)
        self._outlines.append(outline)

    def generate(self, taken: Collection[Architecture], rng: Random) -> tuple[int, Graph] | None:
        """Return an architecture that is not taken, with the id of the model it comes from.

        Args:
            taken: what was proposed before.
            rng: of all draws.

        Returns:
            None if nothing was learnt yet, or no child was found.
        """
        kept = self._modelled()
        if not kept:
            return None
        outlines = [self._outlines[place] for place in kept]
        apart = self._apart[np.ix_(kept, kept)]
        losses = np.array([self._history[place].loss for place in kept])
        model = fitted_model(outlines, apart, losses)
        roots = [self._history[place] for place in kept]
        return self._annealed(model, roots, self._bounds(model, apart), set(taken), rng)

    def _modelled(self) -> list[int]:
        """Return the places in the history of what is modelled, oldest first."""
        count = len(self._history)
        order = sorted(range(count), key=lambda place: (self._history[place].loss, place))
        return sorted({*order[:_MOST_BEST], *range(max(count - _MOST_NEW, 0), count)})

    def _bounds(self, model: ArchitectureModel, apart: Floats) -> list[float]:
        """Return the lower confidence bound of the loss for each row of distances."""
        means, deviations = model.predict(apart)
        bounds: list[float] = (means - self._beta * deviations).tolist()
        return bounds

    def _annealed(
        self,
        model: ArchitectureModel,
        roots: Sequence[Evaluated],
        bounds: Sequence[float],
        seen: set[Architecture],
        rng: Random,
    ) -> tuple[int, Graph] | None:
        """Search the tree of morphs; go on from a child that is no better by chance only."""
        queue = [
            (bound, number, root.model_id, root.graph)
            for number, (bound, root) in enumerate(zip(bounds, roots, strict=True))
        ]
        heapify(queue)
        number, temperature = len(queue), 1.0
        best_bound, best = math.inf, None
        while queue and temperature > self._t_min:
            temperature *= _COOLING
            _, _, father, graph = heappop(queue)
            for child in self.new_children(graph, seen, rng):
                seen.add(child.architecture)
                apart = distances(outline_of(child), model.outlines)
                bound = self._bounds(model, apart[None, :])[0]
                worse = max(bound - best_bound, 0.0)
                if rng.random() < math.exp(-worse / temperature):
                    number += 1
                    heappush(queue, (bound, number, father, child))
                if bound < best_bound:
                    best_bound, best = bound, (father, child)
        return best

    def new_children(
        self, graph: Graph, taken: Collection[Architecture], rng: Random
    ) -> list[Graph]:
        """Return random children that are small enough and not taken."""
        return [
            child
            for child in children(graph, rng)
            if len(child.layers) <= _MOST_LAYERS
            and child.size() <= self._max_model_size
            and child.architecture not in taken
        ]
