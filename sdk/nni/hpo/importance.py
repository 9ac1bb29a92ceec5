"""Hyperparameter importance: the share of the variance of results that each parameter explains.

Source: Hutter, Hoos and Leyton-Brown, An Efficient Approach for Assessing Hyperparameter
Importance, ICML 2014 (functional ANOVA of a random forest).

Departures: results are warped before the fit (see `nni.hpo.models.targets`), so that a few very
bad ones do not dominate the variance; an inactive parameter is imputed by the middle of its range;
only main effects are computed, and the rest of the variance is one number.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.encoding.columns import BELL_WIDTH, NumericColumn, levels_of
from nni.hpo.json_value import JsonValue
from nni.hpo.models.forest import Tree, grown_forest
from nni.hpo.models.targets import warped
from nni.hpo.objectives import DEFAULT_METRIC, loss_of, part_of
from nni.hpo.space.domains import ChoiceDomain, NormalDomain, Space
from nni.hpo.space.parser import parse_space, place, walk
from nni.hpo.space.typed_space import as_json

if TYPE_CHECKING:
    from nni.hpo.objectives import OptimizeMode

LEAST_TRIALS: Final = 4
"""Fewest results for an estimate."""
MOST_TRIALS: Final = 2000
"""Most results that are modelled; more are thinned at even distances."""
_TREES: Final = 32
_ROOT_OF_TWO: Final = math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Importances:
    """Shares of a result's variance by hyperparameter, that of interactions, number of trials.

    Examples:
        >>> from nni.hpo import Importances
        >>> Importances({"rate": 0.8, "depth": 0.1}, interactions=0.1, trials=40).shares["rate"]
        0.8
    """

    shares: dict[str, float]
    """Path of each hyperparameter to its share of the variance, in [0, 1], largest first."""
    interactions: float
    """Share of interactions, which no single hyperparameter explains, in [0, 1]."""
    trials: int
    """Number of results in the fit."""


def importances(
    search_space: JsonValue,
    trials: object,
    *,
    metric: str = DEFAULT_METRIC,
    optimize_mode: "OptimizeMode" = "minimize",
    seed: int = 0,
) -> Importances:
    """Return each hyperparameter's share of a metric's variance; ValueError for too few results.

    Args:
        search_space: space of the configurations.
        trials: pairs of a configuration and its report, or what `optimize` returned, or a `Study`.
            Pairs outside the space, or without a finite number, are left out.
        metric: metric in the reports; `default` is also a plain number.
        optimize_mode: direction of good results, whose differences count fully.
        seed: of the random forest.

    Returns:
        Shares, largest first, and the share of interactions.

    Raises:
        ValueError: fewer than `LEAST_TRIALS` results are left, or all are equal.
        TypeError: ``trials`` has none of its forms.

    Examples:
        >>> from random import Random
        >>> from nni.hpo import importances
        >>> space = {name: {"_type": "uniform", "_value": [0, 1]} for name in ("x", "y")}
        >>> rng = Random(0)
        >>> points = [{"x": rng.random(), "y": rng.random()} for _ in range(60)]
        >>> found = importances(space, [(point, point["x"]) for point in points])
        >>> max(found.shares, key=found.shares.get)
        'x'
    """
    space = parse_space(as_json(search_space))
    pairs_given = _pairs(trials)
    places, losses = _known(space, pairs_given, metric, optimize_mode)
    if len(losses) < LEAST_TRIALS or min(losses) == max(losses):
        raise ValueError(
            f"importance needs at least {LEAST_TRIALS} trials whose {metric!r} is a finite number, "
            f"not all equal; got {len(losses)} of {len(pairs_given)}"
        )
    axes = columns_of(space)
    if not axes:
        raise ValueError("importance needs a search space that is not empty")
    points = np.array([[axis.coordinate(found) for axis in axes] for found in places])
    categories = np.array([axis.options for axis in axes], dtype=np.int64)
    forest = grown_forest(
        points, warped(np.array(losses)), categories, _TREES, np.random.default_rng(seed)
    )
    effects = [_effects(tree, categories) for tree in forest.trees]
    shares = np.mean([effect for effect in effects if effect is not None], axis=0)
    pairs = sorted(zip((axis.path for axis in axes), shares, strict=True), key=lambda p: -p[1])
    named = {path: float(share) for path, share in pairs}
    return Importances(named, max(0.0, 1.0 - sum(named.values())), len(losses))


def _pairs(trials: object) -> Sequence[tuple[JsonValue, JsonValue]]:
    """Return configuration and report of each trial; TypeError for other forms of trials.

    Raises:
        TypeError: it has none of the forms that `importances` takes.
    """
    if isinstance(trials, Sequence):
        return trials
    results, records = getattr(trials, "results", None), getattr(trials, "trials", None)
    if results is not None:
        return [(trial.parameters, value) for trial, value in results]
    if records is not None:
        return [(record.parameters, record.result) for record in records]
    raise TypeError(
        "trials must be pairs of a configuration and its report, the result of optimize, or a "
        f"Study; got {type(trials).__name__}"
    )


def _known(
    space: Space,
    trials: Sequence[tuple[JsonValue, JsonValue]],
    metric: str,
    optimize_mode: "OptimizeMode",
) -> tuple[list[Mapping[str, JsonValue]], list[float]]:
    places: list[Mapping[str, JsonValue]] = []
    losses: list[float] = []
    own = {parameter.key for parameter in space.parameters}
    for configuration, value in _thinned(trials):
        loss = loss_of(part_of(value, metric), optimize_mode)
        if loss is None or not isinstance(configuration, dict):
            continue
        extra = frozenset(configuration.keys() - own)  # TRIAL_BUDGET, checkpoint folders
        try:
            places.append(place(space, configuration, ignore=extra))
        except ValueError:
            continue
        losses.append(loss)
    return places, losses


def _thinned(
    trials: Sequence[tuple[JsonValue, JsonValue]],
) -> Sequence[tuple[JsonValue, JsonValue]]:
    if len(trials) <= MOST_TRIALS:
        return trials
    step = len(trials) / MOST_TRIALS
    return [trials[int(position * step)] for position in range(MOST_TRIALS)]


@dataclass(frozen=True, slots=True)
class HyperparameterColumn:
    """Input column of the random forest, made from a hyperparameter."""

    path: str
    options: int
    """Number of options of a categorical one; 0 for numbers."""
    column: NumericColumn | None

    def coordinate(self, placed: Mapping[str, JsonValue]) -> float:
        """Return an option's position or a number's prior quantile; if inactive 0 or 0.5."""
        value = placed.get(self.path)
        if self.column is None:
            return 0.0 if value is None else float(value)
        if value is None:
            return 0.5
        coordinate = self.column.coordinate(value)
        if isinstance(self.column.domain, NormalDomain):
            return 0.5 * (1.0 + math.erf((coordinate - 0.5) / (BELL_WIDTH * _ROOT_OF_TWO)))
        return min(max(coordinate, 0.0), 1.0)

    def unit_coordinate(self, placed: Mapping[str, JsonValue]) -> float:
        """Return the coordinate scaled to [0, 1], options at even distances."""
        return self.coordinate(placed) / max(self.options - 1, 1)


def columns_of(space: Space) -> list[HyperparameterColumn]:
    """Return all hyperparameters of a space as columns, those of branches included."""
    columns = {c.parameter.path: c for level in levels_of(space) for c in level.numeric}
    return [
        HyperparameterColumn(p.path, len(p.domain.options), None)
        if isinstance(p.domain, ChoiceDomain)
        else HyperparameterColumn(p.path, 0, columns[p.path])
        for p in walk(space)
    ]


def _effects(tree: Tree, categories: Ints) -> Floats | None:
    """Return each column's main effect `(d,)`, as a share of the tree's variance; None if it is 0.

    None for a tree without variance.
    """
    boxes = _Boxes.of(tree, categories)
    weights = boxes.shares.prod(axis=1)
    mean = float(weights @ boxes.values)
    variance = float(weights @ (boxes.values - mean) ** 2)
    if variance <= 0.0:
        return None
    return np.array(
        [boxes.effect(column, weights, mean) / variance for column in range(len(categories))]
    )


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Leaves of a tree as boxes that partition the space."""

    low: Floats
    """`(leaves, d)`; of numbers."""
    high: Floats
    sets: list[Bools]
    """Per column `(leaves, k)`, the options inside the box; `(leaves, 0)` for numbers."""
    shares: Floats
    """`(leaves, d)`, share of each axis that the box covers."""
    values: Floats
    """`(leaves,)`"""

    @classmethod
    def of(cls, tree: Tree, categories: Ints) -> "_Boxes":
        count = len(tree.columns)
        low, high = np.zeros((count, len(categories))), np.ones((count, len(categories)))
        sets = [np.ones((count, size), dtype=np.bool_) for size in categories]
        for node in range(count):  # a parent stands before its children
            column = int(tree.columns[node])
            if column < 0:
                continue
            left, right = tree.children[node]
            for child in (left, right):
                low[child], high[child] = low[node], high[node]
                for options in sets:
                    options[child] = options[node]
            if tree.categorical[node]:
                goes_left = tree.left_sets[node, : categories[column]]
                sets[column][left] &= goes_left
                sets[column][right] &= ~goes_left
            else:
                high[left, column] = low[right, column] = tree.thresholds[node]
        leaf = tree.columns < 0
        shares = high - low
        for column, size in enumerate(categories):
            if size:
                shares[:, column] = sets[column].mean(axis=1)
        return cls(low[leaf], high[leaf], [s[leaf] for s in sets], shares[leaf], tree.means[leaf])

    def effect(self, column: int, weights: Floats, mean: float) -> float:
        """Return the variance, along one axis, of the prediction averaged over the other axes."""
        share = self.shares[:, column]
        inside = share > 0
        rest = weights[inside] / share[inside] * self.values[inside]
        options = self.sets[column][inside]
        if options.shape[1]:
            averages = rest @ options
            return float(((averages - mean) ** 2).mean())
        edges = np.unique(np.concatenate([self.low[inside, column], self.high[inside, column]]))
        middles = 0.5 * (edges[1:] + edges[:-1])
        within = (self.low[inside, column, None] < middles) & (
            middles < self.high[inside, column, None]
        )
        averages = rest @ within
        return float(np.diff(edges) @ (averages - mean) ** 2)
