"""Bayesian optimisation over architectures: a Gaussian process, and a tree search of morphs.

Source: Jin, Song and Hu, Auto-Keras: An Efficient Neural Architecture Search System, KDD 2019,
sections 3.1 to 3.3.

Departures:
- The kernel is exp(-distance / lengthscale), whose negative eigenvalues are cut off, instead of a
  Gaussian of a random embedding; lengthscale and noise variance are the likeliest of a few.
- Losses are warped before they are modelled (see `targets`).
- With many results the best and the newest ones are modelled, so that an ask does not get slower.
- A step of the search evaluates one random child of each kind, not all of them.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final, TypeAlias

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_algebra import GaussianPosterior
from nni.hpo.models.targets import warped
from nni.hpo.tuners.network_morphism.edit_distance import Outline, distances, outline_of
from nni.hpo.tuners.network_morphism.graph import Graph
from nni.hpo.tuners.network_morphism.layers import Layer, Shape
from nni.hpo.tuners.network_morphism.morphs import children

Architecture: TypeAlias = tuple[Shape, tuple[Layer, ...]]

_MOST_BEST: Final = 100
_MOST_NEW: Final = 100
"""Results that are modelled, at most: the best and the newest."""
_COOLING: Final = 0.7
"""Factor of the temperature, per step; with the default `t_min` a search has 26 steps."""
_MOST_LAYERS: Final = 150
"""Largest number of layers; uncertainty, and so the bound, would reward ever larger
architectures."""
_LENGTHSCALES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_NOISE_VARIANCES: Final = (1e-3, 1e-2, 1e-1)
_LEAST_VARIANCE: Final = 1e-12
"""Floor of the variance of a prediction, so that its root is defined."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Architecture with the id of its model and its loss."""

    model_id: int
    graph: Graph
    loss: float


@dataclass(frozen=True, slots=True)
class ArchitectureModel:
    """Gaussian process over architectures, conditioned on warped losses."""

    outlines: tuple[Outline, ...]
    lengthscale: float
    """In morphs."""
    gaussian: GaussianPosterior

    def predict(self, distances: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(k,)` at distances `(k, n)` from the results."""
        return self.gaussian.predict(np.exp(-distances / self.lengthscale).T)


def fitted_model(
    outlines: Sequence[Outline], distances: Floats, losses: Floats
) -> ArchitectureModel:
    """Return the model with lengthscale and noise variance of the greatest likelihood.

    Args:
        outlines: of the architectures.
        distances: `(n, n)`, between them.
        losses: `(n,)`, n >= 1.
    """
    targets = warped(losses)
    best: tuple[float, ArchitectureModel] | None = None
    for lengthscale in _LENGTHSCALES:
        values, vectors = np.linalg.eigh(np.exp(-distances / lengthscale))
        projected = vectors.T @ targets
        for noise in _NOISE_VARIANCES:
            spectrum = np.maximum(values, 0.0) + noise
            likelihood = -0.5 * float((projected * projected / spectrum + np.log(spectrum)).sum())
            if best is None or likelihood > best[0]:
                precision: Floats = (vectors / spectrum) @ vectors.T
                root: Floats = (vectors / np.sqrt(spectrum)).T
                gaussian = GaussianPosterior(
                    precision @ targets, precision, root, 1.0, _LEAST_VARIANCE
                )
                best = likelihood, ArchitectureModel(tuple(outlines), lengthscale, gaussian)
    assert best is not None
    return best[1]


class BayesianOptimizer:
    """Search for the architecture with the lowest lower confidence bound of the loss.

    Args:
        beta: weight of the standard deviation in the bound.
        t_min: temperature at which a search ends, in (0, 1).
        max_model_size: greatest number of weights of an architecture.
    """

    def __init__(self, beta: float, t_min: float, max_model_size: int) -> None:
        self._beta = beta
        self._t_min = t_min
        self._max_model_size = max_model_size
        self._history: list[Evaluated] = []
        self._outlines: list[Outline] = []
        self._distances: Floats = np.empty((0, 0))
        """`(n, n)`, between all results."""

    @property
    def history(self) -> Sequence[Evaluated]:
        """All results, oldest first."""
        return self._history

    def add(self, evaluated: Evaluated) -> None:
        """Append an evaluated architecture and its edit distances to all earlier ones."""
        outline = outline_of(evaluated.graph)
        row = distances(outline, self._outlines)
        self._distances = np.pad(self._distances, (0, 1))
        self._distances[-1, :-1] = self._distances[:-1, -1] = row
        self._history.append(evaluated)
        self._outlines.append(outline)

    def generate(self, taken: Collection[Architecture], rng: Random) -> tuple[int, Graph] | None:
        """Return an untaken architecture and its root model's id; None if none was found.

        Args:
            taken: architectures that were proposed before.
            rng: of all draws.

        Returns:
            None if there is no result yet, or no child was found.
        """
        kept = self._modelled()
        if not kept:
            return None
        outlines = [self._outlines[place] for place in kept]
        between = self._distances[np.ix_(kept, kept)]
        losses = np.array([self._history[place].loss for place in kept])
        model = fitted_model(outlines, between, losses)
        roots = [self._history[place] for place in kept]
        return self._annealed(model, roots, self._bounds(model, between), set(taken), rng)

    def _modelled(self) -> list[int]:
        """Return history positions of the modelled results, the best and newest, oldest first."""
        count = len(self._history)
        order = sorted(range(count), key=lambda place: (self._history[place].loss, place))
        return sorted({*order[:_MOST_BEST], *range(max(count - _MOST_NEW, 0), count)})

    def _bounds(self, model: ArchitectureModel, distances: Floats) -> list[float]:
        """Return the lower confidence bounds of the loss at distances `(k, n)`."""
        means, deviations = model.predict(distances)
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
        """Search the morphs by annealing; return root id and child of the lowest bound, or None."""
        queue = [
            (bound, number, root.model_id, root.graph)
            for number, (bound, root) in enumerate(zip(bounds, roots, strict=True))
        ]
        heapify(queue)
        number, temperature = len(queue), 1.0
        best_bound, best = math.inf, None
        while queue and temperature > self._t_min:
            temperature *= _COOLING
            _, _, parent_id, graph = heappop(queue)
            for child in self.new_children(graph, seen, rng):
                seen.add(child.architecture)
                row = distances(outline_of(child), model.outlines)
                bound = self._bounds(model, row[None, :])[0]
                worse = max(bound - best_bound, 0.0)
                if rng.random() < math.exp(-worse / temperature):
                    number += 1
                    heappush(queue, (bound, number, parent_id, child))
                if bound < best_bound:
                    best_bound, best = bound, (parent_id, child)
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
